"""Every history of N steps, each case of it: the decision code and the oracle side by side, with nothing left out.

Histories are not run one after another. All of one length that have come to the same point (the same state of the
decision code, of the world, and of what the oracle can still depend on) are carried on as one, with their number; and
those whose wait has ended in the same way after the same looks share one judgement, whatever follows. `unmerged` does
neither: it takes every history through to its end and has the oracle judge it alone. That both find the same, the
number of disagreements included, is what makes merging allowed.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from contracts.fuzz.alphabet import ALPHABET
from contracts.fuzz.schedule import Case, cases
from contracts.fuzz.walk import Course, Subject, Walk

Steps = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """What was found in one case.

    `histories`: how many there are. `judged`: how many of them the oracle was asked about alone; each of the others is
    the same as one of these. `disagreements`: in how many histories both differ. `first`: the first one, in the order
    of the alphabet.
    """

    case: str
    histories: int = 0
    judged: int = 0
    disagreements: int = 0
    first: Steps | None = None
    seconds: float = 0.0

    @property
    def merged(self) -> int:
        """How many histories were not judged alone."""
        return self.histories - self.judged


@dataclass(slots=True)
class _Point:
    """Histories that have come to the same point: the first of them, its walk, and how many they are."""

    steps: Steps
    walk: Walk
    number: int = 1


@dataclass(slots=True)
class _Count:
    judged: int = 0
    histories: int = 0
    disagreements: int = 0
    first: Steps | None = None

    def take(self, course: Course, walk: Walk, steps: Steps, number: int) -> None:
        """Judge a walk that stands for so many histories."""
        self.judged += 1
        self.histories += number
        if course.objections(walk):
            self.disagreements += number
            whole = steps + (0,) * (course.steps - len(steps))
            self.first = whole if self.first is None else min(self.first, whole)


def count(steps: int) -> int:
    """How many histories of so many steps there are, every case of each counted."""
    return int(len(ALPHABET) ** steps) * len(cases(steps))


def explore(case: Case, steps: int, subject: type[Subject] = Subject, *, unmerged: bool = False) -> Tally:
    """All histories of one case."""
    begun = monotonic()
    course = Course(case, steps, subject)
    found = _one_by_one(course) if unmerged else _merged(course)
    return Tally(case.name, found.histories, found.judged, found.disagreements, found.first, monotonic() - begun)


def _merged(course: Course) -> _Count:
    """Step by step: from the points of one length to those of the next."""
    found = _Count()
    points = [_Point((), course.begin())]
    for at in range(course.steps):
        alike: dict[Hashable, _Point] = {}
        ended: dict[Hashable, _Point] = {}
        tails = len(ALPHABET) ** (course.steps - at - 1)
        for point in points:
            for number in range(len(ALPHABET)):
                walk = course.extend(point.walk, at, number)
                steps = (*point.steps, number)
                if walk.over:
                    _join(ended, course.ending(walk), walk, steps, point.number * tails)
                else:
                    _join(alike, course.identity(walk), walk, steps, point.number)
        for end in ended.values():
            found.take(course, end.walk, end.steps, end.number)
        points = list(alike.values())
    for point in points:
        found.take(course, course.finish(point.walk), point.steps, point.number)
    return found


def _join(alike: dict[Hashable, _Point], identity: Hashable, walk: Walk, steps: Steps, number: int) -> None:
    known = alike.get(identity)
    if known is None:
        alike[identity] = _Point(steps, walk, number)
    else:
        known.number += number


def _one_by_one(course: Course) -> _Count:
    found = _Count()
    for steps, walk in _all(course, (), course.begin()):
        found.take(course, course.finish(walk), steps, 1)
    return found


def _all(course: Course, steps: Steps, walk: Walk) -> Iterator[tuple[Steps, Walk]]:
    """Every history that begins so, and its walk up to the last step."""
    if len(steps) == course.steps:
        yield steps, walk
        return
    for number in range(len(ALPHABET)):
        yield from _all(course, (*steps, number), course.extend(walk, len(steps), number))


def total(tallies: Iterable[Tally], name: str = "all") -> Tally:
    """The sum; `first` is that of the first case that has one."""
    listed = list(tallies)
    return Tally(
        name,
        sum(one.histories for one in listed),
        sum(one.judged for one in listed),
        sum(one.disagreements for one in listed),
        next((one.first for one in listed if one.first is not None), None),
        sum(one.seconds for one in listed),
    )
