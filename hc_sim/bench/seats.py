"""Which processor each side of a measurement sits on: no ratio means a thing while the scheduler moves one side alone.

Both ends of a race between two servers share one processor: a round trip then takes as long as the work of both ends,
and no wake-up of an idle processor, which can take longer than the work, is counted for or against a server. Where the
floor has no other end (encoding alone), and where many calls come at once, each end has a processor of its own.
"""

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
    """Within: this process stays on the processor of that side. What is started within begins there."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    sit(side)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
