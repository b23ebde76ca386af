"""The command `legion-contracts`.

Exit codes: 0 it holds, 1 a must fails (or a should under --strict), 2 bad usage or a bad scenario file, 3 the host, the
system under test or the harness itself broke.
"""

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, get_args

import click

from contracts.clauses import load_clauses
from contracts.fuzz.cli import fuzz
from contracts.judging.tally import BAD_USAGE, ERRORED, clause_table, exit_code, outcome
from contracts.loading import SCENARIOS, Catalogue, ScenarioError, lint, lint_summary, load_all
from contracts.loading.selection import NothingSelectedError, Selection, is_path, select
from contracts.report.content import Content
from contracts.running.engine import Engine, real_engine
from contracts.running.surroundings import (
    INTERRUPTED,
    READER_GONE,
    SurroundingsError,
    drop_output,
    reader_may_leave,
    settle_in,
    unwritable,
)
from contracts.scenario import HostName, Level, Scenario

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 120
"""Width of a report that does not go to a terminal (COLUMNS overrides it)."""
MAX_WORKERS = 64


class _Commands(click.Group):
    """A group in which an error that nobody foresaw ends with the code for a broken harness, not for a failure."""

    def invoke(self, context: click.Context) -> Any:
        try:
            settle_in()
            return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except SurroundingsError as error:
            raise click.UsageError(str(error)) from error
        except BrokenPipeError:
            drop_output()
            raise SystemExit(READER_GONE) from None
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise SystemExit(INTERRUPTED) from None
        except Exception as error:
            raise _Broken(f"this is a bug: {type(error).__name__}: {error}") from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="legion-contracts", prog_name="legion-contracts")
def main() -> None:
    """Check the programs that supervise coding agents against their contracts, on a fake hc core."""


