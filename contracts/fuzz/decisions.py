"""Random timelines through the settle decision alone: one seed drives many, and the oracle judges each."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.fuzz.dice import Dice, Source
from contracts.fuzz.oracle import Failed, History, Look, Missing, Outcome, objections
from contracts.fuzz.oracle import Seen as Shown
from contracts.fuzz.timelines import observed
from legion_terminal import settle
from legion_terminal.settle import Event, SettleResult, Wait

DECISIONS = 2
"""The stream of a seed that timelines for the decision are drawn from."""
PROMPT_TURN = 1
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 12)
TIMEOUTS_MS = (0, 1, 50, 250, 500, 1_000, 2_500, 10_000)


@dataclass(frozen=True, slots=True)
class Timeline:
    """What one wait meets: events with the time between them, and how long it may take."""

    timeout_ms: int
    events: tuple[tuple[int, Event], ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A timeline of which the decision and the oracle say different things."""

    timeline: Timeline
    objections: tuple[str, ...]


def timeline(source: Source) -> Timeline:
    """A random timeline."""
    timeout_ms = TIMEOUTS_MS[source.below(len(TIMEOUTS_MS))]
    return Timeline(timeout_ms, tuple(observed(source, LENGTHS[source.below(len(LENGTHS))])))


def decided(one: Timeline, wait: type[Wait] = Wait) -> tuple[SettleResult, int, int]:
    """Run it through the decision: the result, when it came, and how many events it took. Time ends every wait."""
    waiting = wait(PROMPT_TURN, one.timeout_ms, 0, poll_ms=settle.POLL_MS)
    now = 0
    for used, (gap_ms, event) in enumerate(one.events, 1):
        remaining = waiting.remaining_ms(now)
        if used > 1 and remaining is not None and gap_ms >= remaining:
            break
        now += gap_ms if used > 1 else 0
        step = waiting.step(event, now)
        if isinstance(step, SettleResult):
            return step, now, used
    else:
        used = len(one.events) + 1
    now = max(now, one.timeout_ms)
    ended = waiting.step(settle.Tick(), now)
    if not isinstance(ended, SettleResult):
        ended = SettleResult(settled=False, reason="never ended")
    return ended, now, used - 1


def judged(one: Timeline, wait: type[Wait] = Wait) -> list[str]:
    """What the oracle objects to; nothing where decision and oracle agree."""
    result, now, used = decided(one, wait)
    looks: list[Look] = []
    cancelled: int | None = None
    at = 0
    for index, (gap_ms, event) in enumerate(one.events[:used]):
        at += gap_ms if index else 0
        look = _look(at, event)
        if look is not None:
            looks.append(look)
        elif isinstance(event, settle.Cancelled):
            cancelled = at
    history = History(prompt_turn=PROMPT_TURN, timeout_ms=one.timeout_ms, looks=tuple(looks), cancelled_ms=cancelled)
    outcome = Outcome(
        at_ms=now,
        settled=result.settled,
        abnormal=result.abnormal,
        reason=result.reason,  # type: ignore[arg-type]
        exit_code=result.exit_code,
        signal=result.signal,
        last_turn=result.last_turn,
        last_status=result.last_status,
    )
    return objections(history, outcome)


def search(seed: int, count: int, wait: type[Wait] = Wait) -> Disagreement | None:
    """The first disagreement among so many timelines of a seed, None when there is none."""
    dice = Dice(seed, DECISIONS)
    for _ in range(count):
        one = timeline(dice)
        wrong = judged(one, wait)
        if wrong:
            return Disagreement(one, tuple(wrong))
        dice.choices.clear()
    return None


def shrunk(found: Disagreement, wait: type[Wait] = Wait) -> Disagreement:
    """The same with as few events and as little time as single changes lead to."""
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(found.timeline):
            wrong = judged(smaller, wait)
            if wrong:
                found, progress = Disagreement(smaller, tuple(wrong)), True
                break
    return found


def _smaller(one: Timeline) -> Sequence[Timeline]:
    events = one.events
    fewer = [Timeline(one.timeout_ms, events[:at] + events[at + 1 :]) for at in range(len(events)) if len(events) > 1]
    sooner = [
        Timeline(one.timeout_ms, (*events[:at], (0, event), *events[at + 1 :]))
        for at, (gap_ms, event) in enumerate(events)
        if gap_ms
    ]
    return fewer + sooner


def _look(at_ms: int, event: Event) -> Look | None:
    match event:
        case settle.Seen(seen):
            return Shown(
                at_ms=at_ms,
                turn=seen.turn,
                status=seen.status,
                state=seen.state,
                exit_code=seen.exit_code,
                signal=seen.signal,
            )
        case settle.Missing():
            return Missing(at_ms=at_ms)
        case settle.Replaced():
            return Shown(at_ms=at_ms, turn=0, ours=False)
        case settle.Failed():
            return Failed(at_ms=at_ms)
    return None
