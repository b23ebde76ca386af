import asyncio
import contextlib
import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from hc_sim.control import listener as control_socket
from hc_sim.control.commands import Control, ControlError, Feed
from hc_sim.control.listener import MAX_PEERS, MAX_REQUEST_BYTES, ControlServer, ask, control_path
from hc_sim.playing.fake import AsyncFakeCore
from hc_sim.server import UnixServer
from hc_sim.trace import Event

WAIT_S = 20
LINK = Event(t=1, kind="link", conn=1)
Play = Callable[[ControlServer, Control], Coroutine[Any, Any, Any]]


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hcc-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[ControlServer, Control]]:
    async with AsyncFakeCore() as core:
        core.add_terminal("alpha")
        control = Control(core, Feed())
        async with UnixServer(core.driver, folder / "s"):
            server = ControlServer(control_path(folder / "s"), control)
            async with server:
                yield server, control


def run(folder: Path, play: Play) -> Any:
    async def main() -> Any:
        async with serving(folder) as (server, control):
            result = await asyncio.wait_for(play(server, control), WAIT_S)
            async with asyncio.timeout(WAIT_S):
                while server.peers:  # noqa: ASYNC110 - a server tells nobody
                    await asyncio.sleep(0.001)
            return result

    return asyncio.run(main())


async def asked(server: ControlServer, *words: str) -> list[str]:
    return await asyncio.to_thread(lambda: list(ask(server.path, words)))


async def told(server: ControlServer, request: bytes) -> bytes:
    """Send bytes, and give what comes back until the end; an abrupt end is one too."""
    reader, writer = await asyncio.open_unix_connection(server.path)
    writer.write(request)
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_a_command_from_another_process_is_carried_out(folder: Path) -> None:
    async def play(server: ControlServer, control: Control) -> tuple[list[str], str]:
        return await asked(server, "move", "alpha", "blocked", "question"), control.stage.agent("alpha").status

    answer, status = run(folder, play)
    assert answer == ["t1  alpha  running  turn 0  blocked question  pi"]
    assert status == "blocked"


def test_a_refusal_comes_back_as_one(folder: Path) -> None:
    async def play(server: ControlServer, _: Control) -> None:
        await asked(server, "move", "nobody", "done")

    with pytest.raises(ControlError, match="no terminal 'nobody'"):
        run(folder, play)


def test_its_socket_is_as_private_as_the_cores_and_goes_with_it(folder: Path) -> None:
    async def play(server: ControlServer, _: Control) -> int:
        return stat.S_IMODE(os.lstat(server.path).st_mode)

    assert run(folder, play) == 0o600
    assert list(folder.iterdir()) == []


def test_watching_shows_each_event_as_it_comes_until_there_were_enough(folder: Path) -> None:
    async def play(server: ControlServer, control: Control) -> list[str]:
        watching = asyncio.create_task(asked(server, "watch", "2"))
        while not watching.done():
            control.feed.add(LINK)
            await asyncio.sleep(0.001)
        return await watching

    assert run(folder, play) == ["    0.001   #1  connected"] * 2


def test_a_watcher_that_hangs_up_is_forgotten(folder: Path) -> None:
    async def play(server: ControlServer, control: Control) -> None:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(b'["watch"]\n')
        while not reader._buffer:  # type: ignore[attr-defined]
            control.feed.add(LINK)
            await asyncio.sleep(0.001)
        writer.close()

    run(folder, play)


def test_a_watcher_that_does_not_read_is_hung_up_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket, "MAX_BACKLOG_BYTES", 10_000)

    async def play(server: ControlServer, control: Control) -> None:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(server.path))
            peer.sendall(b'["watch"]\n')
            async with asyncio.timeout(WAIT_S):
                while server.peers == 0:  # noqa: ASYNC110 - a server tells nobody
                    await asyncio.sleep(0.001)
                while server.peers:
                    for _ in range(1_000):
                        control.feed.add(LINK)
                    await asyncio.sleep(0)

    run(folder, play)


@pytest.mark.parametrize(
    ("request_line", "why"),
    [
        (b"ls", "JSON list of words"),
        (b'{"words": []}', "JSON list of words"),
        (b"[1]", "JSON list of words"),
        (b"\xff", "JSON list of words"),
        (b"[]", "1 to 64 words"),
        (b'["watch","0"]', "watch [N]"),
        (b'["watch","1","2"]', "watch [N]"),
    ],
)
def test_what_is_no_command_is_answered_with_why(folder: Path, request_line: bytes, why: str) -> None:
    async def play(server: ControlServer, _: Control) -> bytes:
        return await told(server, request_line + b"\n")

    answer = json.loads(run(folder, play))
    assert answer["ok"] is False
    assert why in answer["error"]


def test_a_request_without_end_is_hung_up_on(folder: Path) -> None:
    async def play(server: ControlServer, _: Control) -> bytes:
        return await told(server, b"x" * (MAX_REQUEST_BYTES + 1))

    assert run(folder, play) == b""


def test_a_peer_that_says_nothing_is_hung_up_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket, "REQUEST_S", 0.01)

    async def play(server: ControlServer, _: Control) -> bytes:
        return await told(server, b"")

    assert run(folder, play) == b""


def test_one_peer_too_many_is_hung_up_on_and_the_others_are_not(folder: Path) -> None:
    async def play(server: ControlServer, _: Control) -> int:
        peers = [await asyncio.open_unix_connection(server.path) for _ in range(MAX_PEERS + 1)]
        with contextlib.suppress(ConnectionError):
            assert await peers[-1][0].read() == b""
        counted = server.peers
        peers[0][1].write(b'["ls"]\n')
        assert b'"ok": true' in await peers[0][0].read()
        for _reader, writer in peers:
            writer.close()
        return counted

    assert run(folder, play) == MAX_PEERS


def test_a_command_that_breaks_is_said_and_the_core_goes_on(folder: Path) -> None:
    async def play(server: ControlServer, control: Control) -> list[str]:
        def breaks() -> list[Any]:
            raise RuntimeError("broken")

        whole = control.stage.terminals
        control.stage.terminals = breaks  # type: ignore[method-assign]
        with pytest.raises(ControlError, match=r"RuntimeError\('broken'\)"):
            await asked(server, "ls")
        control.stage.terminals = whole  # type: ignore[method-assign]
        return await asked(server, "ls")

    assert len(run(folder, play)) == 1


@pytest.mark.parametrize("name", ["absent.ctl", "x" * 120])
def test_where_nobody_listens_the_client_says_so(folder: Path, name: str) -> None:
    with pytest.raises(ConnectionError, match="no fake core takes commands at"):
        list(ask(folder / name, ["ls"]))


@pytest.mark.parametrize("answer", [b"", b'{"line": "half', b'{"line": "one"}\n', b"no json\n", b"[]\n", b"3\n"])
def test_an_answer_that_breaks_off_is_told_from_one_that_is_whole(folder: Path, answer: bytes) -> None:
    async def main() -> None:
        async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(answer)
            writer.close()

        async with await asyncio.start_unix_server(cut, folder / "s"):
            await asyncio.to_thread(lambda: list(ask(folder / "s", ["ls"])))

    with pytest.raises(ConnectionError, match="broke off"):
        asyncio.run(main())
