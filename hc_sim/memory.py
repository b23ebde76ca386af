"""A connection to a core that lives in one event loop: no socket, no process, the same bytes."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hc_sim.driver import Driver


class MemoryLink:
    """The client's end of a connection without a socket: the same bytes, the same ends, one event loop.

    Each `read` returns what the core sent in one piece, so that a reply cut by a fault arrives in its pieces.
    """

    def __init__(self, driver: "Driver") -> None:
        self.conn = 0
        self._driver = driver
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._closed = False
        self._deaf = False
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """The next bytes; b"" at the end. One reader at a time (`RuntimeError`)."""
        if self._waiter is not None:
            raise RuntimeError("another task is already reading this link")
        while not self._chunks and not (self._ended or self._deaf):
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if not self._chunks:
            return b""
        data = self._chunks.popleft()
        self._size -= len(data)
        self._driver.drained(self.conn)
        return data

    def write(self, data: bytes) -> None:
        """Send bytes to the core; raises `BrokenPipeError` when the connection has ended."""
        if self._ended:
            raise BrokenPipeError("the core closed the connection")
        self._driver.received(self.conn, data)

    def write_eof(self) -> None:
        """Say that no more will be sent; replies still come."""
        self._driver.eof(self.conn)

    def close(self) -> None:
        """Leave. Unread replies are dropped; a reader gets b""."""
        self._chunks.clear()
        self._size = 0
        self.end()
        self._driver.lost(self.conn)

    def deliver(self, data: bytes) -> None:
        """Called by the driver: bytes for the reader."""
        self._chunks.append(data)
        self._size += len(data)
        self._wake()

    def end(self) -> None:
        """Called by the driver: nothing more will come."""
        self._ended = True
        self._wake()

    def end_half(self) -> None:
        """Called by the driver: nothing more will come, but what is written still arrives."""
        self._deaf = True
        self._wake()

    def backlog(self) -> int:
        """Bytes that the reader has not read yet."""
        return self._size

    def throttle(self, on: bool) -> None:
        """Nothing to do: the writer is in this loop, and the driver bounds what it may leave waiting."""

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
