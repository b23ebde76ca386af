"""`legion-contracts check`: run everything and say clause by clause what holds."""

import dataclasses
import sys
from pathlib import Path
from typing import IO, Any, get_args

import click

from contracts.commands.driven import HELP, asked, host_of
from contracts.commands.known import baseline_in, judged, refuse_unwritable_baseline, rewritten
from contracts.commands.output import BrokenError, draw, refuse_unwritable
from contracts.commands.pages import command_line, make_folder, write_page
from contracts.commands.selecting import engine_of, selected
from contracts.judging.tally import exit_code
from contracts.loading.selection import Selection
from contracts.report.content import Content
from contracts.running.engine import Engine
from contracts.running.surroundings import reader_may_leave
from contracts.scenario import HostName, Level

MAX_WORKERS = 64


@click.command
@click.option("--clause", "ids", multiple=True, metavar="ID", help="Only this clause (repeatable), such as D8.")
@click.option(
    "--scenario",
    "globs",
    multiple=True,
    metavar="GLOB|FILE",
    help="Only these scenarios: an id, a glob, a file, a folder.",
)
@click.option("--sut", default="python", metavar="CMD", help=HELP)
@click.option("--host", type=click.Choice(get_args(HostName)), help="Only runs on this host; leaves out checks.")
@click.option("--level", type=click.Choice(get_args(Level)), help="Only clauses of this level.")
@click.option("--strict", is_flag=True, help="A should that fails counts like a must.")
@click.option("--require", is_flag=True, help="A check that was skipped counts as failed.")
@click.option("--workers", type=click.IntRange(0, MAX_WORKERS), help="Side by side; 0 = in this process.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "junit", "github"]), default="table", show_default=True
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
@click.option("--html", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write a page as well.")
@click.option(
    "--baseline",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Failures that are known: shown, and no reason to fail. What holds again has to be taken out.",
)
@click.option(
    "--write-baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what fails now as a baseline.",
)
@click.option("--show-secrets", is_flag=True, help="Report what looks like a secret as it is; it is hidden otherwise.")
@click.pass_context
def check(
    context: click.Context,
    ids: tuple[str, ...],
    globs: tuple[str, ...],
    sut: str,
    host: HostName | None,
    level: Level | None,
    strict: bool,
    require: bool,
    workers: int | None,
    form: str,
    out: Path | None,
    html: Path | None,
    baseline: Path | None,
    write_baseline: Path | None,
    show_secrets: bool,
) -> None:
    """Run the scenarios and checks, and say clause by clause what holds.

    \b
    legion-contracts check                                  the supervisor built in
    legion-contracts check --clause D8 --host memory        one clause, in virtual time
    legion-contracts check --sut "node my-driver.mjs"       yours, in any language (see: legion-contracts sut)
    """
    from contracts.report.redacted import without_secrets

    refuse_unwritable(out)
    refuse_unwritable_baseline(write_baseline)
    make_folder(html)
    engine, selection = asked(sut, engine_of(context), selected(ids, globs, host_of(sut, host), level), host)
    known = baseline_in(baseline, selection, engine)
    keep = html is not None
    content = _run(selection, engine, workers=workers, strict=strict, require=require, keep_records=keep)
    content = judged(content, known, baseline, require=require)
    if write_baseline is not None:
        content = rewritten(content, known, write_baseline, require=require)
    content = dataclasses.replace(content, command=command_line(context))
    if not show_secrets:
        content = without_secrets(content)
    with reader_may_leave():
        _emit(content, form, out)
    if html is not None:
        write_page(content, html)
    raise SystemExit(exit_code(content.outcome))


def _run(selection: Selection, engine: Engine, **options: Any) -> Content:
    from contracts.running.gate import job_count, run_gate
    from contracts.running.progress import progress

    total = job_count(selection, engine)
    if total == 0:
        raise click.UsageError("nothing is left to run after these filters")
    try:
        with progress(total, shown=sys.stderr.isatty()) as tell:
            return run_gate(selection, engine, on_verdict=tell, **options)
    except Exception as error:
        raise BrokenError(f"the run broke: {type(error).__name__}: {error}") from error


def _emit(content: Content, form: str, out: Path | None) -> None:
    from contracts.report.content import summary

    if out is None:
        if form == "table":
            _table(content, sys.stdout)
        else:
            click.echo(_text(content, form), nl=False)
        return
    try:
        with out.open("w", encoding="utf-8") as stream:
            if form == "table":
                _table(content, stream)
            else:
                stream.write(_text(content, form))
    except OSError as error:
        raise BrokenError(f"{out} cannot be written: {error.strerror}") from error
    click.echo(summary(content))


def _table(content: Content, stream: IO[str]) -> None:
    from contracts.report.as_table import as_table

    draw(stream, lambda console: as_table(content, console))


def _text(content: Content, form: str) -> str:
    from contracts.loading import line_in
    from contracts.report import as_github, as_json, as_junit

    if form == "json":
        return as_json(content)
    return as_junit(content, line_in) if form == "junit" else as_github(content, line_in)
