"""D8 in time: one poll after another until the wait is decided. The deciding itself is `settle.Wait`."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

from legion_terminal.settle import LONGEST_MS, Cancelled, Event, SettleResult, Tick, Wait
from legion_terminal.types import Cancel, Child

LONE_LOOK_MS = 1_000
"""How long the one look of a wait without any time (zero, negative, NaN) may take."""


async def until_settled(
    child: Child,
    observe: Callable[[], Coroutine[Any, Any, Event]],
    timeout_ms: float,
    *,
    poll_ms: int,
    cancelled: Cancel | None = None,
) -> SettleResult:
    """Poll at once, then `poll_ms` after each answer, until the wait is decided; never two polls at a time.

    A poll in flight is given up at the deadline and when `cancelled` is set. Time is the loop's own.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()

    def now() -> int:
        return round((loop.time() - begun) * 1000)

    wait = Wait(child.prompt_turn, clipped(timeout_ms), 0, poll_ms=poll_ms)
    if cancelled is not None and cancelled.is_set():
        return _ended(wait.step(Cancelled(), 0))
    off = asyncio.ensure_future(_called_off(cancelled)) if cancelled is not None else None
    limit = LONE_LOOK_MS if wait.remaining_ms(0) == 0 else wait.remaining_ms(0)
    try:
        while True:
            event = await _look(observe(), off, limit)
            wait.prompted(child.prompt_turn)
            step = wait.step(event, now())
            if isinstance(step, SettleResult):
                return step
            step = wait.step(await _rest(off, step.poll_in_ms), now())
            if isinstance(step, SettleResult):
                return step
            limit = wait.remaining_ms(now())
    finally:
        if off is not None:
            off.cancel()
            await asyncio.gather(off, return_exceptions=True)


def clipped(timeout_ms: float) -> float:
    """The timeout within what arithmetic can take: no less than 0 (so too for NaN), infinite from `LONGEST_MS` on."""
    if timeout_ms >= LONGEST_MS:
        return math.inf
    return max(0, timeout_ms)  # in this order: nothing compares with NaN, and the first is kept


def _ended(step: object) -> SettleResult:
    if not isinstance(step, SettleResult):
        raise TypeError("a cancelled wait has ended")
    return step


async def _called_off(cancelled: Cancel) -> None:
    await cancelled.wait()


async def _look(
    observation: Coroutine[Any, Any, Event], off: "asyncio.Future[None] | None", limit_ms: int | None
) -> Event:
    """The event that one observation gives; `Tick` when it was given up, `Cancelled` when the wait was called off."""
    poll = asyncio.ensure_future(observation)
    waiting: set[asyncio.Future[Any]] = {poll} if off is None else {poll, off}
    try:
        await asyncio.wait(
            waiting, timeout=None if limit_ms is None else limit_ms / 1000, return_when=asyncio.FIRST_COMPLETED
        )
        if poll.done():
            return poll.result()
        return Cancelled() if off is not None and off.done() else Tick()
    finally:
        if not poll.done():
            poll.cancel()
            await asyncio.gather(poll, return_exceptions=True)


async def _rest(off: "asyncio.Future[None] | None", ms: int) -> Event:
    if off is None:
        await asyncio.sleep(ms / 1000)
        return Tick()
    done, _ = await asyncio.wait({off}, timeout=ms / 1000)
    return Cancelled() if done else Tick()
