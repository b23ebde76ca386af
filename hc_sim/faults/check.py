"""What the types alone cannot say of a fault plan: methods that exist, sensible numbers, bytes that are bytes."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from hc_sim.faults.call import Fault
from hc_sim.faults.links import Bridge, ChildExit
from hc_sim.faults.plan import MAX_FAULTS, FaultPlan

_SIGNED = ("jump_ms", "code", "exit_code", "version", "value", "turn")
"""Numbers that may be below 0; every other one counts something."""
_HEX = ("before_hex", "greeting_hex")
_SIGNALS = frozenset(signal.Signals.__members__)


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong in a plan, and at which key it stands."""

    path: tuple[str | int, ...]
    message: str


def check_plan(plan: FaultPlan, methods: frozenset[str]) -> None:
    """Raise `ValueError` for the first thing that is wrong with a plan, in one line."""
    for mistake in mistakes(plan, methods):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in mistake.path)
        raise ValueError(f"{place.removeprefix('.')}: {mistake.message}")


def mistakes(plan: FaultPlan, methods: frozenset[str]) -> Iterator[Mistake]:
    """Everything that is wrong with a plan that has the right types; `methods` are those that a call can have."""
    for table in FaultPlan.__struct_fields__:
        entries: list[msgspec.Struct] = getattr(plan, table)
        if len(entries) > MAX_FAULTS:
            yield Mistake((table,), f"more than {MAX_FAULTS}")
        for index, entry in enumerate(entries):
            for path, message in _numbers(entry):
                yield Mistake((table, index, *path), message)
            for path, message in _own(entry, methods):
                yield Mistake((table, index, *path), message)


Found = tuple[tuple[str, ...], str]


def _numbers(entry: msgspec.Struct) -> Iterator[Found]:
    for name in entry.__struct_fields__:
        value = getattr(entry, name)
        if isinstance(value, msgspec.Struct):
            yield from (((name, *path), message) for path, message in _numbers(value))
        elif isinstance(value, int) and not isinstance(value, bool) and value < 0 and name not in _SIGNED:
            yield (name,), "must not be negative"
        elif name in _HEX and not _is_hex(value):
            yield (name,), "is not hexadecimal"


def _own(entry: msgspec.Struct, methods: frozenset[str]) -> Iterator[Found]:
    match entry:
        case Fault():
            yield from _fault(entry, methods)
        case Bridge(signal=name) | ChildExit(signal=name) if name is not None and name not in _SIGNALS:
            yield ("signal",), f"there is no signal {name!r}"
        case Bridge(exit_code=code) | ChildExit(code=code) if code is not None and not 0 <= code <= 255:
            yield ("exit_code" if isinstance(entry, Bridge) else "code",), "an exit code is 0 to 255"
        case ChildExit(code=code, signal=name) if code is not None and name is not None:
            yield ("signal",), "cannot stand beside code"
        case _:
            pass


def _fault(fault: Fault, methods: frozenset[str]) -> Iterator[Found]:
    if fault.method != "*" and fault.method not in methods:
        yield ("method",), f"there is no method {fault.method!r}"
    if fault.hold_until is not None and fault.hold_until.method not in {"*", *methods}:
        yield ("hold_until", "method"), f"there is no method {fault.hold_until.method!r}"
    if fault.rival is not None and fault.method not in ("terminal.run", "doc.set"):
        yield ("rival",), "belongs to terminal.run and doc.set: it takes the name, or writes the document"
    if fault.restart is not None and fault.restart.at_ms is not None:
        yield ("restart", "at_ms"), "the call says when; a restart at a time stands in [[restart]]"
    if fault.connection == 0:
        yield ("connection",), "counts from 1"


def _is_hex(text: str) -> bool:
    try:
        bytes.fromhex(text)
    except ValueError:
        return False
    return True
