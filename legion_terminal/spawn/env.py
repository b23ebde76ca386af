"""D5: the environment that travels with `terminal.run`, laid over the core's own."""

import re
from collections.abc import Mapping
from typing import Final

from legion_terminal.errors import SupervisorError
from legion_terminal.spawn.argv import MAX_ARGUMENT_BYTES

BASE: Final = ("PATH", "HOME")
"""What a child needs to find its interpreter and its settings: the core's own PATH has neither node nor pi."""
TERMINAL: Final = ("TERM", "TERM_PROGRAM", "COLORTERM")
"""What the parent says of its terminal."""
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")  # also how Python holds a byte of this process that is no UTF-8


def overlay(
    process_env: Mapping[str, str | None], memory_env: Mapping[str, str | None], request_env: Mapping[str, str | None]
) -> dict[str, str]:
    """Merge what the child is to get, each block over the one before (D5).

    1. PATH and HOME of this process, then TERM, TERM_PROGRAM and COLORTERM, each when present. Present means that
       the variable is there: one that is set to the empty text is present, and travels as the empty text.
    2. `memory_env`, the child's memory settings.
    3. `request_env`: lineage, identity, phases, budgets. It is last, so that nothing writes over it.

    None means "not set": it neither travels nor takes away what an earlier block gave (an overlay cannot delete).
    No variable is made up, and none of this process travels but those named in 1.

    Raises SupervisorError `bad-request` for a name or value that no environment can hold or no JSON text can carry.
    """
    own = {name: process_env.get(name) for name in (*BASE, *TERMINAL)}
    merged: dict[str, str] = {}
    for block in (own, memory_env, request_env):
        for name, value in block.items():
            if value is not None:
                checked = _checked(name)
                merged[checked] = _value(checked, value)
    return merged


def _checked(name: object) -> str:
    if not isinstance(name, str) or not name or "=" in name or "\0" in name or _HALF_PAIR.search(name):
        raise SupervisorError("bad-request", f"{name!r} cannot be the name of an environment variable")
    return name


def _value(name: str, value: object) -> str:
    if not isinstance(value, str):
        kind = type(value).__name__
        raise SupervisorError(
            "bad-request",
            f"the environment variable {name} is of type {kind}, not text",
            hint="turn it into text, or leave it out with None",
        )
    if "\0" in value:
        raise SupervisorError("bad-request", f"the environment variable {name} holds a NUL character")
    if _HALF_PAIR.search(value):
        raise SupervisorError("bad-request", f"the environment variable {name} is not valid Unicode text")
    size = len(f"{name}={value}".encode())
    if size > MAX_ARGUMENT_BYTES:
        raise SupervisorError(
            "bad-request",
            f"the environment variable {name} takes {size} bytes; at most {MAX_ARGUMENT_BYTES} can travel",
        )
    return value
