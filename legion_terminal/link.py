"""One bridge to the core for as long as it lasts: calls go out in order, replies come back in any order.

A link is never mended. When it is lost, everything in flight learns so at once, and the client opens another one.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from legion_terminal.errors import Code, SupervisorError
from legion_terminal.lines import MAX_LINE_BYTES, LineReader
from legion_terminal.messages import Noise, Notice, Reply, decode, printable

MAX_NOISE_LINES = 8
MAX_SILENT_TIMEOUTS = 2
SILENCE_MS = 1_000
MAX_TAIL_TEXT = 400


class Transport(Protocol):
    """A stream of bytes to one core. Every wait of an implementation is bounded, except `read` on a quiet stream."""

    async def open(self) -> None:
        """Connect. Raises OSError, or SupervisorError when trying again is of no use."""

    async def write(self, data: bytes) -> None:
        """Hand over bytes, waiting while the peer takes none. Raises OSError when the stream is gone."""

    async def read(self) -> bytes:
        """Return what has come, at least one byte; b"" when the peer has closed."""

    async def close(self) -> None:
        """Release everything. Safe to call more than once, and never raises."""

    def tail(self) -> str:
        """The end of what the bridge wrote on its error output."""

    def ended(self) -> str | None:
        """How the bridge process ended (`exit code 1`, `signal SIGKILL`), None while that is not known."""


@dataclass(slots=True)
class Diagnostics:
    """What was ignored, counted: replies nobody waits for, notifications, and the latest lines of noise."""

    dropped_replies: int = 0
    notices: int = 0
    noise_lines: int = 0
    noise: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_NOISE_LINES))


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a link is no more, and the code of a failure that it causes."""

    code: Code
    message: str


@dataclass(slots=True, eq=False)
class Call:
    """One call under way. `changes`: without a reply its outcome is unknown."""

    id: str
    method: str
    frame: bytes
    changes: bool
    reply: "asyncio.Future[Reply | Loss]"
    written: bool = False

    def unanswered(self, loss: Loss) -> SupervisorError:
        """The failure of this call when its link was lost: what is known depends on whether it had left."""
        message = f"{self.method}: {loss.message}"
        if not self.written:
            return SupervisorError(loss.code, message, known="not-sent")
        if self.changes:
            return SupervisorError(
                "outcome-unknown",
                message,
                known="unknown",
                hint="it may have been carried out: look before doing it again",
            )
        return SupervisorError(loss.code, message, known="not-applied")


