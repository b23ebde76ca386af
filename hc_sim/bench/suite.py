"""The whole run: starts the processes, takes every figure beside its floor, and puts the report together.

Other programs on the machine only ever make a slice slower, so of many short slices, taken turn and turn about with
those of the floor, the fastest counts on both sides.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hc_sim.bench.client import ROOMY, check_reply, connect, echo_lines, get_lines, name_of, one_line, process, rate
from hc_sim.bench.crowd import crowd_figure
from hc_sim.bench.figures import Figure, Name, Report, judge, steepest
from hc_sim.bench.hour import hour_figure
from hc_sim.bench.listing import list_figure
from hc_sim.bench.seats import seated
from hc_sim.bench.startup import connect_figure

MANY = 10_000
FEW = 10
REQUESTS = 1_000
"""Requests with ids of their own; the same ones come again after that."""
IN_FLIGHT = 64
CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much pains a run takes; all of it is settled beforehand, whatever comes out.

    `slices` of so many `seconds` for each rate, so many `lists`, `hours` and `starts` of `hc connect`, and `rounds`
    with `connections` open, in each of which all of them call in `laps` of one second.
    """

    slices: int = 120
    seconds: float = 0.02
    lists: int = 100
    hours: int = 50
    starts: int = 30
    connections: int = 1_000
    laps: int = 1
    rounds: int = 6
    terminals: int = MANY


@dataclass(frozen=True, slots=True)
class Servers:
    """What is measured: sockets of the echo, of a core with few terminals and of one with many."""

    echo: str
    few: str
    many: str
    terminal_bytes: float


def run_bench(effort: Effort | None = None, *, say: Say = lambda _: None) -> Report:
    """Take every figure. `say` is told what is being done. Raises `BenchError` when something cannot be measured."""
    effort = effort or Effort()
    say(_weather())
    with tempfile.TemporaryDirectory(prefix="hc-bench-") as folder, _servers(Path(folder), effort) as servers:
        with seated("server"):
            figures = _races(servers, effort, say)
        with seated("client"):
            figures += _others(Path(folder), servers, effort, say)
            curve = _curve(servers, effort)
    return Report(figures=[*figures, steepest(curve)], curve=curve)


def _races(servers: Servers, effort: Effort, say: Say) -> list[Figure]:
    """The rates of one server beside another's, both ends on one processor."""
    say("round trips beside an echo")
    one = _beside_echo("sequential_get", servers, effort, in_flight=1)
    several = _beside_echo("pipelined_get", servers, effort, in_flight=IN_FLIGHT)
    say(f"with {effort.terminals} terminals")
    return [one, several, _many(servers, effort)]


def _others(folder: Path, servers: Servers, effort: Effort, say: Say) -> list[Figure]:
    figures = [list_figure(servers.many, effort.terminals, effort.lists)]
    figures.append(judge("terminal_bytes", servers.terminal_bytes))
    say("an hour in virtual time")
    figures.append(hour_figure(effort.hours))
    say("hc connect")
    figures.append(connect_figure(folder / "bin", servers.few, effort.starts))
    say(f"{effort.connections} connections, and the curve")
    figures.append(crowd_figure(servers.few, effort.connections, laps=effort.laps, rounds=effort.rounds))
    return figures


@contextlib.contextmanager
def _servers(folder: Path, effort: Effort) -> Iterator[Servers]:
    echo, few, many = (str(folder / name) for name in ("echo", "few", "many"))
    with (
        process("hc_sim.bench.echo", echo, environment=ROOMY),  # a floor at its fastest, never by luck a slow one
        process("hc_sim.bench.fake", few, str(FEW)),
        process("hc_sim.bench.fake", many, str(effort.terminals)) as said,
    ):
        yield Servers(echo, few, many, json.loads(said)["terminal_bytes"])


def _weather() -> str:
    """How busy the machine is: where no core is free, an echo suffers more than a core, and ratios flatter."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    busy = ": too busy for ratios that can be relied on" if load > cores / 2 else ""
    return f"load {load:.1f} on {cores} cores{busy}"


def _names(count: int) -> list[str]:
    """Terminals to ask for, spread over all there are."""
    return [name_of(number * max(1, count // REQUESTS) % count) for number in range(REQUESTS)]


def _beside_echo(name: Name, servers: Servers, effort: Effort, *, in_flight: int) -> Figure:
    lines = get_lines(_names(FEW), REQUESTS)
    with connect(servers.few) as core, connect(servers.echo) as echo:
        reply = one_line(core, lines.text[: lines.size])
        check_reply(reply)
        same = echo_lines((lines.size + len(reply)) // 2, REQUESTS)  # as many bytes in all, there and back
        figure = _race(
            name,
            effort,
            lambda: rate(core, lines, in_flight=in_flight, seconds=effort.seconds),
            lambda: rate(echo, same, in_flight=in_flight, seconds=effort.seconds),
        )
        check_reply(one_line(core, lines.text[: lines.size]))
    return figure


def _many(servers: Servers, effort: Effort) -> Figure:
    several, ten = get_lines(_names(effort.terminals), REQUESTS), get_lines(_names(FEW), REQUESTS)
    with connect(servers.many) as many, connect(servers.few) as few:
        check_reply(one_line(many, several.text[: several.size]))
        return _race(
            "many_terminals",
            effort,
            lambda: rate(many, several, in_flight=1, seconds=effort.seconds),
            lambda: rate(few, ten, in_flight=1, seconds=effort.seconds),
        )


def _race(name: Name, effort: Effort, one: Callable[[], float], other: Callable[[], float]) -> Figure:
    """The best of each, taken turn and turn about.

    How many slices there are is settled beforehand: to stop as soon as a figure looks good would choose the moments in
    which the floor was held up.
    """
    pairs = [(one(), other()) for _ in range(effort.slices)]
    return judge(name, max(value for value, _ in pairs), max(floor for _, floor in pairs))


def _curve(servers: Servers, effort: Effort) -> list[tuple[int, float]]:
    lines = get_lines(_names(FEW), REQUESTS)
    curve = []
    with connect(servers.few) as link:
        for in_flight in CURVE:
            again = range(max(2, effort.slices // 6))
            best = max(rate(link, lines, in_flight=in_flight, seconds=effort.seconds) for _ in again)
            curve.append((in_flight, round(best, 1)))
    return curve
