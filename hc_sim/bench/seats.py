"""Which processor each side of a race sits on: no ratio means a thing while the scheduler moves one side alone."""

import contextlib
import os
from collections.abc import Iterator
from typing import Final, Literal

Side = Literal["client", "server"]
PLACES: Final[dict[Side, int]] = {"client": 0, "server": -1}


def processor(side: Side, allowed: set[int]) -> set[int]:
    """The one processor for a side; all that are allowed where there is only one to sit on."""
    return {sorted(allowed)[PLACES[side]]} if len(allowed) > 1 else allowed


def sit(side: Side) -> None:
    """Stay on that processor from here on, where the system can be told (Linux)."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, processor(side, os.sched_getaffinity(0)))


@contextlib.contextmanager
def seated(side: Side) -> Iterator[None]:
    """Within: this process stays on that processor. What is started within begins there."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    sit(side)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
