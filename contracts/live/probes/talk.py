"""Probes of what programs report and what they are typed: status, turn, texts, the stop key."""

from typing import Any, Final

from contracts.live.agent import MESSAGE, PROGRESS, TITLE
from contracts.live.problem import SilentError
from contracts.live.stage import SEE_MS, Program, Stage, nearly, shows, turn_of, word_of

TEXT: Final = "tell me: “ünïcode”, tab\tend, $HOME `x` \\n 'q'; acts: idle"
LINES: Final = "first line\nsecond line acts: idle"
BLANKS: Final = "  around it; acts: idle  "
LONG: Final = " ".join(f"word-{number:04}" for number in range(900)) + "; acts: idle"
FORCE_KEYS: Final = ("force", "override", "anyway")
FORCE_WORDS: Final = (*FORCE_KEYS, "block", "dialog")
"""What is in the name of such a parameter. No other is tried: one like `all` might type into terminals of others."""
RESTS_MS: Final = 80
"""How long a status that must stay is looked at."""
WATCH_MS: Final = 13_000
"""Longer than the ten seconds that an interrupt is said to be watched for."""


async def status(stage: Stage) -> None:
    """Reports: what each looks like in `terminal.get`, and what they do to the turn."""
    stage.need_programs()
    program = await stage.run("status", "only:idle")
    bare = await stage.seen(program.address, shows("idle"))
    sheet = stage.sheet
    sheet.fact("status.reported", "C5", bare is not None, True, level="must", say="what a program reports is shown")
    stage.reports = bare is not None
    if bare is None:
        return
    keys = sorted(bare["status"]) if isinstance(bare.get("status"), dict) else []
    sheet.learn("absent_keys", "omit" if keys == ["state"] else "null")
    first = turn_of(bare)
    await _one_turn(stage, program, first)
    await _ends_of_turns(stage, program)
    await _dialog(stage, program)
    await _told(stage, program)
    await stage.on("terminal.send", program.address, text="acts: clear")
    cleared = await stage.seen(program.address, shows("none"))
    sheet.fact("status.clear", "C5", cleared is not None, True, say="a report that is cleared is shown no more")
    await stage.end(program)


async def _one_turn(stage: Stage, program: Program, first: int | None) -> None:
    """One prompt: one turn, from idle through working to a done that stays."""
    sheet = stage.sheet
    reply = await stage.on("terminal.send", program.address, text="acts: working sleep:60 done")
    result = reply.result if isinstance(reply.result, dict) else {}
    sheet.fact("send.answered", "C6", reply.ok, True, level="must", say="a prompt can be sent")
    sheet.fact(
        "send.started", "C6", isinstance(result.get("started"), bool), True, say="the answer says whether it began"
    )
    if isinstance(result.get("started"), bool):
        sheet.learn("send_started", result["started"])
    sheet.learn("send_turn", "turn" in result)
    working = await stage.seen(program.address, shows("working"))
    done = await stage.seen(program.address, lambda terminal: word_of(terminal) in ("done", "error"))
    sheet.fact("status.done", "C5", word_of(done), "done", level="must", say="done is shown when it is reported")
    if working is not None and (turn := turn_of(working)) is not None and first is not None:
        sheet.learn("program_turn", "work-starts" if turn > first else "work-ends")
    await stage.host.pause(RESTS_MS)
    later = await stage.get(program.address)
    if done is not None:
        stage.known |= {"done-stays"} if word_of(later) == "done" else set()
        sheet.fact("done.stays", "C5", word_of(later), "done", level="must", say="done stays until something follows")
    created = (done or {}).get("created_ms"), (later or {}).get("created_ms")
    sheet.fact("created_ms.stays", "C3", created, (program.terminal.get("created_ms"),) * 2, level="must",
               say="the moment of creation stays as it is")  # fmt: skip
    after = turn_of(later)
    moved = after - first if after is not None and first is not None else None
    if moved is not None:
        sheet.core["turn_step"] = moved
        sheet.fact("turn.per_prompt", "C5", moved, 1, level="must", say="one prompt moves the turn by one")
    app = (done or {}).get("status")
    reported = isinstance(app, dict) and (app.get("app"), app.get("msg")) == ("lglive", "is done")
    if done is not None:
        sheet.fact("status.app", "C5", reported, True, say="app and message of a report are shown")


