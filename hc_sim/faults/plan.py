"""FaultPlan: everything that goes wrong, as one value; and how far it has come."""

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import msgspec

from hc_sim.faults.call import Fault
from hc_sim.faults.life import ClockJump, DocumentFault, Restart
from hc_sim.faults.links import Bridge, ChildExit, LinkFault
from hc_sim.script.format import Strict

MAX_FAULTS = 10_000
"""Faults of one plan, injected ones included."""


class FaultPlan(Strict, frozen=True):
    """Everything that goes wrong: with calls, connections, the core itself, documents, clocks and processes.

    A script file and the world of a scenario are fault plans too: they have these tables beside their agents.
    """

    fault: list[Fault] = msgspec.field(default_factory=list)
    link: list[LinkFault] = msgspec.field(default_factory=list)
    restart: list[Restart] = msgspec.field(default_factory=list)
    document: list[DocumentFault] = msgspec.field(default_factory=list)
    clock: list[ClockJump] = msgspec.field(default_factory=list)
    bridge: list[Bridge] = msgspec.field(default_factory=list)
    child: list[ChildExit] = msgspec.field(default_factory=list)


Faults: TypeAlias = FaultPlan | Sequence[Fault]
"""A plan, or the calls of one alone."""

Moment: TypeAlias = Restart | DocumentFault | ClockJump
"""What happens to the core at a time of its own clock."""


def as_plan(faults: Faults) -> FaultPlan:
    """The plan; faults of calls alone become one."""
    return faults if isinstance(faults, FaultPlan) else FaultPlan(fault=list(faults))


F = TypeVar("F", Fault, LinkFault)


@dataclass(slots=True)
class _Counted(Generic[F]):
    fault: F
    met: int = 0

    def meets(self, now: int) -> bool:
        """Count one that is meant, if it comes at a time that is; whether it is the one that the fault is for."""
        if not within(self.fault.from_ms, self.fault.until_ms, now):
            return False
        self.met += 1
        last = self.fault.nth + (self.fault.times - 1 if isinstance(self.fault, LinkFault) else 0)
        return self.fault.nth == 0 or self.fault.nth <= self.met <= last


class Planned:
    """A plan under way: what was counted, and what is still to come. It is told of calls, connections and times."""

    def __init__(self, faults: Faults = ()) -> None:
        plan = as_plan(faults)
        self._calls = [_Counted(fault) for fault in plan.fault]
        self._links = [_Counted(fault) for fault in plan.link]
        order = itertools.count()
        moments: list[Moment] = [*plan.document, *plan.clock, *plan.restart]
        self._moments = [(moment.at_ms or 0, next(order), moment) for moment in moments]
        heapq.heapify(self._moments)

    @property
    def idle(self) -> bool:
        """Whether nothing is planned (any more) that could meet a call or a connection that is open."""
        return not (self._calls or self._links or self._moments)

    def call(self, method: str, conn: int, now: int) -> Fault | None:
        """A call came: the first fault that meets it, or None."""
        met = None
        for counted in self._calls:
            fault = counted.fault
            meant = fault.method in ("*", method) and fault.connection in (None, conn)
            if meant and counted.meets(now) and met is None:
                met = fault
        return met

    def link(self, now: int) -> LinkFault | None:
        """A connection was opened: the first fault that meets it, or None."""
        return next(iter([counted.fault for counted in self._links if counted.meets(now)]), None)

    def inject(self, fault: Fault | LinkFault) -> None:
        """Plan one more fault, before those that were planned; its `nth` counts what comes from now on.

        Raises `ValueError` when `MAX_FAULTS` are planned already.
        """
        if len(self._calls) + len(self._links) >= MAX_FAULTS:
            raise ValueError(f"{MAX_FAULTS} faults are planned already")
        if isinstance(fault, Fault):
            self._calls.insert(0, _Counted(fault))
        else:
            self._links.insert(0, _Counted(fault))

    def next_due(self) -> int | None:
        """When something happens to the core by itself."""
        return self._moments[0][0] if self._moments else None

    def take(self, now: int) -> tuple[int, Moment] | None:
        """The next thing that has happened by `now` and when, or None; each is taken once."""
        if not self._moments or self._moments[0][0] > now:
            return None
        at, _, moment = heapq.heappop(self._moments)
        return at, moment


def within(from_ms: int | None, until_ms: int | None, now: int) -> bool:
    """Whether `now` lies at or after the one and before the other; an unset end is open."""
    return (from_ms is None or now >= from_ms) and (until_ms is None or now < until_ms)
