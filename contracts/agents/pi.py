"""Check the headless clauses against an installed `pi`: its parts, a few at a time, and what they saw."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.agents import pi_dialogs, pi_ends, pi_runs, pi_scripted, pi_terminal
from contracts.agents.ended import run_until_ended, sweep
from contracts.agents.found import Pi
from contracts.agents.stage import Fact, Row, Stage, decide
from hc_sim.programs.model import serve_model

AT_ONCE = 3
PART_S = 120.0
"""How long one part may take."""

Part = Callable[[Stage], Awaitable[None]]
PARTS: dict[str, Part] = {
    "prompt": pi_runs.prompt,
    "tool": pi_runs.tool,
    "follow-up": pi_runs.follow_up,
    "abort-stream": pi_runs.abort_stream,
    "abort-tool": pi_runs.abort_tool,
    "errors": pi_runs.errors,
    "waits": pi_runs.waits,
    "policies": pi_dialogs.policies,
    "open-question": pi_dialogs.open_question,
    "trust": pi_dialogs.trust,
    "own-exits": pi_ends.own_exits,
    "signals": pi_ends.signals,
    "early": pi_ends.early,
    "retiring": pi_ends.retiring,
    "by-hand": pi_ends.by_hand,
    "starts": pi_ends.starts,
    "old-node": pi_ends.old_nodes,
    "terminal": pi_terminal.terminal,
    "scripted-runs": pi_scripted.scripted_runs,
    "scripted-queues": pi_scripted.scripted_queues,
    "scripted-questions": pi_scripted.scripted_questions,
}
"""Each is a corner of its own; none needs another."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A part that could not be played to its end: no verdict on the clauses that it would have looked at."""

    part: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PiReport:
    """What was seen of one installed `pi`."""

    pi: Pi
    rows: tuple[Row, ...]
    facts: tuple[Fact, ...]
    broken: tuple[Broken, ...]

    @property
    def clauses(self) -> dict[str, bool]:
        """Clause id to whether everything that was looked at for it holds, in the order of the ids."""
        found: dict[str, bool] = {}
        for row in self.rows:
            found[row.clause] = found.get(row.clause, True) and row.ok
        return dict(sorted(found.items()))

    @property
    def holds(self) -> bool:
        """Whether everything was looked at, and holds."""
        return not self.broken and all(row.ok for row in self.rows)


def run_pi(
    pi: Pi, *, parts: Sequence[str] = (), at_once: int = AT_ONCE, tell: Callable[[str], None] = lambda _: None
) -> PiReport:
    """Play the parts (default: all) against this program, in a temporary folder; afterwards nothing is left of them.

    `tell` is called with the name of each part that begins. Raises `CalledOffError`, `KeyboardInterrupt`, `KeyError`
    for a part that there is not.
    """
    chosen = {name: PARTS[name] for name in parts or PARTS}
    with tempfile.TemporaryDirectory(prefix="legion-pi-") as folder:
        try:
            return run_until_ended(_run(pi, chosen, Path(folder), at_once, tell))
        finally:
            sweep(Path(folder))


async def _run(pi: Pi, parts: dict[str, Part], folder: Path, at_once: int, tell: Callable[[str], None]) -> PiReport:
    turn = asyncio.Semaphore(at_once)

    async def one(name: str, part: Part) -> tuple[Stage | None, Broken | None]:
        async with turn, serve_model(decide=decide) as model:
            tell(name)
            stage = Stage(part=name, pi=pi, model=model, folder=folder / name)
            try:
                await asyncio.wait_for(part(stage), PART_S)
            except TimeoutError as error:
                return stage, Broken(name, str(error) or f"it took longer than {PART_S:g} s")
            except Exception as error:
                return stage, Broken(name, f"{type(error).__name__}: {error}")
            return stage, None

    played = await asyncio.gather(*(one(name, part) for name, part in parts.items()))
    stages = [stage for stage, _ in played if stage is not None]
    return PiReport(
        pi=pi,
        rows=tuple(row for stage in stages for row in stage.rows),
        facts=tuple(fact for stage in stages for fact in stage.facts),
        broken=tuple(broken for _, broken in played if broken is not None),
    )