async def _ends_of_turns(stage: Stage, program: Program) -> None:
    """Turns that end otherwise: in idle, in error."""
    sheet = stage.sheet
    await stage.on("terminal.send", program.address, text="acts: working sleep:60 idle")
    await stage.seen(program.address, shows("working"))
    ended = await stage.seen(program.address, lambda terminal: word_of(terminal) in ("idle", "done"))
    if ended is not None:
        sheet.learn("derive_done", word_of(ended) == "done")
    await stage.on("terminal.send", program.address, text="acts: working sleep:60 error")
    error = await stage.seen(program.address, shows("error"))
    sheet.fact("status.error", "C5", error is not None, True, say="an error that is reported is shown")


async def _told(stage: Stage, program: Program) -> None:
    """Everything that a report can say, and that a label leaves it alone."""
    sheet = stage.sheet
    await stage.on("terminal.send", program.address, text="acts: full:working")
    before = await stage.seen(
        program.address, lambda shown: _said(shown).get("msg") not in (None, "is done", "is error")
    )
    for key, value in (("title", TITLE), ("msg", MESSAGE), ("progress", PROGRESS)):
        sheet.fact(f"status.{key}", "C5", _said(before).get(key), value, say=f"the {key} of a report is shown as it is")
    if before is not None and (await stage.on("terminal.label", program.address, labels={"live.told": "1"})).ok:
        after = await stage.get(program.address)
        same = (turn_of(after), _said(after)) == (turn_of(before), _said(before))
        sheet.fact("label.leaves", "C5", same, True, level="must", say="a label leaves turn and status as they are")


def _said(shown: dict[str, Any] | None) -> dict[str, Any]:
    status = (shown or {}).get("status")
    return status if isinstance(status, dict) else {}


async def _dialog(stage: Stage, program: Program) -> None:
    """A program that asks: what is shown, what a text meets, and what the turn does when work goes on."""
    sheet = stage.sheet
    before = turn_of(await stage.get(program.address))
    await stage.on("terminal.send", program.address, text="acts: working blocked")
    asked = await stage.seen(program.address, shows("blocked"))
    sheet.fact("status.blocked", "C5", asked is not None, True, level="must", say="a question is shown as blocked")
    if asked is None:
        return
    state = asked["status"] if isinstance(asked.get("status"), dict) else {}
    sheet.fact("status.kind", "C5", state.get("kind"), "permission", say="what a blocked program waits for is shown")
    try:
        reply = await stage.on("terminal.send", program.address, text="acts: working done")
    except SilentError:
        sheet.not_learned("send_blocked", "a text for a blocked program was not answered in time")
        return
    sheet.learn("send_blocked", "accept" if reply.ok else "refuse")
    sheet.error("blocked", reply.error)
    for key in _force_keys(stage) if not reply.ok else ():
        reply = await stage.on("terminal.send", program.address, text="acts: working done", **{key: True})
        if reply.ok:
            sheet.learn("force_key", key)
            break
    done = await stage.seen(program.address, shows("done"))
    after = turn_of(done)
    if after is not None and before is not None:
        sheet.learn("blocked_to_working_counts", after - before > sheet.core.get("turn_step", 1))


def _force_keys(stage: Stage) -> list[str]:
    """The parameters that may send to a blocked program; of those that a core lists, only by their names."""
    listed = stage.candidates("terminal.send", FORCE_KEYS, (stage.corner.target_key, "text"))
    return [key for key in listed if any(word in key.lower() for word in FORCE_WORDS)]


async def texts(stage: Stage) -> None:
    """What is sent arrives as it is, once, whatever stands in it."""
    stage.need_programs(reports=True)
    program = await stage.run("texts", "idle")
    await stage.seen(program.address, shows("idle"))
    await stage.on("terminal.send", program.address, text=TEXT)
    await _arrived(stage, program, 1)
    await stage.on("terminal.send", program.address, text=LINES)
    got = await _arrived(stage, program, 2)
    sheet = stage.sheet
    sheet.fact("send.text", "C6", got[:1], [TEXT], level="must", say="a text arrives as it was sent, and once")
    sheet.fact("send.lines", "C6", got[1:], [LINES], say="a text of several lines arrives as one prompt")
    await _whole(stage, program)
    await _pasted(stage, program)
    await stage.end(program)


