"""Random timelines: what one wait might see, and what one scripted agent might do."""

from typing import Literal

from contracts.fuzz.dice import Source, chance, pick
from hc_sim.script.format import Agent, FileWrite, Finish, Match, Reborn, SendMode, StatusWord, Step
from legion_terminal.settle import Cancelled, Event, Failed, Missing, Observation, Replaced, Seen, Tick

Kind = Literal["permission", "question", "auth"]
GAPS_MS = (0, 1, 20, 49, 50, 100, 249, 250, 251, 400, 500, 999, 1_000, 2_500)
STATUSES: tuple[StatusWord, ...] = ("none", "idle", "working", "blocked", "done", "error")
ENDINGS: tuple[StatusWord, ...] = ("done", "done", "done", "done", "done", "idle", "error", "blocked")
SENDS: tuple[SendMode, ...] = ("accept",) * 10 + ("unconfirmed", "refuse", "hold", "swallow", "fuse", "accept")
KILLS_MS: tuple[int | None, ...] = (0,) * 8 + (1, 300, 2_000, 9_000, None)
CALLS = ("terminal.get", "terminal.send", "terminal.interrupt", "terminal.kill")
KINDS: tuple[Kind | None, ...] = ("permission", "question", "auth")
MAX_PHASES = 4

ANSWERS = ("VERDICT: accept", "VERDICT: reject", "all done", "")
_ENDS = (Finish(code=0), Finish(code=3), Finish(signal="SIGKILL"))


def agent(source: Source, name: str, *, files: bool = False) -> Agent:
    """A random agent that plays terminals of this name. `files`: it may also write to its session file."""
    steps: list[Step] = []
    for phase in range(1 + source.below(MAX_PHASES)):
        steps += _phase(source, phase, files=files)
    composer = "draft " if chance(source, 16) else ""
    send = pick(source, SENDS)
    return Agent(
        match=Match(name=name),
        uses=0 if chance(source, 4) else 1,
        status=pick(source, ("none", "none", "idle")),
        turn=pick(source, (0, 0, 0, 1, 7)),
        send=send,
        hold_ms=pick(source, (300, 3_000, 61_000)) if send == "hold" else 60_000,
        kill_ms=pick(source, KILLS_MS),
        kill_code=pick(source, (None, None, 0)),
        interrupt=pick(source, ("esc", "esc", "esc", "no-effect")),
        composer=composer,
        queued=chance(source, 4),
        repeat_from=0 if chance(source, 8) and _waits(steps) else None,
        step=steps,
    )


def observed(source: Source, length: int) -> list[tuple[int, Event]]:
    """What one wait sees, as (ms since the event before, event) pairs. Turns lie around 1, the turn of its prompt."""
    return [(GAPS_MS[source.below(len(GAPS_MS))], EVENTS[source.below(len(EVENTS))]) for _ in range(length)]


def _phase(source: Source, phase: int, *, files: bool) -> list[Step]:
    """From one prompt to one answer, or to an end; mostly as agents are, at times as no agent should be."""
    if chance(source, 6):
        return [_odd(source)]
    steps = [] if chance(source, 4) else [Step(on_prompt=True, note="prompt")]
    steps.append(Step(after_ms=pick(source, GAPS_MS), turn_add=1, status="working"))
    if chance(source, 5):
        steps.append(Step(after_ms=pick(source, GAPS_MS), status="blocked", kind=pick(source, KINDS)))
        steps.append(Step(after_ms=pick(source, GAPS_MS), status="working"))
    if files:
        steps += _written(source, phase)
    if chance(source, 6):
        steps.append(_over(source))
        return steps
    steps.append(Step(after_ms=pick(source, GAPS_MS), status=pick(source, ENDINGS)))
    if chance(source, 6):
        steps.append(Step(after_ms=pick(source, GAPS_MS), status=pick(source, STATUSES)))
    return steps


def _odd(source: Source) -> Step:
    """Some report at some moment."""
    status = pick(source, STATUSES)
    turn_add = pick(source, (None, 0, 1, 1, 2, -1))
    kind = source.below(4)
    if kind == 0:
        return Step(after_observations=1 + source.below(3), status=status, turn_add=turn_add)
    if kind == 1:
        return Step(on_call=pick(source, CALLS), status=status, turn_add=turn_add)
    return Step(after_ms=pick(source, GAPS_MS), status=status, turn_add=turn_add)


def _over(source: Source) -> Step:
    """The program ends, its terminal goes away, or another incarnation takes its place."""
    kind = source.below(6)
    after_ms = pick(source, GAPS_MS)
    if kind == 0:
        return Step(after_ms=after_ms, vanish=True)
    if kind == 1:
        return Step(after_ms=after_ms, reborn=Reborn(new_core_id=chance(source, 3)))
    if kind == 2:
        return Step(on_call=pick(source, CALLS), finish=pick(source, _ENDS))
    return Step(after_ms=after_ms, finish=pick(source, _ENDS))


def _written(source: Source, phase: int) -> list[Step]:
    """The prompt and its answer in the session file; at times the answer is late or missing."""
    prompt = _line(f"p{phase}", "user", f"prompt {phase}", f"a{phase - 1}" if phase else None)
    answer = _line(f"a{phase}", "assistant", pick(source, ANSWERS), f"p{phase}")
    steps = [Step(after_ms=0, file=FileWrite(append=prompt))]
    if not chance(source, 5):
        steps.append(Step(after_ms=pick(source, (0, 0, 100)), file=FileWrite(append=answer)))
    return steps


def _line(name: str, role: str, text: str, parent: str | None) -> str:
    above = f'"{parent}"' if parent else "null"
    stop = ',"stopReason":"stop"' if role == "assistant" else ""
    return (
        f'{{"type":"message","id":"{name}","parentId":{above},'
        f'"message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]{stop}}}}}'
    )


def _waits(steps: list[Step]) -> bool:
    """Whether a timeline that starts over comes to rest on its way, until somebody does something."""
    return any(step.on_prompt or step.on_call or step.after_observations for step in steps)


def _events() -> tuple[Event, ...]:
    seen: list[Event] = [
        Seen(Observation(turn=turn, status=None if status == "none" else status, state="running"))
        for turn in (0, 1, 2, 3)
        for status in STATUSES
    ]
    ended: list[Event] = [
        Seen(Observation(turn=turn, status="working", state="finished", exit_code=end.code, signal=end.signal))
        for turn in (1, 2)
        for end in _ENDS
    ]
    return (*seen, *seen, *ended, Missing(), Missing(), Failed(), Failed(), Replaced(), Cancelled(), Tick())


EVENTS = _events()
"""Everything that one wait can meet, the frequent twice."""
