"""A baseline: the failures that somebody knows of already, check by check, and what a run says of each entry.

Pure. A known failure no longer fails the gate. An entry whose statement now holds does: it has to be taken out, or it
would hide the day on which the failure comes back.
"""
# ruff: noqa: RUF012 - msgspec gives every value its own copy of an empty default

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from contracts.clauses import Clauses
from contracts.judging.tally import ClauseRow, Failure, effective_level, heaviest
from contracts.loading.problem import Problem, nearest
from contracts.loading.rules import clauses_of
from contracts.records import Finding, RunVerdict
from contracts.scenario import HostName, Level, Scenario
from hc_sim.script.format import Strict

SCHEMA: Final = 1
Key = tuple[str, str, str]
"""Scenario or check, host, clause."""
_JUDGED: Final = ("pass", "fail", "known", "hazard", "avoided")


class Entry(Strict, frozen=True):
    """One known failure: the id of a scenario and the host it ran on, or the id of a check and `check`; the clause."""

    scenario: str
    host: HostName | Literal["check"]
    clause: str
    why: str = ""

    @property
    def key(self) -> Key:
        """What the entry is about."""
        return self.scenario, self.host, self.clause


class Baseline(Strict, frozen=True):
    """What the file says."""

    schema: int
    known: list[Entry] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A run, judged with a baseline.

    `known`: how many statements fail as the baseline says. `stale`: the numbers of the entries (from 0) whose
    statements now hold. `unseen`: how many entries are about something that this run did not judge.
    """

    rows: Sequence[ClauseRow]
    verdicts: Sequence[RunVerdict]
    known: int
    stale: Sequence[int]
    unseen: int


def problems(
    baseline: Baseline, scenarios: Mapping[str, Scenario], checks: Collection[str], clauses: Clauses
) -> Iterator[Problem]:
    """Entries that are not about anything there is, and those that repeat another."""
    if baseline.schema != SCHEMA:
        yield Problem("schema", f"is {baseline.schema}; this version reads {SCHEMA}")
    seen: dict[Key, int] = {}
    for number, entry in enumerate(baseline.known):
        where = f"known[{number}]"
        first = seen.setdefault(entry.key, number)
        if first != number:
            yield Problem(where, f"says the same as known[{first}]; take one of them out")
        elif entry.host == "check":
            yield from _check_problems(entry, where, checks, clauses)
        else:
            yield from _scenario_problems(entry, where, scenarios)


def _check_problems(entry: Entry, where: str, checks: Collection[str], clauses: Clauses) -> Iterator[Problem]:
    if entry.scenario not in checks:
        yield Problem(f"{where}.scenario", f"there is no check {entry.scenario!r}{nearest(entry.scenario, checks)}")
    elif entry.clause not in clauses:
        yield Problem(f"{where}.clause", f"there is no clause {entry.clause!r}{nearest(entry.clause, clauses)}")


def _scenario_problems(entry: Entry, where: str, scenarios: Mapping[str, Scenario]) -> Iterator[Problem]:
    scenario = scenarios.get(entry.scenario)
    if scenario is None:
        near = nearest(entry.scenario, scenarios)
        yield Problem(f"{where}.scenario", f"there is no scenario {entry.scenario!r}{near}")
    elif entry.host not in scenario.hosts:
        yield Problem(f"{where}.host", f"{entry.scenario} does not run on {entry.host}")
    elif entry.clause not in clauses_of(scenario):
        about = ", ".join(clauses_of(scenario))
        yield Problem(f"{where}.clause", f"{entry.scenario} says nothing of {entry.clause!r}, only of {about}")


def apply(baseline: Baseline, rows: Sequence[ClauseRow], verdicts: Sequence[RunVerdict]) -> Applied:
    """Judge a run once more, with what is known. What broke stays broken: a baseline is about failures."""
    keys = {entry.key for entry in baseline.known}
    marked = [_marked(verdict, keys) for verdict in verdicts]
    judged = {(one.scenario, one.host) for one in marked if one.verdict in _JUDGED}
    failing = {_key(one, finding) for one in marked for finding in one.findings if finding.known}
    looked_at = [number for number, one in enumerate(baseline.known) if (one.scenario, one.host) in judged]
    return Applied(
        rows=[_row(row, keys) for row in rows],
        verdicts=marked,
        known=sum(finding.known for one in marked for finding in one.findings),
        stale=[number for number in looked_at if baseline.known[number].key not in failing],
        unseen=len(baseline.known) - len(looked_at),
    )


def _key(verdict: RunVerdict, finding: Finding) -> Key:
    return verdict.scenario, verdict.host, finding.clause


def _marked(verdict: RunVerdict, keys: Collection[Key]) -> RunVerdict:
    if verdict.verdict not in ("fail", "known"):
        return verdict
    findings = [
        msgspec.structs.replace(one, known=not one.ok and _key(verdict, one) in keys) for one in verdict.findings
    ]
    all_known = all(one.ok or one.known for one in findings)
    return msgspec.structs.replace(verdict, findings=findings, verdict="known" if all_known else "fail")


def _row(row: ClauseRow, keys: Collection[Key]) -> ClauseRow:
    """The same clause, with what is known apart from what is new."""
    all_of = [*row.failed, *row.warnings, *row.known]
    known = [one for one in all_of if _is_known(one, keys)]
    failed = [one for one in row.failed if not _is_known(one, keys)]
    verdict = row.verdict
    if verdict == "fail" and not failed:
        verdict = "errored" if row.errored else "known"
    return msgspec.structs.replace(
        row,
        verdict=verdict,
        failed=failed,
        warnings=[one for one in row.warnings if not _is_known(one, keys)],
        known=known,
        failed_level=heaviest([one.level for one in failed]),
    )


def _is_known(failure: Failure, keys: Collection[Key]) -> bool:
    return (failure.scenario, failure.host, failure.finding.clause) in keys


def renewed(
    before: Baseline | None, verdicts: Sequence[RunVerdict], levels: Mapping[str, Level], gating: Collection[Level]
) -> Baseline:
    """The baseline that this run would pass with: what fails it now, and the old entries that it did not judge.

    `levels` maps clause to level, `gating` are the levels that fail the gate. The reasons of old entries are kept.
    """
    old = {} if before is None else {entry.key: entry for entry in before.known}
    judged = {(one.scenario, one.host) for one in verdicts if one.verdict in _JUDGED}
    entries = {key: entry for key, entry in old.items() if key[:2] not in judged}
    for verdict in verdicts:
        for finding in verdict.findings:
            key = _key(verdict, finding)
            level = effective_level(verdict.level, levels.get(finding.clause, verdict.level))
            fails = verdict.verdict in ("fail", "known") and not finding.ok
            if fails and (level in gating or key in old):
                entries[key] = old.get(key) or Entry(scenario=key[0], host=verdict.host, clause=key[2])
    return Baseline(schema=SCHEMA, known=[entries[key] for key in sorted(entries)])
