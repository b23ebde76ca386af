"""The report of a live run, for people and for programs."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from contracts.judging.tally import ClauseRow, clause_table, outcome
from contracts.live.difference import Difference
from contracts.live.run import LiveRun, live_clauses
from contracts.live.writing import SCHEMA, profile_rows
from contracts.records import RunVerdict
from hc_sim.redact import redact_text, redact_value

MAX_SHOWN: Final = 160
MAX_DIFFERENCES: Final = 40
"""Of more differences, the table shows so many; the files have them all."""
_STYLES: Final = {"pass": "green", "fail": "bold red", "warn": "yellow", "errored": "bold red", "skipped": "dim"}


class LiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a live run comes to. `core` says in words which one; `skipped` why nothing was run."""

    core: str
    outcome: str
    rows: list[ClauseRow] = []
    run: Any = None
    skipped: str = ""


def report_of(run: LiveRun, core: str, *, require: bool = False) -> LiveReport:
    """The rows of all clauses, and whether they hold."""
    rows = clause_table(live_clauses(), run.verdicts)
    said = outcome(rows, run.verdicts, whole=False, require=require)
    return LiveReport(core=core, outcome=said, rows=rows, run=run)


def skipped_report(why: str, *, require: bool) -> LiveReport:
    """There is no core: nothing was run, and that is a failure only if one was required."""
    return LiveReport(core="none", outcome="fails" if require else "skipped", skipped=why)


def as_json(report: LiveReport) -> str:
    """The whole report as one JSON object, without what looks like a secret."""
    whole: dict[str, Any] = {"schema": SCHEMA, "outcome": report.outcome, "core": report.core}
    if report.skipped:
        whole["skipped"] = report.skipped
    run: LiveRun | None = report.run
    if run is not None:
        whole |= {
            "about": run.sheet.core,
            "stopped": run.stopped,
            "seconds": round(run.seconds, 3),
            "clauses": [_row(row) for row in report.rows if row.verdict != "unproven"],
            "checks": [_check(verdict) for verdict in run.verdicts],
            "differences": [msgspec.to_builtins(one) for one in run.found],
            "profile": profile_rows(run.sheet),
            "refused": run.sheet.refused,
            "cleaned": run.cleaned,
            "left": run.left,
        }
    return json.dumps(redact_value(whole), indent=2, ensure_ascii=False) + "\n"


def _row(row: ClauseRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "title": row.title,
        "level": row.level,
        "verdict": row.verdict,
        "checks": row.checks,
        "statements": row.statements,
        "failed": [_finding(failure.finding) | {"check": failure.scenario} for failure in (*row.failed, *row.warnings)],
    }


def _check(verdict: RunVerdict) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": verdict.scenario,
        "verdict": verdict.verdict,
        "level": verdict.level,
        "clauses": verdict.clauses,
        "why": verdict.why,
        "statements": len(verdict.findings),
        "findings": [_finding(finding) for finding in verdict.findings if not finding.ok],
    }
    return entry if verdict.errored is None else entry | {"errored": verdict.errored}


def _finding(finding: Any) -> dict[str, Any]:
    return {
        "clause": finding.clause,
        "where": finding.where,
        "expected": finding.expected,
        "got": finding.got,
        "say": finding.say,
    }


def print_report(report: LiveReport, console: Console) -> None:
    """The report as a table and lines, as wide as the console."""
    if report.run is None:
        console.print(Text(f"skipped: {report.skipped}"), soft_wrap=True)
        if report.outcome == "fails":
            console.print(Text("a core is required (--require)", style="bold red"))
        return
    run: LiveRun = report.run
    for words in (f"core: {report.core}", *run.cleaned):
        console.print(Text(redact_text(words)), soft_wrap=True)
    console.print(_table(report.rows))
    for line in (*_failures(run), *_differences(run.found), *_left(run)):
        console.print(line, soft_wrap=True)
    console.print(Text(_summary(report, run), style="bold red" if report.outcome != "holds" else "bold green"))


def _table(rows: list[ClauseRow]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("clause", "about", "level", "verdict", "statements"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        if row.verdict == "unproven":
            continue
        word = "warn" if row.verdict == "fail" and row.level == "should" else row.verdict
        word = "warn" if row.verdict == "pass" and row.warnings else word
        table.add_row(row.id, Text(row.title, style="dim"), row.level, Text(word, _STYLES[word]), str(row.statements))
    return table


def _failures(run: LiveRun) -> Iterator[Text]:
    for verdict in run.verdicts:
        if verdict.errored is not None:
            yield Text(f"errored {verdict.scenario}: {redact_text(verdict.errored)}", style="bold red")
        for finding in verdict.findings:
            if not finding.ok:
                word = "FAIL" if verdict.level == "must" else "warn"
                values = f"expected {_shown(finding.expected)}, got {_shown(finding.got)}"
                text = f"{word} {finding.clause} {finding.where}: {finding.say or verdict.why}: {values}"
                yield Text(redact_text(text), style=_STYLES["fail" if word == "FAIL" else "warn"])
    for probe, why in run.sheet.skipped.items():
        yield Text(f"skipped {probe}: {why}", style="dim")


def _differences(found: list[Difference]) -> Iterator[Text]:
    if found:
        yield Text(f"differences from the fake: {len(found)}")
    for one in found[:MAX_DIFFERENCES]:
        yield Text(redact_text(f"  {one.name}  {one.text}"))
    if len(found) > MAX_DIFFERENCES:
        yield Text(f"  and {len(found) - MAX_DIFFERENCES} more; --out DIR has them all")


def _left(run: LiveRun) -> Iterator[Text]:
    for words in run.left:
        yield Text(f"left behind: {words}", style="bold red")


def _summary(report: LiveReport, run: LiveRun) -> str:
    statements = sum(len(verdict.findings) for verdict in run.verdicts)
    learned = sum(one.learned for one in run.sheet.learned.values())
    words = f"; stopped after {run.stopped} (--keep-going goes on)" if run.stopped else ""
    return (
        f"{report.outcome}: {statements} statements, {len(run.found)} differences from the fake, "
        f"{learned} of {len(run.sheet.learned)} choices learned; {run.seconds:.1f} s{words}"
    )


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(redact_value(value), ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
