"""The baseline of `check`: read and checked before the run, applied to it, written again when asked for."""

import dataclasses
from pathlib import Path
from typing import get_args

import click
import msgspec

from contracts.clauses import load_clauses
from contracts.judging.baseline import Baseline, renewed
from contracts.judging.tally import BAD_USAGE
from contracts.loading import ScenarioError, load_all
from contracts.loading.known import baseline_text, check_baseline, entry_lines, read_baseline
from contracts.loading.selection import Selection
from contracts.report.content import Content, plural
from contracts.report.known import with_baseline
from contracts.running.engine import Engine
from contracts.running.surroundings import unwritable
from contracts.scenario import HostName, Level, Scenario


def baseline_in(path: Path | None, selection: Selection, engine: Engine) -> Baseline | None:
    """The baseline in a file, None without one. Exits with 2 after naming everything that is wrong with it."""
    if path is None:
        return None
    clauses = load_clauses()
    scenarios = {entry.scenario.id: entry.scenario for entry in selection.entries}
    try:
        baseline = read_baseline(path)
        if any(entry.scenario not in scenarios for entry in baseline.known if entry.host != "check"):
            scenarios = {one.id: _anywhere(one) for one in load_all(clauses=clauses).scenarios} | scenarios
        check_baseline(baseline, path, scenarios, list(engine.checks), clauses)
    except ScenarioError as error:
        for problem in error.problems:
            click.echo(f"Error: --baseline: {problem}", err=True)
        raise SystemExit(BAD_USAGE) from error
    return baseline


def _anywhere(scenario: Scenario) -> Scenario:
    """A scenario that is not selected: a driver would play it over the socket, whatever it says itself."""
    return msgspec.structs.replace(scenario, hosts=list(get_args(HostName)))


def refuse_unwritable_baseline(path: Path | None) -> None:
    """Raise click's UsageError when the file of `--write-baseline` cannot be written."""
    if path is not None and (why := unwritable(path)):
        raise click.UsageError(f"--write-baseline: {why}")


def judged(content: Content, baseline: Baseline | None, path: Path | None, *, require: bool) -> Content:
    """The run, judged with the baseline if there is one."""
    if baseline is None or path is None:
        return content
    lines = entry_lines(path, range(len(baseline.known)))
    return with_baseline(content, baseline, path, lines, require=require)


def rewritten(content: Content, before: Baseline | None, path: Path, *, require: bool) -> Content:
    """Write the baseline that this run would pass with, say what changed, and judge the run with it."""
    gating: tuple[Level, ...] = ("must", "should") if content.strict else ("must",)
    levels = {row.id: row.level for row in content.rows}
    now = renewed(before, content.verdicts, levels, gating)
    try:
        path.write_text(baseline_text(now), encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--write-baseline: {path} cannot be written: {error.strerror}") from error
    old = {entry.key for entry in before.known} if before else set()
    new = {entry.key for entry in now.known}
    changed = f"{len(new - old)} new, {len(old - new)} taken out"
    click.echo(f"{path}: {plural(len(new), 'known failure')} written ({changed})", err=True)
    without = dataclasses.replace(content, baseline=None)
    return judged(without, now, path, require=require)
