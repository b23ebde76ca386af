"""The page of `check --html`: its folder before the run, the file after it, and the words that asked for it."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from contracts.commands.output import BrokenError
from contracts.report.content import Content
from contracts.running.surroundings import unwritable

PAGE: Final = "index.html"
_NOT_SAID: Final = ("html", "out", "form", "workers", "show_secrets", "write_baseline")
"""Options that change nothing in what is found."""


def make_folder(folder: Path | None) -> None:
    """Make the folder of `--html`. Raises click's UsageError when no page can be written in it."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"--html: the folder {folder} cannot be made: {error.strerror}") from error
    if why := unwritable(folder / PAGE):
        raise click.UsageError(f"--html: {why}")


def write_page(content: Content, folder: Path) -> None:
    """Write the page into the folder and say on standard error where it is."""
    from contracts.loading import line_in
    from contracts.report.html import as_html

    path = folder / PAGE
    try:
        path.write_text(as_html(content, line_in), encoding="utf-8", errors="replace")
    except OSError as error:
        raise BrokenError(f"{path} cannot be written: {error.strerror}") from error
    click.echo(f"page: {path}", err=True)


def command_line(context: click.Context) -> str:
    """The command line as it was given, without what only says where the report goes."""
    return shlex.join(["legion-contracts", context.info_name or "check", *_said(context)])


def _said(context: click.Context) -> Iterator[str]:
    for option in context.command.params:
        name = option.name or ""
        if name in _NOT_SAID or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params.get(name)
        for one in value if isinstance(value, tuple) else (value,):
            yield option.opts[0]
            if one is not True:
                yield str(one)
