"""Random faults of a run: what goes wrong with which call."""

from collections.abc import Mapping
from typing import Any

from contracts.fuzz.dice import Source, chance, pick
from hc_sim.faults import Fault, FaultError, Restart, Rival, Until

METHODS = (
    *("terminal.get",) * 6,
    *("terminal.run",) * 4,
    *("terminal.send",) * 3,
    *("terminal.kill", "terminal.rm", "terminal.interrupt") * 2,
    "hello",
    "*",
)
DELAYS_MS = (1, 100, 250, 600, 2_600, 5_500, 11_000, 95_000)
ERRORS = ("internal", "no_such_terminal", "name_taken", "not_live", "blocked", "limit_reached", "timeout")
HAPPENINGS: tuple[Mapping[str, Any], ...] = (
    *({"reply": False},) * 3,
    *({"error": FaultError(kind="no_such_terminal")},) * 2,
    {"contradict": FaultError(kind="internal")},
    {"after": "\n"},
    {"pad_bytes": 3_000},
    {"apply": False},
    *({"close": "instead"},) * 2,
    {"close": "after"},
    {"close": "mid"},
    {"silent": True},
    {"before": "noise from somewhere\n"},
    {"before": "\x1b[0m"},
    {"before_hex": "efbbbf"},
    {"cut": [-1]},
    {"cut": [5], "gap_ms": 40},
    {"repeat": 2},
    {"notifications": 3},
    {"requests": 1},
    {"join": True},
    {"id": "null"},
    {"id": "missing"},
    {"id": "empty"},
    {"id": "other-type"},
    {"shape": "null-result"},
    {"shape": "neither"},
    {"shape": "null-error"},
    {"raw": "no json at all\n"},
    {"newline": "crlf"},
    {"separators": True},
)
RIVALS = (Rival(finished=0), Rival(), Rival(status="working", turn=1), Rival(dies_ms=300), Rival(unknown=True))
RESTARTS = (
    Restart(),
    Restart(down_ms=300),
    Restart(down_ms=3_000),
    Restart(terminals="shells"),
    Restart(terminals="finished", new_core_id=True),
    Restart(terminals="lost", reuse_addresses=True),
)
MAX_FAULTS = 3


def faults(source: Source) -> list[Fault]:
    """None in half of all runs, else a few."""
    return [_fault(source) for _ in range(source.below(2 * MAX_FAULTS + 1) - MAX_FAULTS)]


def _fault(source: Source) -> Fault:
    method = pick(source, METHODS)
    nth = 0 if chance(source, 12) else 1 + source.below(5)
    what = source.below(len(HAPPENINGS) + 12)
    address: dict[str, Any] = {"method": method, "nth": nth}
    if what < len(HAPPENINGS):
        return Fault(**address, **HAPPENINGS[what])
    match (what - len(HAPPENINGS)) % 6:
        case 0:
            return Fault(**address, delay_ms=pick(source, DELAYS_MS))
        case 1:
            return Fault(**address, apply_ms=pick(source, DELAYS_MS))
        case 2:
            return Fault(**address, error=FaultError(kind=pick(source, ERRORS)))
        case 3:
            return Fault(method="terminal.run", nth=1 + source.below(3), rival=pick(source, RIVALS))
        case 4:
            return Fault(method=method, nth=max(1, nth), restart=pick(source, RESTARTS))
        case _:
            return Fault(**address, hold_until=Until(method=pick(source, METHODS[:-1]), nth=1 + source.below(4)))


def name_of(fault: Fault) -> str:
    """The knob that this fault turns first, for coverage."""
    return next((name for name in KNOBS if getattr(fault, name) != getattr(_BLANK, name)), "nothing")


_BLANK = Fault()
KNOBS = tuple(
    name for name in Fault.__struct_fields__ if name not in ("method", "nth", "connection", "from_ms", "until_ms")
)
