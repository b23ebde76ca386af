"""Where live checks run: a real core behind `hc connect`, or behind its socket."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from contracts.live.finding import Found
from legion_terminal.bridge import ProcessTransport
from legion_terminal.link import Transport

READ_BYTES = 65_536


class Host(Protocol):
    """Anything that leads to a core. `label` says what a connection is for; a cassette keeps it."""

    def connect(self, label: str) -> Transport:
        """A new connection, not opened yet."""

    async def pause(self, ms: int) -> None:
        """Let this much time go by."""

    def problem(self) -> str:
        """Why nothing that was found out counts, "" while all is well."""


class LiveHost:
    """A core that is really there."""

    def __init__(self, found: Found, env: Mapping[str, str]) -> None:
        self._found = found
        self._env = found.environment(env)

    def connect(self, label: str) -> Transport:
        """One `hc connect`, or one connection to the socket if there is no hc."""
        if self._found.hc is not None:
            return ProcessTransport(self._found.hc, self._env)
        return SocketTransport(self._found.socket or "")

    async def pause(self, ms: int) -> None:
        """Sleep."""
        await asyncio.sleep(ms / 1_000)

    def problem(self) -> str:
        """A core that is really there has none of its own."""
        return ""


class SocketTransport:
    """A Unix socket as a stream of bytes, for a core that can be reached without an `hc`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect. Raises OSError."""
        self._reader, self._writer = await asyncio.open_unix_connection(self._path)

    async def write(self, data: bytes) -> None:
        """Hand over bytes. Raises OSError when the stream is gone."""
        if self._writer is None:
            raise BrokenPipeError("not connected")
        self._writer.write(data)
        await self._writer.drain()

    async def read(self) -> bytes:
        """The next bytes, b"" at the end."""
        if self._reader is None:
            return b""
        try:
            return await self._reader.read(READ_BYTES)
        except ConnectionError:
            return b""

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def tail(self) -> str:
        """Nothing: a socket has no error output."""
        return ""

    def ended(self) -> str | None:
        """Nothing: no process stands behind it."""
        return None
