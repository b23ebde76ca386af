import asyncio
import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hc_sim import programs
from hc_sim.core import Core
from hc_sim.faults import Fault
from hc_sim.hub.connection import Hub
from hc_sim.programs import install_hc
from hc_sim.programs.install import shebang
from hc_sim.script.format import Agent, Step
from hc_sim.server import Driver, UnixServer

WAIT_S = 20
AGENTS = [
    Agent(
        status="idle",
        step=[Step(on_call="terminal.send", turn_add=1, status="working", msg="busy"), Step(after_ms=5, status="done")],
    )
]


@dataclass
class World:
    """A core on a real socket, in a thread of its own, and an `hc` that leads to it."""

    folder: Path
    hc: Path
    path: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        return {"HC_SOCKET": str(self.path), **self.extra}

    def run(self, *words: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        done = subprocess.run(
            [self.hc, *words],
            input=data,
            env=dict(self.env if env is None else env),
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def out(self, *words: str) -> str:
        code, out, err = self.run(*words)
        assert (code, err) == (0, ""), words
        return out

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        return subprocess.Popen([self.hc, *words], stdin=pipe, stdout=pipe, stderr=pipe, env=self.env)


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hcp-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def serving(path: Path, *faults: Fault) -> Iterator[None]:
    """A core at `path` for as long as the block lasts."""
    ready = threading.Event()
    state: dict[str, Any] = {}

    async def serve() -> None:
        ending = asyncio.Event()
        state.update(loop=asyncio.get_running_loop(), ending=ending)
        driver = Driver(Hub(Core(agents=AGENTS), faults))
        async with UnixServer(driver, path):
            ready.set()
            await ending.wait()
        driver.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(WAIT_S)
        yield
    finally:
        state["loop"].call_soon_threadsafe(state["ending"].set)
        thread.join(WAIT_S)


@pytest.fixture
def world(folder: Path) -> Iterator[World]:
    with serving(folder / "s"):
        yield World(folder, install_hc(folder), folder / "s")


def request(method: str, id_: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n"


@contextlib.contextmanager
def peer(path: Path) -> Iterator[socket.socket]:
    """A core of the test's own: it only listens."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
        listener.listen(1)
        listener.settimeout(WAIT_S)
        yield listener


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, str]:
    """Exit code and stderr of a program that ends by itself."""
    with process:
        assert process.stderr is not None
        return process.wait(WAIT_S), process.stderr.read().decode()


# ---- connect


@pytest.mark.parametrize("words", [("connect",), ("connect", "--json")])
def test_connect_carries_requests_and_replies_and_ends_with_stdin(world: World, words: tuple[str, ...]) -> None:
    code, out, err = world.run(*words, data=request("hello", "a") + request("terminal.list", "b"))
    assert (code, err) == (0, "")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a", "b"]


def test_connect_answers_while_stdin_stays_open(world: World) -> None:
    with world.start("connect") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(request("hello", number))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(WAIT_S) == 0


def test_a_last_line_without_its_end_is_carried_too(world: World) -> None:
    code, out, _ = world.run("connect", data=request("hello").rstrip(b"\n"))
    assert code == 0
    assert json.loads(out)["id"] == 1


def test_replies_that_are_owed_at_the_end_of_stdin_still_come(folder: Path) -> None:
    with serving(folder / "s", Fault(method="hello", delay_ms=100)):
        code, out, err = World(folder, install_hc(folder), folder / "s").run("connect", data=request("hello"))
    assert (code, err) == (0, "")
    assert "result" in json.loads(out)


def test_megabytes_pass_both_ways_unchanged(folder: Path) -> None:
    """More than every buffer holds, with an echoing peer: a bridge that waits in one direction would stop for ever."""
    data = os.urandom(6_000_000)

    def echo(listener: socket.socket) -> None:
        link, _ = listener.accept()
        with link:
            while chunk := link.recv(100_000):
                link.sendall(chunk)

    with peer(folder / "s") as listener:
        thread = threading.Thread(target=echo, args=(listener,))
        thread.start()
        done = subprocess.run(
            [install_hc(folder), "connect"],
            input=data,
            env={"HC_SOCKET": str(folder / "s")},
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        thread.join(WAIT_S)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == data


def test_replies_are_read_although_the_core_reads_no_more_requests(folder: Path) -> None:
    with peer(folder / "s") as listener, World(folder, install_hc(folder), folder / "s").start("connect") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        link, _ = listener.accept()
        os.set_blocking(process.stdin.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(process.stdin.fileno(), b"x" * 65_536)
        link.sendall(b"still here\n")
        assert process.stdout.readline() == b"still here\n"
        link.close()
        assert process.wait(WAIT_S) == 1


def test_requests_are_carried_although_nobody_reads_the_replies(folder: Path) -> None:
    with peer(folder / "s") as listener, World(folder, install_hc(folder), folder / "s").start("connect") as process:
        assert process.stdin is not None
        link, _ = listener.accept()
        link.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                link.send(b"y" * 65_536)
        process.stdin.write(b"passes\n")
        process.stdin.flush()
        link.settimeout(WAIT_S)
        assert link.recv(100) == b"passes\n"
        link.close()
        process.kill()


def test_a_core_that_goes_away_is_said_in_one_line(folder: Path) -> None:
    with peer(folder / "s") as listener:
        process = World(folder, install_hc(folder), folder / "s").start("connect")
        listener.accept()[0].close()
        assert ended(process) == (1, "hc: the core closed the connection\n")


def test_what_the_core_said_before_it_went_is_not_lost(folder: Path) -> None:
    with peer(folder / "s") as listener:
        process = World(folder, install_hc(folder), folder / "s").start("connect")
        link, _ = listener.accept()
        link.sendall(b"z" * 100_000 + b"\n")
        link.close()
        assert process.stdout is not None
        assert process.stdout.read() == b"z" * 100_000 + b"\n"
        assert ended(process) == (1, "hc: the core closed the connection\n")


def test_connect_ends_when_nobody_reads_its_stdout_any_more(folder: Path) -> None:
    with peer(folder / "s") as listener:
        process = World(folder, install_hc(folder), folder / "s").start("connect")
        link, _ = listener.accept()
        assert process.stdout is not None
        process.stdout.close()
        assert ended(process) == (1, "hc: nobody reads stdout\n")
        assert link.recv(1) == b""
        link.close()


def test_connect_without_any_stdin_ends_at_once(world: World) -> None:
    script = f'exec "{world.hc}" connect <&-'
    done = subprocess.run(["/bin/sh", "-c", script], env=world.env, capture_output=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_ends_connect_without_a_traceback(folder: Path, number: int) -> None:
    with peer(folder / "s") as listener:
        process = World(folder, install_hc(folder), folder / "s").start("connect")
        link, _ = listener.accept()
        link.sendall(b"up\n")
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        code, err = ended(process)
        link.close()
    assert err == ""
    assert code in (130, -15)


def test_a_core_that_is_not_there_is_one_line_for_each_reason(folder: Path) -> None:
    hc = install_hc(folder / "bin")
    (folder / "file").write_text("")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(folder / "dead"))
    not_one = "that is not a socket"
    reasons = {"none": "there is no such socket", "dead": "nobody listens there", "file": not_one, "bin": not_one}
    for name, reason in reasons.items():
        path = folder / name
        for verb in ("connect", "ls"):
            assert World(folder, hc, path).run(verb) == (1, "", f"hc: cannot reach a core at {path}: {reason}\n")


def test_a_socket_path_that_is_too_long_is_said_in_bytes(folder: Path) -> None:
    path = folder / ("x" * 100)
    code, out, err = World(folder, install_hc(folder), path).run("connect")
    size = len(str(path))
    assert (code, out, err) == (1, "", f"hc: the socket path is {size} bytes long and the limit is 107: {path}\n")


@pytest.mark.parametrize("variable", ["HC_SOCKET", "HC_TERMINAL_SOCKET"])
def test_either_variable_leads_to_the_core(world: World, variable: str) -> None:
    assert world.run("ls", env={variable: str(world.path)})[0] == 0


def test_hc_socket_goes_before_the_terminal_and_that_before_the_session(folder: Path) -> None:
    hc = install_hc(folder)
    env = {"XDG_RUNTIME_DIR": "/rt"}
    for more, path in (
        ({}, "/rt/hc/default.sock"),
        ({"HC_SESSION": "two"}, "/rt/hc/two.sock"),
        ({"HC_TERMINAL_SOCKET": "/t"}, "/t"),
        ({"HC_SOCKET": "/s"}, "/s"),
        ({"HC_SOCKET": ""}, "/t"),
    ):
        env |= more
        assert f" at {path}: " in World(folder, hc, folder).run("ls", env=env)[2]
    assert " at /h/.local/state/hc/default.sock: " in World(folder, hc, folder).run("ls", env={"HOME": "/h"})[2]


def test_connect_imports_nothing_but_c_modules_beyond_a_bare_start(world: World) -> None:
    """Its start is paid for every child: `import socket` alone would cost more than the whole of it."""
    bare = subprocess.run(
        [sys.executable, "-IS", "-c", "import os, sys; print(*sys.modules)"], capture_output=True, check=True
    )
    probe = f"import sys; sys.argv = ['hc', 'connect']; sys.path.insert(0, {str(world.folder)!r}); import os; "
    probe += "os._exit = lambda code: print(*sys.modules, file=sys.stderr); "
    probe += f"exec(compile(open({str(world.hc)!r}).read(), {str(world.hc)!r}, 'exec'), {{'__name__': '__main__'}})"
    done = subprocess.run(
        [sys.executable, "-IS", "-c", probe], stdin=subprocess.DEVNULL, env=world.env, capture_output=True, check=True
    )
    extra = set(done.stderr.decode().split()) - set(bare.stdout.decode().split())
    assert {"select", "_socket"} <= extra <= {"errno", "select", "_socket"}


# ---- the other verbs


def test_a_terminal_goes_through_its_life_by_the_verbs(world: World) -> None:
    address = world.out(
        "run", "--bg", "--name", "build", "--label", "a=1", "--label=b=x=y", "--", "pi", "--bg", "go"
    ).strip()
    terminal = json.loads(world.out("get", "--json", "build"))
    assert terminal["address"] == address
    assert terminal["argv"] == ["pi", "--bg", "go"]
    assert terminal["labels"] == {"a": "1", "b": "x=y"}
    assert world.out("send", "build", "do it") == ""
    assert world.run("wait", "build") == (0, "", "hc: done\n")
    assert json.loads(world.out("get", address, "--json"))["turn"] == 1
    assert world.run("interrupt", "build")[0] == 0
    assert world.out("label", "build", "a=", "c=3") == ""
    assert json.loads(world.out("get", "--json", "build"))["labels"] == {"b": "x=y", "c": "3"}
    assert "has not finished" in world.run("rm", "build")[2]
    assert world.out("kill", "build") == ""
    assert world.run("wait", address) == (1, "", "hc: finished, SIGHUP\n")
    assert world.out("ls").splitlines()[1:] == []
    assert "build" in world.out("ls", "--all")
    assert world.out("rm", address) == ""
    assert json.loads(world.out("ls", "--all", "--json")) == []


def test_a_command_begins_at_the_first_word_that_is_no_option(world: World) -> None:
    world.out("run", "--bg", "--name=x", "make", "--name", "y", "--", "-j2")
    assert json.loads(world.out("get", "--json", "x"))["argv"] == ["make", "--name", "y", "--", "-j2"]


def test_run_passes_on_who_called_and_what_was_asked(world: World) -> None:
    world.out("run", "--bg", "--name", "mother", "--", "pi")
    mother = json.loads(world.out("get", "--json", "mother"))["address"]
    world.extra["HC_TERMINAL_ID"] = mother
    world.out("run", "--bg", "--name", "child", "--cwd", "/usr/../tmp", "--keep", "--outlive-parent", "--", "pi")
    child = json.loads(world.out("get", "--json", "child"))
    assert (child["parent"], child["cwd"], child["keep"], child["die_with_parent"]) == (mother, "/tmp", True, False)


def test_run_in_the_foreground_waits_and_tells_how_it_went(world: World) -> None:
    code, out, err = world.run("run", "--name", "front", "--", "pi")
    assert (code, out.strip()[0], err) == (0, "t", "hc: idle\n")


def test_a_wait_that_is_over_is_a_check_in_and_no_failure(world: World) -> None:
    world.out("run", "--bg", "--name", "shell")
    world.out("run", "--bg", "--name", "busy", "--", "pi")
    with serving(
        world.folder / "slow", Fault(method="terminal.wait", raw='{"id":{id},"result":{"ended":false,"terminal":{}}}')
    ):
        code, _, err = World(world.folder, world.hc, world.folder / "slow").run("run", "--", "pi")
    assert code == 0
    assert err == "hc: still running after 180 s, and left running: hc wait t1\n"


def test_ls_shows_a_table_without_control_characters(world: World) -> None:
    world.out("run", "--bg", "--name", "odd", "--", "pi", "\x1b[31mred\nline")
    header, row = world.out("ls").splitlines()
    assert header.split() == ["ADDRESS", "NAME", "STATE", "STATUS", "TURN", "PROGRAM"]
    assert row.split(maxsplit=5)[1:] == ["odd", "running", "idle", "0", "pi \\x1b[31mred\\nline"]


def test_ls_json_is_compact(world: World) -> None:
    world.out("run", "--bg", "--name", "a", "--", "pi")
    (row,) = json.loads(world.out("ls", "--json"))
    assert sorted(row) == ["address", "argv", "cwd", "name", "state"]


def test_read_shows_lines(world: World) -> None:
    world.out("run", "--bg", "--name", "a", "--", "pi")
    world.out("send", "a", "first")
    world.out("send", "a", "second")
    assert "second" in world.out("read", "a", "--lines", "5")


def test_schema_is_the_description_of_the_core(world: World) -> None:
    document = json.loads(world.out("schema"))
    assert "terminal.run" in {method["name"] for method in document["methods"]}


def test_a_send_that_could_not_be_confirmed_says_so(folder: Path) -> None:
    with serving(folder / "s", Fault(method="terminal.send", raw='{"id":{id},"result":{"started":false}}')):
        world = World(folder, install_hc(folder), folder / "s")
        world.out("run", "--bg", "--name", "a", "--", "pi")
        code, out, err = world.run("send", "a", "go")
    assert (code, out) == (0, "")
    assert err == "hc: sent, but the core could not confirm that a turn began; do not send it again\n"


def test_an_error_of_the_core_is_one_line_with_its_hint(world: World) -> None:
    code, out, err = world.run("get", "t99")
    assert (code, out) == (1, "")
    assert err.startswith('hc: no terminal "t99"')
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (Fault(method="terminal.list", close="instead"), "the core closed the connection instead of answering"),
        (Fault(method="terminal.list", close="mid"), "the core closed the connection instead of answering"),
        (
            Fault(method="terminal.list", raw="no json"),
            "the core answered terminal.list with something that is not JSON",
        ),
        (Fault(method="terminal.list", raw="[1]"), "the core answered terminal.list with something that is no reply"),
        (
            Fault(method="terminal.list", raw='{"id":1,"result":{"terminals":[7]}}'),
            "the core's answer has not the form that `hc ls` expects",
        ),
        (
            Fault(method="terminal.list", raw="[" * 100_000),
            "the core answered terminal.list with something that is not JSON",
        ),
        (Fault(method="terminal.list", raw='{"id":1,"error":{"message":"a\\u001bb"}}'), "a\\x1bb"),
    ],
    ids=["closed", "cut", "no-json", "no-reply", "odd-result", "deep", "control-character"],
)
def test_a_core_that_misbehaves_costs_one_line(folder: Path, fault: Fault, line: str) -> None:
    with serving(folder / "s", fault):
        assert World(folder, install_hc(folder), folder / "s").run("ls") == (1, "", f"hc: {line}\n")


def test_words_that_are_not_utf8_never_reach_the_core(world: World) -> None:
    world.out("run", "--bg", "--name", "a", "--", "pi")
    done = subprocess.run([world.hc, "send", "a", b"\xff"], env=world.env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"hc: the words on the command line are not UTF-8\n")


def test_other_writing_than_ascii_is_shown_in_any_locale(world: World) -> None:
    world.extra["LC_ALL"] = "C"
    world.out("run", "--bg", "--name", "a", "--", "pi", "größer \U0001f600")
    assert "größer \U0001f600" in world.out("ls")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["intterupt", "a"], "there is no `hc intterupt`; did you mean interrupt?"),
        (["connect", "--jsn"], "`hc connect` has no option --jsn; did you mean --json?"),
        (["connect", "x"], "`hc connect` takes no words"),
        (["ls", "--al"], "`hc ls` has no option --al; did you mean --all?"),
        (["ls", "a"], "`hc ls` takes no words"),
        (["send", "a"], "`hc send` takes TERMINAL TEXT"),
        (["run", "--nam", "x"], "`hc run` has no option --nam; did you mean --name?"),
        (["run", "-b"], "`hc run` has no option -b; did you mean --bg?"),
        (["run", "--name"], "--name needs a value"),
        (["run", "--label", "x", "--", "pi"], "--label is KEY=VALUE, not 'x'"),
        (["label", "a", "=x"], "a label is KEY=VALUE, not '=x'"),
        (["wait", "a", "--timeout", "-1"], "--timeout takes a whole number of seconds, not '-1'"),
        (["read", "a", "--lines=x"], "--lines takes a whole number of lines, not 'x'"),
    ],
)
def test_wrong_usage_is_one_line_and_code_two_and_never_reaches_a_core(
    folder: Path, words: list[str], line: str
) -> None:
    code, out, err = World(folder, install_hc(folder), folder / "nobody").run(*words)
    assert (code, out, err) == (2, "", f"hc: {line}; see `hc --help`\n")


def test_help_teaches_every_verb_by_example(folder: Path) -> None:
    world = World(folder, install_hc(folder), folder / "nobody")
    text = world.out("--help")
    for verb in ("run", "ls", "get", "send", "wait", "read", "interrupt", "kill", "rm", "label", "schema", "connect"):
        assert f"\n  hc {verb}" in text
    assert world.out("send", "--help") == text
    assert world.run()[0] == 2


def test_the_version_needs_no_core(folder: Path) -> None:
    assert World(folder, install_hc(folder), folder / "nobody").out("--version").startswith("hc 0.1.")


def test_a_closed_pipe_is_no_traceback(world: World) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"{world.hc}" schema | head -c 1'],
        env={**world.env, "PATH": os.defpath},
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""


# ---- where it is


def test_it_is_executable_and_leaves_no_other_trace(folder: Path) -> None:
    hc = install_hc(folder / "new" / "bin")
    assert stat.S_IMODE(hc.stat().st_mode) == 0o755
    subprocess.run([hc, "lss"], capture_output=True, check=False)
    assert sorted(path.name for path in hc.parent.iterdir()) == ["hc", "hc_verbs.py"]


def test_installing_again_replaces_it(folder: Path) -> None:
    first = install_hc(folder)
    inode = first.stat().st_ino
    assert install_hc(folder) == first
    assert first.stat().st_ino != inode


def test_it_works_by_a_link_and_from_a_folder_with_a_blank(world: World) -> None:
    install_hc(world.folder / "a b")
    (world.folder / "link").symlink_to(world.folder / "a b" / "hc")
    done = subprocess.run([world.folder / "link", "ls"], env=world.env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_callers_python_settings_do_not_reach_it(world: World) -> None:
    (world.folder / "evil").mkdir()
    for name in ("json", "select", "hc_verbs", "sitecustomize"):
        (world.folder / "evil" / f"{name}.py").write_text("raise SystemExit('caught')")
    world.extra |= {"PYTHONPATH": str(world.folder / "evil"), "PYTHONSTARTUP": "x", "PYTHONHOME": ""}
    assert world.run("ls")[0] == 0
    assert world.run("connect", data=request("hello"))[0] == 0


@pytest.mark.parametrize("name", ['py "$HOME" `x` \\thon', "p" * 130])
def test_an_interpreter_that_no_first_line_can_name_is_started_all_the_same(folder: Path, name: str) -> None:
    odd = folder / name
    odd.symlink_to(sys.executable)
    program = folder / "program"
    program.write_text(shebang(str(odd), "-I") + "import sys\nprint(sys.argv[1:], sys.flags.isolated)\n")
    program.chmod(0o755)
    done = subprocess.run([program, "a b", "$c"], capture_output=True, check=True, env={"PATH": os.defpath})
    assert done.stdout.decode() == "['a b', '$c'] 1\n"


def test_the_public_names_are_the_installers() -> None:
    assert programs.__all__ == ["install_faulty_hc", "install_hc", "install_pi"]
