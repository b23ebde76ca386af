"""What a core tells unasked, as typed values: events, and in line mode the output of terminals.

Everything here is invented: public sources say that there are ordered events, and show none.
"""

from typing import Literal

import msgspec

from hc_sim.model import Shape, Terminal

EventName = Literal[
    "terminal.created",
    "terminal.changed",
    "terminal.removed",
    "document.changed",
    "events.lost",
    "terminal.output",
    "terminal.closed",
]
"""Our own names of what a core tells unasked; `WireProfile` decides how each is spelt on the wire."""


class TerminalEvent(Shape):
    """A terminal as it is after the change (for a removal: as it was). `number` counts the events of this core.

    `channel` stands in line mode only, in this and every other notification: the stream that it belongs to.
    """

    number: int
    terminal: Terminal
    channel: int | None = None


class DocumentEvent(Shape):
    """A document has another version now."""

    number: int
    name: str
    version: int | str
    channel: int | None = None


class LostEvent(Shape):
    """The reader was too slow: so many events were left out here."""

    lost: int
    channel: int | None = None


class OutputEvent(Shape):
    """What a terminal shows anew, in line mode; in frames these are the bare bytes."""

    terminal: str
    text: str
    channel: int


class ClosedEvent(Shape):
    """The stream of a terminal has ended, in line mode; in frames this is a close frame."""

    terminal: str
    reason: str
    channel: int


EVENTS: dict[EventName, type[msgspec.Struct]] = {
    "terminal.created": TerminalEvent,
    "terminal.changed": TerminalEvent,
    "terminal.removed": TerminalEvent,
    "document.changed": DocumentEvent,
    "events.lost": LostEvent,
    "terminal.output": OutputEvent,
    "terminal.closed": ClosedEvent,
}
"""Every notification by name, with its parameters. Names and members are invented: no source shows them."""
