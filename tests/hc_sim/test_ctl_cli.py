import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hc_sim.cli import main
from hc_sim.control.listener import control_path

WAIT_S = 20
COMMAND = [sys.executable, "-c", "from hc_sim.cli import main; main(prog_name='hc-sim')"]
ROOT = Path(__file__).parents[2]
SCRIPT = '[[agent]]\nstatus = "idle"\n[[agent.step]]\nby_hand = "allow"\nstatus = "done"\n'


class Serving:
    """A running `hc-sim serve`, and the environment that it printed."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.process = process
        self.exports = [process.stdout.readline() for _ in range(5)]
        found = re.findall(r"export (HC_\w+)=(\S+)\n", "".join(self.exports))
        self.env = {**dict(found), "PATH": "/usr/bin:/bin"}

    def hc(self, *words: str) -> str:
        command = [self.env["HC_BIN"], *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout

    def ctl(self, *words: str) -> str:
        result = CliRunner().invoke(main, ["ctl", "--socket", self.env["HC_SOCKET"], *words])
        assert result.exit_code == 0, result.output
        return result.output


@contextlib.contextmanager
def serve(*words: str, stdin: int = subprocess.PIPE) -> Iterator[Serving]:
    process = subprocess.Popen(
        [*COMMAND, "serve", *words], cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield Serving(process)
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_S)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    (tmp_path / "s.toml").write_text(SCRIPT)
    with serve("--script", str(tmp_path / "s.toml")) as running:
        running.hc("run", "--bg", "--name", "alpha", "--", "pi", "--key", "hunter2")
        yield running


def test_an_agent_is_played_from_another_shell(serving: Serving) -> None:
    assert "alpha" in serving.ctl("ls")
    assert "hunter2" not in serving.ctl("ls")
    serving.ctl("move", "alpha", "blocked", "question", "which one?")
    status = json.loads(serving.hc("get", "--json", "alpha"))["status"]
    assert (status["state"], status["kind"], status["msg"]) == ("blocked", "question", "which one?")
    serving.ctl("move", "alpha", "finish", "3")
    assert json.loads(serving.hc("get", "--json", "alpha"))["exit_code"] == 3


def test_steps_are_fired_and_faults_planned_from_another_shell(serving: Serving) -> None:
    assert serving.ctl("fire", "allow") == "1 step by hand: allow\n"
    serving.ctl("fault", "terminal.list", "error.kind=busy", "error.message=later")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        serving.hc("ls")
    assert caught.value.stderr == "hc: later\n"
    serving.hc("ls")


def test_what_happened_can_be_asked_for_and_watched(serving: Serving) -> None:
    assert "-> terminal.run" in serving.ctl("trace", "50")
    assert "starts, turn 0 idle" in serving.ctl("picture")
    watch = subprocess.Popen(
        [*COMMAND, "ctl", "--socket", serving.env["HC_SOCKET"], "watch", "1"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    while watch.poll() is None:
        serving.hc("ls")
    assert re.fullmatch(r" +\d+\.\d{3} +#\d+ .*\n", watch.communicate(timeout=WAIT_S)[0])


def test_exit_codes_tell_a_refusal_from_an_absent_core(serving: Serving, tmp_path: Path) -> None:
    runner = CliRunner()
    for words, code, said in (
        (["--socket", serving.env["HC_SOCKET"], "move", "nobody", "done"], 1, "no terminal 'nobody'"),
        (["--socket", str(tmp_path / "none"), "ls"], 3, "no fake core takes commands at"),
        (["ls"], 2, "say which core"),
        ([], 2, "Missing argument"),
    ):
        result = runner.invoke(main, ["ctl", *words])
        assert (result.exit_code, said in result.output) == (code, True), result.output


def test_the_environment_says_which_core_is_meant(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HC_TERMINAL_SOCKET", serving.env["HC_SOCKET"])
    assert "alpha" in CliRunner().invoke(main, ["ctl", "ls"]).output
    monkeypatch.setenv("HC_SOCKET", "/nowhere/s")
    assert CliRunner().invoke(main, ["ctl", "ls"]).exit_code == 3


def test_a_line_on_stdin_is_a_command_as_well(serving: Serving) -> None:
    process = serving.process
    assert process.stdin is not None
    process.stdin.write("move alpha error 'bad luck'\nmove alpha dancing\nfire allow\n")
    process.stdin.flush()
    assert process.stderr is not None
    lines: list[str] = []
    while "steps by hand" not in (lines or [""])[-1]:
        lines.append(process.stderr.readline())
    said = [line for line in lines if line.startswith("hc-sim: ")]
    assert re.fullmatch(r"hc-sim: t2  alpha +running  turn 0  error bad luck  pi\n", said[-3])
    assert said[-2].startswith("hc-sim: no state 'dancing'")
    assert said[-1] == "hc-sim: 0 steps by hand: allow\n"


def test_the_control_socket_goes_with_the_core(serving: Serving) -> None:
    path = control_path(serving.env["HC_SOCKET"])
    assert path.is_socket()
    serving.process.send_signal(signal.SIGINT)
    serving.process.wait(WAIT_S)
    assert not path.exists()


def test_where_its_path_would_be_too_long_the_core_serves_without(tmp_path: Path) -> None:
    folder = Path("/tmp") / ("d" * 90 + str(os.getpid() % 1_000_000))
    path = folder / ("s" * (107 - len(str(folder)) - 2))
    with serve("--socket", str(path)) as serving:
        assert serving.hc("ls")
        assert serving.process.stderr is not None
        assert serving.process.stderr.readline().startswith("hc-sim: no commands from other shells: cannot listen at")
    assert not folder.exists()


def test_the_help_of_ctl_lists_every_command() -> None:
    text = CliRunner().invoke(main, ["ctl", "--help"]).output
    for word in ("ls", "move TERMINAL", "fault METHOD", "fire NAME", "trace [N]", "watch [N]"):
        assert word in text
    assert "ctl" in CliRunner().invoke(main, ["--help"]).output


def test_the_console_needs_a_terminal() -> None:
    done = subprocess.run(
        [*COMMAND, "serve", "--console"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hc-sim: the console needs a terminal")


def test_without_its_library_the_console_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = CliRunner().invoke(main, ["serve", "--console"])
    assert result.exit_code == 2
    assert "pip install 'legion-contracts[console]'" in result.output


def read_until(fd: int, wanted: bytes) -> bytes:
    seen, end = b"", time.monotonic() + WAIT_S
    while wanted not in seen and time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65_536)
    assert wanted in seen, seen
    return seen


def test_the_console_on_a_real_terminal_moves_agents_and_leaves_the_screen_as_it_was() -> None:
    pytest.importorskip("prompt_toolkit")
    control, terminal = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "LINES": "30", "COLUMNS": "110"}
    process = subprocess.Popen(
        [*COMMAND, "serve", "--console"], cwd=ROOT, stdin=terminal, stdout=terminal, stderr=terminal, env=env
    )
    os.close(terminal)
    try:
        seen = read_until(control, b"t1")
        found = re.search(rb"HC_SOCKET=(\S+)", seen)
        assert found is not None
        core = found.group(1).decode()
        os.write(control, b"b")
        read_until(control, b"blocked")
        assert "blocked permission" in CliRunner().invoke(main, ["ctl", "--socket", core, "ls"]).output
        os.write(control, b"q")
        read_until(control, b"hc-sim: ended")
        assert process.wait(WAIT_S) == 0
        assert not Path(core).exists()
    finally:
        process.kill()
        process.wait(WAIT_S)
        os.close(control)
