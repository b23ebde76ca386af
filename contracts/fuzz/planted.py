"""Waits with one wrong rule each: what the search must find, to prove that it would find such a fault.

Each is the supervisor's own `Wait` with one method replaced. `installed` puts one into the whole supervisor.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import legion_terminal.waiting
from legion_terminal.settle import (
    Continue,
    Event,
    Failed,
    Missing,
    Observation,
    Replaced,
    Seen,
    SettleResult,
    Wait,
    decide,
)

_NAME: Final = "Wait"
"""The name by which the supervisor's polling knows the decision."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A wrong rule: its name, what it gets wrong, and the wait that follows it."""

    name: str
    says: str
    wait: type[Wait]


@contextmanager
def installed(planted: Planted) -> Iterator[None]:
    """The whole supervisor of this process waits by the wrong rule, until the block is left."""
    honest = getattr(legion_terminal.waiting, _NAME)
    setattr(legion_terminal.waiting, _NAME, planted.wait)
    try:
        yield
    finally:
        setattr(legion_terminal.waiting, _NAME, honest)


class _Ruled(Wait):
    """A wait that also settles on looks which `also` lets through, and not on those which `never` holds back."""

    __slots__ = ()

    def also(self, seen: Observation) -> bool:
        """A look that settles though it must not."""
        return False

    def never(self, seen: Observation) -> bool:
        """A look that does not settle though it must."""
        return False

    def _judge(self, event: Event) -> SettleResult | None:
        if not isinstance(event, Seen):
            return super()._judge(event)
        seen = event.observation
        self._last, self._misses = seen, 0
        settled = (decide(self._prompt_turn, seen) and not self.never(seen)) or self.also(seen)
        return self._end(settled=True) if settled else None


class _IdleSettles(_Ruled):
    __slots__ = ()

    def also(self, seen: Observation) -> bool:
        return seen.status == "idle"


class _IdleOfANewTurnSettles(_Ruled):
    __slots__ = ()

    def also(self, seen: Observation) -> bool:
        return seen.status == "idle" and seen.turn > self._prompt_turn


class _OldDoneSettles(_Ruled):
    __slots__ = ()

    def also(self, seen: Observation) -> bool:
        return seen.status == "done" and seen.turn >= self._prompt_turn


class _AnyOtherTurnSettles(_Ruled):
    __slots__ = ()

    def also(self, seen: Observation) -> bool:
        return seen.status == "done" and seen.turn != self._prompt_turn


class _ErrorSettles(_Ruled):
    __slots__ = ()

    def also(self, seen: Observation) -> bool:
        return seen.status == "error" and seen.turn > self._prompt_turn


class _BlockedSettles(_Ruled):
    __slots__ = ()

    def also(self, seen: Observation) -> bool:
        return seen.status == "blocked" and seen.turn > self._prompt_turn


class _TurnAloneSettles(_Ruled):
    __slots__ = ()

    def also(self, seen: Observation) -> bool:
        return seen.turn > self._prompt_turn


class _FailureOfTheProgramIsNoEnd(_Ruled):
    __slots__ = ()

    def never(self, seen: Observation) -> bool:
        return seen.state == "finished" and seen.exit_code not in (0, None)


class _SignalIsNoEnd(_Ruled):
    __slots__ = ()

    def never(self, seen: Observation) -> bool:
        return seen.state == "finished" and seen.signal is not None


class _SignalIsForgotten(Wait):
    __slots__ = ()

    def step(self, event: Event, now: int) -> Continue | SettleResult:
        result = super().step(event, now)
        return replace(result, signal=None) if isinstance(result, SettleResult) else result


class _GoneSettles(Wait):
    __slots__ = ()

    def step(self, event: Event, now: int) -> Continue | SettleResult:
        result = super().step(event, now)
        if isinstance(result, SettleResult) and result.reason == "gone":
            return replace(result, settled=True, abnormal=False, reason=None)
        return result


class _TimeoutSettles(Wait):
    __slots__ = ()

    def _overdue(self, now: int) -> SettleResult | None:
        return self._end(settled=True) if self.remaining_ms(now) == 0 else None


class _TimeoutIsAbnormal(Wait):
    __slots__ = ()

    def _overdue(self, now: int) -> SettleResult | None:
        return self._end(abnormal=True, reason="timeout") if self.remaining_ms(now) == 0 else None


class _DeadlineBeatsTheLook(Wait):
    __slots__ = ()

    def step(self, event: Event, now: int) -> Continue | SettleResult:
        self._ended = self._ended or self._overdue(now)
        return super().step(event, now)


class _PromptIsNotHeeded(Wait):
    __slots__ = ()

    def prompted(self, prompt_turn: int) -> None:
        """Keep the turn that was remembered first."""


