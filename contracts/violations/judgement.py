"""From what looks saw to what is said of each planted violation. Pure: no I/O, no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from contracts.violations.entries import Target, Violation
from contracts.violations.plans import Looked

SCHEMA: Final = 1
MAX_SHOWN: Final = 3
"""Of many runs that broke only so many are named."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The word on one violation.

    `caught_by`: scenarios and checks in which the broken clause failed; for the core the difference that was named; for
    the suite the violations and probes that told on it. `also`: whatever else turned red. `unexplained`: what of that
    has no reason written beside it. `stale`: reasons for what did not turn red. `error`: why there is no proper answer.
    """

    id: str
    target: Target
    breaks: tuple[str, ...]
    caught: bool
    caught_by: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    error: str = ""

    @property
    def is_clean(self) -> bool:
        """Caught, by what it breaks, and by nothing that is not explained."""
        return self.caught and not (self.unexplained or self.stale or self.error)


@dataclass(frozen=True, slots=True)
class Control:
    """One whole run on a correct supervisor, and everything that it wrongly complained of."""

    name: str
    runs: int
    failed: tuple[str, ...] = ()
    errored: tuple[str, ...] = ()

    @property
    def false_alarms(self) -> int:
        """How often it cried wolf."""
        return len(self.failed) + len(self.errored)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Every violation and every control of one run of the command."""

    planted: tuple[Judged, ...] = ()
    controls: tuple[Control, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def missed(self) -> int:
        """Violations that nobody caught."""
        return sum(not one.caught for one in self.planted)

    @property
    def false_alarms(self) -> int:
        """Clauses that turned red without a written reason, and whatever a control complained of."""
        return sum(len(one.unexplained) for one in self.planted) + sum(one.false_alarms for one in self.controls)

    @property
    def problems(self) -> list[str]:
        """In words, what is wrong with the entries and looks themselves."""
        return [f"{one.id}: {words}" for one in self.planted for words in _troubles(one)]

    @property
    def holds(self) -> bool:
        """Nothing missed, no false alarm, no problem."""
        return not (self.missed or self.false_alarms or self.problems)


def _troubles(one: Judged) -> list[str]:
    stale = [f"the reason written for {name} is stale: it did not turn red" for name in one.stale]
    return ([one.error] if one.error else []) + stale


def judged(one: Violation, looked: Looked, *, quick: bool = False) -> Judged:
    """The word on a violation of the supervisor or of the core.

    `quick`: the look was no whole one, and what it did not see may be there all the same.
    """
    if looked.why:
        return Judged(one.id, one.target, one.breaks, caught=False, error=f"not planted: {looked.why}")
    found = _red(one, looked)
    caught_by = tuple(dict.fromkeys(name for clause in one.breaks for name in found.get(clause, ())))
    also = tuple(name for name in found if name not in one.breaks)
    return Judged(
        id=one.id,
        target=one.target,
        breaks=one.breaks,
        caught=bool(caught_by),
        caught_by=caught_by,
        also=also,
        unexplained=tuple(name for name in also if name not in one.also),
        stale=() if quick else tuple(name for name in one.also if name not in found),
        error=_broken_runs(looked.errored),
    )


def _red(one: Violation, looked: Looked) -> Mapping[str, Sequence[str]]:
    if one.target == "core":
        return {name: [f"live: {name}"] for name in looked.differences}
    return looked.red


def judged_suite(one: Violation, planted: Mapping[str, Violation], looks: Mapping[str, Looked]) -> Judged:
    """The word on a violation of the suite: is it noticed by everything that it would make blind?

    `looks`: for each of its `breaks` what the broken suite saw: of that very violation, planted in the supervisor, or
    of its own probes. It is noticed when the violation is not cleanly caught any more, or the probe does not hold.
    """
    broken = next((looks[name].why for name in one.breaks if looks[name].why), "")
    if broken:
        return Judged(one.id, one.target, one.breaks, caught=False, error=f"not planted: {broken}")
    told = tuple(
        name
        for name in one.breaks
        if (
            not judged(planted[name], looks[name], quick=True).is_clean
            if name in planted
            else name in looks[name].probes
        )
    )
    return Judged(one.id, one.target, one.breaks, caught=len(told) == len(one.breaks), caught_by=told)


def judged_control(name: str, looked: Looked) -> Control:
    """The word on a whole run of a correct supervisor, or on a live run of the core as it is."""
    if looked.why:
        return Control(name, 0, errored=(looked.why,))
    failed = [f"{clause}: {', '.join(by[:MAX_SHOWN])}" for clause, by in looked.red.items()]
    failed += [f"probe {one}" for one in looked.probes] + [f"difference {one}" for one in looked.differences]
    return Control(name, looked.runs, tuple(failed), tuple(looked.errored))


def as_json(matrix: Matrix) -> dict[str, Any]:
    """The matrix as plain values, in the order in which programs may rely on it."""
    return {
        "schema": SCHEMA,
        "planted": [_planted(one) for one in matrix.planted],
        "missed": matrix.missed,
        "false_alarms": matrix.false_alarms,
        "controls": [
            {"name": one.name, "runs": one.runs, "failed": list(one.failed), "errored": list(one.errored)}
            for one in matrix.controls
        ],
        "problems": matrix.problems,
        "seconds": round(matrix.seconds, 1),
    }


def _planted(one: Judged) -> dict[str, Any]:
    return {
        "id": one.id,
        "target": one.target,
        "breaks": list(one.breaks),
        "caught_by": list(one.caught_by),
        "also": list(one.also),
        "caught": one.caught,
    }


def _broken_runs(errored: Sequence[str]) -> str:
    if not errored:
        return ""
    more = f" and {len(errored) - MAX_SHOWN} more" if len(errored) > MAX_SHOWN else ""
    return f"{len(errored)} runs broke: {'; '.join(errored[:MAX_SHOWN])}{more}"
