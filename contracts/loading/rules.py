"""What a scenario must obey beyond its types: one trigger a step, names that refer to something, possible times."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from contracts.clauses import Clauses
from contracts.judging.match import pattern_faults
from contracts.loading.results import unknown_keys
from contracts.scenario import Expect, Scenario, Step
from contracts.sut.base import METHODS
from hc_sim.faults.check import mistakes
from hc_sim.model import METHODS as WIRE_METHODS
from hc_sim.model import REFUSED
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent
from hc_sim.script.format import Step as AgentStep
from hc_sim.script.places import dotted

MAX_LIMIT_MS = 120_000
"""No scenario may claim the socket host for longer."""

SUT_CALLS: Final = {name: takes for name, takes in METHODS.items() if name != "cancel"}
"""Calls on the system under test and the arguments that they take; `cancel` is a move here."""
CHILD_CALLS: Final = ("steer", "abort", "wait", "status", "collect", "retire")
MOVES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "fire": (("name",), ()),
    "pause": (("ms",), ()),
    "until": (("calls",), ("count",)),
    "join": ((), ()),
    "cancel": ((), ()),
    "write": (("file", "text"), ("append",)),
    "restart": ((), ("ms",)),
}
"""Moves of the world, with the arguments that each one needs and those that it may have."""
_HARNESS_ARGUMENTS: Final = frozenset({"child", "token"})
"""Arguments that the harness fills in; a scenario names the child with the step's own `child`."""

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
SUBJECTS: Final = ("calls", "order", "received", "keys", "terminals", "left", "repo", "git", "file", "methods")
_KEBAB: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ON_THE_WIRE: Final = ("*", *WIRE_METHODS, *REFUSED)
"""What a fault or a count of calls can be about: a method that could ever be called, or every one."""
_CORE: Final = re.compile(r"up|down|absent|directory|regular-file|down-until:\d+")
_VIRTUAL_SOCKET: Final = (
    "virtual time cannot be used on the socket host: a virtual clock cannot see that another process is still working"
    " and would report timeouts that never happened; use hosts = ['memory'], or event triggers and short times"
)
_REAL_MEMORY: Final = "the memory host always runs on virtual time; real time belongs to hosts = ['socket']"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the dotted field, and what is wrong with it."""

    key: str
    message: str


def clauses_of(scenario: Scenario) -> list[str]:
    """Every clause that a scenario speaks of: the listed ones, then those that only its statements name."""
    named = [*scenario.clauses, *(step.clause for step in scenario.drive), *(one.clause for one in scenario.expect)]
    return list(dict.fromkeys(clause for clause in named if clause))


def scenario_problems(scenario: Scenario, stem: str, clauses: Clauses) -> list[Problem]:
    """Everything that is wrong with a scenario that has the right types."""
    return [
        *_head(scenario, stem),
        *_clauses(scenario, clauses),
        *_time(scenario),
        *_world(scenario),
        *_drive(scenario),
        *_expect(scenario),
    ]


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing when no name is near."""
    close = get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _head(scenario: Scenario, stem: str) -> Iterator[Problem]:
    if scenario.id != stem:
        yield Problem("id", f"is {scenario.id!r} in a file named {stem!r}.toml; they must be equal")
    if not _KEBAB.fullmatch(scenario.id):
        yield Problem("id", f"{scenario.id!r} is not in kebab-case (a-z, 0-9 and single dashes)")
    if not scenario.why.strip():
        yield Problem("why", "must say in one sentence why this scenario exists")
    if not scenario.drive:
        yield Problem("drive", "a scenario without a step proves nothing")
    if not 0 < scenario.limit_ms <= MAX_LIMIT_MS:
        yield Problem("limit_ms", f"must be from 1 to {MAX_LIMIT_MS}, not {scenario.limit_ms}")
    if scenario.poll_ms <= 0:
        yield Problem("poll_ms", f"must be above 0, not {scenario.poll_ms}")
    stated = any(step.returns is not None or step.raises is not None or step.at or step.took for step in scenario.drive)
    if not scenario.expect and not stated:
        yield Problem("expect", "nothing is expected, so nothing could fail")


def _clauses(scenario: Scenario, clauses: Clauses) -> Iterator[Problem]:
    if not scenario.clauses:
        yield Problem("clauses", "must name at least one clause")
    named = [("clauses", name) for name in scenario.clauses]
    named += [(f"drive[{index}].clause", step.clause) for index, step in enumerate(scenario.drive)]
    named += [(f"expect[{index}].clause", one.clause) for index, one in enumerate(scenario.expect)]
    for key, name in named:
        if name and name not in clauses:
            yield Problem(key, f"there is no clause {name!r}{nearest(name, clauses)}")
    if len(set(scenario.clauses)) != len(scenario.clauses):
        yield Problem("clauses", "a clause is named twice")


