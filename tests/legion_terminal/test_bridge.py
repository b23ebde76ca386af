"""The process transport with real processes: small programs stand for `hc connect` (BC-016 to BC-019, BC-109)."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from legion_terminal.bridge import MAX_TAIL_BYTES, ProcessTransport
from legion_terminal.client import HcClient
from legion_terminal.errors import SupervisorError

Program = Callable[[str], str]

ANSWERING = """
import json, sys
def answer(line, more={}):
    call = json.loads(line)
    result = {"core_id": "c", "generation": 1} if call["method"] == "hello" else {"turn": 1, **more}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}) + "\\n")
    sys.stdout.flush()
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Writes an executable that runs the given Python source."""

    def write(source: str) -> str:
        number = len(list(tmp_path.iterdir()))
        body, path = tmp_path / f"hc{number}.py", tmp_path / f"hc{number}"
        body.write_text(source)
        # No interpreter line of its own: the path of this interpreter may be too long for one, or hold a blank.
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(str(body))} "$@"\n')
        path.chmod(0o700)
        return str(path)

    return write


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 30))


def client_of(executable: str, **more: Any) -> HcClient:
    return HcClient(lambda: ProcessTransport(executable, {"PATH": "/usr/bin:/bin"}), **more)


async def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        await asyncio.sleep(0.02)
    return False


async def failure(coroutine: Coroutine[Any, Any, Any]) -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        await coroutine
    return caught.value


def test_calls_go_through_a_process_that_is_given_connect_and_its_whole_environment(program: Program) -> None:
    source = (
        ANSWERING + "import os\nfor line in sys.stdin: answer(line, {'argv': sys.argv[1:], 'env': dict(os.environ)})"
    )

    async def main() -> None:
        client = client_of(program(source))
        result = await client.call("terminal.get", {"terminal": "t1"})
        assert result["argv"] == ["connect"]
        assert {key: value for key, value in result["env"].items() if key in ("PATH", "HOME", "HC_BIN")} == {
            "PATH": "/usr/bin:/bin"
        }
        await client.close()

    run(main())


def test_a_flood_on_the_error_output_never_blocks_a_reply(program: Program) -> None:
    source = ANSWERING + "sys.stderr.write('x' * 200 * 1024 + 'the end')\nfor line in sys.stdin: answer(line)"

    async def main() -> None:
        transport = ProcessTransport(program(source), {})
        client = HcClient(lambda: transport)
        assert (await client.call("terminal.get", {}))["turn"] == 1
        assert transport.tail().endswith("the end")
        assert len(transport.tail()) <= MAX_TAIL_BYTES
        await client.close()

    run(main())


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("sys.exit(7)", "exit code 7"),
        ("sys.exit(0)", "exit code 0"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal SIGKILL"),
    ],
)
def test_a_process_that_ends_at_once_is_reported_with_its_end_and_its_words(
    program: Program, ending: str, words: str
) -> None:
    async def main() -> None:
        client = client_of(program(f"import sys\nsys.stderr.write('no core here')\nsys.stderr.flush()\n{ending}"))
        error = await failure(client.call("terminal.get", {}))
        assert error.code == "host-unreachable"
        assert words in error.message
        assert "no core here" in error.message
        await client.close()

    run(main())


@pytest.mark.parametrize("executable", ["/nonexistent/hc", "/", "relative-and-not-there", "nul\0byte"])
def test_what_cannot_be_started_is_named_and_not_tried_again(executable: str) -> None:
    async def main() -> None:
        started = 0

        def connect() -> ProcessTransport:
            nonlocal started
            started += 1
            return ProcessTransport(executable, {})

        client = HcClient(connect)
        error = await failure(client.call("terminal.get", {}))
        assert (error.code, error.known) == ("host-unreachable", "not-sent")
        assert repr(executable) in error.message
        assert "HC_BIN" in error.hint
        assert started == 1
        await client.close()

    run(main())


def test_a_file_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "hc"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o600)

    async def main() -> None:
        error = await failure(client_of(str(path)).call("terminal.get", {}))
        assert error.code == "host-unreachable"
        assert "ermission" in error.message

    run(main())


def test_closing_ends_a_polite_process_by_end_of_file_alone(program: Program, tmp_path: Path) -> None:
    note = tmp_path / "note"
    source = ANSWERING + f"for line in sys.stdin: answer(line)\nopen({str(note)!r}, 'w').write('eof')"

    async def main() -> None:
        transport = ProcessTransport(program(source), {})
        client = HcClient(lambda: transport)
        await client.hello()
        await client.close()
        assert transport.ended() == "exit code 0"
        assert note.read_text() == "eof"

    run(main())


@pytest.mark.parametrize(
    ("manners", "words"),
    [
        ("", "signal SIGTERM"),
        ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", "signal SIGKILL"),
    ],
)
def test_closing_escalates_for_a_process_that_ignores_end_of_file(program: Program, manners: str, words: str) -> None:
    source = ANSWERING + f"{manners}\nimport os, time\nanswer(sys.stdin.readline())\nwhile True: time.sleep(60)"

    async def main() -> None:
        transport = ProcessTransport(program(source), {})
        client = HcClient(lambda: transport)
        await client.hello()
        await client.close()
        assert transport.ended() == words

    run(main())


def test_a_large_write_to_a_process_that_has_gone_rejects_once(program: Program) -> None:
    source = ANSWERING + "answer(sys.stdin.readline())\nsys.exit(3)"

    async def main() -> None:
        client = client_of(program(source), connect_ms=0)
        await client.hello()
        error = await failure(client.call("terminal.send", {"text": "x" * 256 * 1024}))
        assert error.code in ("outcome-unknown", "host-unreachable")
        await client.close()

    run(main())


def test_a_large_write_to_a_process_that_reads_nothing_ends_at_its_deadline(program: Program) -> None:
    source = ANSWERING + "import time\nanswer(sys.stdin.readline())\ntime.sleep(60)"

    async def main() -> None:
        client = client_of(program(source), deadlines={"terminal.send": 200})
        await client.hello()
        error = await failure(client.call("terminal.send", {"text": "x" * 256 * 1024}))
        assert (error.code, error.known) == ("outcome-unknown", "unknown")
        await client.close()

    run(main())


def test_five_hundred_pipelined_calls_with_large_replies_do_not_deadlock(program: Program) -> None:
    source = ANSWERING + "for line in sys.stdin: answer(line, {'pad': 'x' * 65536})"

    async def main() -> None:
        client = client_of(program(source))
        calls = (client.call("terminal.get", {"terminal": "t" * 200}) for _ in range(500))
        results = await asyncio.gather(*calls)
        assert [len(result["pad"]) for result in results] == [65536] * 500
        await client.close()

    run(main())


def test_the_end_of_the_process_counts_although_a_grandchild_holds_its_output(program: Program, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    source = (
        ANSWERING
        + "import subprocess\nanswer(sys.stdin.readline())\nline = sys.stdin.readline()\n"
        + "held = subprocess.Popen(['/bin/sleep', '60'], stdin=subprocess.DEVNULL)\n"
        + f"open({str(pid_file)!r}, 'w').write(str(held.pid))\nsys.exit(4)"
    )

    async def main() -> None:
        client = client_of(program(source))
        error = await failure(client.call("terminal.kill", {"terminal": "t1"}))
        assert error.code == "outcome-unknown"
        assert "exit code 4" in error.message
        await client.close()

    try:
        run(main())
    finally:
        if pid_file.exists():
            os.kill(int(pid_file.read_text()), signal.SIGKILL)


def test_what_the_process_wrote_before_its_end_is_read_before_its_end_counts(program: Program) -> None:
    source = (
        ANSWERING + "answer(sys.stdin.readline())\nanswer(sys.stdin.readline(), {'pad': 'y' * 900000})\nsys.exit(0)"
    )

    async def main() -> None:
        client = client_of(program(source))
        assert len((await client.call("terminal.get", {}))["pad"]) == 900_000
        await client.close()

    run(main())


async def first_answer(client: HcClient) -> int:
    """The next answer; a call that meets the very moment of the loss may fail fast, once."""
    try:
        return int((await client.call("terminal.get", {}))["pid"])
    except SupervisorError as error:
        if error.code != "host-unreachable":
            raise
        return int((await client.call("terminal.get", {}))["pid"])


def test_a_lost_process_is_reaped_and_replaced_without_being_asked(program: Program) -> None:
    source = ANSWERING + "import os\nanswer(sys.stdin.readline())\nanswer(sys.stdin.readline(), {'pid': os.getpid()})"

    async def main() -> None:
        client = client_of(program(source))
        first = (await client.call("terminal.get", {}))["pid"]
        assert await gone(first)
        second = await first_answer(client)
        assert first != second
        await client.close()
        assert await gone(second)

    run(main())


def test_an_unopened_or_twice_closed_transport_is_harmless(program: Program) -> None:
    async def main() -> None:
        transport = ProcessTransport(program("import sys; sys.stdin.read()"), {})
        await transport.close()
        assert await transport.read() == b""
        assert transport.tail() == ""
        assert transport.ended() is None
        with pytest.raises(OSError):
            await transport.write(b"x")
        await transport.open()
        await transport.close()
        await transport.close()
        assert await transport.read() == b""
        with pytest.raises(OSError):
            await transport.write(b"x")

    run(main())
