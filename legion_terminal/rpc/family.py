"""The processes below a child that its group does not hold: a killed pi leaves the tools that it was running behind.

pi starts each tool in a group of its own and ends it when it is asked to end. Killed, it cannot. So before a kill its
descendants are held by descriptors, which no later process of the same number can take over, and killed with it.
Where the system does not tell who descends from whom, there are none.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
MAX_FAMILY: Final = 1_000
"""How many descendants of one child are held."""


@contextmanager
def held(pid: int) -> Iterator[list[int]]:
    """Within: a descriptor for each living descendant of a process."""
    descriptors: list[int] = []
    try:
        for one in _descendants(pid) if pid > 1 else ():  # everything descends from 0 and 1
            with suppress(OSError, AttributeError):
                descriptors.append(os.pidfd_open(one))
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def kill(descriptors: list[int]) -> None:
    """SIGKILL to every process that is held."""
    for descriptor in descriptors:
        with suppress(OSError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    below: dict[int, list[int]] = {}
    for child, parent in _parents():
        below.setdefault(parent, []).append(child)
    found: list[int] = []
    level = [pid]
    while level and len(found) < MAX_FAMILY:
        level = [child for parent in level for child in below.get(parent, ())]
        found += level
    return found[:MAX_FAMILY]


def _parents() -> Iterator[tuple[int, int]]:
    """Every process and its parent."""
    with suppress(OSError):
        for entry in PROC.iterdir():
            if entry.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])
