"""From verdicts on runs to one row a clause, totals, and the exit code of the gate."""
# ruff: noqa: RUF012 - msgspec gives every value its own copy of an empty default

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from contracts.clauses import Clause, Clauses
from contracts.records import ClauseVerdict, Finding, Record, RunVerdict
from contracts.scenario import Level

HOLDS: Final = 0
FAILS: Final = 1
BAD_USAGE: Final = 2
ERRORED: Final = 3
_WEIGHT: Final[Mapping[Level, int]] = {"hazard": 0, "should": 1, "must": 2}


class Failure(Record, frozen=True):
    """One statement that did not hold, and the run in which it did not."""

    scenario: str
    host: str
    level: Level
    finding: Finding


class ClauseRow(Record, frozen=True):
    """What the runs say of one clause.

    `scenarios`, `socket`, `checks`: how many scenarios, scenarios over the socket and checks gave evidence.
    `failed`: statements that did not hold and weigh as much as the clause. `warnings`: those that weigh less, because
    their scenario does; the clause holds all the same. `known`: those of both that a baseline names.
    `failed_level`: the weightiest level at which it failed (`must` fails the gate, `should` only under strict).
    `cost_ms`: for a hazard, the longest time lost. `avoided`: scenarios whose bad end did not occur.
    """

    id: str
    title: str
    level: Level
    verdict: ClauseVerdict
    scenarios: int = 0
    socket: int = 0
    checks: int = 0
    statements: int = 0
    failed: list[Failure] = []
    warnings: list[Failure] = []
    known: list[Failure] = []
    errored: list[str] = []
    skipped: list[str] = []
    failed_level: Level | None = None
    avoided: int = 0
    cost_ms: int | None = None


class Totals(Record, frozen=True):
    """Counts over the whole run. `runs` counts scenario runs by verdict, `clauses` clauses by verdict."""

    scenarios: int
    runs: int
    checks: int
    statements: int
    clauses: dict[str, int]
    run_verdicts: dict[str, int]
    real_ms: int


def clause_table(clauses: Clauses, verdicts: Sequence[RunVerdict], *, strict: bool = False) -> list[ClauseRow]:
    """One row for each clause, in the order of the clauses. A clause without evidence is unproven.

    A statement of a should scenario that does not hold is only a warning for a must clause, except under `strict`.
    """
    return [_row(clause, verdicts, strict) for clause in clauses.values()]


def effective_level(run: Level, clause: Level) -> Level:
    """A statement weighs as much as the lighter of its scenario and its clause."""
    return min(run, clause, key=lambda level: _WEIGHT[level])


def heaviest(levels: Sequence[Level]) -> Level | None:
    """The weightiest of some levels; None of none."""
    order: tuple[Level, ...] = ("must", "should", "hazard")
    return next((level for level in order if level in levels), None)


def _row(clause: Clause, verdicts: Sequence[RunVerdict], strict: bool) -> ClauseRow:
    concerned = [verdict for verdict in verdicts if clause.id in _spoken(verdict)]
    evidence = [verdict for verdict in concerned if _is_evidence(verdict, clause)]
    scenarios = {verdict.scenario for verdict in evidence if verdict.host != "check"}
    found = _failures(clause, evidence)
    failed = [failure for failure in found if strict or failure.level == clause.level]
    hazards = [verdict for verdict in evidence if verdict.verdict == "hazard"]
    return ClauseRow(
        id=clause.id,
        title=clause.title,
        level=clause.level,
        verdict=_clause_verdict(clause, concerned, evidence, failed),
        scenarios=len(scenarios),
        socket=len({verdict.scenario for verdict in evidence if verdict.host == "socket"}),
        checks=sum(verdict.host == "check" for verdict in evidence),
        statements=sum(finding.clause == clause.id for verdict in evidence for finding in verdict.findings),
        failed=failed,
        warnings=[failure for failure in found if failure not in failed],
        errored=[f"{verdict.scenario} ({verdict.host})" for verdict in concerned if verdict.verdict == "errored"],
        skipped=[f"{verdict.scenario}: {verdict.why}" for verdict in concerned if verdict.verdict == "skipped"],
        failed_level=heaviest([failure.level for failure in failed]),
        avoided=sum(verdict.verdict == "avoided" for verdict in evidence) if clause.level == "hazard" else 0,
        cost_ms=max((verdict.cost_ms or 0 for verdict in hazards), default=None),
    )


