"""Make a run in which an invariant breaks as small as it can be, with the same invariant still breaking."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from contracts.fuzz.invariants import Broken
from contracts.scenario import Scenario, Step
from hc_sim.script.format import Agent

PLAIN_POLL_MS = 250
MAX_TRIES = 1_500
"""Runs that one shrinking may take; the smallest found by then is taken."""

Try = Callable[[Scenario], Broken | None]
"""Carries a run out and says whether, and how, the invariant still breaks."""


def smaller(scenario: Scenario, attempt: Try) -> Scenario:
    """The smallest run that single changes lead to: fewer steps, agents, faults; plainer manners; rounder times."""
    left = MAX_TRIES
    progress = True
    while progress and left > 0:
        progress = False
        for candidate in candidates(scenario):
            left -= 1
            if left < 0:
                break
            if _still(candidate, attempt):
                scenario, progress = candidate, True
                break
    return scenario


def candidates(scenario: Scenario) -> Iterator[Scenario]:
    """Every run that is one change smaller, the largest changes first."""
    world = scenario.world
    for drive in _fewer_steps(scenario.drive):
        yield _with(scenario, drive=drive)
    for field in ("fault", "terminal", "agent"):
        for fewer in _without_one(getattr(world, field)):
            yield _with(scenario, world=_with(world, **{field: fewer}))
    if world.profile:
        yield _with(scenario, world=_with(world, profile={}))
    for at, agent in enumerate(world.agent):
        for plainer in _plainer_agents(agent):
            agents = [*world.agent[:at], plainer, *world.agent[at + 1 :]]
            yield _with(scenario, world=_with(world, agent=agents))
    if scenario.poll_ms != PLAIN_POLL_MS:
        yield _with(scenario, poll_ms=PLAIN_POLL_MS)


def size(scenario: Scenario) -> int:
    """Steps of the drive, of all agents, and faults."""
    world = scenario.world
    return len(scenario.drive) + sum(len(agent.step) for agent in world.agent) + len(world.fault)


def _fewer_steps(drive: list[Step]) -> Iterator[list[Step]]:
    for at, step in enumerate(drive):
        if step.do == "spawn":
            rest = [other for other in drive if other is not step and other.child != step.as_]
        else:
            rest = drive[:at] + drive[at + 1 :]
        kept = _named(rest)
        if kept:
            yield kept
    for at, step in enumerate(drive):
        if step.background:
            yield _named([*drive[:at], _with(step, background=False, as_=""), *drive[at + 1 :]])


def _named(drive: list[Step]) -> list[Step]:
    """Without the joins and cancels of what is not under way any more."""
    names = {step.as_ for step in drive if step.background}
    return [step for step in drive if not step.of or set(step.of) <= names]


def _without_one(items: list[Any]) -> Iterator[list[Any]]:
    for at in range(len(items)):
        yield items[:at] + items[at + 1 :]


def _plainer_agents(agent: Agent) -> Iterator[Agent]:
    blank = Agent(match=agent.match, step=agent.step)
    if blank != agent:
        yield blank
    for fewer in _without_one(agent.step):
        yield _with(agent, step=fewer, repeat_from=None)
    for name in ("uses", "turn", "status", "send", "kill_ms", "kill_code", "interrupt", "composer", "queued"):
        default = getattr(blank, name)
        if getattr(agent, name) != default:
            yield _with(agent, **{name: default})


def _still(candidate: Scenario, attempt: Try) -> bool:
    try:
        return attempt(candidate) is not None
    except ValueError:
        return False


def _with(value: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(value, **changes)
