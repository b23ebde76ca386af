"""What a scenario must obey beyond its types: one trigger a step, names that refer to something, possible times."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from contracts.clauses import Clauses
from contracts.judging.match import is_operators, pattern_faults
from contracts.loading.arguments import MOVES, SUT_CALLS, argument_faults, path_fault
from contracts.loading.problem import Problem, nearest
from contracts.loading.results import unknown_keys, unknown_program_keys
from contracts.loading.worlds import by_hand, wire_method, world_problems
from contracts.scenario import Expect, Scenario, Step

MAX_LIMIT_MS = 120_000
"""No scenario may claim the socket host for longer."""

CHILD_CALLS: Final = ("steer", "abort", "wait", "status", "collect", "retire")
SUBJECTS: Final = (
    "calls",
    "order",
    "received",
    "keys",
    "terminals",
    "left",
    "repo",
    "git",
    "file",
    "methods",
    "lines",
    "starts",
)
_KEBAB: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VIRTUAL_SOCKET: Final = (
    "virtual time cannot be used on the socket host: a virtual clock cannot see that another process is still working"
    " and would report timeouts that never happened; use hosts = ['memory'], or event triggers and short times"
)
_REAL_MEMORY: Final = "the memory host always runs on virtual time; real time belongs to hosts = ['socket']"


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
        *world_problems(scenario),
        *_drive(scenario),
        *_expect(scenario),
    ]


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


def _drive(scenario: Scenario) -> Iterator[Problem]:
    names: dict[str, Step] = {}
    for index, step in enumerate(scenario.drive):
        key = f"drive[{index}]"
        yield from _step(step, key)
        yield from _references(step, key, names)
        background = {name: earlier for name, earlier in names.items() if earlier.background}
        for field, message in unknown_keys(step, background):
            yield Problem(f"{key}.{field}", message)
        yield from _fired(step, key, by_hand(scenario.world))
        if step.as_ and step.as_ in names:
            yield Problem(f"{key}.as", f"{step.as_!r} is already the name of an earlier step")
        if step.as_:
            names[step.as_] = step


def _step(step: Step, key: str) -> Iterator[Problem]:
    if step.do not in SUT_CALLS and step.do not in MOVES:
        yield Problem(f"{key}.do", f"there is no step {step.do!r}{nearest(step.do, (*SUT_CALLS, *MOVES))}")
    else:
        yield from (Problem(f"{key}.{field}", message) for field, message in argument_faults(step))
    if step.at_ms is not None and step.at_ms < 0:
        yield Problem(f"{key}.at_ms", "must not be negative")
    if step.do in MOVES and step.do != "join" and (step.returns is not None or step.raises is not None):
        yield Problem(key, f"{step.do} is a move of the world: it neither returns nor raises")
    if step.returns is not None and step.raises is not None:
        yield Problem(f"{key}.raises", "cannot stand beside returns")
    if step.background and step.do not in SUT_CALLS:
        yield Problem(
            f"{key}.background", f"only a call on the system under test can run in the background, not {step.do}"
        )
    if step.do == "until" and isinstance(calls := step.args.get("calls"), str):
        yield from wire_method(calls, f"{key}.args.calls")
    for name in ("at", "took"):
        if isinstance(table := getattr(step, name), dict) and not is_operators(table):
            yield Problem(f"{key}.{name}", f"is a number of ms or a test on it, such as {{ max = 500 }}; not {table!r}")
    for name in ("returns", "raises", "at", "took"):
        for field, message in pattern_faults(getattr(step, name), f"{key}.{name}"):
            yield Problem(field, message)


def _fired(step: Step, key: str, known: Sequence[str]) -> Iterator[Problem]:
    name = step.args.get("name")
    if step.do == "fire" and isinstance(name, str) and name not in known:
        yield Problem(f"{key}.args.name", f"no agent has a step with by_hand = {name!r}{nearest(name, known)}")


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
            yield from wire_method(one.calls, f"{key}.calls")
        for place, method in enumerate([*(one.order or ()), *(one.methods or ())]):
            yield from wire_method(method, f"{key}.{'order' if one.order else 'methods'}[{place}]")
        if one.repo is not None and not scenario.world.repo:
            yield Problem(f"{key}.repo", "needs world.repo = true")
        if scenario.world.pi is None and (one.pi or one.lines is not None or one.starts is not None):
            yield Problem(key, "is about a headless child, and the world has no [world.pi]")
        for name in ("where", "with_", "terminals", "lines"):
            for field, message in pattern_faults(getattr(one, name), f"{key}.{name.rstrip('_')}"):
                yield Problem(field, message)


def _subject(one: Expect, key: str) -> Iterator[Problem]:
    subjects = [name for name in SUBJECTS if getattr(one, name) is not None]
    subjects += [name for name in ("run", "pi") if getattr(one, name)]
    if len(subjects) != 1:
        among = ", ".join(("run", "pi", *SUBJECTS))
        yield Problem(key, f"needs exactly one subject of {among}; it has {' and '.join(subjects) or 'none'}")
        return
    subject = subjects[0]
    for name, owners in _OWNERS.items():
        if getattr(one, name) != _DEFAULTS[name] and subject not in owners:
            yield Problem(f"{key}.{name.rstrip('_')}", f"belongs to {' or '.join(owners)}, not to {subject}")
    if one.nth < 1:
        yield Problem(f"{key}.nth", "counts from 1")
    if subject in ("run", "pi") and not one.with_:
        what = "terminal" if subject == "run" else "pi"
        yield Problem(f"{key}.with", f"is missing: say what the started {what} must look like")
    if subject == "pi":
        yield from unknown_program_keys(one.with_, f"{key}.with")
    if subject == "file" and one.mode is None and one.text is None:
        yield Problem(key, "file needs a mode or a text")
    if one.file is not None and (fault := path_fault(one.file)):
        yield Problem(f"{key}.file", fault)
    for name in ("count", "at_least", "at_most", "git", "starts"):
        if (getattr(one, name) or 0) < 0:
            yield Problem(f"{key}.{name}", "must not be negative")
    if one.count is not None and (one.at_least is not None or one.at_most is not None):
        yield Problem(f"{key}.count", "cannot stand beside at_least or at_most")


_OWNERS: Final[dict[str, tuple[str, ...]]] = {
    "count": ("calls",),
    "at_least": ("calls",),
    "at_most": ("calls",),
    "where": ("calls",),
    "after_ms": ("calls",),
    "before_ms": ("calls",),
    "child": ("calls", "order", "run", "received", "keys", "pi", "lines", "starts"),
    "nth": ("run", "pi", "lines"),
    "with_": ("run", "pi"),
    "mode": ("file",),
    "text": ("file",),
}
_DEFAULTS: Final = msgspec.structs.asdict(Expect())
