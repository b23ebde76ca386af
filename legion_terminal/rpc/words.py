"""What a program says on its error output before it dies, in one line for people. Pure."""

import re
from typing import Final

from legion_terminal.messages import printable

MAX_WORDS: Final = 300
_ERROR: Final = re.compile(r"^\s*(?:\w*Error\b|error:|fatal\b)", re.IGNORECASE)
_OLD_NODE: Final = re.compile(
    r"SyntaxError: The requested module '?\S+'? does not provide an export|SyntaxError: Unexpected"
)
_NO_NODE: Final = re.compile(r"env: .{0,3}node.{0,3}: No such file")
NODE_HINT: Final = "pi needs node 22.19 or later first on the PATH of the child"


def telling(stderr: str) -> str | None:
    """The line that says most: the first that looks like an error, else the last one; None when there is none."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if not lines:
        return None
    line = next((line for line in lines if _ERROR.match(line)), lines[-1])
    return printable(line)[:MAX_WORDS]


def node_trouble(stderr: str) -> str | None:
    """What is wrong with the node that ran it, where the error output shows it: too old, or not there."""
    if _OLD_NODE.search(stderr):
        return "the node that it ran on is too old for it"
    if _NO_NODE.search(stderr):
        return "there is no node to run it"
    return None
