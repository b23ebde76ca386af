"""D7: run id and handle become the name under which the core knows the child's terminal."""

import re
from typing import Final

from legion_terminal.errors import SupervisorError

MAX_NAME: Final = 32
"""The longest name a core takes, in characters."""
RUN_ID_LENGTH: Final = 8
"""How many characters of the run id are part of the name."""

_OUTSIDE: Final = re.compile(r"[^a-z0-9_-]")


def terminal_name(run_id: str, handle: str) -> str:
    """Map run id and handle to `lgl-<first 8 of the run id>-<handle>`, 32 characters at most (D7).

    Every character that a core does not take becomes a dash of its own; nothing is lowered, folded or joined. The
    handle is cut where the name is full. Two handles may thus share a name: the core then says that it is taken.

    Raises SupervisorError `bad-request` when the run id or the handle is empty or no text.
    """
    head = f"lgl-{_part('run id', run_id, handle)[:RUN_ID_LENGTH]}-"
    return head + _part("handle", handle, handle)[: MAX_NAME - len(head)]


def _part(what: str, text: object, handle: object) -> str:
    if not isinstance(text, str) or not text:
        raise SupervisorError(
            "bad-request",
            f"the {what} is {text!r}, and a terminal name needs at least one character of it",
            child=handle if isinstance(handle, str) else "",
            hint=f"give the child a {what}",
        )
    return _OUTSIDE.sub("-", text)
