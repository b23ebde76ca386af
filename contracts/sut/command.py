"""The command line of a driver: its words, and the program that they name, found as a shell would find it."""

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

PYTHON = "python"


class CommandError(Exception):
    """A command that cannot be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to start: `argv` with the program's whole path first, the folder to start it in, and how it was told.

    The path is found once, in the user's own environment: a driver runs in another one.
    """

    argv: tuple[str, ...]
    cwd: str
    text: str


def read_command(text: str, *, cwd: Path | None = None, path: str | None = None) -> Command:
    """Split a command into words and find its program. No shell has a part in it.

    `path`: where programs lie, the PATH of this process by default. Raises `CommandError`.
    """
    folder = (cwd or Path.cwd()).absolute()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CommandError(f"{text!r} is no command: {str(error).lower()}") from error
    if not words or not words[0]:
        raise CommandError(f"{text!r} is no command: it names no program")
    program = Path(words[0]).expanduser()
    found = _by_path(program, folder) if "/" in words[0] else _by_name(words, folder, path)
    return Command((found, *words[1:]), str(folder), text)


def _by_path(program: Path, folder: Path) -> str:
    whole = folder / program
    if whole.is_dir():
        raise CommandError(f"{program} is a folder and no program")
    if not whole.exists():
        raise CommandError(f"there is no program {program} (looked in {folder})")
    if not os.access(whole, os.X_OK):
        raise CommandError(f"{program} is not executable: name its interpreter before it, or set its x bit")
    return str(whole)


def _by_name(words: list[str], folder: Path, path: str | None) -> str:
    name = words[0]
    found = shutil.which(name, path=path)
    if found is not None:
        return str(Path(found).absolute())
    if name == PYTHON and len(words) > 1:
        return sys.executable
    if (folder / name).is_file():
        raise CommandError(f"there is no program {name} on PATH: write ./{name}, or its interpreter before it")
    raise CommandError(f"there is no program {name} on PATH")
