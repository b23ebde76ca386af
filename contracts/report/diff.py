"""Two JSON reports side by side: what changed its verdict, what is new, what is gone, what became slower. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from contracts.report.as_json import SCHEMA

SLOWER: Final = 2.0
SLOWER_S: Final = 1.0
"""A run is slower when it takes this many times as long, and at least so much longer (seconds)."""
HOLDS: Final = ("pass", "avoided", "hazard")
"""Verdicts of what does not fail: a hazard is the contract's own, and no fault of the system under test."""

Change = Literal["worse", "better", "changed", "gone", "new", "slower"]
_ORDER: Final[Sequence[Change]] = ("worse", "gone", "changed", "slower", "better", "new")


class ReportError(Exception):
    """A text that is no report of `check --format json`; the message says why."""


class _Clause(msgspec.Struct, frozen=True):
    id: str
    level: str
    verdict: str


class _Run(msgspec.Struct, frozen=True):
    host: str
    verdict: str
    seconds: float
    id: str = ""


class _Scenario(msgspec.Struct, frozen=True):
    id: str
    runs: list[_Run]


class _Report(msgspec.Struct, frozen=True):
    outcome: str
    clauses: list[_Clause]
    scenarios: list[_Scenario]
    checks: list[_Run]


@dataclass(frozen=True, slots=True)
class Report:
    """What of a report is compared: the verdict of each clause, verdict and seconds of each run (id, host)."""

    outcome: str
    clauses: Mapping[str, str]
    runs: Mapping[tuple[str, str], tuple[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not as it was. `before` and `after` are verdicts ("" for nothing), or durations of a run."""

    change: Change
    kind: Literal["clause", "run"]
    name: str
    host: str = ""
    before: str = ""
    after: str = ""

    @property
    def is_regression(self) -> bool:
        """Whether something that held does not hold any more, or is not there any more."""
        return self.change == "worse" or (self.change == "gone" and self.before in HOLDS)


def read_report(text: str) -> Report:
    """The report in a text. Raises `ReportError` for what is no JSON, no report, or of another version."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ReportError(f"is not JSON{where}; legion-contracts check --format json writes such a file") from error
    if not isinstance(told, dict) or "schema" not in told or "clauses" not in told or "scenarios" not in told:
        raise ReportError("is no report of legion-contracts check --format json")
    if told["schema"] != SCHEMA:
        raise ReportError(f"has schema {told['schema']!r}; this version reads {SCHEMA}")
    try:
        report = msgspec.convert(told, _Report)
    except msgspec.ValidationError as error:
        raise ReportError(f"is no report of legion-contracts check --format json: {error}") from error
    runs = {(one.id, run.host): (run.verdict, run.seconds) for one in report.scenarios for run in one.runs}
    runs |= {(one.id, one.host): (one.verdict, one.seconds) for one in report.checks}
    return Report(report.outcome, {one.id: one.verdict for one in report.clauses}, runs)


def compare(before: Report, after: Report) -> list[Difference]:
    """Everything that changed, regressions first; clauses before runs, each in the order of the reports."""
    found = [*_clauses(before, after), *_runs(before, after)]
    return sorted(found, key=lambda one: (not one.is_regression, _ORDER.index(one.change), one.kind))


def _clauses(before: Report, after: Report) -> Iterator[Difference]:
    for name in dict.fromkeys((*before.clauses, *after.clauses)):
        was, now = before.clauses.get(name, ""), after.clauses.get(name, "")
        if was != now:
            yield Difference(change=_change(was, now), kind="clause", name=name, before=was, after=now)


def _runs(before: Report, after: Report) -> Iterator[Difference]:
    for name, host in dict.fromkeys((*before.runs, *after.runs)):
        (was, took), (now, takes) = before.runs.get((name, host), ("", 0.0)), after.runs.get((name, host), ("", 0.0))
        if was != now:
            yield Difference(change=_change(was, now), kind="run", name=name, host=host, before=was, after=now)
        elif takes >= took * SLOWER and takes - took >= SLOWER_S:
            yield Difference(
                change="slower", kind="run", name=name, host=host, before=f"{took:.1f} s", after=f"{takes:.1f} s"
            )


def _change(was: str, now: str) -> Change:
    if not was:
        return "new"
    if not now:
        return "gone"
    if was == "known" and now in ("fail", "errored"):
        return "worse"  # it failed in what a baseline named, and now in more than that
    if (was in HOLDS) is not (now in HOLDS):
        return "worse" if was in HOLDS else "better"
    return "changed"


def diff_as_json(names: tuple[str, str], reports: tuple[Report, Report], found: Sequence[Difference]) -> str:
    """The comparison as one JSON object, ended by a line feed."""
    told: dict[str, Any] = {
        "schema": SCHEMA,
        "before": {"file": names[0], "outcome": reports[0].outcome},
        "after": {"file": names[1], "outcome": reports[1].outcome},
        "regressions": sum(one.is_regression for one in found),
        "differences": [_entry(one) for one in found],
    }
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def _entry(one: Difference) -> dict[str, Any]:
    host = {"host": one.host} if one.kind == "run" else {}
    return {
        "change": one.change,
        "regression": one.is_regression,
        "kind": one.kind,
        "id": one.name,
        **host,
        "before": one.before or None,
        "after": one.after or None,
    }


def diff_summary(found: Sequence[Difference]) -> str:
    """The last line: how many of each change, and whether any is a regression."""
    if not found:
        return "the same: every clause and every run has the verdict that it had"
    counts = {change: sum(one.change == change for one in found) for change in _ORDER}
    words = ", ".join(f"{count} {change}" for change, count in counts.items() if count)
    bad = sum(one.is_regression for one in found)
    return f"{f'{bad} regressed' if bad else 'nothing regressed'}: {words}"
