"""A driver's process: lines in, lines out, the end of its error output, and an end that nothing outlives.

Its error output is read all the time, so that it can never block on it, and only the end of it is kept. It leads a
process group of its own.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from typing import cast

from contracts.running.processes import adopt_orphans
from contracts.sut.command import Command

MAX_LINE_BYTES = 8 * 1024 * 1024
"""The longest line that a driver may write."""
TAIL_BYTES = 4 * 1024
"""How much of its error output is kept."""
DRAIN_S = 0.2
"""How long the output of a process that has ended may stay open: something else may hold it for ever."""


class Program:
    """One process. `on_line` hears each line, `on_over` why there will be none any more; both at most once a line.

    What comes after the end of the output, and after `deaf`, is dropped.
    """

    def __init__(self, on_line: Callable[[bytes], None], on_over: Callable[[str], None]) -> None:
        self.exited = asyncio.Event()
        self.pid = 0
        self._on_line = on_line
        self._on_over = on_over
        self._transport: asyncio.SubprocessTransport | None = None
        self._pipes = _Pipes(self)
        self._held = bytearray()
        self._over = False
        self._adopted: bool | None = None
        """Whether orphans were adopted before this one was started; None while it is not."""

    async def start(self, command: Command, env: Mapping[str, str]) -> None:
        """Start it, with `env` as its whole environment. Raises OSError."""
        self._adopted = adopt_orphans()
        loop = asyncio.get_running_loop()
        try:
            await loop.subprocess_exec(
                lambda: self._pipes, *command.argv, cwd=command.cwd, env=dict(env), start_new_session=True
            )
        except BaseException:
            self._disown()
            raise

    def started(self, transport: asyncio.SubprocessTransport) -> None:
        """There is a process; nothing of its output has been heard yet."""
        self._transport, self.pid = transport, transport.get_pid()

    def write(self, line: bytes) -> None:
        """Hand it a line. What it does not read waits; a process that is gone has its end told elsewhere."""
        stdin = self._transport.get_pipe_transport(0) if self._transport is not None else None
        if isinstance(stdin, asyncio.WriteTransport) and not stdin.is_closing():
            stdin.write(line + b"\n")

    def end_input(self) -> None:
        """Close its standard input."""
        stdin = self._transport.get_pipe_transport(0) if self._transport is not None else None
        if isinstance(stdin, asyncio.WriteTransport):
            stdin.close()

    def deaf(self) -> None:
        """Hear nothing more of it."""
        self._over = True
        self._held.clear()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its whole group. Without a process nothing is sent: group 0 would be our own."""
        if not self.pid:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def exits_within(self, seconds: float) -> bool:
        """Whether it ends in this time."""
        try:
            async with asyncio.timeout(seconds):
                await self.exited.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Let go of its pipes, and of the orphans that are not there yet."""
        self._disown()
        self.deaf()
        self._pipes.stop()
        if self._transport is not None:
            self._transport.close()

    def _disown(self) -> None:
        if self._adopted is not None:
            adopt_orphans(adopt=self._adopted)
            self._adopted = None

    def tail(self) -> str:
        """The end of its error output."""
        return self._pipes.tail.decode("utf-8", "replace").strip()

    def ended(self) -> str:
        """How it ended: `exit code 3`, `signal SIGKILL`; "" while it runs."""
        code = self._transport.get_returncode() if self._transport is not None else None
        if code is None:
            return ""
        return f"exit code {code}" if code >= 0 else f"signal {_signal_name(-code)}"

    def take(self, data: bytes) -> None:
        """Bytes of its standard output."""
        if self._over:
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = bytes(self._held) + line if self._held else line
            self._held.clear()
            if self._too_long(len(whole)):
                return
            self._on_line(whole)
            if self._over:
                return
        self._held += rest
        self._too_long(len(self._held))

    def output_ended(self) -> None:
        """Its standard output is at its end."""
        if not self._over:
            unfinished = f", in the middle of a line of {len(self._held)} bytes" if self._held.strip() else ""
            self._tell(f"closed its standard output{unfinished}" if not self.ended() else f"ended with {self.ended()}")

    def _too_long(self, size: int) -> bool:
        if size > MAX_LINE_BYTES:
            self._tell(f"wrote a line of more than {MAX_LINE_BYTES} bytes")
        return self._over

    def _tell(self, why: str) -> None:
        self.deaf()
        self._on_over(why)


class _Pipes(asyncio.SubprocessProtocol):
    def __init__(self, program: Program) -> None:
        self.tail = bytearray()
        self._program = program
        self._timer: asyncio.TimerHandle | None = None
        self._open = {1, 2}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._program.started(cast("asyncio.SubprocessTransport", transport))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.tail += data
            del self.tail[:-TAIL_BYTES]
        else:
            self._program.take(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if fd == 1 and not self._timer:  # its exit, if that is the reason, is known in a moment
            self._later()
        elif not self._open and self._program.exited.is_set():
            self._over()

    def process_exited(self) -> None:
        self._program.exited.set()
        if self._open:
            self.stop()
            self._later()
        else:
            self._over()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(DRAIN_S, self._over)

    def _over(self) -> None:
        self.stop()
        self._program.output_ended()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