class _FailedLookIsAMiss(Wait):
    __slots__ = ()

    def _judge(self, event: Event) -> SettleResult | None:
        return super()._judge(Missing() if isinstance(event, Failed) else event)


class _MissesAreNoEnd(Wait):
    __slots__ = ()

    def _judge(self, event: Event) -> SettleResult | None:
        return None if isinstance(event, Missing | Replaced) else super()._judge(event)


class _FailedLookExtends(Wait):
    __slots__ = ()

    def _judge(self, event: Event) -> SettleResult | None:
        if isinstance(event, Failed) and self._deadline_ms is not None:
            self._deadline_ms += self._poll_ms
        return super()._judge(event)


class _FailedLookIsTheEnd(Wait):
    __slots__ = ()

    def _judge(self, event: Event) -> SettleResult | None:
        return self._end(abnormal=True, reason="gone") if isinstance(event, Failed) else super()._judge(event)


class _LooksAreMixed(Wait):
    """Takes the status from one look and the turn from another: a torn pair is put together, and wrongly."""

    __slots__ = ("_done",)

    def __init__(self, prompt_turn: int, timeout_ms: float, now: int, *, poll_ms: int) -> None:
        super().__init__(prompt_turn, timeout_ms, now, poll_ms=poll_ms)
        self._done = False

    def _judge(self, event: Event) -> SettleResult | None:
        result = super()._judge(event)
        if result is None and isinstance(event, Seen):
            self._done = self._done or event.observation.status == "done"
            if self._done and event.observation.turn > self._prompt_turn:
                return self._end(settled=True)
        return result


class _DoneIsConfirmedFirst(Wait):
    __slots__ = ("_told",)

    def __init__(self, prompt_turn: int, timeout_ms: float, now: int, *, poll_ms: int) -> None:
        super().__init__(prompt_turn, timeout_ms, now, poll_ms=poll_ms)
        self._told = False

    def _judge(self, event: Event) -> SettleResult | None:
        result = super()._judge(event)
        if result is None or not result.settled or self._told:
            return result
        self._told = True
        return None


PLANTED: Final = (
    Planted("idle-settles", "idle counts as done, also the idle of the start", _IdleSettles),
    Planted("new-idle-settles", "idle counts as done once the turn is new", _IdleOfANewTurnSettles),
    Planted("old-done-settles", "the turn need not be above the one remembered, only no lower", _OldDoneSettles),
    Planted("other-turn-settles", "a done at any other turn counts, a lower one too", _AnyOtherTurnSettles),
    Planted("error-settles", "an error at a new turn counts as done", _ErrorSettles),
    Planted("blocked-settles", "a question at a new turn counts as done", _BlockedSettles),
    Planted("turn-alone-settles", "a new turn settles whatever the status says", _TurnAloneSettles),
    Planted(
        "failed-exit-is-no-end", "only a program that finished with code 0 has finished", _FailureOfTheProgramIsNoEnd
    ),
    Planted("signal-is-no-end", "a program that a signal ended has not finished", _SignalIsNoEnd),
    Planted("signal-is-forgotten", "the signal that ended the program is not told", _SignalIsForgotten),
    Planted("gone-settles", "a terminal that is gone counts as settled", _GoneSettles),
    Planted("timeout-settles", "a wait whose time is over counts as settled", _TimeoutSettles),
    Planted("timeout-is-abnormal", "a timeout is told as an abnormal end", _TimeoutIsAbnormal),
    Planted("deadline-beats-the-look", "a look that is back with the deadline is not looked at", _DeadlineBeatsTheLook),
    Planted("prompt-is-not-heeded", "a prompt sent meanwhile does not raise the remembered turn", _PromptIsNotHeeded),
    Planted("failed-look-is-a-miss", "a look that failed counts as one that missed the terminal", _FailedLookIsAMiss),
    Planted("misses-are-no-end", "a terminal that is gone is waited for until the time is over", _MissesAreNoEnd),
    Planted("failed-look-extends", "every look that failed gives the wait more time", _FailedLookExtends),
    Planted("failed-look-is-the-end", "one look that failed counts as the end of the terminal", _FailedLookIsTheEnd),
    Planted("looks-are-mixed", "the done of one look and the turn of another settle together", _LooksAreMixed),
    Planted("done-is-confirmed-first", "a done has to be seen twice", _DoneIsConfirmedFirst),
)
"""Every wrong rule, by what it breaks: the settling, the shape of an end, the time, the lost and failed looks."""


def planted(name: str) -> Planted:
    """The wrong rule of this name. Raises KeyError with the names that there are."""
    for one in PLANTED:
        if one.name == name:
            return one
    raise KeyError(f"there is no planted rule {name!r}; there are {', '.join(one.name for one in PLANTED)}")
