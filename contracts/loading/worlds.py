"""What the world of a scenario must obey beyond its types: agents, terminals, faults, files, variables."""

import re
import signal
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from contracts.loading.arguments import path_fault, variable_faults
from contracts.loading.problem import Problem, nearest
from contracts.loading.scripts import pi_problems
from contracts.scenario import Scenario, Terminal, World
from hc_sim.core.rules import NAME_RULE, valid_name
from hc_sim.faults.check import mistakes
from hc_sim.model import METHODS as WIRE_METHODS
from hc_sim.model import REFUSED
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent
from hc_sim.script.format import Step as AgentStep
from hc_sim.script.load import check_agent
from hc_sim.script.places import dotted

TRIGGERS: Final = ("at_ms", "after_ms", "on_call", "after_observations", "by_hand", "on_prompt")
EFFECTS: Final = (
    "turn",
    "turn_add",
    "status",
    "kind",
    "msg",
    "app",
    "finish",
    "file",
    "reborn",
    "rename",
    "labels",
    "composer",
    "send",
    "note",
)
MAX_EXIT_CODE: Final = 255
ON_THE_WIRE: Final = ("*", *WIRE_METHODS, *REFUSED)
"""What a fault or a count of calls can be about: a method that could ever be called, or every one."""
_CORE: Final = re.compile(r"up|down|absent|directory|regular-file|down-until:\d{1,10}")
_SIGNALS: Final = frozenset(signal.Signals.__members__)


def world_problems(scenario: Scenario) -> Iterator[Problem]:
    """Everything that is wrong with the world of a scenario."""
    world = scenario.world
    if not _CORE.fullmatch(world.core):
        yield Problem(
            "world.core", f"{world.core!r} is none of up, down, absent, directory, regular-file, down-until:MS"
        )
    for name in world.profile:
        if name not in WireProfile.__struct_fields__:
            near = nearest(name, WireProfile.__struct_fields__)
            yield Problem(f"world.profile.{name}", f"the wire profile has no field {name!r}{near}")
        else:
            yield from _profile_value(name, world.profile[name])
    for file in world.files:
        if fault := path_fault(file):
            yield Problem(f"world.files.{file}", fault)
    if world.hc != "good" and "memory" in scenario.hosts:
        yield Problem("world.hc", "only the socket host starts an hc executable; use hosts = ['socket']")
    yield from pi_problems(scenario)
    yield from _variables(world)
    yield from _terminals(world.terminal)
    for index, agent in enumerate(world.agent):
        yield from _agent(agent, f"world.agent[{index}]")
    yield from _faults(world)


def wire_method(method: str, key: str, known: Sequence[str] = ON_THE_WIRE) -> Iterator[Problem]:
    """A problem, unless the method is on the wire."""
    if method not in known:
        yield Problem(key, f"there is no method {method!r} on the wire{nearest(method, known)}")


def by_hand(world: World) -> list[str]:
    """The names that a `fire` can have: those of the agents' steps that wait for a hand."""
    return [step.by_hand for agent in world.agent for step in agent.step if step.by_hand is not None]


def _variables(world: World) -> Iterator[Problem]:
    for table in ("env", "core_env", "memory_env"):
        for place, message in variable_faults(getattr(world, table)):
            yield Problem(f"world.{table}{place}", message)
    for index, name in enumerate(world.unset):
        for _, message in variable_faults({name: ""}):
            yield Problem(f"world.unset[{index}]", message)


def _terminals(terminals: Sequence[Terminal]) -> Iterator[Problem]:
    names: set[str] = set()
    for index, terminal in enumerate(terminals):
        key = f"world.terminal[{index}]"
        if not terminal.argv:
            yield Problem(f"{key}.argv", "is empty; a terminal runs a program")
        if terminal.turn < 0:
            yield Problem(f"{key}.turn", "must not be negative")
        if terminal.finished is not None and not 0 <= terminal.finished <= MAX_EXIT_CODE:
            yield Problem(f"{key}.finished", f"an exit code is 0 to {MAX_EXIT_CODE}")
        if terminal.name is not None and "{" not in terminal.name and not valid_name(terminal.name):
            yield Problem(f"{key}.name", f"{terminal.name!r} is no name of a terminal: {NAME_RULE}")
        if terminal.name is not None and terminal.name in names:
            yield Problem(f"{key}.name", f"{terminal.name!r} is already the name of another terminal")
        names |= {terminal.name} if terminal.name is not None else set()


