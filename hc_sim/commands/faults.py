"""`hc-sim faults`: everything that can go wrong, class by class, as it is written in TOML or asked for in Python."""

import json
import shutil
import sys
import textwrap
from dataclasses import asdict

import click

from hc_sim.faults.reference import Row, reference
from hc_sim.knobs import CLASSES

WIDE = 118
"""Columns where nobody says how many there are."""
NARROWEST = 20
"""Columns that the text of a knob has at least."""
HOW = """\
Addresses. A [[fault]] is addressed by method and nth call (0: every one), narrowed to a connection, or to a time of
the core's own clock (from_ms, until_ms). A [[link]] is addressed by the nth connection that is opened, or by time. A
[[restart]], a [[document]] and a [[clock]] happen at_ms. Steps of an agent fire at_ms, after_ms, on_call, after so many
looks, on a prompt, or by hand. In Python the same tables are the types of hc_sim.faults, one FaultPlan in all."""


@click.command()
@click.option("--class", "number", type=click.IntRange(1, len(CLASSES)), help="Only this class of knobs.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
def faults(number: int | None, form: str) -> None:
    """Print the reference of faults: class, knob, where it is written, what it does."""
    rows = [row for row in reference() if number in (None, row.number)]
    match form:
        case "json":
            known = [{**asdict(row), "class": row.class_} for row in rows]
            for row in known:
                del row["class_"]
            click.echo(json.dumps({"schema": 1, "knobs": known}, indent=1))
        case "markdown":
            click.echo("\n".join(markdown(rows)))
        case _:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
            click.echo("\n".join(text(rows, width)))


def markdown(rows: list[Row]) -> list[str]:
    """The reference as a table for a page."""
    lines = ["| class | knob | where | what it does |", "| --- | --- | --- | --- |"]
    cells = [(f"{row.number} {row.class_}", f"`{row.name}`", f"`{row.where}`", row.text) for row in rows]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells]


def text(rows: list[Row], width: int = WIDE) -> list[str]:
    """The reference for a terminal of this width: a heading for each class, two columns below it."""
    lines = textwrap.wrap(HOW, width)
    name = max((len(row.name) for row in rows), default=0)
    last = 0
    for row in rows:
        if row.number != last:
            last = row.number
            lines += ["", f"{row.number}. {row.class_}"]
        said = textwrap.wrap(f"{row.text}  ({row.where})", max(NARROWEST, width - name - 4))
        lines.append(f"  {row.name:<{name}}  {said[0]}")
        lines += [" " * (name + 4) + line for line in said[1:]]
    return lines
