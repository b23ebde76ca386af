"""Everything at once and nothing left: each abuse meets a core on a real socket, beside a client that behaves."""

import asyncio
import contextlib
import gc
import json
import os
import random
import resource
import shutil
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hc_sim.core import Core
from hc_sim.driver import HIGH_WATER_BYTES, Driver
from hc_sim.folder import private_folder
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.script.load import POLITE
from hc_sim.server import UnixServer

CONNECTIONS = 1_000
TERMINALS = 10_000
PATIENCE_S = 60.0
SMALL_LINE = 65_536
DISCOVER = b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}\n'

Scene = Callable[["Stage"], Awaitable[None]]


def call(method: str, id_: object = 1, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n"


HELLO = call("hello", generation=1)
FRAMES = call("hello", generation=1, **{WireProfile().frames_key: True})
RUN = call("terminal.run", argv=["pi", "work"], name="half-way")


class Stage:
    """A core on a socket, and what went wrong around it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.driver = Driver(
            Hub(Core(WireProfile(max_terminals=2 * TERMINALS, max_line_bytes=SMALL_LINE), agents=[POLITE])),
            keep_trace=False,
        )
        self.server = UnixServer(self.driver, path)
        self.escaped: list[Any] = []

    async def connect(self) -> socket.socket:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.setblocking(False)
        await asyncio.get_running_loop().sock_connect(link, str(self.path))
        return link

    async def send(self, link: socket.socket, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await asyncio.get_running_loop().sock_sendall(link, data)

    async def read(self, link: socket.socket) -> bytes:
        with contextlib.suppress(ConnectionResetError):
            return await asyncio.get_running_loop().sock_recv(link, 1 << 20)
        return b""

    async def read_to_end(self, link: socket.socket) -> bytes:
        parts = []
        while data := await self.read(link):
            parts.append(data)
        return b"".join(parts)

    async def ask(self, line: bytes) -> Any:
        """What a client that behaves is answered."""
        link = await self.connect()
        try:
            await self.send(link, line)
            link.shutdown(socket.SHUT_WR)
            return json.loads(await self.read_to_end(link))
        finally:
            link.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0  # noqa: PTH208 - counted only


@pytest.fixture
def folder() -> Iterator[Path]:
    made = private_folder("hc-soak-")
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def _files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * CONNECTIONS + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"the system allows {hard} open files, and {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def soak(folder: Path, scene: Scene) -> None:
    """Play the scene; then the core still answers, and no exception, link, task, file or descriptor is left."""
    loop, stage = asyncio.get_running_loop(), Stage(folder / "core.sock")
    loop.set_exception_handler(lambda _, context: stage.escaped.append(context))
    files, tasks = open_files(), asyncio.all_tasks()
    async with asyncio.timeout(PATIENCE_S):
        async with stage.server:
            await scene(stage)
            assert (await stage.ask(HELLO))["result"]["core_id"] == "core-1"
            while stage.driver.links or stage.server.peers:  # noqa: ASYNC110 - the loop has to go round for it
                await asyncio.sleep(0.01)
            assert stage.driver.hub.connections == ()
        stage.driver.close()
        await asyncio.sleep(0)
    assert stage.driver.problems == []
    assert stage.escaped == []
    assert not stage.driver.scheduled
    assert asyncio.all_tasks() == tasks
    assert os.listdir(folder) == []  # noqa: PTH208 - a look, and no more
    gc.collect()
    assert open_files() == files


async def a_thousand_connections(stage: Stage) -> None:
    links = [await stage.connect() for _ in range(CONNECTIONS)]
    for number, link in enumerate(links):
        await stage.send(link, call("hello", number) + call("terminal.list", "l"))
    for number, link in enumerate(links):
        data = b""
        while data.count(b"\n") < 2:
            data += await stage.read(link)
        assert [json.loads(line)["id"] for line in data.splitlines()] == [number, "l"]
    assert stage.driver.links == CONNECTIONS
    for link in links:
        link.close()


async def ten_thousand_terminals(stage: Stage) -> None:
    link = await stage.connect()
    reading = asyncio.create_task(stage.read_to_end(link))
    for begin in range(0, TERMINALS, 500):
        numbers = range(begin, begin + 500)
        await stage.send(link, b"".join(call("terminal.run", n, argv=["pi", "work"], name=f"n{n}") for n in numbers))
    link.shutdown(socket.SHUT_WR)
    assert (await reading).count(b'"result"') == TERMINALS
    link.close()
    listed = await stage.ask(call("terminal.list", all=True))
    assert len(listed["result"]["terminals"]) == TERMINALS
    assert stage.driver.hub.core.trace.events == []


async def random_bytes(stage: Stage) -> None:
    chance = random.Random(1)  # noqa: S311 - repeatable noise
    for _ in range(300):
        link = await stage.connect()
        noise = chance.randbytes(chance.randint(1, 4_000))
        await stage.send(link, (FRAMES if chance.random() < 0.5 else b"") + noise)
        if chance.random() < 0.5:
            link.shutdown(socket.SHUT_WR)
            await stage.read_to_end(link)
        link.close()


async def bent_json(stage: Stage) -> None:
    """Requests with a few bytes changed: much nearer to what the core takes than noise is."""
    chance = random.Random(2)  # noqa: S311 - repeatable noise
    for _ in range(300):
        line = bytearray(chance.choice([HELLO, RUN, FRAMES, call("terminal.send", terminal="t1", text="x")]))
        for _ in range(chance.randint(1, 5)):
            line[chance.randrange(len(line))] = chance.choice(b'{}[]":,0x\\\n\x00\xff')
        link = await stage.connect()
        await stage.send(link, bytes(line) + b"\n")
        link.shutdown(socket.SHUT_WR)
        await stage.read_to_end(link)
        link.close()


async def gone_at_every_byte_of_a_call(stage: Stage) -> None:
    frame = struct.pack("<IBI", 0, 0, len(RUN)) + RUN
    for text in (HELLO + RUN, FRAMES + frame):
        for end in range(len(text) + 1):
            link = await stage.connect()
            await stage.send(link, text[:end])
            if end % 2:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()
            if end % 20 == 0:
                await asyncio.sleep(0)


async def half_frames(stage: Stage) -> None:
    """Headers that promise more than comes, of every kind, on channels that are not there."""
    for kind in (0, 1, 2, 3, 4, 5, 6, 7, 255):
        for channel in (0, 1, 0xFFFF_FFFF):
            for length in (0, 1, 100, 1 << 24, 0xFFFF_FFFF):
                link = await stage.connect()
                await stage.send(link, FRAMES + struct.pack("<IBI", channel, kind, length) + b"x" * 50)
                if kind % 2:
                    link.shutdown(socket.SHUT_WR)
                link.close()
        await asyncio.sleep(0)


async def lines_without_an_end(stage: Stage) -> None:
    links = [await stage.connect() for _ in range(50)]
    for link in links:
        await stage.send(link, b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (2 * SMALL_LINE))
    for link in links:
        assert b"line_too_long" in await stage.read_to_end(link)
        link.close()


async def nobody_reads(stage: Stage) -> None:
    """Peers that ask for much and read nothing: others are served, and what waits for them stays bounded."""
    links = [await stage.connect() for _ in range(20)]
    for link in links:
        with contextlib.suppress(BlockingIOError):
            while True:
                link.send(DISCOVER * 100)
    for _ in range(20):
        assert (await stage.ask(HELLO))["id"] == 1
    largest = len(json.dumps(await stage.ask(DISCOVER))) + 1_000
    for port in stage.driver._ports.values():
        assert port.link.backlog() <= HIGH_WATER_BYTES + largest
    for link in links:
        link.close()


async def stops_half_way(stage: Stage) -> None:
    """Peers that begin a line and wait hold nobody else."""
    links = [await stage.connect() for _ in range(200)]
    for link in links:
        await stage.send(link, RUN[: len(RUN) // 2])
    assert (await stage.ask(HELLO))["id"] == 1
    assert (await stage.ask(call("terminal.list")))["result"] == {"terminals": []}
    for link in links:
        link.close()


@pytest.mark.parametrize(
    "scene",
    [
        a_thousand_connections,
        ten_thousand_terminals,
        random_bytes,
        bent_json,
        gone_at_every_byte_of_a_call,
        half_frames,
        lines_without_an_end,
        nobody_reads,
        stops_half_way,
    ],
)
def test_whatever_a_peer_does_the_core_goes_on_and_nothing_is_left(folder: Path, scene: Scene) -> None:
    asyncio.run(soak(folder, scene))


def test_one_connection_too_many_is_told_so_and_the_others_stay(folder: Path) -> None:
    async def scene() -> None:
        driver = Driver(Hub(Core(), max_connections=3))
        async with UnixServer(driver, folder / "core.sock"):
            path = str(folder / "core.sock")
            links = [await asyncio.open_unix_connection(path) for _ in range(3)]
            late, late_writer = await asyncio.open_unix_connection(path)
            refused = json.loads(await late.readline())
            assert refused["error"]["data"]["kind"] == "limit_reached"
            assert await late.read() == b""
            for reader, writer in links:
                writer.write(HELLO)
                assert json.loads(await reader.readline())["id"] == 1
            for writer in [late_writer, *(writer for _, writer in links)]:
                writer.close()
                await writer.wait_closed()
        driver.close()

    asyncio.run(scene())
