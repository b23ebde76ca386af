"""One wait on its way through a history: the real decision code stepped on, and everything that the oracle must know.

A walk is extended by one step at a time, so that histories with the same beginning share it. What is judged is always
the whole history by the oracle itself; nothing here knows what is right.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Final

from contracts.fuzz import oracle
from contracts.fuzz.alphabet import START_TURN, STEP_MS, World, effect
from contracts.fuzz.schedule import Case, Op, schedule
from legion_terminal import settle

Subject = settle.Wait
"""What is tried: the supervisor's decision of one wait, or a subclass with another rule."""


@dataclass(slots=True)
class Walk:
    """How far a wait has come. `pending` is a look that is not answered yet; `ended_ms` is set once it has ended.

    `prompt_turn` is what the newest prompt remembered. `wrong` tells of something wrong besides the outcome. `past`:
    what the oracle can still depend on, once that was asked for.
    """

    subject: Subject
    world: World
    prompt_turn: int
    looks: tuple[oracle.Look, ...] = ()
    prompts: tuple[oracle.Prompt, ...] = ()
    pending: "tuple[World, bool] | None" = None
    ended_ms: int | None = None
    outcome: settle.SettleResult | None = None
    wrong: str | None = None
    past: Hashable = None

    @property
    def over(self) -> bool:
        """Whether nothing that is still to come is of any account."""
        return self.ended_ms is not None or self.wrong is not None


class Course:
    """Walks through all histories of one case: `begin`, then `extend` once a step, then `finish`."""

    def __init__(self, case: Case, steps: int, subject: type[Subject] = Subject) -> None:
        self.case = case
        self.steps = steps
        self._subject = subject
        self._ops = schedule(case, steps)
        self._state, self._slots = _state_of(subject)
        self._bare = not _has_dict(subject)

    def begin(self) -> Walk:
        """A wait that has just begun."""
        phase = self.case.phase
        wait = self._subject(START_TURN, self.case.timeout_ms, phase.begin_ms, poll_ms=phase.poll_ms)
        return Walk(wait, World(), START_TURN)

    def extend(self, walk: Walk, at: int, number: int) -> Walk:
        """A walk one step farther, through the symbol with this number as step `at`. The old one stays."""
        made = effect(walk.world, number)
        ops = self._ops[at]
        new = Walk(
            self._copy(walk.subject) if ops else walk.subject, made.late, walk.prompt_turn, walk.looks, walk.prompts,
            walk.pending, walk.ended_ms, walk.outcome, walk.wrong, walk.past,
        )  # fmt: skip
        if made.prompt is not None:
            new.prompt_turn = made.prompt
            new.prompts = (*walk.prompts, oracle.Prompt(at_ms=at * STEP_MS, turn=made.prompt))
            new.past = None
        for op in ops:
            if op.do == "ask":
                new.pending = (made.late if op.late else made.early, made.fails)
            else:
                _carry_on(new, op)
        return new

    def finish(self, walk: Walk) -> Walk:
        """The walk after the last step: the world stays as it is until the wait is over."""
        new = Walk(
            self._copy(walk.subject), walk.world, walk.prompt_turn, walk.looks, walk.prompts, walk.pending,
            walk.ended_ms, walk.outcome, walk.wrong,
        )  # fmt: skip
        for op in self._ops[self.steps]:
            if op.do == "ask":
                new.pending = (new.world, False)
            else:
                _carry_on(new, op)
        return new

    def identity(self, walk: Walk) -> Hashable:
        """Two walks that have come equally far and are alike in this go on alike, whatever comes.

        It holds the whole state of the decision code, the whole state of the world, and what the oracle can still
        depend on. Raises TypeError when the decision code keeps something that cannot be compared.
        """
        if walk.past is None:
            essence = oracle.essence(self.history(walk))
            walk.past = (essence.looks, essence.prompt_turn, essence.prompts)
        return self._state(walk.subject), walk.world, walk.pending, walk.prompt_turn, walk.past

    def ending(self, walk: Walk) -> Hashable:
        """Two walks that are over and are alike in this are judged alike: the same end after the same history."""
        return walk.looks, walk.prompts, walk.ended_ms, walk.outcome, walk.wrong

    def history(self, walk: Walk) -> oracle.History:
        """What the oracle is given to judge."""
        return oracle.History(
            prompt_turn=START_TURN, timeout_ms=self.case.timeout_ms, looks=walk.looks, prompts=walk.prompts,
            started_ms=self.case.phase.begin_ms, slack_ms=self.case.slack_ms,
        )  # fmt: skip

    def objections(self, walk: Walk) -> list[str]:
        """What the oracle has against a walk that has ended or was finished; empty when it is as it has to be."""
        if walk.wrong is not None:
            return [walk.wrong]
        if walk.ended_ms is None:
            return oracle.overdue(self.history(walk), math.inf)
        return oracle.objections(self.history(walk), told(walk))

    def _copy(self, subject: Subject) -> Subject:
        copied = object.__new__(self._subject)
        for slot in self._slots:
            setattr(copied, slot, getattr(subject, slot))
        if not self._bare:
            copied.__dict__.update(subject.__dict__)
        return copied