def _spoken(verdict: RunVerdict) -> set[str]:
    return {*verdict.clauses, *(finding.clause for finding in verdict.findings)}


def _is_evidence(verdict: RunVerdict, clause: Clause) -> bool:
    """A finding about the clause; a hazard is evidence of hazards only, and nothing else is."""
    if verdict.verdict in ("errored", "skipped"):
        return False
    if (verdict.level == "hazard") is not (clause.level == "hazard"):
        return False
    return any(finding.clause == clause.id for finding in verdict.findings)


def _failures(clause: Clause, evidence: Iterable[RunVerdict]) -> list[Failure]:
    if clause.level == "hazard":
        return []
    return [
        Failure(
            scenario=verdict.scenario,
            host=verdict.host,
            level=effective_level(verdict.level, clause.level),
            finding=finding,
        )
        for verdict in evidence
        for finding in verdict.findings
        if finding.clause == clause.id and not finding.ok
    ]


def _clause_verdict(
    clause: Clause, concerned: Sequence[RunVerdict], evidence: Sequence[RunVerdict], failed: Sequence[Failure]
) -> ClauseVerdict:
    if failed:
        return "fail"
    if any(verdict.verdict == "errored" for verdict in concerned):
        return "errored"
    if any(verdict.verdict == "hazard" for verdict in evidence):
        return "hazard"
    if evidence:
        return "pass"
    return "skipped" if any(verdict.verdict == "skipped" for verdict in concerned) else "unproven"


def totals(rows: Sequence[ClauseRow], verdicts: Sequence[RunVerdict]) -> Totals:
    """Counts for the summary line."""
    runs = [verdict for verdict in verdicts if verdict.host != "check"]
    return Totals(
        scenarios=len({verdict.scenario for verdict in runs}),
        runs=len(runs),
        checks=len(verdicts) - len(runs),
        statements=sum(len(verdict.findings) for verdict in verdicts),
        clauses=_counted(row.verdict for row in rows),
        run_verdicts=_counted(verdict.verdict for verdict in verdicts),
        real_ms=sum(verdict.real_ms for verdict in verdicts),
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


Outcome = Literal["holds", "fails", "errored"]


def outcome(
    rows: Sequence[ClauseRow],
    verdicts: Sequence[RunVerdict],
    *,
    strict: bool = False,
    require: bool = False,
    whole: bool = True,
) -> Outcome:
    """What the gate says. A definite failure outweighs a broken harness, and that outweighs everything else.

    `strict`: a should counts like a must. `require`: what was skipped counts as failed. `whole`: the run was not
    filtered, so that a clause that gates and has no evidence fails it. A run in which all was skipped holds nothing.
    """
    gating = ("must", "should") if strict else ("must",)
    if any(failure.level in gating for row in rows for failure in (*row.failed, *row.warnings)):
        return "fails"
    if any(verdict.verdict == "errored" for verdict in verdicts):
        return "errored"
    if verdicts and all(verdict.verdict == "skipped" for verdict in verdicts):
        return "fails"  # nothing was looked at, so nothing holds
    missing = {"unproven"} if whole else set()
    missing |= {"skipped"} if require else set()
    if any(row.verdict in missing and row.level in gating for row in rows):
        return "fails"
    if require and any(row.skipped for row in rows):
        return "fails"
    return "holds"


def exit_code(said: Outcome) -> int:
    """0 holds, 1 fails, 3 errored."""
    return {"holds": HOLDS, "fails": FAILS, "errored": ERRORED}[said]
