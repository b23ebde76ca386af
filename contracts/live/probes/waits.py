"""Probes of `terminal.wait`: what it waits for, what it says, and that its timeout is no error."""

from typing import Any, Final

from contracts.live.peer import Reply
from contracts.live.problem import SilentError
from contracts.live.stage import Stage, shows, word_of

TIMEOUT_KEYS: Final = ("timeout_ms", "timeout", "ms")
SHORT_MS: Final = 100
OVERDUE_MS: Final = 2_000
"""A wait that was to be short and takes longer did not understand how short."""
TRY_MS: Final = 1_000
"""The same, while it is tried out which parameter says how short."""
WORK_MS: Final = 150
END_MS: Final = 1_500
"""How long work that ends after `WORK_MS` is waited for."""


async def waits(stage: Stage) -> None:
    """Waits for a program that works on, that stops to ask, and that says nothing."""
    stage.need_programs(reports=True)
    sheet = stage.sheet
    longer = await stage.run("longer", "working sleep:20000")
    await stage.seen(longer.address, shows("working"))
    short = await _check_in(stage, longer.address)
    await stage.end(longer)
    if short is None:
        return
    busy = await stage.run("busy", f"working sleep:{WORK_MS} blocked")
    await stage.seen(busy.address, shows("working"))
    reply = await _wait(stage, busy.address, 5_000)
    waited = word_of(await stage.get(busy.address)) == "blocked"
    sheet.fact("wait.waits", "C6", waited, True, level="must", say="a wait lasts as long as the work does")
    sheet.fact("wait.ended", "C6", _ended(stage, reply), True, say="the answer says that it has ended")
    inner = reply.result.get("terminal") if isinstance(reply.result, dict) else None
    sheet.fact("wait.terminal", "C6", isinstance(inner, dict), True, say="the answer shows the terminal")
    await stage.end(busy)
    if waited:
        await _ends(stage, "done", "done")
        await _ends(stage, "exit", "exit:0")
        sheet.fact("wait.not_ended", "C6", _ended(stage, short), False, say="the answer says that work goes on")
        await _silent(stage)


async def _ends(stage: Stage, word: str, last: str) -> None:
    """A wait for work that ends, in one of the ways that a supervisor waits for."""
    program = await stage.run(word, f"working sleep:{WORK_MS} {last}")
    await stage.seen(program.address, shows("working"))
    try:
        ended = _ended(stage, await _wait(stage, program.address, END_MS))
    except SilentError:
        ended = None
    stage.sheet.fact(f"wait.{word}", "C6", ended, True, level="must", say=f"a wait ends with the work ({word})")
    await stage.end(program)


async def _silent(stage: Stage) -> None:
    """What a program that reports nothing is waited for."""
    silent = await stage.run("silent")
    ended = _ended(stage, await _wait(stage, silent.address, SHORT_MS))
    if ended is not None:
        stage.sheet.learn("wait_no_status", "ends" if ended else "exit")
    await stage.end(silent)


async def _check_in(stage: Stage, address: str) -> Reply | None:
    """The time of a wait is over while the work goes on. Which parameter sets it is tried out.

    Each try has a connection of its own, which may be left waiting. None when waits cannot be used any further.
    """
    sheet = stage.sheet
    for key in stage.candidates("terminal.wait", TIMEOUT_KEYS, (stage.corner.target_key, "children", "text", "output")):
        async with stage.another(f"wait-{key}") as peer:
            try:
                reply = await peer.ask("terminal.wait", stage.target(address, **{key: SHORT_MS}), within_ms=TRY_MS)
            except SilentError:
                continue
        if not reply.ok and reply.kind in _not_understood(stage):
            continue
        sheet.learn("timeout_key", key)
        sheet.fact("wait.check_in", "C6", reply.ok, True, say="a wait whose time is over is answered, not refused")
        members = reply.result if isinstance(reply.result, dict) else {}
        truths = [name for name, value in members.items() if isinstance(value, bool)]
        if truths:
            sheet.learn("ended_key", truths[0])
        return reply if reply.ok else None
    sheet.refused["terminal.wait"] = "it is not there, or its time cannot be set"
    return None


def _not_understood(stage: Stage) -> set[str]:
    """Kinds of errors that say that a method or a parameter is not known here."""
    seen = stage.sheet.errors
    return {seen[ours].kind for ours in ("unknown_method", "invalid_params") if ours in seen} | {""}


async def _wait(stage: Stage, address: str, ms: int) -> Reply:
    return await stage.on("terminal.wait", address, within_ms=ms + OVERDUE_MS, **{stage.sheet.value("timeout_key"): ms})


def _ended(stage: Stage, reply: Reply) -> Any:
    value = reply.result.get(stage.sheet.value("ended_key")) if isinstance(reply.result, dict) else None
    return value if isinstance(value, bool) else None
