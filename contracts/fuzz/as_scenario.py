"""A failing history as a scenario: what `legion-contracts check --scenario FILE` runs as it is, and `show` draws.

The history's world becomes a scripted agent, its missing and failing looks become faults of the calls that look, and
what the oracle demands becomes what the wait has to return, and when.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import tomli_w

from contracts.fuzz.alphabet import START_TURN, STEP_MS, TEAR_MS, Effect, World, effect, spelled
from contracts.fuzz.oracle import Outcome, demanded
from contracts.fuzz.schedule import Case, schedule
from contracts.fuzz.shrink import Found
from contracts.fuzz.walk import Course, walked
from contracts.scenario import Scenario
from contracts.scenario import Step as Do
from contracts.scenario import World as Stage
from hc_sim.faults import Fault, FaultError
from hc_sim.script.format import Agent, Finish, StatusWord, Step

BEGIN_MS: Final = 1_000
"""When the history begins, in ms since the drive began."""
READY_MS: Final = 500
"""When an agent that takes prompts is past its first turn."""
MAX_ID: Final = 60
_SPELLED: Final = {"exit_code": "exitCode", "last_turn": "lastTurn", "last_status": "lastStatus"}
_FIELDS: Final = ("settled", "abnormal", "reason", "exit_code", "signal", "last_turn", "last_status")


def as_scenario(found: Found, name: str, *, source: str = "") -> Scenario:
    """The scenario that fails as the history does, with this id."""
    effects = _effects(found.steps)
    case = found.case
    right = demanded(_history(found))
    prompts = any(made.prompt is not None for made in effects)
    strict = all(outcome.reason == "gone" for outcome in right) and "settled is True, not False" not in found.objections
    return Scenario(
        id=name,
        why=f"After {', then '.join(spelled(found.steps))} the wait owes this end and no other.",
        clauses=["D8-gone" if strict else "D8"],
        level="should" if strict else "must",
        source=source or f"exhaustive search, case {case.name}",
        poll_ms=case.phase.poll_ms,
        world=Stage(agent=[_agent(effects, prompts=prompts)], fault=list(_faults(effects, case))),
        drive=list(_drive(effects, case, right, prompts=prompts)),
    )


def as_text(scenario: Scenario, notes: Sequence[str] = ()) -> str:
    """A scenario as the text of its file, with notes above it: one comment line each."""
    lines = [f"# {' '.join(note.split())}\n" for note in notes]
    document: dict[str, Any] = msgspec.to_builtins(scenario)
    return "".join(lines) + ("\n" if lines else "") + tomli_w.dumps(document)


def keep(folder: Path, scenario: Scenario, notes: Sequence[str] = ()) -> Path:
    """Write a scenario into a folder, whole or not at all, and return its path. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{scenario.id}.toml"
    part = path.with_suffix(".toml.part")
    part.write_text(as_text(scenario, notes), encoding="utf-8")
    return part.replace(path)


