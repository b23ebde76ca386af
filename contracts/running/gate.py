"""One run of the gate: run what was selected, judge it, and gather what the reports are made from."""

import platform
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from contracts.judging.judge import judge
from contracts.judging.tally import clause_table, outcome, totals
from contracts.loading import SCENARIOS
from contracts.loading.selection import Selection
from contracts.records import RunRecord, RunVerdict
from contracts.report import Content
from contracts.running.engine import Engine

OnVerdict = Callable[[RunVerdict], None]


def job_count(selection: Selection, engine: Engine) -> int:
    """How many runs and checks a selection makes."""
    runs = sum(len(set(scenario.hosts) & set(selection.hosts)) for scenario in selection.scenarios)
    return runs + len(check_ids(selection, engine))


def check_ids(selection: Selection, engine: Engine) -> list[str]:
    """The executable checks of the selected clauses."""
    return [name for name, clause in engine.checks.items() if selection.checks and clause in selection.clauses]


def run_gate(
    selection: Selection,
    engine: Engine,
    *,
    workers: int | None = None,
    strict: bool = False,
    require: bool = False,
    on_verdict: OnVerdict | None = None,
    keep_records: bool = False,
) -> Content:
    """Run and judge. `on_verdict` hears of each run as it comes in. `keep_records`: a report is to draw the runs."""
    by_id = {scenario.id: scenario for scenario in selection.scenarios}

    def judged(result: RunRecord | RunVerdict) -> RunVerdict:
        return result if isinstance(result, RunVerdict) else judge(by_id[result.scenario], result)

    def on_result(result: RunRecord | RunVerdict) -> None:
        if on_verdict is not None:
            on_verdict(judged(result))

    when = datetime.now(UTC).isoformat(timespec="seconds")
    began = time.monotonic()
    results = engine.run_all(
        selection.scenarios,
        workers=workers,
        on_result=on_result,
        hosts=selection.hosts,
        checks=check_ids(selection, engine),
    )
    verdicts = [judged(result) for result in results]
    rows = clause_table(selection.clauses, verdicts, strict=strict)
    complete = not selection.filtered or selection.by_clause
    files = {entry.scenario.id: entry.path for entry in selection.entries}
    return Content(
        rows=rows,
        verdicts=verdicts,
        totals=totals(rows, verdicts),
        outcome=outcome(rows, verdicts, strict=strict, require=require, whole=complete),
        strict=strict,
        filtered=selection.filtered,
        complete=complete,
        sut=_sut(engine),
        host=_host(selection),
        files=files,
        foreign=frozenset(name for name, path in files.items() if not _is_ours(path)),
        seconds=time.monotonic() - began,
        began=when,
        records=_records(results) if keep_records else {},
        scenarios=by_id if keep_records else {},
    )


def _records(results: Sequence[RunRecord | RunVerdict]) -> dict[tuple[str, str], RunRecord]:
    return {(one.scenario, one.host): one for one in results if isinstance(one, RunRecord)}


def _is_ours(path: Path) -> bool:
    return path.resolve().is_relative_to(SCENARIOS.resolve())


def _sut(engine: Engine) -> dict[str, Any]:
    return dict(engine.about) or {"name": engine.sut, "package": "legion_terminal", "version": _version()}


def _host(selection: Selection) -> dict[str, Any]:
    return {
        "core": "hc_sim",
        "hosts": list(selection.hosts),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _version() -> str:
    try:
        return version("legion-contracts")
    except PackageNotFoundError:
        return "unknown"
