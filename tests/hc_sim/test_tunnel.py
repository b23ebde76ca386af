import asyncio
import contextlib
import datetime
import json
import os
import ssl
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from hc_sim.core import Core
from hc_sim.driver import Driver
from hc_sim.folder import private_folder
from hc_sim.hub.connection import Hub
from hc_sim.server import UnixServer
from hc_sim.tunnel import FarEnd, NearEnd, TunnelError, parse_address, tls_context
from hc_sim.wire.pieces import END, MAX_PIECE, EndOfStream, Joiner, PieceError, cut, end

HELLO = b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"generation":1}}\n'
PATIENCE_S = 10.0


class Papers:
    """A certificate with its key, and the authority to believe in, as files."""

    def __init__(self, folder: Path, name: str, authority: trustme.CA, leaf: trustme.LeafCert | None) -> None:
        self.ca = folder / f"{name}-ca.pem"
        self.cert = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        authority.cert_pem.write_to_path(self.ca)
        if leaf is not None:
            self.cert.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
            leaf.private_key_pem.write_to_path(self.key)

    def context(self, *, server: bool = False) -> ssl.SSLContext:
        return tls_context(server=server, cert=self.cert, key=self.key, ca=self.ca)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def folder() -> Iterator[Path]:
    made = private_folder("hc-t-")
    yield made
    for path in sorted(made.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    made.rmdir()


@pytest.fixture
def core_papers(folder: Path, authority: trustme.CA) -> Papers:
    return Papers(folder, "core", authority, authority.issue_cert("localhost", "127.0.0.1"))


@pytest.fixture
def our_papers(folder: Path, authority: trustme.CA) -> Papers:
    return Papers(folder, "ours", authority, authority.issue_cert("runner.example"))


class Line:
    """A core, and both ends of a tunnel to it."""

    def __init__(self, driver: Driver, far: FarEnd, near: NearEnd, port: int) -> None:
        self.driver, self.far, self.near, self.port = driver, far, near, port
        self.said: list[str] = []

    def seen(self) -> int:
        """Connections that the core was ever given."""
        return len(self.driver.hub.core.trace.of("link"))


@contextlib.asynccontextmanager
async def tunnel(folder: Path, core: Papers, ours: ssl.SSLContext, **limits: Any) -> AsyncIterator[Line]:
    driver = Driver(Hub(Core()))
    said: list[str] = []
    far = FarEnd(folder / "core.sock", core.context(server=True), report=said.append, **limits)
    async with UnixServer(driver, folder / "core.sock"):
        port = await far.start("127.0.0.1", 0)
        near = NearEnd(folder / "near.sock", ("127.0.0.1", port), ours, name="localhost", report=said.append)
        async with near:
            line = Line(driver, far, near, port)
            line.said = said
            yield line
        await far.close()
    driver.close()
    assert not driver.problems


async def ask(path: Path, data: bytes, *, eof: bool = True) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(data)
    if eof:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return answer


async def until(happened: Callable[[], bool]) -> None:
    """Let the loop go round until it has happened; `run` bounds it."""
    while not happened():  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0.01)


def run(scene: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await scene

    asyncio.run(bounded())


def test_a_call_goes_through_and_the_end_of_input_ends_only_one_direction(
    folder: Path, core_papers: Papers, our_papers: Papers
) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context()) as line:
            answer = json.loads(await ask(line.near.path, HELLO))
            assert answer["result"]["core_id"] == "core-1"
            assert line.said == []

    run(scene())


def test_many_connections_are_carried_side_by_side(folder: Path, core_papers: Papers, our_papers: Papers) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context()) as line:
            answers = await asyncio.gather(*(ask(line.near.path, HELLO) for _ in range(20)))
            assert [json.loads(answer)["id"] for answer in answers] == [1] * 20
            assert line.seen() == 20

    run(scene())


def test_a_reply_of_many_megabytes_arrives_whole(folder: Path, core_papers: Papers, our_papers: Papers) -> None:
    big = "x" * 3_000_000
    write = {"jsonrpc": "2.0", "id": 1, "method": "doc.set", "params": {"name": "d", "value": big}}
    read = {"jsonrpc": "2.0", "id": 2, "method": "doc.get", "params": {"name": "d"}}

    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context()) as line:
            calls = "".join(json.dumps(call) + "\n" for call in (write, read)).encode()
            answers = [json.loads(answer) for answer in (await ask(line.near.path, calls)).splitlines()]
            assert answers[1]["result"]["value"] == big

    run(scene())


def test_the_near_socket_is_as_private_as_a_cores(folder: Path, core_papers: Papers, our_papers: Papers) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context()) as line:
            assert stat.S_IMODE(line.near.path.stat().st_mode) == 0o600
        assert not (folder / "near.sock").exists()

    run(scene())


