"""The exit table of headless children for a person: what the document says, and below it what was measured."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from contracts.judging.exit_rows import Row, in_words


def print_exit_table(rows: Sequence[Row], sut: str, console: Console) -> None:
    """One row an event, below the row of the document that it belongs to; and a summary."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for title in ("event", "settle result", "node", "holds"):
        table.add_column(title, overflow="fold", no_wrap=title == "holds")
    said = ""
    for row in rows:
        if row.event.says != said:
            said = row.event.says
            table.add_row(*(Text(cell, style="dim") for cell in ("the document", said, row.event.node, "")))
        table.add_row(f"  {row.event.name}", _measured(row), _node(row), _holds(row))
    console.print(table)
    console.print()
    good = sum(row.holds for row in rows)
    console.print(f"{good} of {len(rows)} rows are as the document says, measured on {sut}")


def _measured(row: Row) -> str:
    return row.why if row.measured is None else in_words(row.measured)


def _node(row: Row) -> str:
    """The node's state, and beside it the document's where that is another."""
    came = row.measured.get("node") if row.measured is not None else None
    return row.event.node if came == row.event.node else f"{came or 'none'} (document: {row.event.node})"


def _holds(row: Row) -> Text:
    return Text("yes", style="green") if row.holds else Text("NO", style="bold red")
