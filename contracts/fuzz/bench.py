"""How fast the searches are on this machine, and how soon they find what was planted.

Rates are for one core: counted against the processor time that this process took, so that a busy machine does not look
like a slow one. Scaling is counted by the clock, the best of some rounds.
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Final

import msgspec

from contracts.fuzz.alphabet import spelled
from contracts.fuzz.batch import Batch, Report
from contracts.fuzz.decisions import DECISIONS, decided, timeline
from contracts.fuzz.dice import Dice
from contracts.fuzz.engines import PoolEngine
from contracts.fuzz.exhaustive import explore
from contracts.fuzz.one import Runner
from contracts.fuzz.planted import PLANTED, Planted
from contracts.fuzz.schedule import cases
from contracts.fuzz.shrink import Found, shrunk, tried
from contracts.scenario import Scenario, Step, World
from hc_sim.script.format import Agent
from hc_sim.script.format import Step as Move

SCHEMA: Final = 1
EXHAUSTIVE_STEPS: Final = 5
ALONE_STEPS: Final = 2
FIND_STEPS: Final = 4
"""Histories of up to so many steps are searched for a planted rule."""
TIMELINES: Final = 40_000
RUNS: Final = 400
ROUNDS: Final = 3
BATCHES: Final = 8
BATCH_RUNS: Final = 120
WAIT_S: Final = 120.0


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure; `target` is what it must reach (`least`) or may reach at most, null where nothing is asked of it."""

    name: str
    value: float
    unit: str
    says: str
    target: float | None = None
    least: bool = True

    @property
    def holds(self) -> bool:
        """Whether it reaches its target."""
        if self.target is None:
            return True
        return self.value >= self.target if self.least else self.value <= self.target


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """How soon a planted rule was found and shrunk, and the history that shows it; `seconds` null: it was not."""

    plant: str
    seconds: float | None
    steps: list[str] = []


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of one run."""

    schema: int = SCHEMA
    figures: list[Figure]
    found: list[Hit]

    @property
    def holds(self) -> bool:
        """Whether every figure reaches its target, and every planted rule was found."""
        return all(figure.holds for figure in self.figures) and all(hit.seconds is not None for hit in self.found)


def bench(say: Callable[[str], None] = lambda _: None) -> Bench:
    """Measure everything; `say` is told what comes next."""
    say("every short history, merged")
    merged = exhaustive_rate()
    say("every short history, each alone")
    alone = exhaustive_rate(ALONE_STEPS, unmerged=True)
    say("random timelines through the decision")
    decisions = timeline_rate()
    say("whole supervisors in virtual time")
    runs = run_rate()
    say("one worker and two")
    scale = scaling()
    say("planted rules")
    hits = [hit(planted) for planted in PLANTED]
    seconds = median(one.seconds for one in hits if one.seconds is not None)
    return Bench(
        figures=[
            Figure(
                name="exhaustive", value=merged, unit="histories/s", target=200_000,
                says=f"all histories of {EXHAUSTIVE_STEPS} steps, decision and oracle together",
            ),
            Figure(
                name="exhaustive_alone", value=alone, unit="histories/s",
                says=f"all histories of {ALONE_STEPS} steps, none merged",
            ),
            Figure(
                name="timelines", value=decisions, unit="timelines/s", target=50_000,
                says="random timelines through the settle decision",
            ),
            Figure(
                name="whole_runs", value=runs, unit="runs/s", target=1_000,
                says="whole supervisor in virtual time, one child, ten steps",
            ),
            Figure(name="scaling", value=scale, unit="times", target=1.7, says="random search, two workers over one"),
            Figure(
                name="find_planted", value=seconds, unit="s", target=5.0, least=False,
                says=f"median time to find and shrink each of {len(hits)} planted settle rules",
            ),
        ],
        found=hits,
    )  # fmt: skip


def exhaustive_rate(steps: int = EXHAUSTIVE_STEPS, *, unmerged: bool = False) -> float:
    """Histories a second of one core: tried by the decision and by the oracle, in every case."""
    begun = process_time()
    tallies = [explore(case, steps, unmerged=unmerged) for case in cases(steps)]
    return sum(tally.histories for tally in tallies) / (process_time() - begun)


def timeline_rate(count: int = TIMELINES) -> float:
    """Timelines a second of one core through the decision; drawing them is not counted."""
    dice = Dice(1, DECISIONS)
    drawn = []
    for _ in range(count):
        drawn.append(timeline(dice))
        dice.choices.clear()
    begun = process_time()
    for one in drawn:
        decided(one)
    return count / (process_time() - begun)


ONE_CHILD: Final = Scenario(
    id="one-child",
    why="A child is prompted, looked at, interrupted and retired.",
    clauses=["D8"],
    world=World(
        agent=[
            Agent(
                status="idle",
                step=[
                    Move(at_ms=100, turn=1, status="working"),
                    Move(after_ms=400, status="done"),
                    Move(on_call="terminal.send", turn=2, status="working"),
                    Move(after_ms=400, status="done"),
                    Move(on_call="terminal.send", turn=3, status="working"),
                ],
            )
        ]
    ),
    drive=[
        Step(do="spawn", as_="alpha", args={"handle": "alpha"}),
        Step(do="wait", child="alpha", args={"timeoutMs": 5_000}),
        Step(do="status", child="alpha"),
        Step(do="steer", child="alpha", args={"text": "go on"}),
        Step(do="wait", child="alpha", args={"timeoutMs": 5_000}),
        Step(do="steer", child="alpha", args={"text": "once more"}),
        Step(do="status", child="alpha"),
        Step(do="abort", child="alpha"),
        Step(do="wait", child="alpha", args={"timeoutMs": 500}),
        Step(do="retire", child="alpha"),
    ],
)
"""One child, ten steps."""


def run_rate(count: int = RUNS) -> float:
    """Runs a second of one core, of a whole supervisor with one child and ten steps, every invariant looked at."""
    with Runner() as runner:
        runner.carry_out(ONE_CHILD)
        begun = process_time()
        for _ in range(count):
            runner.carry_out(ONE_CHILD)
        return count / (process_time() - begun)


def scaling(batches: int = BATCHES, runs: int = BATCH_RUNS, rounds: int = ROUNDS) -> float:
    """How many times as fast two workers are as one, over the same runs: the best of some rounds."""
    return max(_time(1, batches, runs) / _time(2, batches, runs) for _ in range(rounds))


def _time(workers: int, batches: int, runs: int) -> float:
    engine = PoolEngine(workers)
    try:
        _through(engine, [Batch(index=at, first=0, count=1) for at in range(workers)])
        begun = perf_counter()
        _through(engine, [Batch(index=at, first=at * runs, count=runs, mode="blind") for at in range(batches)])
        return perf_counter() - begun
    finally:
        engine.close()


def _through(engine: PoolEngine, batches: list[Batch]) -> None:
    for batch in batches:
        engine.submit(batch)
    reports: list[Report] = []
    until = perf_counter() + WAIT_S
    while len(reports) < len(batches):
        if perf_counter() > until:
            raise TimeoutError(f"{len(batches)} batches took more than {WAIT_S:g} s")
        report = engine.next(1.0)
        if report is not None:
            reports.append(report)


def hit(planted: Planted) -> Hit:
    """How soon the search for histories of one step, two steps and so on finds a planted rule, and shrinks it."""
    begun = perf_counter()
    found = find(planted)
    seconds = perf_counter() - begun
    return Hit(plant=planted.name, seconds=seconds if found else None, steps=spelled(found.steps) if found else [])


def find(planted: Planted) -> Found | None:
    """The smallest disagreement over histories of up to `FIND_STEPS` steps, None when there is none."""
    for steps in range(1, FIND_STEPS + 1):
        for case in cases(steps):
            first = explore(case, steps, planted.wait).first
            found = tried(first, case, planted.wait) if first is not None else None
            if found is not None:
                return shrunk(found, planted.wait)
    return None