def test_no_connection_is_left_when_programs_have_gone(folder: Path, core_papers: Papers, our_papers: Papers) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context()) as line:
            _, leaving = await asyncio.open_unix_connection(str(line.near.path))
            leaving.write(HELLO[:20])
            leaving.transport.abort()
            await ask(line.near.path, HELLO)
            await until(lambda: not (line.near.connections or line.far.connections or line.driver.links))

    run(scene())


def test_a_program_sees_the_end_when_the_core_goes(folder: Path, core_papers: Papers, our_papers: Papers) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context()) as line:
            waiting = asyncio.create_task(ask(line.near.path, HELLO, eof=False))
            await until(lambda: len(line.driver.hub.core.trace.of("reply")) == 1)
            line.driver.close()
            assert json.loads(await waiting)["id"] == 1

    run(scene())


def test_a_program_that_does_not_read_stops_its_core_and_not_the_others(
    folder: Path, core_papers: Papers, our_papers: Papers
) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "rpc.discover"}

    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context()) as line:
            _, lazy = await asyncio.open_unix_connection(str(line.near.path))
            lazy.write((json.dumps(call) + "\n").encode() * 2_000)
            answer = await ask(line.near.path, HELLO)
            assert json.loads(answer)["id"] == 1
            assert len(line.driver.hub.core.trace.of("reply", "rpc.discover")) < 2_000
            lazy.transport.abort()

    run(scene())


def foreign(folder: Path, authority: trustme.CA) -> ssl.SSLContext:
    """Signed by somebody else, whom we believe all the same."""
    other = trustme.CA()
    papers = Papers(folder, "foreign", other, other.issue_cert("runner.example"))
    authority.cert_pem.write_to_path(papers.ca)
    return papers.context()


def expired(folder: Path, authority: trustme.CA) -> ssl.SSLContext:
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    before = yesterday - datetime.timedelta(days=30)
    return Papers(
        folder, "old", authority, authority.issue_cert("runner.example", not_before=before, not_after=yesterday)
    ).context()


def missing(folder: Path, authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(Papers(folder, "none", authority, None).ca))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def made_by_itself(folder: Path, authority: trustme.CA) -> ssl.SSLContext:
    """An authority that shows its own certificate: the wrong kind, and one that nobody here believes."""
    other = trustme.CA()
    papers = Papers(folder, "self", authority, None)
    other.cert_pem.write_to_path(papers.cert)
    other.private_key_pem.write_to_path(papers.key)
    return papers.context()


def of_an_older_protocol(folder: Path, authority: trustme.CA) -> ssl.SSLContext:
    papers = Papers(folder, "older", authority, authority.issue_cert("runner.example"))
    context = papers.context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


@pytest.mark.parametrize("papers", [foreign, expired, missing, made_by_itself, of_an_older_protocol])
def test_who_has_not_the_right_papers_gets_nothing_and_the_core_hears_nothing(
    folder: Path, authority: trustme.CA, core_papers: Papers, papers: Callable[[Path, trustme.CA], ssl.SSLContext]
) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, papers(folder, authority)) as line:
            answer = b""
            with contextlib.suppress(OSError):
                answer = await ask(line.near.path, HELLO, eof=False)
            assert answer == b""
            await until(lambda: line.far.connections == 0)
            assert line.seen() == 0
            assert any(words.startswith("refused a connection: ") for words in line.said)

    run(scene())


def test_who_speaks_no_tls_at_all_gets_nothing(folder: Path, core_papers: Papers, our_papers: Papers) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context()) as line:
            reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
            writer.write(HELLO)
            with contextlib.suppress(OSError):
                assert b"jsonrpc" not in await reader.read()
            writer.transport.abort()
            assert line.seen() == 0

    run(scene())


def test_a_certificate_without_the_name_of_the_far_end_is_not_believed(
    folder: Path, authority: trustme.CA, our_papers: Papers
) -> None:
    elsewhere = Papers(folder, "elsewhere", authority, authority.issue_cert("elsewhere.example"))

    async def scene() -> None:
        async with tunnel(folder, elsewhere, our_papers.context()) as line:
            with pytest.raises(TunnelError, match="certificate: Hostname mismatch"):
                await line.near.check()

    run(scene())


def test_who_does_not_finish_the_handshake_is_hung_up_on_and_holds_nobody(
    folder: Path, core_papers: Papers, our_papers: Papers
) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context(), handshake_s=0.2) as line:
            reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
            assert json.loads(await ask(line.near.path, HELLO))["id"] == 1
            assert await reader.read() == b""
            writer.close()

    run(scene())


