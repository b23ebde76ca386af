"""One run of a whole supervisor from a seed, in virtual time: the same seed gives the same run, to the byte."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from contracts.fuzz.dice import Dice, Replay, Source
from contracts.fuzz.invariants import Broken, Done
from contracts.fuzz.lean import NOWHERE, Make, correct, fresh_loop, timers
from contracts.fuzz.plans import plan, wants_files
from contracts.fuzz.stage import Stage, settle_down
from contracts.fuzz.watched import Ask
from contracts.scenario import Scenario
from hc_sim.clock import VirtualDeadlock, VirtualLoop
from hc_sim.trace import Event

PLANS = 1
"""The stream of a seed that whole runs are drawn from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one run was and what came of it. `calls`: calls that the core received; `virtual_ms`: how long it took."""

    scenario: Scenario
    choices: tuple[int, ...] = ()
    broken: tuple[Broken, ...] = ()
    seen: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    calls: int = 0
    virtual_ms: int = 0
    trace: list[Event] = field(default_factory=list)
    steps: tuple[Done, ...] = ()
    asks: tuple[Ask, ...] = ()
    folder: str = NOWHERE

    def bytes(self) -> bytes:
        """Everything that happened, in order: the same for the same run, wherever its session files lay."""
        return msgspec.json.encode(self.trace).replace(self.folder.encode(), NOWHERE.encode())


class Runner:
    """Makes runs, one after the other, on one loop that is renewed only when a run has spoilt it."""

    def __init__(self, make: Make = correct) -> None:
        self._make = make
        self._loop: VirtualLoop | None = None
        self._folder = ""

    def run(self, seed: int) -> Result:
        """The run of this seed."""
        return self.draw(Dice(seed, PLANS))

    def replay(self, choices: Sequence[int]) -> Result:
        """The run of choices that were made before, or of any others."""
        return self.draw(Replay(choices))

    def draw(self, source: Source) -> Result:
        """The run that a source makes the choices for."""
        scenario = plan(source)
        return self.carry_out(scenario, tuple(source.choices))

    def carry_out(self, scenario: Scenario, choices: tuple[int, ...] = ()) -> Result:
        """The run of this scenario. Raises `ValueError` for a world that cannot be."""
        if not wants_files(scenario):
            return self._carry_out(scenario, choices, NOWHERE)
        folder = self._folder = self._folder or tempfile.mkdtemp(prefix="fuzz-")
        try:
            return self._carry_out(scenario, choices, folder)
        finally:
            for path in Path(folder).iterdir():
                path.unlink()

    def close(self) -> None:
        """Release the loop, and the folder of session files if one was needed."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _carry_out(self, scenario: Scenario, choices: tuple[int, ...], folder: str) -> Result:
        loop = self._loop = self._loop or fresh_loop()
        loop.clock.micros = 0
        stage = Stage(scenario.world, loop, poll_ms=scenario.poll_ms, make=self._make, folder=folder)
        try:
            loop.run_until_complete(_live(stage, scenario))
        except VirtualDeadlock as error:
            stage.hangs(str(error))
        if stage.broken or timers(loop):
            self._renew()
        events = stage.world.core.trace.events
        return Result(
            scenario=scenario,
            choices=choices,
            broken=tuple(stage.broken),
            seen=frozenset(stage.seen),
            features=frozenset(stage.features),
            calls=sum(event.kind == "call" for event in events),
            virtual_ms=loop.clock.now(),
            trace=events,
            steps=tuple(stage.done),
            asks=tuple(stage.world.client.asks),
            folder=folder,
        )

    def _renew(self) -> None:
        """Nothing of a run that went wrong may reach the next one."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        try:
            loop.run_until_complete(settle_down())
        except (VirtualDeadlock, RuntimeError):
            pass
        finally:
            loop.close()


def run(seed: int, make: Make = correct) -> Result:
    """One run on a loop of its own."""
    with Runner(make) as runner:
        return runner.run(seed)


async def _live(stage: Stage, scenario: Scenario) -> None:
    for step in scenario.drive:
        await stage.carry_out(step)
    await stage.leave()
