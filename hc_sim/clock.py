"""Time as integer milliseconds: a clock that ticks, one that jumps, and an event loop that runs on the jumping one.

A virtual clock may only move while nothing is at work. Inside one event loop that can be known: no callback is ready,
no socket is readable, no thread of ours is busy. About another process it cannot be known, so a `VirtualLoop` refuses
everything that would bring one in; it would otherwise report timeouts that never happened.

    ready callbacks, or work in a thread? -> run / wait for it, the clock stands still
    else a timer?                         -> jump to exactly that timer
    else                                  -> nothing can ever happen again: VirtualDeadlock
"""

import asyncio
import itertools
import math
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, NoReturn, Protocol, TypeVar

T = TypeVar("T")

LIMIT_MS = 48 * 3_600_000
"""How far virtual time may run before a loop that never ends is called a deadlock."""
THREAD_LIMIT_S = 30.0
"""How long (really) a virtual loop waits for a thread of its own before it gives up."""

_MICRO = 1_000_000


class VirtualDeadlock(RuntimeError):  # noqa: N818 - the state of the world, not an error of a call
    """Nothing is ready, nothing is scheduled: the program under the virtual clock would have waited for ever."""


class VirtualTimeError(RuntimeError):
    """Something was asked for that a virtual clock cannot see, so that its time would lie."""


class Clock(Protocol):
    """Anything that tells the time in milliseconds."""

    def now(self) -> int:
        """Milliseconds since the clock's own beginning; never goes back."""


class RealClock:
    """The machine's monotonic clock, counted from the moment this value was made."""

    def __init__(self) -> None:
        self._begin = time.monotonic_ns()

    def now(self) -> int:
        """Milliseconds since construction."""
        return (time.monotonic_ns() - self._begin) // 1_000_000


class VirtualClock:
    """A clock that stands still until it is told to jump. Kept in whole microseconds, so that sums stay exact."""

    def __init__(self) -> None:
        self.micros = 0

    def now(self) -> int:
        """Virtual milliseconds since the beginning."""
        return self.micros // 1_000

    def jump(self, micros: int) -> None:
        """Move forward by this many microseconds; a clock never goes back (`ValueError`)."""
        if micros < 0:
            raise ValueError("a clock cannot go back")
        self.micros += micros


class LoopClock:
    """The time of an event loop, virtual or real, in milliseconds since this value was made."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._begin = loop.time()

    def now(self) -> int:
        """Whole milliseconds of loop time; a timer set by `at` never finds itself one millisecond early."""
        return math.floor((self._loop.time() - self._begin) * 1_000 + 1e-3)

    def at(self, ms: int) -> float:
        """The loop time (seconds) at which `now()` becomes `ms`: what to hand to `loop.call_at`."""
        return self._begin + ms / 1_000


class _Instant(float):
    """A point of loop time that knows how many timers were set before it: equal times fire in the order set."""

    __slots__ = ("order",)
    order: int

    def __new__(cls, seconds: float, order: int) -> "_Instant":
        instant = super().__new__(cls, seconds)
        instant.order = order
        return instant

    def __lt__(self, other: object) -> bool:
        if isinstance(other, _Instant):
            return (float(self), self.order) < (float(other), other.order)
        return isinstance(other, (int, float)) and float(self) < other


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that never sleeps: where it would, it moves the clock instead."""

    def __init__(self, clock: VirtualClock, busy: Callable[[], bool], limit_ms: int) -> None:
        super().__init__()
        self._clock = clock
        self._busy = busy
        self._limit = limit_ms * 1_000

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready now; else wait for our own threads, else jump by `timeout`, else say that it is over."""
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self._busy():
            return self._for_thread()
        if timeout is None:
            raise VirtualDeadlock(
                f"nothing is ready and nothing is scheduled at {self._clock.now()} virtual ms: "
                "every task waits for something that cannot happen"
            )
        self._clock.jump(round(timeout * _MICRO))
        if self._clock.micros > self._limit:
            raise VirtualDeadlock(f"still running after {self._limit // 1_000} virtual ms: does it ever end?")
        return ready

    def _for_thread(self) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(THREAD_LIMIT_S)
        if not ready:
            raise VirtualDeadlock(f"work in a thread did not end within {THREAD_LIMIT_S:g} real seconds")
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` jumps from timer to timer, so that 15 virtual minutes cost milliseconds.

    The order is the same in every run: ready callbacks first in, first out; timers by time, equal times in the order
    set. Raises `VirtualDeadlock` from whatever runs it when nothing can happen any more, or when virtual time passes
    `limit_ms`. Processes, pipes and sockets are refused with `VirtualTimeError`.
    """

    def __init__(self, *, limit_ms: int = LIMIT_MS) -> None:
        self.clock = VirtualClock()
        self._threads = 0
        self._order = itertools.count()
        super().__init__(_JumpingSelector(self.clock, lambda: self._threads > 0, limit_ms))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self.clock.micros / _MICRO

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Schedule at a virtual time, rounded to a whole microsecond."""
        instant = _Instant(round(when * _MICRO) / _MICRO, next(self._order))
        return super().call_at(instant, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run `func` in a thread; virtual time stands still until it is back."""
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        """Join the threads of `run_in_executor`; virtual time stands still meanwhile."""
        self._threads += 1
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self._threads -= 1

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: a virtual clock cannot see a process at work."""
        _refuse("a real process")

    async def subprocess_shell(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: a virtual clock cannot see a process at work."""
        _refuse("a real process")

    async def create_connection(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the peer may be another process."""
        _refuse("a network connection")

    async def create_unix_connection(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the peer may be another process."""
        _refuse("a Unix socket connection")

    async def create_datagram_endpoint(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the peer may be another process."""
        _refuse("a datagram socket")

    async def create_server(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the peers may be other processes."""
        _refuse("a network server")

    async def create_unix_server(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the peers may be other processes."""
        _refuse("a Unix socket server")

    async def sock_connect(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the peer may be another process."""
        _refuse("a socket connection")

    async def connect_read_pipe(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the writer may be another process."""
        _refuse("a pipe")

    async def connect_write_pipe(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the reader may be another process."""
        _refuse("a pipe")


def _refuse(what: str) -> NoReturn:
    raise VirtualTimeError(
        f"{what} cannot run on virtual time: the clock jumps whenever this event loop has nothing to do, "
        "and it cannot see whether the other side is still working; use real time for this"
    )


def need_real_time(loop: asyncio.AbstractEventLoop, what: str) -> None:
    """Raises `VirtualTimeError` if this loop runs on virtual time; `what` cannot be seen from there."""
    if isinstance(loop, VirtualLoop):
        _refuse(what)


def run_virtual(coro: Coroutine[Any, Any, T], *, limit_ms: int = LIMIT_MS) -> T:
    """Run a coroutine on a fresh `VirtualLoop` and close the loop; like `asyncio.run`, in no time at all.

    Raises what the coroutine raises, and `VirtualDeadlock` when it can never end.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(limit_ms=limit_ms)) as runner:
        return runner.run(coro)