def _time(scenario: Scenario) -> Iterator[Problem]:
    if not scenario.hosts:
        yield Problem("hosts", "must name at least one host: memory, socket")
    if len(set(scenario.hosts)) != len(scenario.hosts):
        yield Problem("hosts", "a host is named twice")
    if scenario.time == "virtual" and "socket" in scenario.hosts:
        yield Problem("time", _VIRTUAL_SOCKET)
    if scenario.time == "real" and "memory" in scenario.hosts:
        yield Problem("time", _REAL_MEMORY)


def _world(scenario: Scenario) -> Iterator[Problem]:
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
        if ".." in file.split("/"):
            yield Problem(f"world.files.{file}", "is outside the run's folder")
    if world.hc != "good" and "memory" in scenario.hosts:
        yield Problem("world.hc", "only the socket host starts an hc executable; use hosts = ['socket']")
    for index, agent in enumerate(world.agent):
        yield from _agent(agent, f"world.agent[{index}]")
    said = ("method", "repeat", "nth")  # what is said below in words of its own
    for mistake in mistakes(world, frozenset(_ON_THE_WIRE)):
        if mistake.path[-1] not in said:
            yield Problem(f"world.{dotted(mistake.path)}", mistake.message)
    for index, fault in enumerate(world.fault):
        yield from _wire_method(fault.method, f"world.fault[{index}].method")
        if fault.hold_until is not None:
            yield from _wire_method(fault.hold_until.method, f"world.fault[{index}].hold_until.method")
        if fault.nth < 0:
            yield Problem(f"world.fault[{index}].nth", "counts from 1; 0 means every call")
        if fault.repeat < 1:
            yield Problem(f"world.fault[{index}].repeat", "must be at least 1; use reply = false to lose the reply")


def _profile_value(name: str, value: Any) -> Iterator[Problem]:
    try:
        msgspec.convert({name: value}, WireProfile)
    except msgspec.ValidationError as error:
        yield Problem(f"world.profile.{name}", str(error))


def _wire_method(method: str, key: str, known: Sequence[str] = _ON_THE_WIRE) -> Iterator[Problem]:
    if method not in known:
        yield Problem(key, f"there is no method {method!r} on the wire{nearest(method, known)}")


def _agent(agent: Agent, key: str) -> Iterator[Problem]:
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
    if step.on_call is not None:
        yield from _wire_method(step.on_call, f"{key}.on_call", list(WIRE_METHODS))
    if step.nth < 1:
        yield Problem(f"{key}.nth", "counts from 1")
    if step.nth != 1 and step.on_call is None:
        yield Problem(f"{key}.nth", "belongs to on_call")
    if step.turn is not None and step.turn_add is not None:
        yield Problem(f"{key}.turn_add", "cannot stand beside turn")
    if step.finish is not None and (step.finish.code is None) == (step.finish.signal is None):
        yield Problem(f"{key}.finish", "needs a code or a signal, one of them")
    if step.file is not None:
        ways = [step.file.append, step.file.append_hex, step.file.replace, step.file.remove or None]
        if sum(way is not None for way in ways) != 1:
            yield Problem(f"{key}.file", "needs exactly one of append, append_hex, replace, remove")


def _drive(scenario: Scenario) -> Iterator[Problem]:
    names: dict[str, Step] = {}
    for index, step in enumerate(scenario.drive):
        key = f"drive[{index}]"
        yield from _step(step, key)
        yield from _references(step, key, names)
        background = {name: earlier for name, earlier in names.items() if earlier.background}
        for field, message in unknown_keys(step, background):
            yield Problem(f"{key}.{field}", message)
        if step.as_ and step.as_ in names:
            yield Problem(f"{key}.as", f"{step.as_!r} is already the name of an earlier step")
        if step.as_:
            names[step.as_] = step


def _step(step: Step, key: str) -> Iterator[Problem]:
    if step.do not in SUT_CALLS and step.do not in MOVES:
        yield Problem(f"{key}.do", f"there is no step {step.do!r}{nearest(step.do, (*SUT_CALLS, *MOVES))}")
    else:
        yield from _arguments(step, key)
    if step.do in MOVES and step.do != "join" and (step.returns is not None or step.raises is not None):
        yield Problem(key, f"{step.do} is a move of the world: it neither returns nor raises")
    if step.returns is not None and step.raises is not None:
        yield Problem(f"{key}.raises", "cannot stand beside returns")
    if step.background and step.do not in SUT_CALLS:
        yield Problem(
            f"{key}.background", f"only a call on the system under test can run in the background, not {step.do}"
        )
    if step.do == "until" and isinstance(calls := step.args.get("calls"), str):
        yield from _wire_method(calls, f"{key}.args.calls")
    for name in ("returns", "raises", "at", "took"):
        for field, message in pattern_faults(getattr(step, name), f"{key}.{name}"):
            yield Problem(field, message)


