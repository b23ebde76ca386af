import asyncio
import contextlib
import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from hc_sim import driver as driver_module
from hc_sim import server as server_module
from hc_sim.core import Core
from hc_sim.faults import Fault
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent
from hc_sim.server import PATH_LIMIT, Driver, SocketPathError, UnixServer, same_user


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name, so that a socket path in it fits."""
    path = Path(tempfile.mkdtemp(prefix="hcs-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@contextlib.asynccontextmanager
async def core_at(path: Path, *faults: Fault, core: Core | None = None, **options: Any) -> AsyncIterator[Driver]:
    driver = Driver(Hub(core or Core(), faults, **options))
    async with asyncio.timeout(20), UnixServer(driver, path):
        yield driver


def request(method: str, id_: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n"


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, path: Path) -> "Client":
        return cls(*await asyncio.open_unix_connection(path, limit=64 * 1024 * 1024))

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def reply(self) -> Any:
        return json.loads(await self.reader.readline())

    async def call(self, method: str, **params: Any) -> Any:
        self.write(request(method, **params))
        return await self.reply()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_the_socket_and_its_new_folders_are_private_under_any_umask(folder: Path, umask: int) -> None:
    path = folder / "a" / "b" / "core.sock"

    async def scene() -> tuple[int, int, int]:
        async with core_at(path):
            return mode(path), mode(path.parent), mode(path.parent.parent)

    before = os.umask(umask)
    try:
        modes = asyncio.run(scene())
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert modes == (0o600, 0o700, 0o700)
    assert list(folder.iterdir()) == []


def test_it_answers_several_clients_at_once(folder: Path) -> None:
    async def scene() -> list[Any]:
        async with core_at(folder / "s"):
            clients = [await Client.open(folder / "s") for _ in range(5)]
            answers = await asyncio.gather(*(client.call("hello") for client in clients))
            for client in clients:
                await client.close()
            return [answer["result"]["core_id"] for answer in answers]

    assert asyncio.run(scene()) == ["core-1"] * 5


def test_pipelined_requests_are_answered_in_order(folder: Path) -> None:
    async def scene() -> list[Any]:
        async with core_at(folder / "s"):
            client = await Client.open(folder / "s")
            client.write(b"".join(request("hello", number) for number in range(500)))
            ids = [(await client.reply())["id"] for _ in range(500)]
            await client.close()
            return ids

    assert asyncio.run(scene()) == list(range(500))


def test_a_line_of_several_megabytes_is_one_request(folder: Path) -> None:
    async def scene() -> Any:
        async with core_at(folder / "s", core=Core(WireProfile(max_arg_bytes=10_000_000, max_args_bytes=20_000_000))):
            client = await Client.open(folder / "s")
            answer = await client.call("terminal.run", argv=["pi", "x" * 3_000_000])
            await client.close()
            return len(answer["result"]["argv"][1])

    assert asyncio.run(scene()) == 3_000_000


def test_a_line_over_the_limit_is_an_error_and_the_end_of_that_client_alone(folder: Path) -> None:
    async def scene() -> tuple[str, bytes, Any]:
        async with core_at(folder / "s", core=Core(WireProfile(max_line_bytes=1_000))):
            wild, calm = await Client.open(folder / "s"), await Client.open(folder / "s")
            wild.write(b"x" * 5_000)
            kind = (await wild.reply())["error"]["data"]["kind"]
            end = await wild.reader.read()
            answer = await calm.call("hello")
            await wild.close()
            await calm.close()
            return kind, end, answer

    kind, end, answer = asyncio.run(scene())
    assert (kind, end) == ("line_too_long", b"")
    assert "result" in answer


def test_owed_replies_come_after_the_client_closed_its_half(folder: Path) -> None:
    async def scene() -> tuple[Any, bytes]:
        async with core_at(folder / "s", core=Core(agents=[Agent(send="hold", hold_ms=20)])):
            client = await Client.open(folder / "s")
            await client.call("terminal.run", argv=["pi"], name="a")
            client.write(request("terminal.send", terminal="a", text="go"))
            client.writer.write_eof()
            answer, end = await client.reply(), await client.reader.read()
            await client.close()
            return answer, end

    answer, end = asyncio.run(scene())
    assert answer["result"]["started"] is True
    assert end == b""


def test_a_client_that_does_not_read_is_not_read_either_and_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "HIGH_WATER_BYTES", 100_000)
    calls = 400

    async def scene() -> tuple[int, list[int]]:
        async with core_at(folder / "s", Fault(method="hello", nth=0, pad_bytes=20_000)) as driver:
            client = await Client.open(folder / "s")
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            other = await Client.open(folder / "s")
            client.write(b"".join(request("hello", number) for number in range(calls)))
            for _ in range(20):
                await other.call("server.status")
            done = len(driver.hub.core.trace.of("call", "hello"))
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            ids = [(await client.reply())["id"] for _ in range(calls)]
            await client.close()
            await other.close()
            return done, ids

    done, ids = asyncio.run(scene())
    assert done < calls / 2
    assert ids == list(range(calls))


def test_an_unread_rest_of_an_ended_connection_is_not_kept_for_ever(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "LINGER_S", 0.01)

    async def scene() -> int:
        driver = Driver(Hub(Core(), [Fault(method="hello", pad_bytes=5_000_000, close="after")]))
        server = UnixServer(driver, folder / "s")
        await server.start()
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            client.connect(os.fspath(folder / "s"))
            client.send(request("hello"))
            async with asyncio.timeout(20):
                while not driver.hub.core.trace.of("unlink") or server.peers:  # noqa: ASYNC110 - nothing tells us
                    await asyncio.sleep(0.005)
            left = server.peers
        await server.close()
        return left

    assert asyncio.run(scene()) == 0


def test_a_client_that_resets_its_connection_disturbs_nobody(folder: Path) -> None:
    async def scene() -> tuple[Any, list[str]]:
        async with core_at(folder / "s") as driver:
            other = await Client.open(folder / "s")
            for _ in range(5):
                rude = await Client.open(folder / "s")
                rude.write(request("hello") * 50)
                await rude.writer.drain()
                rude.writer.transport.abort()
            answer = await other.call("hello")
            await other.close()
            return answer, driver.problems

    answer, problems = asyncio.run(scene())
    assert "result" in answer
    assert problems == []


def test_a_reply_can_be_cut_off_by_the_end_of_the_connection(folder: Path) -> None:
    async def scene() -> bytes:
        async with core_at(folder / "s", Fault(method="hello", close="mid")):
            client = await Client.open(folder / "s")
            client.write(request("hello"))
            data = await client.reader.read()
            await client.close()
            return data

    data = asyncio.run(scene())
    assert data.startswith(b'{"id":1')
    assert not data.endswith(b"}\n")


def refused(path: Path) -> str:
    """The one line that a person gets who starts a core at `path`."""

    async def scene() -> None:
        async with core_at(path):
            raise AssertionError("it listens")

    with pytest.raises(SocketPathError) as caught:
        asyncio.run(scene())
    message = str(caught.value)
    assert message.startswith(f"cannot listen at {path}: ")
    assert "\n" not in message
    return message.removeprefix(f"cannot listen at {path}: ")


def test_a_path_of_107_bytes_fits_and_one_of_108_is_refused_in_bytes(folder: Path) -> None:
    room = PATH_LIMIT - len(os.fspath(folder)) - 1

    async def fits() -> int:
        async with core_at(folder / ("x" * room)):
            client = await Client.open(folder / ("x" * room))
            await client.call("hello")
            await client.close()
            return 1

    assert asyncio.run(fits()) == 1
    assert refused(folder / ("x" * (room + 1))) == "the path is 108 bytes long and the limit is 107"
    assert refused(folder / ("é" * (room // 2 + 1))).startswith("the path is 10")
    assert list(folder.iterdir()) == []


def test_a_directory_and_a_file_are_left_as_they_are(folder: Path) -> None:
    (folder / "dir").mkdir()
    (folder / "file").write_text("precious")
    (folder / "link").symlink_to(folder / "file")
    assert refused(folder / "dir") == "that is a directory"
    assert refused(folder / "file") == "there is a file there, and it is not a socket"
    assert refused(folder / "link") == "there is a file there, and it is not a socket"
    assert (folder / "file").read_text() == "precious"
    assert (folder / "dir").is_dir()


def test_a_path_below_a_file_is_refused(folder: Path) -> None:
    (folder / "file").write_text("")
    assert refused(folder / "file" / "core.sock") == f"{folder}/file is not a folder"
    assert refused(folder / "file" / "sub" / "core.sock") == "Not a directory"


def test_a_folder_that_others_may_write_to_is_refused(folder: Path) -> None:
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert refused(shared / "s") == f"others may write to {shared}, so they could replace the socket"
    shared.chmod(0o1777)

    async def sticky() -> int:
        async with core_at(shared / "s"):
            return mode(shared / "s")

    assert asyncio.run(sticky()) == 0o600


def test_a_stale_socket_is_replaced(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(path))

    async def scene() -> Any:
        async with core_at(path):
            client = await Client.open(path)
            answer = await client.call("hello")
            await client.close()
            return answer

    assert "result" in asyncio.run(scene())
    assert not path.exists()


def test_a_live_core_is_left_alone(folder: Path) -> None:
    path = folder / "s"

    async def scene() -> tuple[str, Any]:
        async with core_at(path):
            with pytest.raises(SocketPathError) as caught:
                await UnixServer(Driver(Hub(Core())), path).start()
            client = await Client.open(path)
            answer = await client.call("hello")
            await client.close()
            return caught.value.why, answer

    why, answer = asyncio.run(scene())
    assert why == "another core is listening there"
    assert "result" in answer


def test_a_live_core_whose_queue_is_full_is_live_and_nobody_waits_for_it(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(os.fspath(path))
        busy.listen(0)
        waiting = []
        for _ in range(3):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            client.connect_ex(os.fspath(path))
            waiting.append(client)
        assert refused(path) == "another core is listening there"
        for client in waiting:
            client.close()
    assert path.is_socket()


def test_of_two_that_start_at_once_one_wins_and_the_other_is_told(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(path))

    async def scene() -> list[str]:
        servers = [UnixServer(Driver(Hub(Core())), path) for _ in range(4)]
        results = await asyncio.gather(*(server.start() for server in servers), return_exceptions=True)
        client = await Client.open(path)
        await client.call("hello")
        await client.close()
        for server in servers:
            await server.close()
        return [type(result).__name__ for result in results]

    outcome = asyncio.run(scene())
    assert sorted(outcome) == ["NoneType", *["SocketPathError"] * 3]
    assert not path.exists()


def test_closing_does_not_remove_a_socket_that_somebody_else_put_there(folder: Path) -> None:
    path = folder / "s"

    async def scene() -> None:
        async with core_at(path):
            path.unlink()
            path.write_text("somebody else's")

    asyncio.run(scene())
    assert path.read_text() == "somebody else's"


def test_closing_ends_the_clients_and_leaves_nothing(folder: Path) -> None:
    path = folder / "new" / "s"

    async def scene() -> tuple[bytes, int, list[str]]:
        driver = Driver(Hub(Core()))
        server = UnixServer(driver, path)
        await server.start()
        client = await Client.open(path)
        await client.call("hello")
        await server.close()
        await server.close()
        end = await client.reader.read()
        await client.close()
        await asyncio.sleep(0)
        return end, driver.links, os.listdir(folder)  # noqa: PTH208 - a list of names is what is compared

    assert asyncio.run(scene()) == (b"", 0, [])


def test_a_closed_server_can_be_started_again_and_the_core_remembers(folder: Path) -> None:
    async def scene() -> Any:
        server = UnixServer(Driver(Hub(Core())), folder / "new" / "s")
        for words in ({"argv": ["pi"], "name": "kept"}, None):
            await server.start()
            client = await Client.open(folder / "new" / "s")
            answer = await (client.call("terminal.run", **words) if words else client.call("terminal.list"))
            await client.close()
            await server.close()
        return [terminal["name"] for terminal in answer["result"]["terminals"]]

    assert asyncio.run(scene()) == ["kept"]


def test_a_folder_that_somebody_uses_meanwhile_stays(folder: Path) -> None:
    path = folder / "new" / "s"

    async def scene() -> None:
        async with core_at(path):
            (folder / "new" / "note").write_text("mine")

    asyncio.run(scene())
    assert [entry.name for entry in (folder / "new").iterdir()] == ["note"]


def test_a_peer_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> bytes:
        async with core_at(folder / "s"):
            monkeypatch.setattr(os, "geteuid", lambda: 54_321)
            client = await Client.open(folder / "s")
            with contextlib.suppress(OSError):
                client.write(request("hello"))
            data = b""
            with contextlib.suppress(ConnectionResetError):
                data = await client.reader.read()
            await client.close()
            monkeypatch.undo()
            return data

    assert asyncio.run(scene()) == b""


def test_a_peer_of_the_same_user_is_recognised() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert same_user(one)
