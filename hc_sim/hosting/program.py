"""One program that runs in a pseudo-terminal: its output is heard, its input typed, both within bounds."""

import asyncio
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from dataclasses import dataclass

from hc_sim.hosting.hearing import Heard, Hearing, Replied
from hc_sim.hosting.records import Which

READ_BYTES = 65_536
MAX_OUTPUT_BYTES_S = 4 * 1024 * 1024
"""Bytes a second that are taken from one program; one that prints more has to wait, as before a slow terminal."""
MAX_INPUT_BYTES = 1024 * 1024
"""Bytes typed that a program may leave unread; more is refused."""
MAX_ANSWERS_S = 32
"""Questions of one program that are answered in a second: a terminal that echoes the answers must not go round."""
BUDGET_S = 0.1
"""In such spans the output is counted."""
DRAIN_S = 0.25
"""How long after the exit of a program its last output is waited for, if something else holds the terminal open."""


@dataclass(frozen=True, slots=True)
class Said:
    """Where a program's news go."""

    heard: Callable[["HostedProgram", Heard], None]
    ended: Callable[["HostedProgram", int | None, str | None], None]
    end: Callable[[int, int], None]
    """Ends the program with this pid, step by step, so many ms apart."""


class HostedProgram:
    """A program and the terminal it runs in, in the event loop of the core. It is made when the program runs already.

    Whatever ends it, `ended` is told once, after all that it printed was heard; `close` gives the terminal back.
    """

    def __init__(
        self,
        address: str,
        pid: int,
        fd: int,
        which: Which,
        loop: asyncio.AbstractEventLoop,
        said: Said,
    ) -> None:
        self.address = address
        self.pid = pid
        self.heard_no_more = False
        self._fd = fd
        self._loop = loop
        self._said = said
        self._hearing = Hearing(which)
        self._input = bytearray()
        self._budget = 0
        self._spans = -1
        self._answers = (0, 0)
        self._exit: tuple[int | None, str | None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        os.set_blocking(fd, False)
        loop.add_reader(fd, self._readable)

    @property
    def unfinished(self) -> str:
        """The line on its screen that has not ended yet."""
        return self._hearing.unfinished

    @property
    def pastes(self) -> bool:
        """Whether it asked that pasted text be bracketed."""
        return self._hearing.pastes

    # ------------------------------------------------------------------ what is done to it

    def type(self, data: bytes) -> bool:
        """Type these bytes; false, and nothing is typed, if the program has left too many unread."""
        if self._fd < 0:
            return True  # it has just ended, and nobody reads what is typed into its terminal
        if len(self._input) + len(data) > MAX_INPUT_BYTES:
            return False
        idle = not self._input
        self._input += data
        if idle:
            self._writable()
        return True

    def resize(self, cols: int, rows: int) -> None:
        """Its window has this size now; it gets a signal that says so."""
        if self._fd >= 0:
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def hang_up(self, grace_ms: int) -> None:
        """End it and its whole group: hangup, terminate, kill, `grace_ms` apart."""
        self._said.end(self.pid, grace_ms)

    def abandon(self, grace_ms: int) -> None:
        """As `hang_up`, and nothing is told any more."""
        self.heard_no_more = True
        self.hang_up(grace_ms)

    def has_exited(self, code: int | None, signal: str | None) -> None:
        """Its process has ended; what it printed last is still heard."""
        self._exit = (code, signal)
        if self._fd < 0:
            self._end()
            return
        self._timers.append(self._loop.call_later(DRAIN_S, self._end))
        self._readable()

    def close(self) -> None:
        """Give the terminal back; whoever still has it open is hung up on by the system."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1

    # ------------------------------------------------------------------ what it does

    def _readable(self) -> None:
        if self._fd < 0 or not self._may_read():
            return
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:  # EIO: nobody has the terminal open any more
                raise
            data = b""
        if not data:
            self._nobody_there()
            return
        self._budget -= len(data)
        for heard in self._hearing.feed(data):
            self._tell(heard)

    def _nobody_there(self) -> None:
        """Nobody has the terminal open. That is the end, or else the program may open it again."""
        if self._exit is not None:
            self._end()
        else:
            self._pause(self._loop.time() + BUDGET_S)

    def _may_read(self) -> bool:
        """Whether this span of time has room for more output; if not, the program waits for the next one."""
        span = int(self._loop.time() / BUDGET_S)
        if span != self._spans:
            self._spans, self._budget = span, int(MAX_OUTPUT_BYTES_S * BUDGET_S)
        if self._budget > 0:
            return True
        self._pause((span + 1) * BUDGET_S)
        return False

    def _pause(self, until: float) -> None:
        self._loop.remove_reader(self._fd)
        self._timers = [timer for timer in self._timers if timer.when() > self._loop.time()]
        self._timers.append(self._loop.call_at(until, self._go_on))

    def _go_on(self) -> None:
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._readable)

    def _tell(self, heard: Heard) -> None:
        if isinstance(heard, Replied):
            second = int(self._loop.time())
            count = self._answers[1] if self._answers[0] == second else 0
            self._answers = (second, count + 1)
            if count < MAX_ANSWERS_S:
                self.type(heard.data)
        else:
            self._said.heard(self, heard)

    def _writable(self) -> None:
        try:
            written = os.write(self._fd, self._input)
        except BlockingIOError:
            written = 0
        except OSError:  # nobody has the terminal open any more; its end is told by its own way
            written = len(self._input)
        del self._input[:written]
        if self._input:
            self._loop.add_writer(self._fd, self._writable)
        else:
            self._loop.remove_writer(self._fd)

    def _end(self) -> None:
        if self._exit is None:
            return
        (code, signal), self._exit = self._exit, None
        self.close()
        for heard in self._hearing.end():
            self._tell(heard)
        self._said.ended(self, code, signal)
