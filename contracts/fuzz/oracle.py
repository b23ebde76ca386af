"""What D8 demands of one wait, as a predicate over its whole history; written apart from every supervisor.

A history is everything that one wait saw and when, with the end known. The rules look at it from outside: nothing here
steps through a wait, keeps a state or polls, so that a fault in a supervisor's state machine has no twin in here.

    settled    there is a look o with D8(o); it ends at the first such o and tells what o showed
    gone       there is a look without our terminal; it may end there, and must at the second in a row
    cancelled  the parent called it off at t; it ends at t
    timeout    the deadline came; it ends there, or up to `slack_ms` later when a look was in flight

The earliest of these decides. A look is held against the turn remembered at the newest prompt before its answer. A
failed look decides nothing: it ends no wait, and it neither adds to a run of misses nor breaks one. A look answered
after the end changes nothing. Where a look is answered on the very millisecond of a deadline, a cancellation or a
prompt, either end is right, with one exception: a first look that satisfies D8 and is in time settles the wait, however
short its timeout.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

Reason = Literal["timeout", "gone", "aborted by parent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A look that showed a terminal. `ours` is false when it was another incarnation under the same name."""

    at_ms: int
    turn: int
    status: str | None = None
    state: str = "running"
    exit_code: int | None = None
    signal: str | None = None
    ours: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A look to which the core answered that there is no such terminal."""

    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A look that showed nothing: an error of the core, a lost reply, a dead bridge, a deadline of its own."""

    at_ms: int


Look = Seen | Missing | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Another prompt that went out during the wait, and the turn that was remembered just before it left."""

    at_ms: int
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One wait from outside. All times are ms on one clock.

    `prompt_turn`: the turn remembered before the prompt. `timeout_ms`: as given to the wait; infinity, negative numbers
    and NaN are allowed. `looks`: every look of the wait by the time of its answer. `cancelled_ms`: when the parent
    called it off. `slack_ms`: how late a timeout may come. `known`: the newest look at the child before the wait began.
    `prompts`: those that went out since, in the order of their times.

    Raises ValueError when looks are out of order or earlier than the wait, or prompts out of order.
    """

    prompt_turn: int
    timeout_ms: float
    looks: tuple[Look, ...] = ()
    started_ms: int = 0
    cancelled_ms: int | None = None
    slack_ms: int = 0
    known: Seen | None = None
    prompts: tuple[Prompt, ...] = ()

    def __post_init__(self) -> None:
        if len(self.prompts) > 1 and any(late.at_ms < early.at_ms for early, late in pairwise(self.prompts)):
            raise ValueError("prompts stand in the order of their times")
        times = [self.started_ms, *[look.at_ms for look in self.looks]]
        if times != sorted(times):
            raise ValueError("looks stand in the order of their times, none before the wait began")

    @property
    def deadline_ms(self) -> float:
        """When the time is over; a timeout below zero, or one that is no number, is over at once."""
        return self.started_ms + max(0, self.timeout_ms)  # NaN is not above 0, so 0 stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a wait ended, or was bound to end. `reason` is None exactly when it is settled."""

    at_ms: float
    settled: bool
    abnormal: bool = False
    reason: Reason | None = None
    exit_code: int | None = None
    signal: str | None = None
    last_turn: int | None = None
    last_status: str | None = None


@dataclass(frozen=True, slots=True)
class _End:
    """An outcome that would be right, and the time after which any other one is wrong (infinite: no such time)."""

    outcome: Outcome
    latest_ms: float


def satisfies(prompt_turn: int, seen: Seen) -> bool:
    """D8 for one look: finished, or done at a turn above the one remembered before the prompt."""
    return seen.ours and (seen.state == "finished" or (seen.turn > prompt_turn and seen.status == "done"))


def demanded(history: History) -> tuple[Outcome, ...]:
    """Every outcome that is right for this history, earliest first.

    Mostly one. More where the rules leave a choice: gone at the first miss or the second, two ends on one millisecond.
    None when the timeout is infinite and nothing that was seen ends the wait.
    """
    ends = _ends(history)
    bound = _bound(ends)
    return tuple(sorted((end.outcome for end in ends if end.outcome.at_ms <= bound), key=lambda right: right.at_ms))


