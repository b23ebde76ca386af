"""When a wait looks: poll phases and timeouts, and what they make of each step of a history.

The times follow from phase and timeout alone as long as the wait goes on, so that they are worked out once for all
histories: look at once, then `poll_ms` after each answer, and never past the deadline.
"""

from dataclasses import dataclass
from typing import Final, Literal

from contracts.fuzz.alphabet import STEP_MS, TEAR_MS

LONE_LOOK_MS: Final = 1_000
"""How long the one look of a wait without any time may take."""


@dataclass(frozen=True, slots=True)
class Phase:
    """How polls lie to the steps: when the wait begins, how long it rests after an answer, how long an answer takes."""

    name: str
    says: str
    begin_ms: int
    poll_ms: int
    answer_ms: int = 0


PHASES: Final = (
    Phase("early", "one look a step, in the first half of a tear", 100, STEP_MS),
    Phase("late", "one look a step, after a tear", 700, STEP_MS),
    Phase("twice", "two looks a step", 100, TEAR_MS),
    Phase("sparse", "a look at every second step", 100, 2 * STEP_MS),
    Phase("slow", "one look a step, answered in the next one", 700, 400, 600),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A poll phase and a timeout: what every history is tried with."""

    phase: Phase
    timeout_ms: int

    @property
    def name(self) -> str:
        """For people, and for a saved search."""
        return f"{self.phase.name}/{self.timeout_ms}"

    @property
    def deadline_ms(self) -> int:
        """When the time of the wait is over."""
        return self.phase.begin_ms + self.timeout_ms

    @property
    def slack_ms(self) -> int:
        """How late a timeout may come: only the one look of a wait without any time is waited for beyond it."""
        return self.phase.answer_ms if self.timeout_ms == 0 else 0


def timeouts(steps: int) -> tuple[int, ...]:
    """No time at all; over in the middle, between two looks; over with a look of the last step; all of it and more."""
    return 0, steps // 2 * STEP_MS + STEP_MS // 4, (steps - 1) * STEP_MS, steps * STEP_MS + STEP_MS // 2


def cases(steps: int) -> tuple[Case, ...]:
    """Every case that histories of so many steps are tried with, each once."""
    return tuple(Case(phase, timeout) for phase in PHASES for timeout in sorted(set(timeouts(steps))))


@dataclass(frozen=True, slots=True)
class Op:
    """Something that the wait does: `ask` (a look leaves), `answer` (it is back), `tick` (a rest or the time is over).

    `late`: the second half of the step shows. `poll_ms`: how long the wait has to rest after this answer if it goes on.
    """

    do: Literal["ask", "answer", "tick"]
    at_ms: int
    late: bool = False
    poll_ms: int = 0


def schedule(case: Case, steps: int) -> tuple[tuple[Op, ...], ...]:
    """What the wait does in each step, and, as the last entry, after the last step until its time is over."""
    found: list[list[Op]] = [[] for _ in range(steps + 1)]
    for op in _ops(case):
        found[min(op.at_ms // STEP_MS, steps)].append(op)
    return tuple(tuple(ops) for ops in found)


def _ops(case: Case) -> list[Op]:
    phase, deadline = case.phase, case.deadline_ms
    ops: list[Op] = []
    now = phase.begin_ms
    while True:
        ops.append(Op("ask", now, late=now % STEP_MS >= TEAR_MS))
        given_up = deadline if case.timeout_ms else now + LONE_LOOK_MS
        answered = now + phase.answer_ms
        if answered > given_up:
            return [*ops, Op("tick", given_up)]
        rest = max(1, min(phase.poll_ms, deadline - answered))
        ops.append(Op("answer", answered, poll_ms=rest))
        if answered >= deadline:
            return ops
        now = answered + rest
        ops.append(Op("tick", now))
        if now >= deadline:
            return ops
