"""The transport that the contract names: a child process `hc connect`, its stdin and stdout the stream (D3).

The process is started from an argument list, never through a shell. Its error output is read all the time, so that it
can never block on it, and only the end of it is kept. Closing ends it by end-of-file, then SIGTERM, then SIGKILL.
"""

import asyncio
import signal
from collections import deque
from collections.abc import Mapping

from legion_terminal.errors import SupervisorError

MAX_TAIL_BYTES = 4 * 1024
HIGH_WATER_BYTES = 1024 * 1024
READ_BYTES = 64 * 1024
EOF_GRACE_MS = 500
TERM_GRACE_MS = 500
KILL_GRACE_MS = 1_000
EXIT_WORD_MS = 80
DRAIN_AFTER_EXIT_MS = 200


class ProcessTransport:
    """One `EXECUTABLE connect` process as a stream of bytes. `env` is its whole environment."""

    def __init__(self, executable: str, env: Mapping[str, str]) -> None:
        self._executable = executable
        self._env = dict(env)
        self._process: asyncio.SubprocessTransport | None = None
        self._pipes: _Pipes | None = None

    async def open(self) -> None:
        """Start the process. Raises SupervisorError (`host-unreachable`) when it cannot be started."""
        loop = asyncio.get_running_loop()
        try:
            self._process, self._pipes = await loop.subprocess_exec(
                _Pipes, self._executable, "connect", env=self._env, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise SupervisorError(
                "host-unreachable",
                f"cannot start {self._executable!r}: {getattr(error, 'strerror', None) or error}",
                hint="set HC_BIN to an executable hc, or put hc on PATH",
            ) from error

    async def write(self, data: bytes) -> None:
        """Hand over bytes and wait while the pipe is full. Raises BrokenPipeError when the process takes no more."""
        if self._process is None or self._pipes is None or self._pipes.input_closed:
            raise BrokenPipeError("the bridge takes no more input")
        stdin = self._process.get_pipe_transport(0)
        if not isinstance(stdin, asyncio.WriteTransport) or stdin.is_closing():
            raise BrokenPipeError("the bridge takes no more input")
        stdin.write(data)
        await self._pipes.writable.wait()
        if self._pipes.input_closed:
            raise BrokenPipeError("the bridge takes no more input")

    async def read(self) -> bytes:
        """Return what the process wrote, b"" once its output has ended (and its exit, if near, is known)."""
        if self._pipes is None:
            return b""
        data = await self._pipes.next_chunk()
        if not data:
            await _within(self._pipes.exited, EXIT_WORD_MS)
        return data

    async def close(self) -> None:
        """End the process: end-of-file, a grace, SIGTERM, a grace, SIGKILL. Bounded by about two seconds."""
        process, pipes = self._process, self._pipes
        if process is None or pipes is None:
            return
        stdin = process.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        pipes.discard_output()
        if not await _within(pipes.exited, EOF_GRACE_MS):
            _signal(process, signal.SIGTERM)
            if not await _within(pipes.exited, TERM_GRACE_MS):
                _signal(process, signal.SIGKILL)
                await _within(pipes.exited, KILL_GRACE_MS)
        process.close()
        self._process = None

    def tail(self) -> str:
        """The end of the error output, at most 4 KiB."""
        return self._pipes.tail.decode("utf-8", "replace") if self._pipes is not None else ""

    def ended(self) -> str | None:
        """`exit code N` or `signal NAME` once the process has ended."""
        code = self._pipes.exit_code if self._pipes is not None else None
        if code is None:
            return None
        return f"exit code {code}" if code >= 0 else f"signal {_signal_name(-code)}"


class _Pipes(asyncio.SubprocessProtocol):
    """What the three pipes have delivered, and whether they and the process are still there."""

    def __init__(self) -> None:
        self.tail = bytearray()
        self.exit_code: int | None = None
        self.exited = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.input_closed = False
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._output_ended = False
        self._discarding = False
        self._news = asyncio.Event()
        self._process: asyncio.SubprocessTransport | None = None
        self._draining: asyncio.TimerHandle | None = None

    async def next_chunk(self) -> bytes:
        """The next bytes of standard output, b"" at its end."""
        while not self._chunks and not self._output_ended:
            self._news.clear()
            await self._news.wait()
        if not self._chunks:
            return b""
        data = self._chunks.popleft()
        self._held -= len(data)
        if self._held <= HIGH_WATER_BYTES:
            self._set_reading(True)
        return data

    def discard_output(self) -> None:
        """Read and forget from here on, so that the process never blocks while it is being ended."""
        self._discarding = True
        self._chunks.clear()
        self._held = 0
        self._end_output()
        self._set_reading(True)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.SubprocessTransport):
            self._process = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.tail += data
            del self.tail[:-MAX_TAIL_BYTES]
        elif not self._discarding and not self._output_ended:
            self._chunks.append(data)
            self._held += len(data)
            self._news.set()
            if self._held > HIGH_WATER_BYTES:
                self._set_reading(False)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self.input_closed = True
            self.writable.set()
        elif fd == 1:
            self._end_output()

    def process_exited(self) -> None:
        if self._process is not None:
            self.exit_code = self._process.get_returncode()
        self.exited.set()
        self.input_closed = True
        self.writable.set()
        if not self._output_ended:
            self._await_drain()

    def pause_writing(self) -> None:
        if not self.input_closed:
            self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def _await_drain(self) -> None:
        """A grandchild may hold the output open for ever: what has not come shortly after the exit never counts."""
        loop = asyncio.get_running_loop()
        self._draining = loop.call_later(DRAIN_AFTER_EXIT_MS / 1000, self._drained)

    def _drained(self) -> None:
        if self._held > 0:
            self._await_drain()
        else:
            self._end_output()

    def _end_output(self) -> None:
        self._output_ended = True
        self._news.set()
        if self._draining is not None:
            self._draining.cancel()
            self._draining = None

    def _set_reading(self, wanted: bool) -> None:
        stdout = self._process.get_pipe_transport(1) if self._process is not None else None
        if not isinstance(stdout, asyncio.ReadTransport) or stdout.is_closing():
            return
        if wanted:
            stdout.resume_reading()
        else:
            stdout.pause_reading()


async def _within(event: asyncio.Event, ms: int) -> bool:
    try:
        async with asyncio.timeout(ms / 1000):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _signal(process: asyncio.SubprocessTransport, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
