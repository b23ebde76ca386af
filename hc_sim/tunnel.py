"""A core on another machine: its socket at the far end, a socket like it at the near end, mutual TLS between them.

    program -- Unix socket -- near end ==== TLS 1.3 ==== far end -- Unix socket -- core

Both ends show a certificate of one authority that was made for this purpose alone; whoever holds one is trusted like
the owner of the core's socket. Nobody else gets a byte: the far end reaches for the core only after the handshake, and
the near end takes nothing from its program before the far end has greeted it.

Streams are fast enough here, the cipher being the slower part, and their flow control passes through: a reader that
does not read stops its source, however many ends are between them.
"""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

from hc_sim.server import UnixListener, same_user
from hc_sim.wire.pieces import EndOfStream, Joiner, PieceError, cut, end

GREETING = b"hc-sim tunnel 1"
"""The first piece from the far end: the certificate was accepted and the core is there."""
MAX_CONNECTIONS = 256
"""Connections that are carried, or still in their handshake, at one time."""
HANDSHAKE_S = 10.0
READ_BYTES = 65_536
BACKLOG = 128

Report = Callable[[str], None]
Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TunnelError(Exception):
    """A tunnel that cannot be set up or used; the message says why, in one line."""


def tls_context(*, server: bool, cert: Path | str, key: Path | str, ca: Path | str) -> ssl.SSLContext:
    """TLS 1.3 and nothing older, our own certificate shown, one of the same authority demanded.

    Raises `TunnelError` for files that cannot be used. Sessions are never resumed, so that a certificate that has
    expired meanwhile is noticed with the next connection.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    if server:
        context.num_tickets = 0
    try:
        context.load_verify_locations(cafile=str(ca))
    except (OSError, ValueError) as error:
        raise TunnelError(f"authority {ca}: {_words(error)}") from None
    try:
        context.load_cert_chain(str(cert), str(key), password=lambda: "")
    except (OSError, ValueError) as error:
        raise TunnelError(f"certificate {cert} with key {key}: {_words(error)}") from None
    return context


class _Room:
    """The connections of one end: counted, reported on, ended together."""

    def __init__(self, report: Report, limit: int) -> None:
        self.report = report
        self._limit = limit
        self._tasks: set[asyncio.Task[object]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def enter(self, task: asyncio.Task[object] | None) -> bool:
        """Whether there is room for one more."""
        if task is None or len(self._tasks) >= self._limit:
            self.report(f"refused a connection: there are {self._limit} already")
            return False
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def clear(self) -> None:
        """End all of them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class FarEnd:
    """Beside the core: takes TLS connections and carries each to the core's socket.

    `report` is told in a line what goes wrong, never what is carried.
    """

    def __init__(
        self,
        socket: Path | str,
        context: ssl.SSLContext,
        *,
        report: Report = lambda _: None,
        max_connections: int = MAX_CONNECTIONS,
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        self._socket = str(socket)
        self._context = context
        self._handshake_s = handshake_s
        self._room = _Room(report, max_connections)
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """How many connections there are, handshakes included."""
        return len(self._room)

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port (a free one if `port` is 0). Raises `TunnelError`."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Held(self._accepted), host, port, backlog=BACKLOG)
        except OSError as error:
            raise TunnelError(f"cannot listen at {host} port {port}: {_words(error)}") from None
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is not None:
            self._server.close()
        await self._room.clear()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        core: Pipe | None = None
        try:
            if not self._room.enter(asyncio.current_task()):
                return
            try:
                await writer.start_tls(self._context, ssl_handshake_timeout=self._handshake_s)
            except (OSError, TimeoutError) as error:
                self._room.report(f"refused a connection: {_words(error)}")
                return
            core = await self._core()
            if core is not None:
                writer.write(cut(GREETING))
                await _carry(core, (reader, writer))
        except (OSError, PieceError) as error:
            self._room.report(f"a connection broke: {_words(error)}")
        finally:
            for side in filter(None, (core and core[1], writer)):
                side.transport.abort()

    async def _core(self) -> Pipe | None:
        try:
            core = await asyncio.open_unix_connection(self._socket)
        except OSError as error:
            self._room.report(f"no core at {self._socket}: {_words(error)}")
            return None
        if same_user(core[1].get_extra_info("socket")):
            return core
        self._room.report(f"the core at {self._socket} runs as another user")
        core[1].transport.abort()
        return None


class NearEnd(UnixListener):
    """Beside the program: a Unix socket, as private as a core's own, whose connections come out at the core.

    `name`: the name in the far end's certificate, if it is not the host. Otherwise as `FarEnd`.
    """

    def __init__(
        self,
        socket: Path | str,
        address: tuple[str, int],
        context: ssl.SSLContext,
        *,
        name: str | None = None,
        report: Report = lambda _: None,
        max_connections: int = MAX_CONNECTIONS,
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        super().__init__(socket)
        self._address = address
        self._context = context
        self._name = name or address[0]
        self._handshake_s = handshake_s
        self._room = _Room(report, max_connections)

    @property
    def connections(self) -> int:
        """How many connections there are, handshakes included."""
        return len(self._room)

    async def check(self) -> None:
        """Make one connection and end it. Raises `TunnelError`, saying why, if nothing can be carried."""
        _, far = await self._reach(Joiner())
        far.transport.abort()

    async def close(self) -> None:
        """Stop listening, end every connection, remove the socket."""
        await self._room.clear()
        await super().close()

    def _accept(self) -> asyncio.Protocol:
        return _Held(self._accepted)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far: Pipe | None = None
        try:
            if not same_user(writer.get_extra_info("socket")) or not self._room.enter(asyncio.current_task()):
                return
            joiner = Joiner()
            far = await self._reach(joiner)
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            await _carry((reader, writer), far, joiner)
        except (OSError, PieceError, TunnelError) as error:
            self._room.report(_words(error))
        finally:
            for side in filter(None, (far and far[1], writer)):
                side.transport.abort()

    async def _reach(self, joiner: Joiner) -> Pipe:
        """A connection to the far end that has greeted us."""
        host, port = self._address
        try:
            async with asyncio.timeout(self._handshake_s):
                return await self._greeted(joiner)
        except TimeoutError:
            raise TunnelError(f"{host} port {port} does not answer") from None
        except OSError as error:
            raise TunnelError(f"cannot use {host} port {port}: {_words(error)}") from None
        except PieceError:
            raise TunnelError(f"{host} port {port} has no core for us, or is no tunnel of this version") from None

    async def _greeted(self, joiner: Joiner) -> Pipe:
        host, port = self._address
        reader, writer = await asyncio.open_connection(
            host, port, ssl=self._context, server_hostname=self._name, limit=READ_BYTES
        )
        try:
            if await _first(reader, joiner) != GREETING:
                raise PieceError("no greeting")
        except BaseException:
            writer.transport.abort()
            raise
        return reader, writer


class _Held(asyncio.StreamReaderProtocol):
    """An accepted connection that is not read from until somebody says so."""

    def __init__(self, accepted: "Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]") -> None:
        super().__init__(asyncio.StreamReader(READ_BYTES), accepted)  # type: ignore[arg-type]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.pause_reading()  # type: ignore[attr-defined]
        super().connection_made(transport)


async def _first(reader: asyncio.StreamReader, joiner: Joiner) -> bytes:
    """The first piece; nothing may follow it before we have spoken. b"" for anything else."""
    while data := await reader.read(READ_BYTES):
        pieces = joiner.feed(data)
        if pieces:
            return b"" if len(pieces) > 1 or isinstance(pieces[0], EndOfStream) else pieces[0]
    return b""


async def _carry(plain: Pipe, tls: Pipe, joiner: Joiner | None = None) -> None:
    """Carry both directions until both have ended. Raises `OSError` or `PieceError` when one of them breaks."""
    up = asyncio.create_task(_wrap(plain[0], tls[1]))
    down = asyncio.create_task(_unwrap(tls[0], plain[1], joiner or Joiner()))
    try:
        await asyncio.gather(up, down)
        for _, writer in (plain, tls):
            writer.close()
        for _, writer in (plain, tls):
            await writer.wait_closed()
    finally:
        for task in (up, down):
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _wrap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(READ_BYTES):
        writer.write(cut(data))
        await writer.drain()
    writer.write(end())
    await writer.drain()


async def _unwrap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, joiner: Joiner) -> None:
    while data := await reader.read(READ_BYTES):
        for piece in joiner.feed(data):
            if isinstance(piece, EndOfStream):
                writer.write_eof()
                return
            writer.write(piece)
        await writer.drain()
    raise ConnectionResetError("the other end is gone")


def _words(error: Exception) -> str:
    """What went wrong, in one line, without the library's own bookkeeping."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    if isinstance(error, TimeoutError):
        return "no handshake in time"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT, [HOST]:PORT or :PORT (this machine alone). Raises `TunnelError`."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise TunnelError(f"{text!r} is no HOST:PORT")
    return host or "127.0.0.1", int(port)


__all__ = ["FarEnd", "NearEnd", "TunnelError", "parse_address", "tls_context"]
