"""What commands print: tables on a console, lines in whatever encoding the reader has, and where a file cannot go."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from contracts.judging.tally import ERRORED
from contracts.running.surroundings import unwritable

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 120
"""Width of a report that does not go to a terminal (COLUMNS overrides it)."""


class BrokenError(click.ClickException):
    """The harness itself broke (exit code 3): neither the usage nor the system under test is to blame."""

    exit_code = ERRORED


def draw(stream: IO[str], paint: Callable[["Console"], None]) -> None:
    """Paint on a console; what does not go to a terminal is written without the spaces that fill each line."""
    from rich.console import Console

    if stream.isatty():
        paint(Console(file=stream, highlight=False, emoji=False, markup=False))
        return
    buffer = io.StringIO()
    paint(Console(file=buffer, width=width(stream), highlight=False, emoji=False, markup=False))
    encoding = getattr(stream, "encoding", None) or "utf-8"
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    stream.write("".join(f"{line}\n" for line in lines).encode(encoding, "replace").decode(encoding))
    stream.flush()


def width(stream: IO[str]) -> int:
    """Columns of a stream: what COLUMNS says, else the terminal's own, else `PIPE_WIDTH`."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else PIPE_WIDTH


def echo(line: str) -> None:
    """Print one line; what the reader's encoding does not have becomes a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(line.encode(encoding, "replace").decode(encoding))


def refuse_unwritable(out: Path | None) -> None:
    """Raise click's UsageError when the file of `--out` cannot be written."""
    if out is not None and (why := unwritable(out)):
        raise click.UsageError(f"--out: {why}")
