"""The figures that a benchmark run gives, each with its target and whether it is reached."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import msgspec

SCHEMA = 1

Name = Literal[
    "sequential_get",
    "pipelined_get",
    "many_terminals",
    "list_10000",
    "terminal_bytes",
    "hour_ms",
    "hc_connect",
    "thousand_connections",
    "no_cliff",
]


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure has to reach: at least (`least`) or at most `bound`.

    The bound is for the ratio of value to floor where there is a floor, else for the value itself.
    """

    title: str
    unit: str
    floor: str
    bound: float
    least: bool


TARGETS: dict[Name, Target] = {
    "sequential_get": Target("terminal.get, one after another", "calls/s", "echo of lines", 0.70, True),
    "pipelined_get": Target("terminal.get, 64 in flight", "calls/s", "echo of lines", 0.30, True),
    "many_terminals": Target("terminal.get with 10,000 terminals", "calls/s", "the same with 10", 0.90, True),
    "list_10000": Target("terminal.list of 10,000", "MB/s", "msgspec encoding alone", 0.5, True),
    "terminal_bytes": Target("memory of a terminal with its timeline, at 10,000", "bytes", "", 4096, False),
    "hour_ms": Target("a timeline of one hour in virtual time", "ms", "", 5.0, False),
    "hc_connect": Target("hc connect, start to first reply", "ms", 'python -c "import socket"', 2.0, False),
    "thousand_connections": Target("p99 of a call, 1,000 connections open", "us", "p50 of one alone", 20.0, False),
    "no_cliff": Target("steepest step of the curve below", "of the rate before", "", 0.5, True),
}
"""Every figure by its name, in the order of the report."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure. `floor` and `ratio` are null where the value stands alone; `target` is the bound of the target."""

    name: Name
    value: float
    floor: float | None
    ratio: float | None
    target: float
    holds: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one run found out. `curve`: calls in flight and the rate (calls/s) that they gave."""

    schema: int = SCHEMA
    figures: list[Figure]
    curve: list[tuple[int, float]] = []

    @property
    def holds(self) -> bool:
        """Whether every figure reaches its target."""
        return all(figure.holds for figure in self.figures)


def judge(name: Name, value: float, floor: float | None = None) -> Figure:
    """The figure with its verdict."""
    target = TARGETS[name]
    ratio = None if floor is None else value / floor
    judged = value if ratio is None else ratio
    holds = judged >= target.bound if target.least else judged <= target.bound
    return Figure(name=name, value=value, floor=floor, ratio=ratio, target=target.bound, holds=holds)


def steepest(curve: Sequence[tuple[int, float]]) -> Figure:
    """Whether the curve falls off a cliff: the worst rate on it, as a part of the rate one step before."""
    rates = [rate for _, rate in curve]
    return judge("no_cliff", min(after / before for before, after in pairwise(rates)))
