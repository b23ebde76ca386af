"""`legion-contracts violations`: plant every violation and say which checks caught it."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from contracts.commands.output import BrokenError, echo
from contracts.judging.tally import BAD_USAGE
from contracts.running.surroundings import reader_may_leave

if TYPE_CHECKING:
    from contracts.violations import Violation

MAX_WORKERS = 64
MAX_CONTROLS = 1_000
DEFAULT_CONTROLS = 2
TARGETS = ("supervisor", "core", "suite")


@click.command(
    epilog="""\b
Examples:
  legion-contracts violations                            the whole matrix
  legion-contracts violations --only 'settle-*'          some of it, without controls
  legion-contracts violations --target suite             breaks of the suite's own parts
  legion-contracts violations --controls 20              and 20 whole runs that must find nothing
  legion-contracts violations --format json | jq .missed
"""
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--only", "globs", multiple=True, metavar="GLOB", help="Only violations with such an id (repeatable).")
@click.option("--target", type=click.Choice(TARGETS), help="Only violations of this target.")
@click.option("--workers", type=click.IntRange(1, MAX_WORKERS), help="Looks side by side; default: one a processor.")
@click.option(
    "--controls",
    type=click.IntRange(0, MAX_CONTROLS),
    help=f"Whole runs of a correct supervisor, which must find nothing; default: {DEFAULT_CONTROLS}, "
    "and none with --only or --target.",
)
@click.option("--thorough", is_flag=True, help="Make every audit for every violation, which takes longer.")
@click.option("--sut", metavar="CMD", default=None, help="A second correct supervisor, for as many controls.")
@click.pass_context
def violations(
    context: click.Context,
    form: str,
    globs: tuple[str, ...],
    target: str | None,
    workers: int | None,
    controls: int | None,
    thorough: bool,
    sut: str | None,
) -> None:
    """Plant violations of the contract, one at a time, each in a copy of its own, and say what caught them.

    Ends with 0 when none was missed, nothing else turned red without a written reason, and no control complained; with
    1 otherwise.
    """
    from contracts.violations import FOLDER, as_json, look_count, run_matrix
    from contracts.violations.showing import as_lines

    every = _loaded(context.obj if isinstance(context.obj, Path) else FOLDER)
    chosen = [one for one in every if _is_chosen(one, globs, target)]
    if not chosen:
        raise click.UsageError(f"no violation is called {' or '.join(map(repr, globs)) or 'so'}{_of(target)}")
    _refuse_no_driver(sut)
    count = controls if controls is not None else 0 if globs or target else DEFAULT_CONTROLS
    total = look_count(chosen, count * (2 if sut else 1))
    try:
        with _progress(total, shown=sys.stderr.isatty()) as tell:
            matrix = run_matrix(
                chosen,
                every,
                workers=workers,
                controls=count,
                sut=sut or "",
                depth="thorough" if thorough else "usual",
                on_done=tell,
            )
    except OSError as error:
        raise BrokenError(f"the copies cannot be made: {error}") from error
    with reader_may_leave():
        if form == "json":
            click.echo(json.dumps(as_json(matrix), indent=2, ensure_ascii=False))
        else:
            for line in as_lines(matrix):
                echo(line)
    raise SystemExit(0 if matrix.holds else 1)


def _loaded(folder: Path) -> "list[Violation]":
    """Every violation that there is. Exits with 2 after naming what is wrong with a file."""
    from contracts.loading import ScenarioError
    from contracts.violations import ViolationsError, load_checked

    try:
        return load_checked(folder)
    except (ViolationsError, ScenarioError) as error:
        for problem in error.problems:
            click.echo(f"Error: {problem}", err=True)
        raise SystemExit(BAD_USAGE) from error


def _refuse_no_driver(sut: str | None) -> None:
    """Raise UsageError for a command that starts no program, `BrokenError` for one that starts no driver."""
    if sut is None:
        return
    from contracts.sut.command import CommandError, read_command
    from contracts.sut.introduction import BadDriverError, NoDriverError, introduce
    from contracts.sut.stdio import StdioFactory

    try:
        introduce(StdioFactory(read_command(sut)))
    except (CommandError, NoDriverError) as error:
        raise click.UsageError(f"--sut: {error}") from error
    except BadDriverError as error:
        raise BrokenError(f"--sut {sut}: {error}") from error


def _is_chosen(one: "Violation", globs: tuple[str, ...], target: str | None) -> bool:
    return (not globs or any(fnmatchcase(one.id, glob) for glob in globs)) and target in (None, one.target)


def _of(target: str | None) -> str:
    return f", of target {target}" if target else ""


@contextmanager
def _progress(total: int, *, shown: bool) -> Iterator[Callable[[str, bool], None]]:
    """Gives a function that is told of each look as it comes in. The bar is gone when the block ends."""
    if not shown:
        yield lambda _, __: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("copying", total=total)
        yield lambda name, ok: bar.update(task, advance=1, description=name if ok else f"{name} (no result)")
