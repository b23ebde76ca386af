"""What a check is: executable evidence for one clause that needs no scenario."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import legion_terminal
from contracts.records import Finding, RunVerdict
from contracts.scenario import Level

PACKAGE = Path(legion_terminal.__file__).parent
"""The source of the supervisor under examination."""


class SkippedError(Exception):
    """The check cannot be made on this machine; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is examined: the folder of the package's source, for checks that read it or run it in another process."""

    package: Path = PACKAGE

    @property
    def root(self) -> Path:
        """The folder that has to be on the import path."""
        return self.package.parent


Examine = Callable[[Subject], list[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its id, the clause that it is evidence for, what it shows in one sentence, and the examination."""

    id: str
    clause: str
    why: str
    examine: Examine
    level: Level = "must"
    also: tuple[str, ...] = field(default=())
    """Further clauses that its findings may name."""


def check(
    id_: str, clause: str, why: str, *, also: tuple[str, ...] = (), level: Level = "must"
) -> Callable[[Examine], Check]:
    """Make a check of an examination."""

    def made(examine: Examine) -> Check:
        return Check(id=id_, clause=clause, why=why, examine=examine, level=level, also=also)

    return made


def run_check(one: Check, subject: Subject | None = None) -> RunVerdict:
    """Examine, and give a verdict: errored when the check itself breaks or finds nothing to look at."""
    begun = time.monotonic()
    findings: list[Finding] = []
    errored: str | None = None
    why = one.why
    try:
        findings = one.examine(subject or Subject())
        if not findings:
            errored = "nothing was checked"
    except SkippedError as reason:
        why = str(reason)
    except Exception as error:
        errored = f"{type(error).__name__}: {error}"
    holds = all(finding.ok for finding in findings)
    return RunVerdict(
        scenario=one.id,
        host="check",
        verdict="errored" if errored else ("skipped" if not findings else ("pass" if holds else "fail")),
        level=one.level,
        clauses=[one.clause, *one.also],
        findings=findings,
        errored=errored,
        real_ms=round((time.monotonic() - begun) * 1_000),
        why=why,
    )


def found(clause: str, where: str, *, expected: Any, got: Any, say: str = "") -> Finding:
    """A finding that holds when both are equal."""
    return Finding(clause=clause, ok=expected == got, where=where, expected=expected, got=got, say=say)


def by_id(checks: tuple[Check, ...]) -> Mapping[str, Check]:
    """Checks by id. Raises ValueError for an id that is used twice."""
    named = {one.id: one for one in checks}
    if len(named) != len(checks):
        raise ValueError("two checks have the same id")
    return named