def test_one_connection_too_many_is_refused_and_the_others_go_on(
    folder: Path, core_papers: Papers, our_papers: Papers
) -> None:
    async def scene() -> None:
        async with tunnel(folder, core_papers, our_papers.context(), max_connections=1) as line:
            reader, writer = await asyncio.open_unix_connection(str(line.near.path))
            writer.write(HELLO)
            assert json.loads(await reader.readline())["id"] == 1
            with contextlib.suppress(OSError):
                assert await ask(line.near.path, HELLO, eof=False) == b""
            assert "refused a connection: there are 1 already" in line.said
            writer.write(HELLO)
            assert json.loads(await reader.readline())["id"] == 1
            writer.close()

    run(scene())


def test_without_a_core_the_near_end_says_so(folder: Path, core_papers: Papers, our_papers: Papers) -> None:
    async def scene() -> None:
        far = FarEnd(folder / "nobody.sock", core_papers.context(server=True))
        port = await far.start("127.0.0.1", 0)
        near = NearEnd(folder / "near.sock", ("127.0.0.1", port), our_papers.context(), name="localhost")
        with pytest.raises(TunnelError, match="has no core for us"):
            await near.check()
        await far.close()
        with pytest.raises(TunnelError, match=r"cannot use 127\.0\.0\.1"):
            await near.check()

    run(scene())


@pytest.mark.parametrize("wrong", ["cert", "key", "ca"])
def test_a_file_that_cannot_be_used_is_named_in_one_line(our_papers: Papers, wrong: str) -> None:
    getattr(our_papers, wrong).write_text("nothing of the kind")

    with pytest.raises(TunnelError, match=str(getattr(our_papers, wrong))) as caught:
        our_papers.context()

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("example.org:7443", ("example.org", 7443)),
        ("[::1]:7443", ("::1", 7443)),
        (":0", ("127.0.0.1", 0)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "7443", "host", "host:", "host:x", "host:70000", "host:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(TunnelError, match="is no HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize("size", [0, 1, MAX_PIECE, MAX_PIECE + 1, 3 * MAX_PIECE])
def test_pieces_put_together_are_what_was_cut(size: int) -> None:
    data = os.urandom(size)

    pieces = Joiner().feed(cut(data) + end())

    assert pieces[-1] is END
    assert b"".join(piece for piece in pieces if not isinstance(piece, EndOfStream)) == data


def test_pieces_may_arrive_byte_by_byte() -> None:
    joiner = Joiner()

    found = [piece for byte in cut(b"abc") + cut(b"d") + end() for piece in joiner.feed(bytes([byte]))]

    assert found == [b"abc", b"d", END]
    assert joiner.ended


@pytest.mark.parametrize("data", [(MAX_PIECE + 1).to_bytes(4, "big"), end() + b"x", end() + end()])
def test_a_stream_that_breaks_the_rules_is_a_violation(data: bytes) -> None:
    with pytest.raises(PieceError):
        Joiner().feed(data)


def test_the_command_carries_a_core_over_the_loopback_and_leaves_nothing(
    folder: Path, core_papers: Papers, our_papers: Papers
) -> None:
    command = [sys.executable, "-m", "hc_sim.cli", "tunnel"]

    def papers(of: Papers) -> list[str]:
        return ["--cert", str(of.cert), "--key", str(of.key), "--ca", str(of.ca)]

    async def scene() -> None:
        driver = Driver(Hub(Core()))
        async with UnixServer(driver, folder / "core.sock"):
            core_end = [
                *command,
                "--listen",
                "127.0.0.1:0",
                "--socket",
                str(folder / "core.sock"),
                *papers(core_papers),
            ]
            far = await asyncio.create_subprocess_exec(*core_end, stdout=subprocess.PIPE)
            assert far.stdout is not None
            address = (await far.stdout.readline()).decode().split()[1]
            our_end = [*command, "--connect", address, "--socket", str(folder / "here.sock"), *papers(our_papers)]
            near = await asyncio.create_subprocess_exec(*our_end, stdout=subprocess.PIPE)
            assert near.stdout is not None
            assert await near.stdout.readline() == f"export HC_SOCKET={folder}/here.sock\n".encode()
            assert json.loads(await ask(folder / "here.sock", HELLO))["result"]["core_id"] == "core-1"
            for end_of_tunnel in (near, far):
                end_of_tunnel.terminate()
                assert await end_of_tunnel.wait() == 0
        driver.close()
        assert not (folder / "here.sock").exists()

    run(scene())


@pytest.mark.parametrize("words", [[], ["--listen", ":0", "--connect", ":1"], ["--listen", ":0"]])
def test_the_command_wants_one_of_listen_and_connect(our_papers: Papers, words: list[str]) -> None:
    papers = ["--cert", str(our_papers.cert), "--key", str(our_papers.key), "--ca", str(our_papers.ca)]

    done = subprocess.run(
        [sys.executable, "-m", "hc_sim.cli", "tunnel", *words, *papers], capture_output=True, timeout=30, check=False
    )

    assert done.returncode == 2