def _arguments(step: Step, key: str) -> Iterator[Problem]:
    needed, others = MOVES.get(step.do, ((), ()))
    allowed = {*needed, *others} if step.do in MOVES else SUT_CALLS[step.do] - _HARNESS_ARGUMENTS
    for name in needed:
        if name not in step.args:
            yield Problem(f"{key}.args.{name}", f"is missing; {step.do} needs it")
    for name in step.args:
        if name not in allowed:
            takes = ", ".join(sorted(allowed)) or "none"
            yield Problem(
                f"{key}.args.{name}", f"{step.do} has no such argument{nearest(name, allowed)} (it takes {takes})"
            )


def _references(step: Step, key: str, names: dict[str, Step]) -> Iterator[Problem]:
    spawned = [name for name, earlier in names.items() if earlier.do == "spawn"]
    background = [name for name, earlier in names.items() if earlier.background]
    if step.child and step.child not in spawned:
        yield Problem(
            f"{key}.child", f"no earlier spawn is named {step.child!r} (by `as`){nearest(step.child, spawned)}"
        )
    if step.do in CHILD_CALLS and not step.child:
        yield Problem(
            f"{key}.child", f"is missing: {step.do} is about a child; give the spawn an `as` and name it here"
        )
    for name in step.of:
        if name not in background:
            yield Problem(f"{key}.of", f"no earlier background step is named {name!r}{nearest(name, background)}")
    if step.do in ("join", "cancel") and not step.of:
        yield Problem(f"{key}.of", f"is missing: {step.do} needs the names of background steps")


def _expect(scenario: Scenario) -> Iterator[Problem]:
    children = [step.as_ for step in scenario.drive if step.do == "spawn" and step.as_]
    children += [terminal.name for terminal in scenario.world.terminal if terminal.name]
    for index, one in enumerate(scenario.expect):
        key = f"expect[{index}]"
        yield from _subject(one, key)
        if one.child and one.child not in children:
            yield Problem(f"{key}.child", f"there is no child or terminal {one.child!r}{nearest(one.child, children)}")
        if one.calls is not None:
            yield from _wire_method(one.calls, f"{key}.calls")
        for place, method in enumerate([*(one.order or ()), *(one.methods or ())]):
            yield from _wire_method(method, f"{key}.{'order' if one.order else 'methods'}[{place}]")
        if one.repo is not None and not scenario.world.repo:
            yield Problem(f"{key}.repo", "needs world.repo = true")
        for name in ("where", "with_", "terminals"):
            for field, message in pattern_faults(getattr(one, name), f"{key}.{name.rstrip('_')}"):
                yield Problem(field, message)


def _subject(one: Expect, key: str) -> Iterator[Problem]:
    subjects = [name for name in SUBJECTS if getattr(one, name) is not None] + (["run"] if one.run else [])
    if len(subjects) != 1:
        yield Problem(
            key, f"needs exactly one subject of run, {', '.join(SUBJECTS)}; it has {' and '.join(subjects) or 'none'}"
        )
        return
    subject = subjects[0]
    for name, owners in _OWNERS.items():
        if getattr(one, name) != _DEFAULTS[name] and subject not in owners:
            yield Problem(f"{key}.{name.rstrip('_')}", f"belongs to {' or '.join(owners)}, not to {subject}")
    if one.nth < 1:
        yield Problem(f"{key}.nth", "counts from 1")
    if subject == "run" and not one.with_:
        yield Problem(f"{key}.with", "is missing: say what the started terminal must look like")
    if subject == "file" and one.mode is None and one.text is None:
        yield Problem(key, "file needs a mode or a text")
    if one.count is not None and (one.at_least is not None or one.at_most is not None):
        yield Problem(f"{key}.count", "cannot stand beside at_least or at_most")


_OWNERS: Final[dict[str, tuple[str, ...]]] = {
    "count": ("calls",),
    "at_least": ("calls",),
    "at_most": ("calls",),
    "where": ("calls",),
    "after_ms": ("calls",),
    "before_ms": ("calls",),
    "child": ("calls", "order", "run", "received", "keys"),
    "nth": ("run",),
    "with_": ("run",),
    "mode": ("file",),
    "text": ("file",),
}
_DEFAULTS: Final = msgspec.structs.asdict(Expect())
