"""The reference of faults: every knob with its classes, the table it is written in, and what it does.

It is read off the notes on the fields themselves, and off the first sentences of the docstrings of what is turned in
Python; a knob without a note is no knob, so the table cannot lag.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, get_type_hints

import msgspec

from hc_sim.faults.call import Fault
from hc_sim.faults.life import ClockJump, DocumentFault, Restart, Rival
from hc_sim.faults.links import Bridge, ChildExit, LinkFault
from hc_sim.knobs import CLASSES, Knob

TABLES: tuple[tuple[str, str, type[msgspec.Struct]], ...] = (
    ("fault", "[[fault]]", Fault),
    ("rival", "[[fault]] rival = {}", Rival),
    ("link", "[[link]]", LinkFault),
    ("bridge", "[[bridge]]", Bridge),
    ("restart", "[[restart]] or [[fault]] restart = {}", Restart),
    ("document", "[[document]]", DocumentFault),
    ("clock", "[[clock]]", ClockJump),
    ("child", "[[child]]", ChildExit),
)
"""The tables of a fault plan; those of agents and of the wire profile follow them."""

PYTHON = (
    (4, "hc_sim.occupied:occupy"),
    (4, "hc_sim.server:SocketPathError"),
    (14, "hc_sim.clock:run_virtual"),
    (14, "hc_sim.clock:VirtualClock"),
    (14, "hc_sim.playing.fake:FakeCore.advance"),
    (14, "hc_sim.driver:Driver.scheduled"),
    (15, "hc_sim.trace:Trace.calls"),
    (15, "hc_sim.trace:Trace.count"),
    (15, "hc_sim.trace:Trace.one"),
    (15, "hc_sim.trace:Trace.none"),
    (15, "hc_sim.trace:Trace.none_after"),
    (15, "hc_sim.trace:Trace.texts"),
    (15, "hc_sim.trace:Trace.keys"),
    (15, "hc_sim.trace:Trace.left"),
)
"""What is turned, or asked, in Python only: its class and where it is."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the reference: a knob in one of its classes. `name` is `table.field`, or the path of an object."""

    number: int
    class_: str
    name: str
    where: str
    text: str


@cache
def reference() -> tuple[Row, ...]:
    """Every knob once in each of its classes, in the order of the classes."""
    rows = [*_fields(), *_objects()]
    return tuple(sorted(rows, key=lambda row: row.number))


def knob_names() -> list[str]:
    """Every knob once."""
    return list(dict.fromkeys(row.name for row in reference()))


def _tables() -> Iterator[tuple[str, str, type[msgspec.Struct]]]:
    from hc_sim.profile import WireProfile
    from hc_sim.script.format import Agent, FileWrite, Reborn, Step

    yield from TABLES
    yield "agent", "[[agent]]", Agent
    yield "step", "[[agent.step]]", Step
    yield "file", "[[agent.step]] file = {}", FileWrite
    yield "reborn", "[[agent.step]] reborn = {}", Reborn
    yield "profile", "profile (--profile, [world.profile])", WireProfile


def _fields() -> Iterator[Row]:
    for table, where, type_ in _tables():
        for field, hint in get_type_hints(type_, include_extras=True).items():
            for note in getattr(hint, "__metadata__", ()):
                if isinstance(note, Knob):
                    for number in note.classes:
                        yield Row(number, CLASSES[number], f"{table}.{field}", where, note.text)


def _objects() -> Iterator[Row]:
    for number, path in PYTHON:
        module, _, name = path.partition(":")
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        doc = inspect.getdoc(found) or ""
        text = " ".join(doc.partition("\n\n")[0].split())
        yield Row(number, CLASSES[number], name, module, text)
