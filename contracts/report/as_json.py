"""The report as JSON: the format that programs read and that stays stable under its `schema` number."""

import json
from typing import Any, Final

import msgspec

from contracts.judging.tally import ClauseRow, Failure
from contracts.records import Finding, RunVerdict, Verdict
from contracts.report.content import Content, Known, failed, reproduce

SCHEMA: Final = 1
_WORST: Final[tuple[Verdict, ...]] = ("errored", "fail", "known", "hazard", "avoided", "pass", "skipped")


def as_json(content: Content) -> str:
    """The whole report as one JSON object, ended by a line feed."""
    return json.dumps(report(content), indent=2, ensure_ascii=False) + "\n"


def report(content: Content) -> dict[str, Any]:
    """The whole report as plain values."""
    return {
        "schema": SCHEMA,
        "outcome": content.outcome,
        "strict": content.strict,
        "filtered": content.filtered,
        "seconds": round(content.seconds, 3),
        "sut": dict(content.sut),
        "host": dict(content.host),
        "clauses": [_clause(row) for row in content.rows],
        "scenarios": _scenarios(content),
        "checks": [_run(content, verdict) for verdict in content.verdicts if verdict.host == "check"],
        "totals": msgspec.to_builtins(content.totals),
        **({} if content.baseline is None else {"baseline": _baseline(content.baseline)}),
    }


def _baseline(known: Known) -> dict[str, Any]:
    return {
        "file": str(known.path),
        "known": known.failures,
        "unseen": known.unseen,
        "stale": [
            {"line": line, "scenario": entry.scenario, "host": entry.host, "clause": entry.clause}
            for line, entry in known.stale
        ],
    }


def _clause(row: ClauseRow) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": row.id,
        "title": row.title,
        "level": row.level,
        "verdict": row.verdict,
        "scenarios": row.scenarios,
        "socket": row.socket,
        "checks": row.checks,
        "statements": row.statements,
        "failed": [_failure(failure) for failure in row.failed],
    }
    if row.warnings:
        entry["warnings"] = [_failure(failure) for failure in row.warnings]
    if row.known:
        entry["known"] = [_failure(failure) for failure in row.known]
    if row.failed_level is not None:
        entry["failedLevel"] = row.failed_level
    if row.errored:
        entry["errored"] = row.errored
    if row.skipped:
        entry["skipped"] = row.skipped
    if row.level == "hazard":
        entry["avoided"] = row.avoided
        entry["costSeconds"] = None if row.cost_ms is None else row.cost_ms / 1_000
    return entry


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "scenario": failure.scenario,
        "host": failure.host,
        "level": failure.level,
        **_finding(failure.finding),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    entry = {"clause": finding.clause, "where": finding.where, "expected": finding.expected, "got": finding.got}
    entry |= {"say": finding.say} if finding.say else {}
    return {**entry, "known": True} if finding.known else entry


def _scenarios(content: Content) -> list[dict[str, Any]]:
    by_id: dict[str, list[RunVerdict]] = {}
    for verdict in content.verdicts:
        if verdict.host != "check":
            by_id.setdefault(verdict.scenario, []).append(verdict)
    return [
        {
            "id": name,
            "verdict": min((run.verdict for run in runs), key=_WORST.index),
            "level": runs[0].level,
            "clauses": runs[0].clauses,
            "why": runs[0].why,
            "file": str(content.files.get(name, "")),
            "runs": [_run(content, run) for run in runs],
        }
        for name, runs in by_id.items()
    ]


def _run(content: Content, verdict: RunVerdict) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "host": verdict.host,
        "verdict": verdict.verdict,
        "seconds": verdict.real_ms / 1_000,
        "statements": len(verdict.findings),
        "findings": [_finding(finding) for finding in failed(verdict)],
    }
    if verdict.host == "check":
        entry = {"id": verdict.scenario, "clauses": verdict.clauses, "why": verdict.why, **entry}
    if verdict.errored is not None:
        entry["errored"] = verdict.errored
    if verdict.cost_ms is not None:
        entry["costSeconds"] = verdict.cost_ms / 1_000
    if verdict.verdict in ("fail", "known", "errored"):
        entry["again"] = reproduce(content, verdict)
    return entry
