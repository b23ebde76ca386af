"""Which scenarios a driver can be asked to play: what each needs of it, and which ones real time cannot tell. Pure.

A driver runs in real time, over a real socket. Scenarios whose events follow the calls go the same way there, however
slow the machine is; those whose events come at set times would be blurred by every other process, and stay with the
supervisors that run in virtual time.
"""

import math
from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from contracts.scenario import Scenario, Step
from contracts.sut.messages import MANDATORY

LONGEST_MS: Final = 8_000
"""The longest a scenario may last by the virtual clock to be played in real time."""
SLACK_MS: Final = 1_000
"""What a step of a scenario that was written for virtual time may take longer in real time."""

_CALLS: Final = {
    "host.available": "host",
    "arbitrate": "arbitration",
    "card.load": "cards",
    "collect": "verdict",
    "capabilities": "capabilities",
    "cancel": "cancel",
}
_HEADLESS: Final = frozenset({"prompt", "follow_up", "clear_queue", "dialogs", "answer"})
_UNAVAILABLE: Final = "mode-unavailable"


def undeclared(scenario: Scenario, features: Collection[str]) -> str:
    """Why a driver with these features is not asked to play this scenario; "" when it is."""
    missing = sorted(needs(scenario) - set(features))
    if missing:
        return f"the SUT does not declare {' and '.join(missing)}"
    if "rpc" in features and any(_refusals(step) == [_UNAVAILABLE] for step in scenario.drive):
        return "the SUT declares rpc, and this is about a supervisor without it"
    return ""


def needs(scenario: Scenario) -> frozenset[str]:
    """The features that a scenario makes use of."""
    found = {feature for step in scenario.drive for feature in _needs(step, inside=scenario.world.inside)}
    if scenario.world.memory_env:
        found.add("memory")
    return frozenset(found)


def _needs(step: Step, *, inside: bool) -> Iterator[str]:
    if step.do in _CALLS:
        yield _CALLS[step.do]
    if step.do in _HEADLESS:
        yield "rpc"
    if step.do == "spawn":
        yield from _spawn_needs(step, inside=inside)


def _spawn_needs(step: Step, *, inside: bool) -> Iterator[str]:
    mode = step.args.get("mode")
    plain = step.args.get("agent", "centurion") == "centurion" and step.args.get("worktree") is not False
    if mode is None:
        if not plain or not inside:
            yield "arbitration"
        mode = "inprocess" if step.args.get("worktree") is False else MANDATORY if inside else "rpc"
    if step.raises is None or (mode == "rpc" and _UNAVAILABLE not in _refusals(step)):
        yield mode


def _refusals(step: Step) -> list[Any]:
    """The error codes that a step may end in, as far as they are named."""
    code = (step.raises or {}).get("code")
    return list(code.get("one_of", [])) if isinstance(code, dict) else [code]


def only_virtual(scenario: Scenario) -> str:
    """Why real time cannot tell what comes of this scenario; "" when it can. One that runs on the socket host can."""
    if "socket" in scenario.hosts:
        return ""
    if any(_has_nan(step.args) for step in scenario.drive):
        return "it has a number that JSON cannot write"
    if scenario.time == "virtual" or _timed(scenario):
        return "its events come at set times, which only virtual time keeps exactly"
    return ""


def too_long(virtual_ms: int) -> str:
    """Why a scenario that lasts so long by the virtual clock is not played in real time; "" when it is."""
    return f"it takes {virtual_ms / 1_000:g} s, which only virtual time has" if virtual_ms > LONGEST_MS else ""


def in_real_time(scenario: Scenario) -> Scenario:
    """The scenario for the socket host; times that were stated for virtual time get `SLACK_MS` more."""
    if "socket" in scenario.hosts:
        return msgspec.structs.replace(scenario, hosts=["socket"])
    drive = [msgspec.structs.replace(step, at=_later(step.at), took=_later(step.took)) for step in scenario.drive]
    limit_ms = max(scenario.limit_ms, 2 * LONGEST_MS + SLACK_MS)
    return msgspec.structs.replace(scenario, hosts=["socket"], drive=drive, limit_ms=limit_ms)


def _later(pattern: dict[str, Any] | int | None) -> dict[str, Any] | int | None:
    if isinstance(pattern, int):
        return {"min": pattern, "max": pattern + SLACK_MS}
    return {**pattern, "max": pattern["max"] + SLACK_MS} if pattern and "max" in pattern else pattern


def _timed(scenario: Scenario) -> bool:
    world = scenario.world
    steps = [step for agent in world.agent for step in agent.step]
    return bool(
        any(step.at_ms or step.after_ms for step in steps)
        or any(step.at_ms for step in scenario.drive)
        or any(one.after_ms is not None or one.before_ms is not None for one in scenario.expect)
        or any(fault.from_ms or fault.until_ms is not None for fault in world.fault)
        or any(bridge.after_ms for bridge in world.bridge)
        or world.restart
        or world.clock
        or world.document
    )


def _has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nan, value.values()))
    return isinstance(value, float) and math.isnan(value)
