"""`legion-contracts diff`: two JSON reports side by side."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from contracts.commands.output import draw, echo
from contracts.judging.tally import BAD_USAGE, FAILS, HOLDS
from contracts.report.diff import Difference, Report, ReportError, compare, diff_as_json, diff_summary, read_report
from contracts.running.surroundings import reader_may_leave

if TYPE_CHECKING:
    from rich.console import Console

MAX_BYTES: Final = 256 * 1024 * 1024
"""A report is never so large; what is, is not read."""
MAX_ROWS: Final = 200
"""Of more differences the rest is counted."""
_STYLES: Final = {
    "worse": "bold red",
    "gone": "red",
    "better": "green",
    "slower": "yellow",
    "changed": "",
    "new": "dim",
}


@click.command
@click.argument("before", metavar="A.json", type=click.Path(path_type=Path))
@click.argument("after", metavar="B.json", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def diff(before: Path, after: Path, form: str) -> None:
    """Compare two reports: which clauses and runs changed their verdict, are new, are gone, became slower.

    \b
    legion-contracts check --format json --out A.json
    legion-contracts check --format json --out B.json
    legion-contracts diff A.json B.json

    Ends with 0 when nothing regressed, 1 when something that held fails, broke or is missing in B, 2 for a file that is
    no report.
    """
    first, second = _both(before, after)
    found = compare(first, second)
    with reader_may_leave():
        if form == "json":
            click.echo(diff_as_json((str(before), str(after)), (first, second), found), nl=False)
        else:
            _table(found)
            echo(diff_summary(found))
    raise SystemExit(FAILS if any(one.is_regression for one in found) else HOLDS)


def _both(*paths: Path) -> list[Report]:
    """Both reports; exits with 2 after one sentence for each file that is none."""
    reports: list[Report] = []
    for path in paths:
        try:
            reports.append(read_report(_text(path)))
        except (ReportError, OSError, UnicodeDecodeError) as error:
            click.echo(f"Error: {path} {_why(error)}", err=True)
    if len(reports) < len(paths):
        raise SystemExit(BAD_USAGE)
    return reports


def _text(path: Path) -> str:
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ReportError(f"is larger than {MAX_BYTES} bytes, which no report is")
    return data.decode()


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return "is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def _table(found: Sequence[Difference]) -> None:
    if found:
        draw(sys.stdout, lambda console: _paint(found, console))


def _paint(found: Sequence[Difference], console: "Console") -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("change", "of", "before", "after"):
        table.add_column(name, overflow="fold")
    for one in found[:MAX_ROWS]:
        name = f"{one.name} ({one.host})" if one.host else f"clause {one.name}"
        change = f"{one.change}{' !' if one.is_regression else ''}"
        table.add_row(Text(change, style=_STYLES[one.change]), Text(name), one.before or "-", one.after or "-")
    console.print(table)
    if len(found) > MAX_ROWS:
        console.print(f"and {len(found) - MAX_ROWS} more; --format json has them all")
    console.print()
