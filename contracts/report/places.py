"""Where in its scenario file a failed statement stands, for reports that lead a reader there."""

from collections.abc import Callable
from pathlib import Path

from contracts.records import RunVerdict
from contracts.report.content import Content, fresh

LineOf = Callable[[Path, str], int]
"""The line of a field in a scenario file."""


def field_of(where: str) -> str:
    """The field of a scenario file that a finding is about: its place without what stands in parentheses."""
    return where.split("(", 1)[0]


def place(content: Content, verdict: RunVerdict, where: str, line_of: LineOf) -> tuple[Path, int] | None:
    """The file and line of one statement; line 1 when the file is gone, None for what stands in no file."""
    path = content.files.get(verdict.scenario)
    if path is None or verdict.host == "check":
        return None
    try:
        return path, max(1, line_of(path, field_of(where))) if where else 1
    except (OSError, UnicodeDecodeError):
        return path, 1


def run_place(content: Content, verdict: RunVerdict, line_of: LineOf) -> tuple[Path, int] | None:
    """The file and line of a run: those of the first statement that fails, or else of the whole scenario."""
    found = fresh(verdict)
    return place(content, verdict, found[0].where if found else "", line_of)


def relative(path: Path) -> str:
    """A path as a CI names it: below the current folder when it is there."""
    here = Path.cwd()
    full = path if path.is_absolute() else here / path
    return str(full.relative_to(here)) if full.is_relative_to(here) else str(path)