class Link:
    """One open transport with its reader, its writer and the calls in flight. `number` counts a client's links.

    `on_loss` is called once when the link is lost by anything but `close`.
    """

    def __init__(
        self,
        transport: Transport,
        number: int,
        diagnostics: Diagnostics,
        *,
        line_limit: int = MAX_LINE_BYTES,
        on_loss: "Callable[[Link], None] | None" = None,
    ) -> None:
        self.transport = transport
        self.number = number
        self.loss: Loss | None = None
        self.answered = False
        self.released = False
        self._on_loss = on_loss
        self._diagnostics = diagnostics
        self._lines = LineReader(line_limit)
        self._pending: dict[str, Call] = {}
        self._outbox: asyncio.Queue[Call] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._noise_in_row = 0
        self._silent_timeouts = 0

    def start(self) -> None:
        """Begin to read and write; the transport is open."""
        self._tasks = [asyncio.create_task(self._guard(self._read)), asyncio.create_task(self._guard(self._write))]

    async def exchange(self, call: Call, until: float) -> Reply:
        """Send one call and return its reply; raise what is known of it at loop time `until`, or when the link goes."""
        if self.loss is not None:
            raise call.unanswered(self.loss)
        self._pending[call.id] = call
        self._outbox.put_nowait(call)
        long = until - asyncio.get_running_loop().time() >= SILENCE_MS / 1000
        try:
            async with asyncio.timeout_at(until):
                answer = await call.reply
        except TimeoutError:
            if not call.reply.done() or call.reply.cancelled():
                raise self._overdue(call, long) from None
            answer = call.reply.result()
        finally:
            self._pending.pop(call.id, None)
        if isinstance(answer, Loss):
            raise call.unanswered(answer)
        return answer

    async def close(self, loss: Loss | None = None) -> None:
        """Fail what is in flight, stop reading and writing, release the transport."""
        self._on_loss = None
        self._lose(loss or Loss("closed", "the client was closed"))
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        try:
            await self.transport.close()
        finally:
            await asyncio.gather(*tasks, return_exceptions=True)

    def _overdue(self, call: Call, long: bool) -> SupervisorError:
        self._silent_timeouts += long
        error = call.unanswered(Loss("call-timeout", "no answer before its deadline"))
        if self._silent_timeouts >= MAX_SILENT_TIMEOUTS and not any(other.changes for other in self._pending.values()):
            self._lose(Loss("host-unreachable", "the core answers nothing any more"))
        return error

    async def _guard(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except OSError as error:
            self._lose(self._described("host-unreachable", str(error) or type(error).__name__))

    async def _write(self) -> None:
        while True:
            call = await self._outbox.get()
            if call.id in self._pending:
                call.written = True
                await self.transport.write(call.frame)

    async def _read(self) -> None:
        while data := await self.transport.read():
            self._silent_timeouts = 0
            for line in self._lines.feed(data):
                self._take(line)
                if self.loss is not None:
                    return
            if self._lines.overflowed:
                self._lose(Loss("protocol", f"a line is longer than {self._lines.limit} bytes"))
                return
        rest = self._lines.end()
        if rest.strip() and not self._take_last(rest):
            self._lose(self._described("protocol", "the connection was closed inside a frame"))
        else:
            self._lose(self._described("host-unreachable", "the connection was closed"))

    def _take_last(self, rest: bytes) -> bool:
        message = decode(rest)
        if isinstance(message, Noise):
            return False
        self._take(rest)
        return True

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        message = decode(line)
        if isinstance(message, Noise):
            self._take_noise(message)
            return
        self._noise_in_row = 0
        if isinstance(message, Notice):
            self._diagnostics.notices += 1
        elif message.id:
            self._settle(self._pending.get(message.id), message)
        else:
            self._take_unaddressed(message)

    def _take_noise(self, noise: Noise) -> None:
        self._noise_in_row += 1
        self._diagnostics.noise_lines += 1
        self._diagnostics.noise.append(noise.text)
        if self._noise_in_row > MAX_NOISE_LINES:
            self._lose(self._described("protocol", f"what comes back is not JSON-RPC, for instance {noise.text!r}"))

    def _take_unaddressed(self, reply: Reply) -> None:
        waiting = [call for call in self._pending.values() if call.written and not call.reply.done()]
        if reply.error is None or not waiting:
            self._diagnostics.dropped_replies += 1
        elif len(waiting) == 1:
            self._settle(waiting[0], reply)
        else:
            loss = Loss("protocol", f"an error that names no call came while several waited: {reply.error.message}")
            for call in waiting:
                call.reply.set_result(loss)

    def _settle(self, call: Call | None, reply: Reply) -> None:
        if call is None or call.reply.done():
            self._diagnostics.dropped_replies += 1
            return
        self.answered = True
        call.reply.set_result(reply)

    def _described(self, code: Code, what: str) -> Loss:
        ended = self.transport.ended()
        tail = printable(self.transport.tail()[-MAX_TAIL_TEXT:], MAX_TAIL_TEXT)
        words = f"{what}; the bridge ended with {ended}" if ended else what
        return Loss(code, f"{words}; it said: {tail}" if tail else words)

    def _lose(self, loss: Loss) -> None:
        if self.loss is not None:
            return
        self.loss = loss
        for call in self._pending.values():
            if not call.reply.done():
                call.reply.set_result(loss)
        if self._on_loss is not None:
            self._on_loss(self)
