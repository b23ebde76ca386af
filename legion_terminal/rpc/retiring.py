"""How a headless child is ended: asked once, killed when it has not ended within the grace, its whole group with it."""

import asyncio
import signal
from typing import Final

from legion_terminal.rpc.family import held, kill
from legion_terminal.rpc.running import Running
from legion_terminal.rpc.settings import HeadlessSettings
from legion_terminal.types import RetireResult

GROUP_PAUSE_MS: Final = 10


async def end(running: Running, settings: HeadlessSettings) -> RetireResult:
    """SIGTERM to the group, the grace, SIGKILL to the group if the process has not ended. Never raises.

    Open questions are cancelled first: a pi that shows one does not follow SIGTERM. What decides about the kill is
    whether the process has ended, and nothing else.
    """
    process = running.process
    running.life.retiring |= not process.exited
    notes: list[str | None] = []
    if process.over:
        return RetireResult(ended=True, removed=True)
    try:
        running.cancel_dialogs()
        if not process.exited:
            notes.append(process.signal(signal.SIGTERM))
        if not await process.wait_over(settings.grace_ms) and not process.exited:
            notes.append(_kill(running))
        await process.wait_over(settings.kill_ms + settings.drain_ms)
        notes.append(await _survivors(running, settings.kill_ms))
    except Exception as error:
        notes.append(f"{type(error).__name__}: {error}")
    if not process.over:
        notes.append("its end was not seen")
    return RetireResult(
        ended=process.over, removed=process.over, note="; ".join(note for note in notes if note) or None
    )


def _kill(running: Running) -> str | None:
    """SIGKILL to the group, and to what descends from the child outside it: nobody else would end that any more."""
    pid = running.process.pid
    if pid is None:
        return None
    with held(pid) as family:
        note = running.process.signal(signal.SIGKILL)
        kill(family)
    return note


async def _survivors(running: Running, limit_ms: int) -> str | None:
    loop = asyncio.get_running_loop()
    until = loop.time() + limit_ms / 1000
    while running.process.over and running.process.group_lives():
        if loop.time() >= until:
            return "a process of its group lives on"
        await asyncio.sleep(GROUP_PAUSE_MS / 1000)
    return None
