"""`legion-contracts fuzz --exhaustive` and `--bench`: what they print, and their exit codes.

Exit codes: 0 no disagreement, 1 a disagreement, 2 bad usage or a saved search that cannot be gone on with, 3 it broke.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from contracts.fuzz.alphabet import MAX_STEPS, spelled
from contracts.fuzz.as_scenario import as_scenario, keep, named, notes
from contracts.fuzz.exhaustive import Tally, count
from contracts.fuzz.planted import PLANTED
from contracts.fuzz.schedule import cases
from contracts.fuzz.search import Report, SavedError, Search, SearchError, run

Form = Literal["table", "json"]
BROKE = 3


class BrokenError(click.ClickException):
    """The search itself broke: nothing was found out."""

    exit_code = BROKE


def run_exhaustive(
    steps: int,
    *,
    form: Form = "table",
    workers: int | None = None,
    saved: Path | None = None,
    unmerged: bool = False,
    plant: str = "",
    keep_in: Path | None = None,
) -> int:
    """Try every history of so many steps, print what came of it, and return the exit code.

    `plant` names a wrong rule to search instead of the supervisor's own. A disagreement is written as a scenario below
    `keep_in`. Raises click's UsageError, and BrokenError.
    """
    if not 1 <= steps <= MAX_STEPS:
        raise click.UsageError(f"--exhaustive: from 1 to {MAX_STEPS} steps, not {steps}")
    if plant and plant not in {one.name for one in PLANTED}:
        raise click.UsageError(f"no planted rule {plant!r}; there are {', '.join(one.name for one in PLANTED)}")
    search = Search(steps=steps, unmerged=unmerged, subject=plant)
    try:
        with _progress(steps, shown=sys.stderr.isatty()) as tell:
            report = run(search, workers=workers, saved=saved, on_case=tell)
    except SavedError as error:
        raise click.UsageError(str(error)) from error
    except SearchError as error:
        raise BrokenError(str(error)) from error
    except KeyboardInterrupt:
        if saved is not None:
            click.echo(f"stopped; the same command goes on with {saved}", err=True)
        raise
    kept = _keep(report, keep_in)
    if form == "json":
        click.echo(json.dumps(_document(report, kept), ensure_ascii=False))
    else:
        for line in _lines(report, kept):
            click.echo(line)
    return 1 if report.disagreements else 0


def run_bench(*, form: Form = "table") -> int:
    """Measure the searches, print the figures, and return the exit code: 1 when one does not reach its target."""
    from contracts.fuzz.bench import bench

    result = bench(lambda what: click.echo(f"fuzz --bench: {what}", err=True))
    if form == "json":
        document = msgspec.to_builtins(result)
        for shown, figure in zip(document["figures"], result.figures, strict=True):
            shown["holds"] = figure.holds
        click.echo(json.dumps(document, ensure_ascii=False))
        return 0 if result.holds else 1
    for figure in result.figures:
        word = "at least" if figure.least else "at most"
        bar = f"{word} {figure.target:,g}" if figure.target is not None else ""
        holds = "" if figure.target is None else "ok  " if figure.holds else "MISS"
        click.echo(f"{holds:4} {figure.value:>16,.2f} {figure.unit:12} {bar:20} {figure.says}")
    for one in result.found:
        took = f"{one.seconds:.2f} s" if one.seconds is not None else "not found"
        click.echo(f"     {one.plant:26} {took:>10}  {' | '.join(one.steps)}")
    return 0 if result.holds else 1


def _document(report: Report, kept: Path | None) -> dict[str, Any]:
    found = report.first
    first = None
    if found is not None:
        first = {
            "steps": spelled(found.steps),
            "case": found.case.name,
            "objections": list(found.objections),
            "scenario": str(kept) if kept is not None else None,
        }
    return {
        "schema": 1,
        "steps": report.search.steps,
        "histories": report.histories,
        "merged": report.merged,
        "seconds": round(report.seconds, 3),
        "disagreements": report.disagreements,
        "first": first,
    }


def _lines(report: Report, kept: Path | None) -> Iterator[str]:
    steps = report.search.steps
    resumed = f" ({report.resumed:,} of them in an earlier run)" if report.resumed else ""
    yield f"every history of {steps} steps, in {len(cases(steps))} cases of poll phase and timeout"
    yield f"  tried          {report.histories:,}{resumed}"
    yield f"  merged         {report.merged:,} (the same as one of the {report.judged:,} that were judged alone)"
    yield f"  took           {report.seconds:.1f} s"
    yield f"  disagreements  {report.disagreements:,}"
    if report.first is None:
        return
    yield "the first one, shrunk:"
    for note in notes(report.first):
        yield f"  {note}"
    if kept is not None:
        yield f"run it:   legion-contracts check --scenario {kept}"
        yield f"draw it:  legion-contracts show {kept}"


def _keep(report: Report, folder: Path | None) -> Path | None:
    if report.first is None or folder is None:
        return None
    name = named(" ".join(["found", *spelled(report.first.steps), report.first.case.phase.name]))
    try:
        return keep(folder, as_scenario(report.first, name), notes(report.first))
    except OSError as error:
        raise BrokenError(f"{folder} cannot be written: {error.strerror}") from error


@contextmanager
def _progress(steps: int, *, shown: bool) -> Iterator[Callable[[Tally], None]]:
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    tried = wrong = 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=len(cases(steps)))

        def tell(tally: Tally) -> None:
            nonlocal tried, wrong
            tried += tally.histories
            wrong += tally.disagreements
            said = f"{tried:,} of {count(steps):,} histories" + (f", {wrong:,} disagreements" if wrong else "")
            bar.update(task, advance=1, description=said)

        yield tell
