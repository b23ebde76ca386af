"""What a look is asked for, and what it brings back: the values that travel to and from a process of its own."""
# ruff: noqa: RUF012 - msgspec gives every value its own copy of an empty default

from collections.abc import Collection
from typing import Final, Literal

from contracts.checks import CHECKS
from contracts.loading.rules import clauses_of
from contracts.records import Record
from contracts.scenario import HostName, Scenario
from contracts.violations.entries import Violation

DEAR: Final = frozenset({"i4-type-checker", "a1-hermetic"})
"""Checks that cost as much as a hundred scenarios: made only where an entry names them."""
AUDITS: Final = frozenset(
    {"i1-touches-nothing", "i1-made-in-silence", "d2-touches-nothing", "d3-no-shell", "a3-no-memory-gate"}
)
"""Checks that start an interpreter of their own: made for violations of their clause, and for all when thorough."""

Depth = Literal["quick", "usual", "thorough"]
"""`quick`: the evidence of the broken clause alone, which shows whether it is caught but not what else turns red;
`usual`: all evidence but some audits; `thorough`: with the audits of every clause."""


class Plan(Record, frozen=True):
    """What to look at in the packages below `root`.

    `part`: `gate` (what may turn red), `probes` (the built-in ones alone), `whole` (a control: everything there is) or
    `live` (the core below `core_root`, by a live run). `clauses`: for a quick gate, only the evidence of these.
    `socket_of`: also over the socket, every scenario of these clauses. `looks`: also these, by id. `audits_of`: the
    audits of these clauses alone; None: of every clause. The rest is for a whole run: the order by `seed`, how many
    `workers`, every poll interval times `poll`, and the supervisor that the command `sut` starts in `sut_cwd` instead
    of our own.
    """

    root: str
    part: Literal["gate", "probes", "whole", "live"] = "gate"
    clauses: list[str] = []
    socket_of: list[str] = []
    looks: list[str] = []
    audits_of: list[str] | None = None
    core_root: str = ""
    seed: int = 0
    workers: int = 0
    poll: float = 1.0
    sut: str = ""
    sut_cwd: str = ""


class Looked(Record, frozen=True):
    """What a look saw.

    `red`: each must clause that fails, and by which scenarios and checks. `errored`: runs that broke, in words.
    `probes`: built-in probes that did not hold. `differences`: what a live run named. `runs`: how many were judged.
    `why`: why there was no look at all; nothing else is said then.
    """

    red: dict[str, list[str]] = {}
    errored: list[str] = []
    probes: list[str] = []
    differences: list[str] = []
    runs: int = 0
    real_ms: int = 0
    why: str = ""


def plan_of(one: Violation, depth: Depth = "usual") -> Plan:
    """How a violation of the supervisor is looked at, in a copy whose place is still to be filled in."""
    return Plan(
        root="",
        clauses=list(one.breaks) if depth == "quick" else [],
        socket_of=list(one.breaks) if "socket" in one.hosts else [],
        looks=list(one.looks),
        audits_of=None if depth == "thorough" else list(one.breaks),
    )


def scenarios_of(
    plan: Plan, scenarios: list[Scenario], weak: Collection[str] = ()
) -> list[tuple[Scenario, list[HostName]]]:
    """The must scenarios of a gate plan, each with the hosts it is to run on. A should can turn no must red.

    `weak`: should clauses that the plan is about, whose own scenarios are among them.
    """
    chosen: list[tuple[Scenario, list[HostName]]] = []
    for one in scenarios:
        named = set(clauses_of(one))
        if one.level != "must" and named.isdisjoint(weak):
            continue
        hosts: list[HostName] = []
        if "memory" in one.hosts and (not plan.clauses or named & set(plan.clauses)):
            hosts.append("memory")
        if "socket" in one.hosts and (one.id in plan.looks or named & set(plan.socket_of)):
            hosts.append("socket")
        if hosts:
            chosen.append((one, hosts))
    return chosen


def checks_of(plan: Plan) -> list[str]:
    """The checks of a gate plan: all but the dear ones, the audits that are due, and whatever it names."""
    return [name for name, one in CHECKS.items() if name in plan.looks or _is_due(name, one.clause, plan)]


def _is_due(name: str, clause: str, plan: Plan) -> bool:
    if name in DEAR or (plan.clauses and clause not in plan.clauses):
        return False
    return name not in AUDITS or plan.audits_of is None or clause in plan.audits_of