def _faults(world: World) -> Iterator[Problem]:
    said = ("method", "repeat", "nth")  # what is said below in words of its own
    for mistake in mistakes(world, frozenset(ON_THE_WIRE)):
        if mistake.path[-1] not in said:
            yield Problem(f"world.{dotted(mistake.path)}", mistake.message)
    for index, fault in enumerate(world.fault):
        yield from wire_method(fault.method, f"world.fault[{index}].method")
        if fault.hold_until is not None:
            yield from wire_method(fault.hold_until.method, f"world.fault[{index}].hold_until.method")
        if fault.nth < 0:
            yield Problem(f"world.fault[{index}].nth", "counts from 1; 0 means every call")
        if fault.repeat < 1:
            yield Problem(f"world.fault[{index}].repeat", "must be at least 1; use reply = false to lose the reply")


def _profile_value(name: str, value: Any) -> Iterator[Problem]:
    try:
        msgspec.convert({name: value}, WireProfile)
    except msgspec.ValidationError as error:
        yield Problem(f"world.profile.{name}", str(error))


def _agent(agent: Agent, key: str) -> Iterator[Problem]:
    """What is wrong with an agent: in our words where we have some, else in those of the simulator that plays it."""
    ours = list(_agent_in_our_words(agent, key))
    yield from ours or (
        Problem(f"{key}.{dotted(problem.path) or problem.key}", problem.message) for problem in check_agent(agent)
    )


def _agent_in_our_words(agent: Agent, key: str) -> Iterator[Problem]:
    for index, step in enumerate(agent.step):
        yield from _agent_step(step, f"{key}.step[{index}]")
    for name in ("repeat_from", "after_esc"):
        index = getattr(agent, name)
        if index is not None and not 0 <= index < len(agent.step):
            yield Problem(f"{key}.{name}", f"there is no step {index}; the timeline has {len(agent.step)}, from 0")


def _agent_step(step: AgentStep, key: str) -> Iterator[Problem]:
    triggers = [name for name in TRIGGERS if getattr(step, name) is not None]
    if len(triggers) != 1:
        written = " and ".join(triggers) or "none"
        yield Problem(key, f"needs exactly one trigger of {', '.join(TRIGGERS)}; it has {written}")
    if not step.vanish and all(getattr(step, name) is None for name in EFFECTS):
        yield Problem(key, f"has no effect; set one of {', '.join((*EFFECTS, 'vanish'))}")
    for name in ("at_ms", "after_ms", "after_observations", "turn"):
        value = getattr(step, name)
        if value is not None and value < 0:
            yield Problem(f"{key}.{name}", "must not be negative")
    if step.on_call is not None:
        yield from wire_method(step.on_call, f"{key}.on_call", list(WIRE_METHODS))
    if step.nth < 1:
        yield Problem(f"{key}.nth", "counts from 1")
    if step.nth != 1 and step.on_call is None:
        yield Problem(f"{key}.nth", "belongs to on_call")
    if step.turn is not None and step.turn_add is not None:
        yield Problem(f"{key}.turn_add", "cannot stand beside turn")
    yield from _ends(step, key)
    if step.file is not None:
        ways = [step.file.append, step.file.append_hex, step.file.replace, step.file.remove or None]
        if sum(way is not None for way in ways) != 1:
            yield Problem(f"{key}.file", "needs exactly one of append, append_hex, replace, remove")


def _ends(step: AgentStep, key: str) -> Iterator[Problem]:
    if step.finish is None:
        return
    code, name = step.finish.code, step.finish.signal
    if (code is None) == (name is None):
        yield Problem(f"{key}.finish", "needs a code or a signal, one of them")
    if code is not None and not 0 <= code <= MAX_EXIT_CODE:
        yield Problem(f"{key}.finish.code", f"an exit code is 0 to {MAX_EXIT_CODE}")
    if name is not None and name not in _SIGNALS:
        yield Problem(f"{key}.finish.signal", f"there is no signal {name!r}{nearest(name, _SIGNALS)}")
