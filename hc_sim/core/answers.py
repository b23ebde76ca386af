"""What comes out of the core: answers now, answers later, and what it wants done to files."""

from dataclasses import dataclass
from typing import Any, Literal

from hc_sim.model import WireError


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that an answer opens, on a channel of its own: of a `terminal` (address), or of events."""

    channel: int
    terminal: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to one call: a result, or an error. `stream`: what it opens; its first bytes go out after the reply."""

    result: Any = None
    error: WireError | None = None
    stream: Stream | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """The reply comes later, from `Core.advance`, under this ticket."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The reply that was owed under `ticket`."""

    ticket: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class FileEffect:
    """What a program did to a file. The core touches none: whoever runs it does, before it passes replies on.

    `append` adds `data`; `replace` writes a new file and renames it over `path`; `remove` unlinks it.
    """

    path: str
    op: Literal["append", "replace", "remove"]
    data: bytes = b""


class RefusalError(Exception):
    """A call that ends in an error; carries the error to the place that answers."""

    def __init__(self, error: WireError) -> None:
        super().__init__(error.message)
        self.error = error