SHARED_FIELDS: Final = ("settled", "abnormal", "reason", "exit_code", "signal", "last_turn", "last_status")


def told(walk: Walk) -> oracle.Outcome:
    """How the wait ended, in the oracle's words. Raises ValueError when it has not."""
    if walk.outcome is None or walk.ended_ms is None:
        raise ValueError("this wait has not ended")
    return oracle.Outcome(at_ms=walk.ended_ms, **{name: getattr(walk.outcome, name) for name in SHARED_FIELDS})


def walked(course: Course, steps: tuple[int, ...]) -> Walk:
    """One history from its beginning to its end."""
    walk = course.begin()
    for at, number in enumerate(steps):
        walk = course.extend(walk, at, number)
    return course.finish(walk)


def _carry_on(walk: Walk, op: Op) -> None:
    if op.do == "answer":
        world, fails = walk.pending or (walk.world, True)
        event, look = _seen(world, fails, op.at_ms)
        walk.looks = (*walk.looks, look)
        walk.pending = walk.past = None
        walk.subject.prompted(walk.prompt_turn)
        result = walk.subject.step(event, op.at_ms)
    else:
        result = walk.subject.step(_TICK, op.at_ms)
    if isinstance(result, settle.SettleResult):
        if walk.ended_ms is None:
            walk.ended_ms, walk.outcome = op.at_ms, result
        elif result != walk.outcome:
            walk.wrong = f"ended at {walk.ended_ms} ms, and another time at {op.at_ms} ms"
    elif walk.ended_ms is not None:
        walk.wrong = f"ended at {walk.ended_ms} ms, and goes on at {op.at_ms} ms"
    elif op.do == "answer" and result.poll_in_ms != op.poll_ms:
        walk.wrong = walk.wrong or f"rests {result.poll_in_ms} ms after {op.at_ms} ms, not {op.poll_ms}"


_TICK: Final = settle.Tick()


@cache
def _seen(world: World, fails: bool, at_ms: int) -> tuple[settle.Event, oracle.Look]:
    """What one look shows, to the decision code and to the oracle."""
    if fails:
        return settle.Failed(), oracle.Failed(at_ms=at_ms)
    if not world.there:
        return settle.Missing(), oracle.Missing(at_ms=at_ms)
    shown: dict[str, Any] = {name: getattr(world, name) for name in ("turn", "status", "state", "exit_code", "signal")}
    return settle.Seen(settle.Observation(**shown)), oracle.Seen(at_ms=at_ms, **shown)


def _state_of(subject: type[Subject]) -> tuple[Callable[[Subject], Hashable], tuple[str, ...]]:
    """What reads the whole state of the decision code, and the names of its slots."""
    slots = tuple(name for base in subject.__mro__ for name in _slots(base))
    read = attrgetter(*slots)
    if _has_dict(subject):
        return lambda wait: (read(wait), tuple(sorted(wait.__dict__.items()))), slots
    return read, slots


def _slots(base: type) -> tuple[str, ...]:
    named = base.__dict__.get("__slots__", ())
    return (named,) if isinstance(named, str) else tuple(named)


def _has_dict(subject: type[Subject]) -> bool:
    return subject.__dictoffset__ != 0
