"""A wait for a headless child in time: it sleeps until something happens. What that means is `rpc.life`."""

import asyncio
import math
from typing import Any

from legion_terminal.rpc.running import Running
from legion_terminal.settle import SettleResult
from legion_terminal.types import Cancel
from legion_terminal.waiting import clipped


async def until_settled(running: Running, timeout_ms: float, cancelled: Cancel | None) -> SettleResult:
    """Wait for the prompt that is the newest now. A child that has settled wins over a deadline that has passed."""
    life = running.life
    prompt, since = life.prompt, life.ends
    if cancelled is not None and cancelled.is_set():
        return life.result("called-off")
    loop = asyncio.get_running_loop()
    limit_ms = clipped(timeout_ms)
    until = math.inf if limit_ms == math.inf else loop.time() + limit_ms / 1000
    off = asyncio.ensure_future(_called_off(cancelled)) if cancelled is not None else None
    try:
        while (ending := life.ending(prompt, since)) is None:
            if off is not None and off.done():
                return life.result("called-off")
            left = until - loop.time()
            if left <= 0:
                return life.result("timeout")
            news = running.news()
            waiting: set[asyncio.Future[Any]] = {news} if off is None else {news, off}
            try:
                await asyncio.wait(
                    waiting, timeout=None if left == math.inf else left, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                news.cancel()
        return life.result(ending)
    finally:
        if off is not None:
            off.cancel()
            await asyncio.gather(off, return_exceptions=True)


async def _called_off(cancelled: Cancel) -> None:
    await cancelled.wait()
