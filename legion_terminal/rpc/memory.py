"""The memory gate: no headless child is started while less memory is available than its limit."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MEMINFO: Final = Path("/proc/meminfo")
DEFAULT_MIN_FREE_MB: Final = 256
"""About twice what one pi takes after its first turn."""
_KIB_PER_MB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShortage:
    """Why a start was refused: what is available and what the limit is, in MiB."""

    available_mb: int
    limit_mb: int


def check_memory_gate(limit_mb: int, available_mb: int | None) -> MemoryShortage | None:
    """The shortage, None when there is enough, no limit (0), or nothing known of the memory."""
    if limit_mb <= 0 or available_mb is None or available_mb >= limit_mb:
        return None
    return MemoryShortage(available_mb=available_mb, limit_mb=limit_mb)


def available_mb(read: Callable[[], str] = MEMINFO.read_text) -> int | None:
    """How much memory new programs can have without swapping, in MiB; None where the system does not say."""
    try:
        for line in read().splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) // _KIB_PER_MB
    except (OSError, ValueError, IndexError):
        return None
    return None