@main.command(short_help="Run everything and say clause by clause what holds.")
@click.option("--clause", "ids", multiple=True, metavar="ID", help="Only this clause (repeatable), such as D8.")
@click.option(
    "--scenario",
    "globs",
    multiple=True,
    metavar="GLOB|FILE",
    help="Only these scenarios: an id, a glob, a file, a folder.",
)
@click.option("--host", type=click.Choice(get_args(HostName)), help="Only runs on this host; leaves out checks.")
@click.option("--level", type=click.Choice(get_args(Level)), help="Only clauses of this level.")
@click.option("--strict", is_flag=True, help="A should that fails counts like a must.")
@click.option("--require", is_flag=True, help="A check that was skipped counts as failed.")
@click.option("--workers", type=click.IntRange(0, MAX_WORKERS), help="Side by side; 0 = in this process.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "junit", "github"]), default="table", show_default=True
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
@click.option("--show-secrets", is_flag=True, help="Report what looks like a secret as it is; it is hidden otherwise.")
@click.pass_context
def check(
    context: click.Context,
    ids: tuple[str, ...],
    globs: tuple[str, ...],
    host: HostName | None,
    level: Level | None,
    strict: bool,
    require: bool,
    workers: int | None,
    form: str,
    out: Path | None,
    show_secrets: bool,
) -> None:
    """Run the scenarios and checks, and say clause by clause what holds."""
    from contracts.report.redacted import without_secrets

    _refuse_unwritable(out)
    selection = _select(ids, globs, host, level)
    engine = _engine(context)
    content = _run(selection, engine, workers=workers, strict=strict, require=require)
    if not show_secrets:
        content = without_secrets(content)
    with reader_may_leave():
        _emit(content, form, out)
    raise SystemExit(exit_code(content.outcome))


@main.command(short_help="List the clauses, or tell all about some.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.argument("ids", nargs=-1, metavar="[ID]...")
def clauses(form: str, ids: tuple[str, ...]) -> None:
    """List the clauses: id, level and statement. With ids, everything that is known of them."""
    from contracts.report.as_clauses import clauses_as_json, print_clauses

    known = load_clauses()
    try:
        chosen = select(Catalogue(), known, ids=ids).clauses
    except NothingSelectedError as error:
        raise click.UsageError(str(error)) from error
    if form == "json":
        click.echo(clauses_as_json(chosen), nl=False)
    else:
        _draw(sys.stdout, lambda console: print_clauses(chosen, console, details=bool(ids)))


@main.command(short_help="Run one scenario and draw it.")
@click.argument("scenario", metavar="SCENARIO")
@click.option("--host", type=click.Choice(get_args(HostName)), help="Default: the first host of the scenario.")
@click.option("--show-secrets", is_flag=True, help="Draw what looks like a secret as it is; it is hidden otherwise.")
@click.pass_context
def show(context: click.Context, scenario: str, host: HostName | None, show_secrets: bool) -> None:
    """Run one scenario and draw it: the drive, each child's turn and status, the calls, the poll that settled.

    Ends as a check of it would: 1 when a must fails, 0 for a warning.
    """
    from contracts.judging.judge import judge
    from contracts.picture import draw
    from contracts.report.redacted import record_without_secrets, verdict_without_secrets

    found = _select((), (scenario,), host, None).scenarios
    if len(found) > 1:
        raise click.UsageError(
            f"{scenario!r} matches {len(found)} scenarios: {', '.join(one.id for one in found[:5])} ..."
        )
    one: Scenario = found[0]
    try:
        record = _engine(context).run_scenario(one, host or one.hosts[0])
    except Exception as error:
        raise _Broken(f"the run broke: {type(error).__name__}: {error}") from error
    verdict = judge(one, record)
    if not show_secrets:
        record, verdict = record_without_secrets(record), verdict_without_secrets(verdict)
    for line in draw(one, record, verdict, _width(sys.stdout)):
        _echo(line)
    said = outcome(clause_table(load_clauses(), [verdict]), [verdict], whole=False)
    raise SystemExit(exit_code(said))


@main.command("lint", short_help="Check scenario files without running them.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def lint_files(paths: tuple[Path, ...]) -> None:
    """Check scenario files without running them; the product's own when no path is given."""
    try:
        good, lines = lint(list(paths) or [SCENARIOS])
    except ScenarioError as error:
        good, lines = 0, [str(problem) for problem in error.problems]
    for line in lines:
        click.echo(line, err=True)
    click.echo(lint_summary(good, len(lines)))
    raise SystemExit(BAD_USAGE if lines else 0)


@main.command(short_help="Ask a core every question of JSON-RPC.")
@click.option("--socket", "path", type=click.Path(path_type=Path), help="Ask the core that listens at this socket.")
def vectors(path: Path | None) -> None:
    """Run the vectors of JSON-RPC 2.0 on the fake core, or on another one, and say of each whether it holds."""
    from contracts.report.as_vectors import vectors_as_lines
    from contracts.vectors import fake_wire, load_vectors, run_vectors, socket_wire

    try:
        outcomes = run_vectors(load_vectors(), fake_wire if path is None else socket_wire(path))
    except OSError as error:
        raise _Broken(f"{path}: {error.strerror or error}") from error
    for line in vectors_as_lines(outcomes):
        _echo(line)
    raise SystemExit(1 if any(outcome.holds is False for outcome in outcomes) else 0)


@main.command(short_help="Compare or rewrite the JSON Schemas.")
@click.option("--write", "do_write", is_flag=True, help="Write the files again.")
def schema(do_write: bool) -> None:
    """Compare the committed JSON Schemas with the types, or write them again."""
    from contracts.loading.schema import FOLDER, drift, write

    if do_write:
        changed = write()
        for path in changed:
            click.echo(f"written: {path}")
        click.echo(f"{len(changed)} files changed in {FOLDER}")
        return
    stale = drift()
    for name in stale:
        click.echo(f"out of date: {name} (run legion-contracts schema --write)", err=True)
    click.echo("the schemas are out of date" if stale else f"the schemas in {FOLDER} agree with the types")
    raise SystemExit(1 if stale else 0)


@main.command("import-recording", short_help="Turn recordings into scenario files.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for the scenarios."
)
def import_recording(file: Path, out: Path) -> None:
    """Turn recorded status timelines of real programs into scenario files."""
    from contracts import importing

    try:
        written = importing.write(importing.import_recording(file), out)
    except (importing.RecordingError, OSError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{len(written)} scenarios written to {out}")


main.add_command(fuzz)

# ------------------------------------------------------------------ the parts


class _Broken(click.ClickException):
    """The harness itself broke: neither the usage nor the system under test is to blame."""

    exit_code = ERRORED


def _engine(context: click.Context) -> Engine:
    return context.obj if isinstance(context.obj, Engine) else real_engine()


def _select(ids: Sequence[str], globs: Sequence[str], host: HostName | None, level: Level | None) -> Selection:
    try:
        known = load_clauses()
        only_paths = bool(globs) and all(is_path(glob) for glob in globs)
        catalogue = Catalogue() if only_paths else load_all(clauses=known)
        return select(catalogue, known, ids=ids, globs=globs, host=host, level=level)
    except NothingSelectedError as error:
        raise click.UsageError(str(error)) from error
    except ScenarioError as error:
        for problem in error.problems:
            click.echo(f"Error: {problem}", err=True)
        raise SystemExit(BAD_USAGE) from error


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
        raise _Broken(f"the run broke: {type(error).__name__}: {error}") from error


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
        raise _Broken(f"{out} cannot be written: {error.strerror}") from error
    click.echo(summary(content))


def _table(content: Content, stream: IO[str]) -> None:
    from contracts.report.as_table import as_table

    _draw(stream, lambda console: as_table(content, console))


def _text(content: Content, form: str) -> str:
    from contracts.loading import line_in
    from contracts.report import as_github, as_json, as_junit

    if form == "json":
        return as_json(content)
    return as_junit(content) if form == "junit" else as_github(content, line_in)


def _draw(stream: IO[str], paint: Callable[["Console"], None]) -> None:
    """Paint on a console; what does not go to a terminal is written without the spaces that fill each line."""
    from rich.console import Console

    if stream.isatty():
        paint(Console(file=stream, highlight=False, emoji=False, markup=False))
        return
    buffer = io.StringIO()
    paint(Console(file=buffer, width=_width(stream), highlight=False, emoji=False, markup=False))
    encoding = getattr(stream, "encoding", None) or "utf-8"
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    stream.write("".join(f"{line}\n" for line in lines).encode(encoding, "replace").decode(encoding))
    stream.flush()


def _width(stream: IO[str]) -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else PIPE_WIDTH


def _echo(line: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(line.encode(encoding, "replace").decode(encoding))


def _refuse_unwritable(out: Path | None) -> None:
    if out is not None and (why := unwritable(out)):
        raise click.UsageError(f"--out: {why}")


if __name__ == "__main__":
    main()