def named(words: str) -> str:
    """An id for a scenario out of any words: kebab-case, at most `MAX_ID` long."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:MAX_ID].strip("-") or "found"


def notes(found: Found) -> list[str]:
    """What a person has to know about a kept history: the steps, the case, and what the oracle objects to."""
    case = found.case
    return [
        f"steps: {' | '.join(spelled(found.steps))}",
        f"case: {case.phase.says}; the wait begins at {case.phase.begin_ms} ms and may take {case.timeout_ms} ms",
        *(f"broke: {objection}" for objection in found.objections),
    ]


def _effects(steps: tuple[int, ...]) -> list[Effect]:
    world = World()
    made: list[Effect] = []
    for number in steps:
        made.append(effect(world, number))
        world = made[-1].late
    return made


def _history(found: Found) -> Any:
    course = Course(found.case, len(found.steps))
    return course.history(walked(course, found.steps))


def _agent(effects: Sequence[Effect], *, prompts: bool) -> Agent:
    steps: list[Step] = []
    shown = World()
    if prompts:
        steps.append(Step(at_ms=READY_MS, turn=START_TURN, status="none"))
    for at, made in enumerate(effects):
        esc = made.interrupted and shown.status in ("working", "blocked")
        for after_ms, world in ((0, made.early), (TEAR_MS, made.late)):
            if not esc:
                steps += _step(BEGIN_MS + at * STEP_MS + after_ms, shown, world)
            shown = world
    return Agent(turn=0, status="working", step=steps) if prompts else Agent(turn=START_TURN, step=steps)


def _step(at_ms: int, before: World, after: World) -> Iterator[Step]:
    if after.state == "finished":
        if before.state != "finished":
            yield Step(at_ms=at_ms, finish=Finish(code=after.exit_code, signal=after.signal))
        return
    turn = after.turn if after.turn != before.turn else None
    status = _word(after.status) if after.status != before.status else None
    if turn is not None or status is not None:
        yield Step(at_ms=at_ms, turn=turn, status=status)


def _word(status: str | None) -> StatusWord:
    word: StatusWord = msgspec.convert(status or "none", StatusWord)
    return word


def _faults(effects: Sequence[Effect], case: Case) -> Iterator[Fault]:
    """Looks that miss the terminal, looks that fail, and looks whose answer takes its time."""
    steps = len(effects)
    for at, ops in enumerate(schedule(case, steps)):
        made = effects[min(at, steps - 1)]
        fails = at < steps and made.fails
        for op in ops:
            if op.do != "ask":
                continue
            there = (made.late if op.late or at == steps else made.early).there
            error = None if there and not fails else _FAILS if fails else _MISSING
            if error is not None or case.phase.answer_ms:
                asked = BEGIN_MS + op.at_ms
                yield Fault(
                    method="terminal.get", nth=0, from_ms=asked, until_ms=asked + 1, error=error,
                    delay_ms=case.phase.answer_ms,
                )  # fmt: skip


_FAILS: Final = FaultError(kind="internal", message="try later", code=-32603)
_MISSING: Final = FaultError(kind="no_such_terminal", message="no such terminal")


def _drive(effects: Sequence[Effect], case: Case, right: Sequence[Outcome], *, prompts: bool) -> Iterator[Do]:
    yield Do(do="spawn", as_="alpha")
    if prompts:
        yield Do(do="steer", child="alpha", at_ms=READY_MS + 1, args={"text": "begin"})
    acts = [(at * STEP_MS, act) for at, made in enumerate(effects) for act in _acts(made, effects, at)]
    begin = case.phase.begin_ms
    wait = _wait(case, right, background=any(at_ms > begin for at_ms, _ in acts))
    for at_ms, act in sorted([*acts, (begin, "wait")], key=lambda entry: entry[0]):
        if act == "wait":
            yield wait
        else:
            args = {"text": "go on"} if act == "steer" else {}
            yield Do(do=act, child="alpha", at_ms=BEGIN_MS + at_ms, args=args)


def _acts(made: Effect, effects: Sequence[Effect], at: int) -> Iterator[str]:
    before = effects[at - 1].late if at else World()
    if made.prompt is not None:
        yield "steer"
    if made.interrupted and before.status in ("working", "blocked"):
        yield "abort"


def _wait(case: Case, right: Sequence[Outcome], *, background: bool) -> Do:
    returns: dict[str, Any] = {}
    for name in _FIELDS:
        values = list(dict.fromkeys(getattr(outcome, name) for outcome in right))
        if values == [None]:
            returns[_SPELLED.get(name, name)] = {"absent": True}
        elif None not in values:
            returns[_SPELLED.get(name, name)] = values[0] if len(values) == 1 else {"one_of": values}
    times = [BEGIN_MS + int(outcome.at_ms) for outcome in right]
    return Do(
        do="wait", as_="answer" if background else "", child="alpha", at_ms=BEGIN_MS + case.phase.begin_ms,
        background=background, args={"timeoutMs": case.timeout_ms}, returns=returns,
        at={"min": min(times), "max": max(times) + case.slack_ms},
    )  # fmt: skip