async def _whole(stage: Stage, program: Program) -> None:
    """Blanks at both ends of a text, and a long one."""
    sheet = stage.sheet
    wholes = (("blanks", BLANKS, "blanks around a text arrive with it"), ("long", LONG, "a long text arrives whole"))
    for word, text, why in wholes:
        await stage.host.pause(RESTS_MS)
        before = len(await _arrived(stage, program, 0))  # of what was sent before, more may have come than was sent
        await stage.on("terminal.send", program.address, text=text)
        got = (await _arrived(stage, program, before + 1))[before:]
        came = "as it was sent" if got == [text] else f"{[len(one) for one in got]} letters of {len(text)}"
        sheet.fact(f"send.{word}", "C6", came, "as it was sent", say=why)


async def _pasted(stage: Stage, program: Program) -> None:
    """Whether a text comes as a paste: for programs that asked for that, for all, for none."""
    plain = await stage.run("plain", "plain idle")
    await stage.seen(plain.address, shows("idle"))
    await stage.on("terminal.send", plain.address, text="a word; acts: idle")
    await _arrived(stage, plain, 1)
    asked, other = [await _brackets(stage, one) for one in (program, plain)]
    if asked is not None and other is not None:
        stage.sheet.learn("program_paste", "always" if other else "asked" if asked else "never")
    await stage.end(plain)


async def _brackets(stage: Stage, program: Program) -> bool | None:
    entries = await stage.corner.entries(program.log) or []
    return next((bool(one.get("pasted")) for one in entries if one["what"] == "text"), None)


async def parts(stage: Stage) -> None:
    """A program of which a part reports as well: whose status is the terminal's."""
    stage.need_programs(reports=True)
    program = await stage.run("parts", "sub:blocked sleep:30 idle")
    shown = await stage.seen(program.address, lambda terminal: word_of(terminal) == "idle", SEE_MS)
    await stage.host.pause(RESTS_MS)
    shown = await stage.get(program.address) or shown
    if word_of(shown) in ("idle", "blocked"):
        stage.sheet.learn("program_status", "root" if word_of(shown) == "idle" else "most-urgent")
    await stage.end(program)


async def _arrived(stage: Stage, program: Program, count: int) -> list[str]:
    """The texts that a program was typed, once there are so many (and a moment more, to see one too many)."""

    def enough(entries: list[dict[str, Any]]) -> bool:
        return len([entry for entry in entries if entry["what"] == "text"]) >= count

    entries = await stage.corner.entries(program.log, enough)
    if entries is None:
        entries = await stage.corner.entries(program.log) or []
    return [str(entry["text"]) for entry in entries if entry["what"] == "text"]


async def interrupt(stage: Stage) -> None:
    """The stop key: it reaches an agent, ends its work, and leaves process and turn as they are."""
    stage.need_programs(reports=True)
    sheet = stage.sheet
    program = await stage.run("stop", "working sleep:20000 done")
    working = await stage.seen(program.address, shows("working"))
    reply = await stage.on("terminal.interrupt", program.address, within_ms=WATCH_MS)
    sheet.fact("interrupt.answered", "C6", reply.ok, True, level="must", say="an agent can be interrupted")
    stopped = await stage.seen(program.address, lambda terminal: word_of(terminal) in ("idle", "done"), 1_000)
    said = reply.result.get("effect") if isinstance(reply.result, dict) else None
    sheet.fact("interrupt.effect", "C6", stopped is not None, True, level="must", say="the stop key reaches an agent")
    if stopped is None:
        await stage.end(program)
        return
    sheet.fact("interrupt.says", "C6", said, True, say="the answer to an interrupt says that it had an effect")
    before, after = turn_of(working), turn_of(stopped)
    sheet.fact("interrupt.turn", "C5", after == before, True, level="must", say="an interrupt leaves the turn as it is")
    entries = await stage.corner.entries(program.log, lambda found: any(one["what"] == "key" for one in found)) or []
    keys = [entry["key"] for entry in entries if entry["what"] == "key"]
    sheet.fact("interrupt.keys", "C6", keys, ["esc"], say="an agent is sent Esc, once")
    await stage.end(program)


async def interrupt_unheard(stage: Stage) -> None:
    """How long the answer to an interrupt waits for an effect that does not come. Slow on purpose."""
    stage.need_programs(reports=True)
    program = await stage.run("deaf", "deaf working")
    await stage.seen(program.address, shows("working"))
    reply = await stage.on("terminal.interrupt", program.address, within_ms=WATCH_MS)
    if reply.ok:
        stage.sheet.learn("program_watch_ms", nearly(reply.took_ms))
    await stage.end(program)
