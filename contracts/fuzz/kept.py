"""A run in which an invariant broke, shrunk, as a scenario that fails as it did, and holds once that is mended."""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.fuzz.as_scenario import MAX_ID, keep, named
from contracts.fuzz.invariants import LONE_LOOK_MS, Broken, history_of, looks_of
from contracts.fuzz.lean import Make
from contracts.fuzz.one import Result, Runner
from contracts.fuzz.oracle import Outcome, demanded
from contracts.fuzz.smaller import smaller
from contracts.scenario import Expect, Scenario, Step
from legion_terminal.errors import SupervisorError

WHY: Final[Mapping[str, str]] = {
    "consent": "A wait ends as its own looks demand, and in no other way.",
    "timeout": "No call takes longer than it may.",
    "text-once": "A text reaches its agent once, whatever becomes of the reply.",
    "own-only": "What the supervisor did not start is left alone.",
    "two-runs": "A start makes at most two attempts.",
    "claims": "A retirement claims only what is so.",
    "typed": "Every failure has a code of the contract.",
    "hangs": "Every call comes back.",
    "left-over": "After the close nothing is left.",
}
SAID: Final = {"settled": "settled", "abnormal": "abnormal", "reason": "reason", "lastTurn": "last_turn"}


def shrunk(scenario: Scenario, invariant: str, make: Make) -> tuple[Scenario, Broken]:
    """The smallest run that still breaks this invariant, and how. Raises LookupError when it does not break at all."""
    with Runner(make) as runner:

        def attempt(candidate: Scenario) -> Broken | None:
            return _breaks(runner.carry_out(candidate), invariant)

        if attempt(scenario) is None:
            raise LookupError(f"{invariant} holds in this run when it is made again")
        small = smaller(scenario, attempt)
        result = runner.carry_out(small)
        broken = _breaks(result, invariant)
    if broken is None:
        raise LookupError(f"{invariant} holds in this run when it is made again")
    with Runner() as runner:
        honest = runner.carry_out(small)
    return expecting(small, broken, result, honest), broken


def expecting(scenario: Scenario, broken: Broken, result: Result, honest: Result) -> Scenario:
    """The run with what must come of it; its name says which invariant it is about.

    `honest`: the same run with the supervisor of this project, which says how the other steps come out.
    """
    drive = list(_told(scenario, honest))
    expect: list[Expect] = []
    at = min(broken.step, len(drive) - 1)
    step = drive[at]
    match broken.invariant:
        case "consent" | "timeout" if step.do == "wait":
            drive[at] = msgspec.structs.replace(step, clause=broken.clause, **_owed(broken, result))
        case "text-once":
            expect += _texts(scenario.drive, broken)
        case "own-only":
            expect.append(_at_most(broken, _method_in(broken), honest))
        case "two-runs":
            expect.append(_at_most(broken, "terminal.run", honest))
        case "claims":
            drive[at] = msgspec.structs.replace(step, clause=broken.clause, returns={"removed": False})
        case _:
            expect.append(Expect(clause=broken.clause, left="nothing"))
    return msgspec.structs.replace(
        scenario,
        id=_id(scenario, broken),
        why=WHY.get(broken.invariant, "A run in which the harness itself broke."),
        clauses=[broken.clause or "D8"],
        drive=drive,
        expect=expect,
    )


def write(folder: Path, scenario: Scenario, broken: Broken, origin: str) -> Path:
    """Write it as a scenario file with its origin above it. Raises OSError."""
    notes = (
        f"invariant: {broken.invariant}, clause {broken.clause}",
        f"broke: at step {broken.step} of the drive, {broken.words}",
        f"found by: {origin}",
    )
    return keep(folder, scenario, notes)


def _id(scenario: Scenario, broken: Broken) -> str:
    """What broke and in which calls, and a mark that tells it from others of its kind."""
    mark = blake2b(msgspec.json.encode(scenario), digest_size=3).hexdigest()
    words = f"fuzz {broken.invariant} {' '.join(step.do for step in scenario.drive)}"
    return f"{named(words)[: MAX_ID - len(mark) - 1].strip('-')}-{mark}"


def _breaks(result: Result, invariant: str) -> Broken | None:
    return next((broken for broken in result.broken if broken.invariant == invariant), None)


def _told(scenario: Scenario, honest: Result) -> Iterator[Step]:
    """The steps of the drive, those that fail in an honest run with the code of their failure."""
    failed = {done.index: done.error for done in honest.steps if isinstance(done.error, SupervisorError)}
    for index, step in enumerate(scenario.drive):
        error = failed.get(index)
        yield step if error is None else msgspec.structs.replace(step, raises={"code": error.code})


def _owed(broken: Broken, result: Result) -> dict[str, Any]:
    """What the wait must return, and when."""
    done = next((one for one in result.steps if one.index == broken.step), None)
    if done is None:
        return {}
    if broken.invariant == "timeout":
        timeout = float(done.step.args["timeoutMs"])
        return {"took": {"max": int(timeout) if timeout > 0 else LONE_LOOK_MS}}
    right = demanded(history_of(done, list(result.asks), looks_of(done, list(result.asks))))
    if done.disturbed or done.retired or not right:
        return {"returns": {"settled": False}}
    times = [int(outcome.at_ms) - done.begun_ms for outcome in right]
    slack = LONE_LOOK_MS if float(done.step.args["timeoutMs"]) <= 0 else 0
    return {"returns": dict(_fields(right)), "took": {"min": min(times), "max": max(times) + slack}}


def _fields(right: tuple[Outcome, ...]) -> Iterator[tuple[str, Any]]:
    for spelt, name in SAID.items():
        values = list(dict.fromkeys(getattr(outcome, name) for outcome in right))
        if values == [None]:
            yield spelt, {"absent": True}
        elif None not in values:
            yield spelt, values[0] if len(values) == 1 else {"one_of": values}


def _texts(drive: list[Step], broken: Broken) -> Iterator[Expect]:
    for step in drive:
        if step.do == "steer" and repr(step.args["text"]) in broken.words:
            yield Expect(clause=broken.clause, calls="terminal.send", at_most=1, where={"text": step.args["text"]})


def _method_in(broken: Broken) -> str:
    method = broken.words.partition(" ")[0]
    return method if method.startswith("terminal.") else "terminal.rm"


def _at_most(broken: Broken, method: str, honest: Result) -> Expect:
    made = sum(event.kind == "call" and event.method == method for event in honest.trace)
    return Expect(clause=broken.clause, calls=method, at_most=made)
