"""What every report is made from, and the phrases that all of them share."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from contracts.judging.baseline import Entry
from contracts.judging.match import MISSING
from contracts.judging.tally import ClauseRow, Failure, Outcome, Totals, effective_level
from contracts.records import Finding, RunRecord, RunVerdict
from contracts.scenario import Level, Scenario

MAX_VALUE: Final = 300
"""Longer values are cut in reports for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the run says of a baseline.

    `failures`: how many statements fail as its file says. `stale`: entries whose statements hold now, each with its
    line in the file. `unseen`: how many entries are about something that was not judged.
    """

    path: Path
    failures: int = 0
    stale: Sequence[tuple[int, Entry]] = ()
    unseen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One finished run of the gate.

    `files`: scenario id to the file that it stands in. `foreign`: ids of scenarios that are not part of the product, so
    that only their file can name them. `complete`: nothing was left out that could have given evidence. `sut` and
    `host` say what was tested and on what. `seconds` is wall-clock time, `began` when (UTC, ISO 8601), `command` the
    command line that asked for it. `baseline`: what was known before. `records` (by scenario and host) and `scenarios`
    are there only when somebody wants to draw the runs.
    """

    rows: Sequence[ClauseRow]
    verdicts: Sequence[RunVerdict]
    totals: Totals
    outcome: Outcome
    strict: bool = False
    filtered: bool = False
    complete: bool = True
    sut: Mapping[str, Any] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()
    seconds: float = 0.0
    began: str = ""
    command: str = ""
    baseline: Known | None = None
    records: Mapping[tuple[str, str], RunRecord] = field(default_factory=dict)
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)

    def gates(self, level: Level | None) -> bool:
        """Whether a failure at this level fails the gate."""
        return level == "must" or (self.strict and level == "should")


def reproduce(content: Content, verdict: RunVerdict) -> str:
    """The one command line that runs this again."""
    strict = " --strict" if content.strict else ""
    driver = f" --sut {shlex.quote(content.sut['command'])}" if "command" in content.sut else ""
    if verdict.host == "check":
        return f"legion-contracts check --clause {verdict.clauses[0] if verdict.clauses else verdict.scenario}{strict}"
    name = verdict.scenario
    if name in content.foreign and name in content.files:
        name = str(content.files[name])
    where = driver or f" --host {verdict.host}"
    return f"legion-contracts check --scenario {shlex.quote(name)}{where}{strict}"


def failed(verdict: RunVerdict) -> list[Finding]:
    """The findings of a run that did not hold."""
    return [finding for finding in verdict.findings if not finding.ok]


def fresh(verdict: RunVerdict) -> list[Finding]:
    """The findings of a run that did not hold, and that no baseline knows of."""
    return [finding for finding in failed(verdict) if not finding.known]


def gating(content: Content, verdict: RunVerdict) -> bool:
    """Whether something in this run fails the gate: a statement weighs as its scenario or its clause, the lighter."""
    levels = {row.id: row.level for row in content.rows}
    return any(
        content.gates(effective_level(verdict.level, levels.get(finding.clause, verdict.level)))
        for finding in fresh(verdict)
    )


def run_word(content: Content, verdict: RunVerdict) -> str:
    """The word for a run: what fails and leaves the gate open is a warning."""
    if verdict.verdict == "fail":
        return "FAIL" if gating(content, verdict) else "warn"
    return verdict.verdict


def show(value: Any, limit: int = MAX_VALUE) -> str:
    """A value on one line, as JSON, cut at `limit` characters; nothing at all is the word `nothing`."""
    if value is None or value is MISSING:
        return "nothing"
    text = value if isinstance(value, str) and _is_plain(value) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _is_plain(text: str) -> bool:
    return bool(text.strip()) and text == text.strip() and text.isprintable()


def seconds(ms: int | None) -> str:
    """A duration in words: `0.4 s`, `14.5 s`, `15 min`."""
    if ms is None:
        return "?"
    if ms >= 120_000:
        return f"{ms / 60_000:.3g} min"
    return f"{ms / 1_000:.1f} s"


def plural(count: int, word: str) -> str:
    """`1 scenario`, `2 scenarios`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def verdict_word(content: Content, row: ClauseRow) -> str:
    """The word for a clause: what fails and leaves the gate open is a warning, an absent hazard was avoided."""
    if row.verdict == "fail":
        return "FAIL" if content.gates(row.failed_level) else "warn"
    if row.warnings and row.verdict in ("pass", "known"):
        return "warn"
    if row.known and row.verdict == "pass":
        return "known"
    if row.level == "hazard" and row.verdict == "pass":
        return "avoided"
    return row.verdict


def evidence(row: ClauseRow) -> str:
    """What a verdict rests on: `9 scenarios, 3 over the socket, 1 check`."""
    parts = []
    if row.scenarios:
        parts.append(plural(row.scenarios, "scenario"))
    if row.socket:
        parts.append(f"{row.socket} over the socket")
    if row.checks:
        parts.append(plural(row.checks, "check"))
    if row.skipped:
        parts.append(f"{len(row.skipped)} skipped")
    if row.errored:
        parts.append(f"{len(row.errored)} errored")
    if row.failed:
        parts.append(f"{_runs(row.failed)} failed")
    if row.warnings:
        parts.append(plural(_runs(row.warnings), "warning"))
    if row.known:
        parts.append(f"{_runs(row.known)} known to fail")
    if row.cost_ms is not None:
        parts.append(f"up to {seconds(row.cost_ms)} lost")
    return ", ".join(parts) or "no evidence"


def _runs(failures: Sequence[Failure]) -> int:
    return len({(failure.scenario, failure.host) for failure in failures})


def summary(content: Content) -> str:
    """The last line: what holds, on how much evidence, in what time."""
    passed = dict.fromkeys(("must", "should", "hazard"), 0)
    all_of = dict(passed)
    for row in content.rows:
        all_of[row.level] += 1
        passed[row.level] += row.verdict == "pass"
    hazards = sum(row.verdict == "hazard" for row in content.rows)
    parts = [f"{passed[level]} of {all_of[level]} {level}" for level in ("must", "should") if all_of[level]]
    if all_of["hazard"]:
        parts.append(plural(hazards, "hazard"))
    known = content.baseline
    if known is not None:
        parts += [f"{known.failures} known to fail"] if known.failures else []
        parts += [f"{len(known.stale)} of the baseline to take out"] if known.stale else []
    totals = content.totals
    over = sum(verdict.host == "socket" for verdict in content.verdicts)
    work = [plural(totals.scenarios, "scenario"), f"{plural(totals.runs, 'run')} ({over} over the socket)"]
    work += [plural(totals.checks, "check")] if totals.checks else []
    skipped = sum(verdict.verdict == "skipped" for verdict in content.verdicts)
    work += [f"{skipped} skipped"] if skipped else []
    return f"{content.outcome}: {', '.join(parts)}; {', '.join(work)}; {content.seconds:.1f} s"