def objections(history: History, outcome: Outcome) -> list[str]:
    """What is wrong with an outcome, field by field against the nearest right one; empty when it is right."""
    right = demanded(history)
    if outcome in right:
        return []
    if not right:
        return [f"ended at {outcome.at_ms:g} ms, but nothing in this history ends the wait"]
    return min((_differences(history, candidate, outcome) for candidate in right), key=len)


def overdue(history: History, now_ms: float) -> list[str]:
    """What is wrong with a wait that still goes on at `now_ms`, when the history is all that happened before.

    Empty when nothing has ended it by then for certain.
    """
    bound = _bound(_ends(history))
    return [f"still waits at {now_ms:g} ms, and was bound to end by {bound:g} ms"] if bound < now_ms else []


def essence(history: History) -> History:
    """The part of a history on which anything that is still to come can depend; all of it once something has ended it.

    Whatever is appended to both, later than all that is there, the outcomes that are right from then on are the same.
    Of looks that ended nothing these remain: the newest at our terminal, a miss since, and that there was a first one.
    It is for telling histories apart, never for judging one.
    """
    looks = history.looks
    telling = [look for look in looks if not isinstance(look, Failed)]
    late = bool(looks) and looks[-1].at_ms >= history.deadline_ms
    gone = any(not _shows_ours(one) and not _shows_ours(next_one) for one, next_one in pairwise(telling))
    if late or gone or history.cancelled_ms is not None or _settled(history):
        return history
    ours = [look for look in looks if _shows_ours(look)]
    trailing = [] if not telling or _shows_ours(telling[-1]) else [telling[-1]]
    newest = history.prompts[-1] if history.prompts else Prompt(at_ms=history.started_ms, turn=history.prompt_turn)
    answered = [look for look in ours[-1:] if isinstance(look, Seen) and satisfies(newest.turn, look)]
    before = answered[-1].turn if answered else newest.turn  # what came before the prompt never answers it
    return History(
        prompt_turn=before,
        prompts=(newest,) if answered else (),
        timeout_ms=history.timeout_ms,
        looks=(*[Failed(at_ms=look.at_ms) for look in looks[:1]], *ours[-1:], *trailing),
        started_ms=history.started_ms,
        slack_ms=history.slack_ms,
        known=history.known,
    )


def watch(track: Sequence[Look], polls: Iterable[int]) -> tuple[Look, ...]:
    """What polls at these times see of a track whose entries each hold from their `at_ms` until the next one's."""
    return tuple(
        replace(next(entry for entry in reversed(track) if entry.at_ms <= poll), at_ms=poll) for poll in sorted(polls)
    )


def _ends(history: History) -> list[_End]:
    return _settled(history) + _gone(history) + _cancelled(history) + _timeout(history)


def _bound(ends: Sequence[_End]) -> float:
    """The time by which a wait has ended for certain; infinite when nothing ends it."""
    return min((end.latest_ms for end in ends), default=math.inf)


def _settled(history: History) -> list[_End]:
    """The first look that satisfies D8 whichever prompt counts, and those before it for which it depends on that."""
    horizon = history.deadline_ms + history.slack_ms
    right = [
        (at, look, all(satisfies(turn, look) for turn in _remembered(history, look.at_ms)))
        for at, look in enumerate(history.looks)
        if isinstance(look, Seen) and look.at_ms <= horizon and satisfies(_lowest(history), look)
        if any(satisfies(turn, look) for turn in _remembered(history, look.at_ms))
    ]
    if not right:
        return []
    certain = next((nth for nth, (_, _, sure) in enumerate(right) if sure), len(right))
    return [
        _End(
            Outcome(
                at_ms=look.at_ms,
                settled=True,
                exit_code=look.exit_code,
                signal=look.signal,
                last_turn=look.turn,
                last_status=look.status,
            ),
            look.at_ms if sure and _comes_first(history, at) else math.inf,
        )
        for at, look, sure in right[: certain + 1]
    ]


