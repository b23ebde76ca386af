"""`legion-contracts sut`: begin a driver for another supervisor, and find out what it lacks."""

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from contracts.commands.output import draw, echo

if TYPE_CHECKING:
    from rich.table import Table

    from contracts.sut.doctor import Row
    from contracts.sut.messages import InitializeResult

LANGUAGES: Final = {"node": "node driver.mjs", "python": "python driver.py"}
"""What a driver can be begun in, and how it is started."""
_STYLES: Final = {"has": "green", "lacks": "yellow", "undeclared": "dim", "broken": "bold red"}


@click.group
def sut() -> None:
    """Check a supervisor written in any language: `check --sut "node my-driver.mjs"`.

    \b
    legion-contracts sut new --language node my-driver
    legion-contracts sut doctor "node my-driver/driver.mjs"
    legion-contracts sut protocol | less
    """


@sut.command(short_help="Write a driver to begin with.")
@click.option("--language", type=click.Choice(sorted(LANGUAGES)), required=True, help="What it is written in.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def new(language: str, folder: Path) -> None:
    """Write a driver that runs at once into a new folder; it answers not-implemented to every call."""
    try:
        written = _write(language, folder)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written: {error.strerror}") from error
    for path in written:
        click.echo(f"written: {path}")
    program, name = LANGUAGES[language].split()
    click.echo(f'next: legion-contracts sut doctor "{program} {folder / name}"')


@sut.command(short_help="Say what a driver has and what it lacks.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.argument("command", metavar="CMD")
def doctor(form: str, command: str) -> None:
    """Start a driver, try what it declares, and say what to do next.

    \b
    legion-contracts sut doctor "node my-driver/driver.mjs"

    Ends with 1 when it cannot be checked yet, or when something that it declares does not work.
    """
    from contracts.sut.command import CommandError, read_command
    from contracts.sut.doctor import examine
    from contracts.sut.introduction import NoDriverError
    from contracts.sut.stdio import StdioFactory

    try:
        declared, rows = examine(StdioFactory(read_command(command)))
    except (CommandError, NoDriverError) as error:
        raise click.UsageError(str(error)) from error
    ready = not any(row.matters for row in rows)
    if form == "json":
        click.echo(json.dumps(_document(command, declared, rows, ready), ensure_ascii=False, indent=2))
    else:
        if declared is not None:
            echo(f"{declared.name} {declared.version} ({declared.language})".replace("  ", " "))
        draw(sys.stdout, lambda console: console.print(_table(rows)))
        echo(f'\nready: legion-contracts check --sut "{command}"' if ready else "\nnot ready: see what to do above")
    raise SystemExit(0 if ready else 1)


@sut.command(short_help="Print the protocol document.")
def protocol() -> None:
    """Print the document of the SUT protocol (Markdown)."""
    echo(_text("PROTOCOL.md"))


@sut.command(short_help="Print an example exchange.")
def example() -> None:
    """Print a whole life as lines between suite and driver (JSON lines; `from` says whose)."""
    echo(_text("example-exchange.jsonl"))


def _text(name: str) -> str:
    return files("contracts.sut").joinpath(name).read_text(encoding="utf-8").rstrip("\n")


def _write(language: str, folder: Path) -> list[Path]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.UsageError(f"{folder} is there already and not empty: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for source in files("contracts.sut").joinpath("templates", language).iterdir():
        if source.is_file():
            path = folder / source.name
            path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            written.append(path)
    return sorted(written)


def _document(command: str, declared: "InitializeResult | None", rows: "list[Row]", ready: bool) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(declared) if declared is not None else {}
    return {"schema": 1, "command": command, "ready": ready, "driver": told, "probes": msgspec.to_builtins(rows)}


def _table(rows: "list[Row]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("probe", no_wrap=True)
    table.add_column("what it does, what came, what to do", overflow="fold")
    for row in rows:
        text = Text(row.about)
        for word, said in (("got", row.got), ("do", row.do)):
            if said:
                text.append(f"\n{word}: ", style="bold" if word == "do" else "dim")
                text.append(said)
        table.add_row(Text(row.state, style=_STYLES[row.state]), row.id, text)
    return table
