"""Make a history in which something goes wrong as small as it can be, with the same thing still going wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from contracts.fuzz.alphabet import STEP_MS
from contracts.fuzz.schedule import PHASES, Case
from contracts.fuzz.walk import Course, Subject, Walk, walked

MAX_TRIES: Final = 20_000
"""More histories than this are not tried for one shrinking; the smallest found by then is taken."""


@dataclass(frozen=True, slots=True)
class Found:
    """A history of which the oracle and the decision code say different things, and what the oracle objects to."""

    steps: tuple[int, ...]
    case: Case
    objections: tuple[str, ...]
    walk: Walk


def tried(steps: tuple[int, ...], case: Case, subject: type[Subject] = Subject) -> Found | None:
    """The disagreement over one history, None when there is none."""
    course = Course(case, len(steps), subject)
    walk = walked(course, steps)
    objections = course.objections(walk)
    return Found(steps, case, tuple(objections), walk) if objections else None


def _smaller(steps: tuple[int, ...], case: Case) -> Iterator[tuple[tuple[int, ...], Case]]:
    for at in range(len(steps) if len(steps) > 1 else 0):
        yield (*steps[:at], *steps[at + 1 :]), case
    for at, number in enumerate(steps):
        for simpler in range(number):
            yield (*steps[:at], simpler, *steps[at + 1 :]), case
    for phase in PHASES[: PHASES.index(case.phase)]:
        yield steps, Case(phase, case.timeout_ms)
    for timeout_ms in range(STEP_MS // 2, case.timeout_ms, STEP_MS // 2):
        yield steps, Case(case.phase, timeout_ms)


def shrunk(found: Found, subject: type[Subject] = Subject) -> Found:
    """The smallest disagreement that single changes lead to: fewer steps, then simpler symbols, phases and times."""
    tries = MAX_TRIES
    while True:
        for steps, case in _smaller(found.steps, found.case):
            tries -= 1
            if tries < 0:
                return found
            again = tried(steps, case, subject)
            if again is not None:
                found = again
                break
        else:
            return found
