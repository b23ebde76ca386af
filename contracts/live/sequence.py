"""The probes in the order in which they are made, and the clauses that each gives evidence for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from contracts.live.probes import documents, frames, programs, streams, talk, terminals, waits, wire
from contracts.live.stage import Stage

Make = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe: its id, what makes it, the clauses of a core that it is about. `slow` ones can be left out."""

    id: str
    make: Make
    clauses: tuple[str, ...]
    slow: bool = False
    vital: bool = False
    """Without it nothing else can be asked."""

    @property
    def why(self) -> str:
        """What it looks at, in a sentence."""
        return (self.make.__doc__ or "").strip().split("\n")[0]


PROBES: tuple[Probe, ...] = (
    Probe("hello", wire.hello, ("C2",), vital=True),
    Probe("discover", wire.discover, ("C2",)),
    Probe("home", terminals.home, ("C3",), vital=True),
    Probe("errors", wire.errors, ("C1", "C3")),
    Probe("first-calls", wire.first_calls, ("C2",)),
    Probe("envelopes", wire.envelopes, ("C1",)),
    Probe("vectors", wire.vectors, ("C1",)),
    Probe("start", terminals.start, ("C3",)),
    Probe("names", terminals.names, ("C4",)),
    Probe("ends", terminals.ends, ("C7", "C4", "C3")),
    Probe("small-things", terminals.small_things, ("C3",)),
    Probe("started", programs.started, ("C3",)),
    Probe("status", talk.status, ("C5", "C6")),
    Probe("texts", talk.texts, ("C6",)),
    Probe("parts", talk.parts, ("C5",)),
    Probe("interrupt", talk.interrupt, ("C6", "C5")),
    Probe("exits", programs.exits, ("C7", "C5")),
    Probe("kills", programs.kills, ("C7",)),
    Probe("family", programs.family, ("C7",)),
    Probe("waits", waits.waits, ("C6",)),
    Probe("screen", programs.screen, ("C9",)),
    Probe("events", streams.events, ("C9",)),
    Probe("viewer", streams.viewer, ("C9",)),
    Probe("documents", documents.documents, ("C8",)),
    Probe("frames", frames.frames, ("C9",), slow=True),
    Probe("interrupt-unheard", talk.interrupt_unheard, ("C6",), slow=True),
    Probe("grace", programs.grace, ("C7",), slow=True),
)
