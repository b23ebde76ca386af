"""What happens to the core as a whole: restarts, rivals, documents written by others, a wall clock that jumps."""

from typing import Annotated, Any, Literal

import msgspec

from hc_sim.knobs import Knob
from hc_sim.script.format import StatusWord, Strict


class Restart(Strict, frozen=True):
    """The core ends and comes back. Every connection ends with it, and what was owed is never answered.

    `at_ms`: when, on the core's clock; unset where a fault of a call says when.
    """

    at_ms: int | None = None
    down_ms: Annotated[int, Knob("how long nobody listens in between", 4, 5)] = 0
    terminals: Annotated[
        Literal["kept", "shells", "by-keep", "finished", "lost"],
        Knob(
            "kept: programs run on; shells: all come back as bare shells, under address and name; by-keep: those with "
            "keep do, the others have finished; finished: all have; lost: the core knows none of them",
            5,
        ),
    ] = "kept"
    new_core_id: Annotated[bool, Knob("the core comes back under another core id", 5)] = False
    reuse_addresses: Annotated[
        bool, Knob("addresses are given out from the first one again, with a new created_ms", 5)
    ] = False
    documents: Annotated[Literal["kept", "lost"], Knob("whether the documents outlive the restart", 5, 13)] = "kept"
    env: Annotated[
        dict[str, str] | None, Knob("the environment that the core has from then on, for terminals that start later", 5)
    ] = None


class Rival(Strict, frozen=True):
    """Another client that does the same thing just before this call: it runs a program under the name, or writes the
    document.
    """

    argv: list[str] = msgspec.field(default_factory=lambda: ["/bin/bash"])
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    turn: int = 0
    status: StatusWord = "none"
    finished: Annotated[int | None, Knob("the name is held by a terminal that has finished with this code", 10)] = None
    dies_ms: Annotated[int | None, Knob("the holder of the name is dying: it ends by SIGHUP after so long", 10)] = None
    unknown: Annotated[bool, Knob("the name counts as taken although no terminal has it", 10)] = False
    value: Annotated[Any, Knob("what the other client writes into the document; its version goes up by one", 13)] = None


class DocumentFault(Strict, frozen=True):
    """A document that is there, or that another client writes at a time; and how its readers see it."""

    name: str
    at_ms: int = 0
    value: Annotated[Any, Knob("the document has this value from `at_ms` on (0: from the beginning)", 13)] = None
    version: Annotated[
        int | str | None, Knob("its version: a number of any size, 0, or a text; unset: the next one", 13)
    ] = None
    null_version: Annotated[bool, Knob("readers are shown null in place of a version", 13)] = False
    mirror: Annotated[
        Literal["none", "late", "flaps", "never"],
        Knob(
            "reads come from a copy: late shows a write only after mirror_ms, flaps shows it once, then the old value "
            "once, then it; never shows no write at all",
            13,
        ),
    ] = "none"
    mirror_ms: Annotated[int, Knob("how far the copy lags behind", 13)] = 0


class ClockJump(Strict, frozen=True):
    """At a time of the core's own clock, its wall clock is set: times from then on are shown so much later."""

    at_ms: int
    jump_ms: Annotated[int, Knob("how far the wall clock moves; below 0: back. No timer notices", 14)]
