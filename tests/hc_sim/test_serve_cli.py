import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from hc_sim.cli import main
from hc_sim.script.load import read_script

WAIT_S = 20
COMMAND = [sys.executable, "-c", "from hc_sim.cli import main; main(prog_name='hc-sim')"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hcc-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


class Serving:
    """A running `hc-sim serve` and the environment that it printed."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        script = (
            "".join(lines) + 'printf "%s\\n" "$HC_BIN" "$HC_SOCKET" "$HC_TERMINAL_SOCKET" "$HC_TERMINAL_ID" "$PATH"'
        )
        shell = subprocess.run(
            ["/bin/sh", "-c", script], capture_output=True, text=True, check=True, env={"PATH": "/p"}
        )
        names = ("HC_BIN", "HC_SOCKET", "HC_TERMINAL_SOCKET", "HC_TERMINAL_ID", "PATH")
        self.env = dict(zip(names, shell.stdout.splitlines(), strict=True))

    def hc(self, *words: str) -> str:
        done = subprocess.run(
            [self.env["HC_BIN"], *words], env=self.env, capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it by a signal; returns the exit code and what it showed."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, str(err)


@contextlib.contextmanager
def serve(*words: str, stdin: int | IO[str] = subprocess.PIPE) -> Iterator[Serving]:
    process = subprocess.Popen(
        [*COMMAND, "serve", *words],
        cwd=ROOT,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Serving(process)
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_S)


def failing(*words: str, home: Path | None = None) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, "serve", *words],
        cwd=ROOT,
        env={**os.environ, **({"TMPDIR": str(home)} if home else {})},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_well_and_nothing_is_left(number: signal.Signals) -> None:
    with serve() as serving:
        socket_path, home = Path(serving.env["HC_SOCKET"]), Path(serving.env["HC_BIN"]).parents[1]
        assert socket_path.is_socket()
        code, err = serving.end(number)
    assert code == 0
    assert err.endswith("hc-sim: ended\n")
    assert "Traceback" not in err
    assert not socket_path.exists()
    assert not home.exists()


def test_what_it_prints_leads_hc_to_it(folder: Path) -> None:
    with serve() as serving:
        assert serving.env["HC_SOCKET"] == serving.env["HC_TERMINAL_SOCKET"]
        assert serving.env["PATH"] == f"{Path(serving.env['HC_BIN']).parent}:/p"
        me = json.loads(serving.hc("get", "--json", serving.env["HC_TERMINAL_ID"]))
        assert (me["state"], me["name"]) == ("running", "you")
        assert "herdr.space" in me["labels"]
        serving.hc("run", "--bg", "--name", "a", "--", "pi", "a task")
        assert json.loads(serving.hc("get", "--json", "a"))["parent"] == serving.env["HC_TERMINAL_ID"]


def test_without_a_script_agents_are_polite() -> None:
    with serve() as serving:
        serving.hc("run", "--bg", "--name", "a", "--", "pi")
        serving.hc("wait", "a", "--timeout", "10")
        serving.hc("send", "a", "please")
        serving.hc("wait", "a", "--timeout", "10")
        terminal = json.loads(serving.hc("get", "--json", "a"))
    assert (terminal["turn"], terminal["status"]["state"]) == (1, "done")


def test_calls_are_shown_as_they_come_without_values_of_variables() -> None:
    with serve() as serving:
        serving.hc("run", "--bg", "--name", "shown", "--", "pi", "\x1b[2Jtask")
        request = {"jsonrpc": "2.0", "id": 1, "method": "terminal.run"}
        request["params"] = {"argv": ["pi"], "env": {"TOKEN": "hunter2"}}
        subprocess.run(
            [serving.env["HC_BIN"], "connect"],
            input=json.dumps(request).encode(),
            env=serving.env,
            capture_output=True,
            check=True,
            timeout=WAIT_S,
        )
        _, err = serving.end()
    assert re.search(r"#1  -> terminal\.run argv=\['pi', '.*x1b\[2Jtask'\] name=shown", err)
    assert re.search(r"#1  <- terminal\.run t2 turn 0", err)
    assert "env={TOKEN}" in err
    assert "hunter2" not in err
    assert "\x1b" not in err


def test_secrets_are_shown_only_to_those_who_ask_for_them() -> None:
    command = ("run", "--bg", "--name", "alpha", "--", "pi", "--api-key", "sesame", "go")
    with serve() as serving:
        serving.hc(*command)
        hidden = serving.end()[1]
    with serve("--show-secrets") as serving:
        serving.hc(*command)
        shown = serving.end()[1]
    assert "--api-key (hidden) go" in hidden
    assert "sesame" not in hidden
    assert "--api-key sesame go" in shown


def test_quiet_shows_no_calls() -> None:
    with serve("--quiet") as serving:
        serving.hc("ls")
        _, err = serving.end()
    assert "terminal.list" not in err


def test_a_script_and_a_profile_are_followed(folder: Path) -> None:
    (folder / "script.toml").write_text(
        '[[agent]]\nstatus = "blocked"\nturn = 3\n'
        '[[fault]]\nmethod = "terminal.rm"\nerror = { kind = "busy", message = "no" }\n'
    )
    (folder / "profile.toml").write_text('live_state = "alive"\n')
    with serve("--script", str(folder / "script.toml"), "--profile", str(folder / "profile.toml")) as serving:
        serving.hc("run", "--bg", "--name", "a", "--", "pi")
        terminal = json.loads(serving.hc("get", "--json", "a"))
        removal = subprocess.run(
            [serving.env["HC_BIN"], "rm", "a"], env=serving.env, capture_output=True, text=True, check=False
        )
    assert (terminal["state"], terminal["turn"], terminal["status"]["state"]) == ("alive", 3, "blocked")
    assert removal.stderr == "hc: no\n"


def test_a_word_on_stdin_fires_the_steps_that_wait_for_it(folder: Path) -> None:
    (folder / "s.toml").write_text('[[agent]]\n[[agent.step]]\nby_hand = "allow"\nstatus = "done"\n')
    with serve("--script", str(folder / "s.toml"), "--quiet") as serving:
        assert serving.process.stdin is not None
        assert serving.process.stderr is not None
        serving.hc("run", "--bg", "--name", "a", "--", "pi")
        serving.process.stderr.readline()
        for words, answer in (
            ("nope\n\n", "no step by hand has the name 'nope'; known: allow"),
            ("al", ""),
            ("low\n", "1 step by hand: allow"),
        ):
            serving.process.stdin.write(words)
            serving.process.stdin.flush()
            if answer:
                assert serving.process.stderr.readline() == f"hc-sim: {answer}\n"
        assert json.loads(serving.hc("get", "--json", "a"))["status"]["state"] == "done"
        serving.process.stdin.close()
        serving.process.stdin = None  # `communicate` would flush it
        assert serving.hc("ls")


@pytest.mark.parametrize("stdin", ["/dev/null", "file"])
def test_it_goes_on_whatever_its_stdin_is(folder: Path, stdin: str) -> None:
    (folder / "file").write_text("allow\n")
    with (folder / stdin).open() as source, serve(stdin=source) as serving:
        assert serving.hc("ls")
        assert serving.end()[0] == 0


def test_a_socket_can_be_named_and_its_folder_is_made_and_removed(folder: Path) -> None:
    path = folder / "new dir" / "core.sock"
    with serve("--socket", str(path)) as serving:
        assert serving.env["HC_SOCKET"] == str(path)
        serving.hc("ls")
        serving.end()
    assert list(folder.iterdir()) == []


def test_what_cannot_be_a_socket_is_one_line_and_leaves_nothing(folder: Path) -> None:
    (folder / "file").write_text("mine")
    (folder / "home").mkdir()
    for path, why in (
        (folder / "file", "there is a file there, and it is not a socket"),
        (folder / ("x" * 120), f"the path is {len(str(folder)) + 121} bytes long and the limit is 107"),
    ):
        assert failing("--socket", str(path), home=folder / "home") == (
            1,
            f"hc-sim: cannot listen at {path}: {why}\n",
        )
    code, err = failing("--socket", str(folder), home=folder / "home")
    assert (code, "is a directory" in err) == (2, True)
    assert sorted(entry.name for entry in folder.iterdir()) == ["file", "home"]
    assert list((folder / "home").iterdir()) == []


def test_a_temporary_folder_with_a_long_name_does_not_stop_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder / ("d" * 90)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    with serve() as serving:
        assert serving.hc("ls")
        assert serving.env["HC_SOCKET"].startswith("/tmp/")


def test_somebody_elses_live_core_is_left_alone(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.fspath(path))
        other.listen(1)
        assert failing("--socket", str(path)) == (
            1,
            f"hc-sim: cannot listen at {path}: another core is listening there\n",
        )
        assert path.is_socket()


def test_a_mistake_in_a_script_is_named_with_its_line_before_anything_starts(folder: Path) -> None:
    script = folder / "s.toml"
    script.write_text('[[agent]]\nstatus = "idle"\nturns = 3\n')
    code, err = failing("--script", str(script))
    assert code == 2
    assert err.startswith(f"hc-sim: {script}:3: ")
    assert "turn" in err
    assert err.count("\n") == 1
    assert failing("--profile", str(folder / "none.toml"))[0] == 2


def test_the_example_is_a_valid_script_and_says_what_each_part_is_for(folder: Path) -> None:
    text = CliRunner().invoke(main, ["example"]).output
    (folder / "example.toml").write_text(text)
    script = read_script(folder / "example.toml")
    assert len(script.agent) == 3
    assert script.fault == []
    assert text.count("#") > 10


def test_the_fault_that_the_example_leaves_out_is_valid_too(folder: Path) -> None:
    text = CliRunner().invoke(main, ["example"]).output
    commented = text[text.index("# [[fault]]") :]
    (folder / "fault.toml").write_text(re.sub(r"^# ", "", commented, flags=re.MULTILINE))
    (fault,) = read_script(folder / "fault.toml").fault
    assert (fault.method, fault.nth, fault.reply) == ("terminal.send", 2, False)


def test_help_says_how_to_begin() -> None:
    text = CliRunner().invoke(main, ["serve", "--help"]).output
    assert "hc-sim example > agents.toml" in text
    assert "Ctrl-C" in text


def test_it_can_be_started_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hc_sim.cli", "example"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "[[agent]]" in done.stdout
