"""The Unix-socket front of a core: a private socket, peers of the same user only, and nothing left behind.

The socket is 0600 from its first moment. An old socket is replaced only when nobody listens on it; a listening one, or
anything that is no socket, is refused. Whoever starts holds a lock on the folder meanwhile, so that two that start at
once cannot take each other's socket for an old one.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol, Self, cast

from hc_sim.driver import Driver, Link
from hc_sim.memory import MemoryLink
from hc_sim.trace import Event

__all__ = ["Driver", "Link", "MemoryLink", "SocketPathError", "UnixListener", "UnixServer"]

PATH_LIMIT = 107
"""Bytes of a Unix socket path that the operating system takes."""
BACKLOG = 1_024
LINGER_S = 5.0
"""How long a peer may take to read the rest of an ended connection."""
LOCK_TRIES, LOCK_PAUSE_S = 40, 0.05
CLOSE_S = 2.0
READ_BYTES = 262_144
"""What is read of one connection in one go."""
ACCEPT_ROUNDS = 5
"""Rounds of the event loop in which a connection that is being accepted becomes a peer and ends, and some to spare."""


class SocketPathError(Exception):
    """The socket cannot be there; the message says where and why, in one line."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"cannot listen at {path}: {why}")
        self.path = path
        self.why = why


class Peer(Protocol):
    """An accepted connection, as far as its server cares."""

    def abort(self) -> None:
        """End it now."""


class UnixListener:
    """A private socket at `path`, between `start` and `close`; `_accept` says who takes the connections."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._peers: set[Peer] = set()
        self._server: asyncio.Server | None = None
        self._own: tuple[int, int] | None = None
        self._made: list[Path] = []

    @property
    def peers(self) -> int:
        """How many connections there are, those included that are only flushing their last bytes."""
        return len(self._peers)

    async def start(self) -> None:
        """Listen. Folders that are missing are made 0700. Raises `SocketPathError`, having left nothing behind."""
        size = len(os.fsencode(self.path))
        if size > PATH_LIMIT:
            raise SocketPathError(str(self.path), f"the path is {size} bytes long and the limit is {PATH_LIMIT}")
        try:
            _make_folders(self.path.parent, self._made)
            await self._listen()
        except (OSError, ValueError) as error:
            self._remove_folders()
            raise SocketPathError(str(self.path), getattr(error, "strerror", None) or str(error)) from None
        except SocketPathError:
            self._remove_folders()
            raise

    async def _listen(self) -> None:
        async with _folder_lock(self.path):
            _clear(self.path)
            listener = _bind(self.path)
        self._own = _identity(self.path)
        self._server = await asyncio.get_running_loop().create_unix_server(self._accept, sock=listener, backlog=BACKLOG)

    def _unlink(self) -> None:
        if self._own is not None and _identity(self.path) == self._own:
            self.path.unlink(missing_ok=True)

    async def close(self) -> None:
        """Stop listening, end every connection, remove the socket (if it is still ours) and the folders we made."""
        server, self._server = self._server, None
        if server is None:
            return
        self._unlink()
        for listener in server.sockets:  # a connection that is just being accepted would be lost by a closed server
            asyncio.get_running_loop().remove_reader(listener.fileno())
        for _ in range(ACCEPT_ROUNDS):
            for peer in list(self._peers):
                peer.abort()
            await asyncio.sleep(0)
        server.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), CLOSE_S)
        self._remove_folders()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _accept(self) -> asyncio.BaseProtocol:
        raise NotImplementedError

    def _remove_folders(self) -> None:
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        self._made = []


class UnixServer(UnixListener):
    """Listens at `path` and hands every connection to the driver, between `start` and `close`."""

    def __init__(self, driver: Driver, path: Path | str) -> None:
        super().__init__(path)
        self._driver = driver
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._again: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen, as long as the core is not down between two lives. Raises `SocketPathError`."""
        await super().start()
        self._driver.listener = self._restarted

    async def close(self) -> None:
        """Stop listening, end every connection, remove the socket (if it is still ours) and the folders we made."""
        self._driver.listener = None
        if self._again is not None:
            await asyncio.wait([self._again])
        await super().close()

    async def _listen(self) -> None:
        await super()._listen()
        modes = f"{_mode(self.path)} in a folder of {_mode(self.path.parent)}"
        self._driver.hub.core.trace.add(Event(t=self._driver.now(), kind="socket", text=str(self.path), note=modes))

    def _restarted(self, listening: bool) -> None:
        """The core ends and nobody listens; or it is back. Its connections were ended by the core itself."""
        if listening:
            self._again = asyncio.get_running_loop().create_task(self._come_back(), name="host: the core is back")
        elif self._server is not None:
            self._unlink()
            self._server.close()

    async def _come_back(self) -> None:
        try:
            await self._listen()
        except (OSError, SocketPathError) as error:
            self._driver.problems.append(f"the core cannot listen again: {error}")

    def _accept(self) -> asyncio.BaseProtocol:
        return _Peer(self._driver, self._peers, self._buffer)


