"""The questions that a judge asks about headless children: which programs were started, and what reached them. Pure."""

import json
from typing import Any, Final

from contracts.records import PiRecord, RunRecord

PROGRAM_KEYS: Final = frozenset(("argv", "command", "env", "cwd", "leads", "told", "code", "signal"))
"""What a statement about a started `pi` may name."""
NO_OBJECT: Final = "raw"
"""The only member of a line that is no JSON object: its text."""


def programs(record: RunRecord, child: str) -> list[PiRecord]:
    """Every `pi` that was started, in order; with a child (the `as` of a spawn) those on its session file."""
    session = record.fills.get(f"session:{child}") if child else None
    return [one for one in record.pi if not child or (session is not None and one.session == session)]


def program(one: PiRecord) -> dict[str, Any]:
    """A started `pi` as statements see it; `command` is its arguments as one text."""
    return {
        "argv": one.argv,
        "command": " ".join(one.argv),
        "env": one.env,
        "cwd": one.cwd,
        "leads": one.leads,
        "told": one.told,
        "code": one.code,
        "signal": one.signal,
    }


def lines(one: PiRecord) -> list[dict[str, Any]]:
    """What was written to a `pi`, a table for each line; one that is no JSON object is `{"raw": text}`."""
    return [_table(line) for line in one.lines]


def _table(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    return said if isinstance(said, dict) else {NO_OBJECT: line}
