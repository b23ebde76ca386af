"""`hc-sim parity`: what of a real core the fake has, and how well each part is known."""

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from hc_sim.parity import LiveRun, Row
from hc_sim.parity import parity as table_of
from hc_sim.profile import WireProfile
from hc_sim.script.toml import FileError, read_toml

FILE = click.Path(dir_okay=False, path_type=Path)
KINDS = click.Choice(["method", "parameter", "result", "error", "choice"])
FORMS = click.Choice(["table", "json", "markdown"])
WIDE = 160
"""Columns where nobody says how many there are."""
ROOMY = 110
"""Columns from which on the notes have one of their own."""
INDENT = " " * 11
HEADS = ("what", "name", "known", "here", "confirmed", "note")


@click.command()
@click.option("--format", "form", type=FORMS, default="table", help="How to print.")
@click.option("--profile", type=FILE, help="As under this profile (TOML).")
@click.option("--live", type=FILE, help="What a live run has confirmed (JSON: date, version, confirmed).")
@click.option("--only", type=KINDS, help="One kind of row.")
def parity(form: str, profile: Path | None, live: Path | None, only: str | None) -> None:
    """Print every method, parameter, result, error and choice: how well it is known, and whether it is here.

    Known: measured on a real core, documented, inferred, or unknown. Here: implemented, partial, or refused.
    """
    try:
        chosen = WireProfile() if profile is None else read_toml(profile, WireProfile)
        run = None if live is None else msgspec.json.decode(live.read_bytes(), type=LiveRun)
    except (FileError, OSError) as error:
        click.echo(f"hc-sim: {error}", err=True)
        sys.exit(2)
    except msgspec.DecodeError as error:
        click.echo(f"hc-sim: {live}: {error}", err=True)
        sys.exit(2)
    rows = [row for row in table_of(chosen, run) if only in (None, row.what)]
    if form == "json":
        click.echo(msgspec.json.encode({"schema": 1, "rows": rows}).decode())
    elif form == "markdown":
        click.echo(_markdown(rows))
    else:
        _show(rows)


def _cells(row: Row) -> tuple[str, ...]:
    return (row.what, row.name, row.certainty, row.presence, row.confirmed, row.note)


def _markdown(rows: Sequence[Row]) -> str:
    lines = [HEADS, tuple("---" for _ in HEADS), *map(_cells, rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _show(rows: Sequence[Row]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else WIDE)
    if console.width < ROOMY:
        click.echo("\n".join(narrow(rows, console.width)))
        return
    table = Table(box=None, pad_edge=False)
    for head in HEADS:
        table.add_column(head, no_wrap=head != "note")
    for row in rows:
        table.add_row(*map(Text, _cells(row)))
    console.print(table)


def narrow(rows: Sequence[Row], width: int) -> list[str]:
    """The table for a terminal with few columns: what there is to say about a row stands below it."""
    cells = [HEADS[:4], *(_cells(row)[:4] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    heads, *lines = ["  ".join(f"{cell:<{wide}}" for cell, wide in zip(line, widths, strict=True)) for line in cells]
    found = [heads.rstrip()]
    for row, line in zip(rows, lines, strict=True):
        found.append(line.rstrip())
        for said in (f"confirmed {row.confirmed}" if row.confirmed else "", row.note):
            found += textwrap.wrap(said, width, initial_indent=INDENT, subsequent_indent=INDENT)
    return found