class _Peer(asyncio.BufferedProtocol):
    """One accepted connection, as a `Link` of the driver.

    All connections of a server are read into one `buffer`, which is emptied before the next one is: a block of memory
    for every read is fetched from the system and given back each time, and that costs more than a call.
    """

    def __init__(self, driver: Driver, peers: set[Peer], buffer: memoryview) -> None:
        self._driver = driver
        self._peers = peers
        self._buffer = buffer
        self._conn = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not same_user(transport.get_extra_info("socket")):
            self._transport.abort()
            return
        self._peers.add(self)
        self._conn = self._driver.attach(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._driver.received_now(self._conn, self._buffer[:nbytes].tobytes())

    def eof_received(self) -> bool:
        self._driver.eof(self._conn)
        return True  # keep the other direction open: what is owed still goes out

    def connection_lost(self, exc: Exception | None) -> None:
        self._peers.discard(self)
        self._driver.lost(self._conn)
        self._transport = None

    def resume_writing(self) -> None:
        self._driver.drained(self._conn)

    def deliver(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def end(self) -> None:
        if self._transport is not None:
            self._transport.close()
            if self._transport is not None and self.backlog():
                asyncio.get_running_loop().call_later(LINGER_S, self.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def end_half(self) -> None:
        if self._transport is not None and not self._transport.is_closing() and self._transport.can_write_eof():
            self._transport.write_eof()

    def backlog(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def throttle(self, on: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if on:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


def same_user(peer: socket.socket) -> bool:
    """Whether the process at the other end runs as this user; true where the system cannot tell (not Linux)."""
    if not sys.platform.startswith("linux"):
        return True
    _pid, uid, _gid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(uid == os.geteuid())


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700)
        made.append(path)
        path.chmod(0o700)  # whatever the umask took away


@contextlib.asynccontextmanager
async def _folder_lock(path: Path) -> AsyncIterator[None]:
    """Only one of us at a time looks at this folder's sockets and binds a new one."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except NotADirectoryError:
        raise SocketPathError(str(path), f"{path.parent} is not a folder") from None
    try:
        if os.fstat(folder).st_mode & (stat.S_IWGRP | stat.S_IWOTH | stat.S_ISVTX) in _ANYBODY_WRITES:
            raise SocketPathError(str(path), f"others may write to {path.parent}, so they could replace the socket")
        await _lock(folder, path)
        yield
    finally:
        os.close(folder)


_ANYBODY_WRITES = (stat.S_IWGRP, stat.S_IWOTH, stat.S_IWGRP | stat.S_IWOTH)


async def _lock(folder: int, path: Path) -> None:
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(LOCK_PAUSE_S)
        else:
            return
    raise SocketPathError(str(path), "another core has been starting in this folder for too long")


def _clear(path: Path) -> None:
    """Make room at `path`: remove a socket of ours on which nobody listens, refuse everything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        raise SocketPathError(str(path), "that is a directory")
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketPathError(str(path), "there is a file there, and it is not a socket")
    if found.st_uid != os.geteuid():
        raise SocketPathError(str(path), "that socket belongs to another user")
    if _somebody_listens(path):
        raise SocketPathError(str(path), "another core is listening there")
    path.unlink(missing_ok=True)


def _somebody_listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a core whose queue is full is a live one, and must not make us wait
        return probe.connect_ex(os.fspath(path)) not in (errno.ECONNREFUSED, errno.ENOENT)


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)  # the one way to have the file private from its first moment on every system
    try:
        listener.bind(os.fspath(path))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(mask)
    return listener


def _mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
