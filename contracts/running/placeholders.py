"""Placeholders such as `{session}` in scenario texts, and their replacement by what one run really used."""

import re
from collections.abc import Mapping
from typing import Any

PLACEHOLDERS = ("dir", "home", "cwd", "session", "hc", "socket", "name", "pad")
"""What a scenario's texts may leave open. `{session:b}` and `{name:b}` are those of the child spawned `as = "b"`;
`{pad:1000}` is the letter x a thousand times."""
MAX_PAD = 1 << 20
"""The longest padding, in characters."""

_FOUND = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")(:[A-Za-z0-9_-]+)?\}")


def fill(value: Any, fills: Mapping[str, str], child: str = "") -> Any:
    """Replace placeholders in every text of a JSON-like value, keys of tables too; unknown ones stay as they are.

    `{name}` and `{session}` are those of `child` when `fills` knows them, else of the first child.
    """
    if isinstance(value, str):
        return _FOUND.sub(lambda found: _text(found, fills, child), value)
    if isinstance(value, Mapping):
        return {fill(key, fills, child): fill(inner, fills, child) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [fill(inner, fills, child) for inner in value]
    return value


def _text(found: re.Match[str], fills: Mapping[str, str], child: str) -> str:
    key, of = found.group(1), found.group(2) or ""
    if key == "pad":
        return "x" * min(int(of[1:]), MAX_PAD) if of[1:].isdecimal() else found.group(0)
    for candidate in (f"{key}:{child}",) * bool(child and not of) + (key + of,):
        if candidate in fills:
            return fills[candidate]
    return found.group(0)