def _lowest(history: History) -> int:
    """The lowest turn that any prompt remembered: what is not above it satisfies D8 at no time."""
    if not history.prompts:
        return history.prompt_turn
    return min(history.prompt_turn, *(prompt.turn for prompt in history.prompts))


def _remembered(history: History, at_ms: int) -> list[int]:
    """The turns that may count at a time: of the newest prompt before it, and of each on that very millisecond."""
    if not history.prompts:
        return [history.prompt_turn]
    before = [prompt.turn for prompt in history.prompts if prompt.at_ms < at_ms]
    meanwhile = [prompt.turn for prompt in history.prompts if prompt.at_ms == at_ms]
    return [(before or [history.prompt_turn])[-1], *meanwhile]


def _gone(history: History) -> list[_End]:
    telling = [look for look in history.looks if not isinstance(look, Failed)]
    horizon = history.deadline_ms + history.slack_ms
    return [
        _End(_unsettled("gone", look.at_ms, shown), look.at_ms if repeated else math.inf)
        for at, look in enumerate(telling)
        if not _shows_ours(look) and look.at_ms <= horizon
        for repeated in [at > 0 and not _shows_ours(telling[at - 1])]
        for shown in _newest(history, telling[:at])
    ]


def _cancelled(history: History) -> list[_End]:
    at_ms = history.cancelled_ms
    if at_ms is None or at_ms > history.deadline_ms + history.slack_ms:
        return []
    return [_End(_unsettled("aborted by parent", at_ms, shown), at_ms) for shown in _shown(history, at_ms, at_ms)]


def _timeout(history: History) -> list[_End]:
    deadline = history.deadline_ms
    first = history.looks[0] if history.looks else None
    settles_at_once = (
        isinstance(first, Seen)
        and first.at_ms <= deadline
        and all(satisfies(turn, first) for turn in _remembered(history, first.at_ms))
    )
    if math.isinf(deadline) or settles_at_once:
        return []
    latest = deadline + history.slack_ms
    return [_End(_unsettled("timeout", deadline, shown), latest) for shown in _shown(history, deadline, latest)]


def _comes_first(history: History, at: int) -> bool:
    """Whether a look is answered before the time is over and before the parent calls the wait off."""
    cancelled = math.inf if history.cancelled_ms is None else history.cancelled_ms
    at_ms = history.looks[at].at_ms
    return (at_ms < history.deadline_ms or (at == 0 and at_ms <= history.deadline_ms)) and at_ms < cancelled


def _shows_ours(look: Look) -> bool:
    return isinstance(look, Seen) and look.ours


def _shown(history: History, earliest_ms: float, latest_ms: float) -> list[Seen | None]:
    """What may be the newest look of a wait that ends between two times: looks on the edge count or do not."""
    before = [look for look in history.looks if look.at_ms < earliest_ms]
    edge = [look for look in history.looks if earliest_ms <= look.at_ms <= latest_ms]
    return _newest(history, before) + [look for look in edge if isinstance(look, Seen) and look.ours]


def _newest(history: History, looks: Sequence[Look]) -> list[Seen | None]:
    """The newest look that showed our terminal; when the wait saw none, what was known before or nothing."""
    ours = [look for look in looks if isinstance(look, Seen) and look.ours]
    return [ours[-1]] if ours else list({history.known, None})


def _unsettled(reason: Reason, at_ms: float, shown: Seen | None) -> Outcome:
    return Outcome(
        at_ms=at_ms,
        settled=False,
        abnormal=reason == "gone",
        reason=reason,
        last_turn=shown.turn if shown else None,
        last_status=shown.status if shown else None,
    )


def _differences(history: History, right: Outcome, got: Outcome) -> list[str]:
    slack = history.slack_ms if right.reason == "timeout" else 0
    late = (
        [] if right.at_ms <= got.at_ms <= right.at_ms + slack else [f"ended at {got.at_ms:g} ms, not {right.at_ms:g}"]
    )
    fields = ("settled", "abnormal", "reason", "exit_code", "signal", "last_turn", "last_status")
    return late + [
        f"{field} is {getattr(got, field)!r}, not {getattr(right, field)!r}"
        for field in fields
        if getattr(got, field) != getattr(right, field)
    ]
