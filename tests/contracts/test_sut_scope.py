"""What a driver is asked to play: what its features allow, and what real time can tell."""

import math
from typing import Any

import msgspec
import pytest

from contracts.loading import load_all
from contracts.loading.rules import clauses_of
from contracts.scenario import Scenario
from contracts.sut.messages import FEATURES
from contracts.sut.scope import LONGEST_MS, SLACK_MS, in_real_time, needs, only_virtual, too_long, undeclared

ALL = set(FEATURES) - {"rpc"}
SCENARIOS = {scenario.id: scenario for scenario in load_all().scenarios}


def made(*drive: dict[str, Any], hosts: tuple[str, ...] = ("memory",), **more: Any) -> Scenario:
    whole = {"id": "x", "why": "w", "clauses": ["D8"], "hosts": list(hosts), "drive": list(drive), **more}
    return msgspec.convert(whole, Scenario)


SPAWN = {"do": "spawn", "as": "a"}


@pytest.mark.parametrize(
    ("step", "features"),
    [
        (SPAWN, {"terminal"}),
        ({"do": "spawn", "raises": {"code": "name-taken"}}, set()),
        ({"do": "spawn", "args": {"mode": "terminal"}}, {"terminal"}),
        ({"do": "spawn", "args": {"mode": "inprocess", "worktree": False}}, {"inprocess"}),
        ({"do": "spawn", "args": {"agent": "worker", "worktree": False}}, {"inprocess", "arbitration"}),
        ({"do": "spawn", "args": {"agent": "scout"}, "raises": {"code": "worktree-refused"}}, {"arbitration"}),
        ({"do": "spawn", "args": {"mode": "rpc"}}, {"rpc"}),
        ({"do": "spawn", "args": {"mode": "rpc"}, "raises": {"code": "start-failed"}}, {"rpc"}),
        ({"do": "spawn", "args": {"mode": "rpc"}, "raises": {"code": "mode-unavailable"}}, set()),
        ({"do": "host.available"}, {"host"}),
        ({"do": "arbitrate"}, {"arbitration"}),
        ({"do": "card.load", "args": {"text": ""}}, {"cards"}),
        ({"do": "collect", "child": "a"}, {"verdict"}),
        ({"do": "capabilities"}, {"capabilities"}),
        ({"do": "cancel", "of": ["w"]}, {"cancel"}),
        ({"do": "follow_up", "child": "a", "args": {"text": "x"}}, {"rpc"}),
        ({"do": "pause", "args": {"ms": 5}}, set()),
        ({"do": "shutdown"}, set()),
    ],
)
def test_each_step_needs_its_features(step: dict[str, Any], features: set[str]) -> None:
    assert needs(made(step)) == features


def test_a_world_with_memory_variables_needs_the_feature() -> None:
    assert needs(made({"do": "shutdown"}, world={"memory_env": {"A": "b"}})) == {"memory"}


def test_a_worktree_outside_hc_is_for_supervisors_with_headless_children() -> None:
    outside = {"inside": False}
    assert needs(made(SPAWN, world=outside)) == {"arbitration", "rpc"}
    assert needs(made({**SPAWN, "raises": {"code": "mode-unavailable"}}, world=outside)) == {"arbitration"}


def test_what_is_not_declared_is_skipped_by_its_name() -> None:
    scenario = made(SPAWN, {"do": "collect", "child": "a"}, {"do": "capabilities"})
    assert undeclared(scenario, ALL) == ""
    assert undeclared(scenario, {"terminal"}) == "the SUT does not declare capabilities and verdict"


def test_an_empty_slot_is_not_asked_of_a_supervisor_that_fills_it() -> None:
    scenario = made({"do": "spawn", "args": {"mode": "rpc"}, "raises": {"code": "mode-unavailable"}})
    assert undeclared(scenario, ALL) == ""
    assert "declares rpc" in undeclared(scenario, {*ALL, "rpc"})
    either = {"code": {"one_of": ["mode-unavailable", "program-missing"]}}
    scenario = made({"do": "spawn", "args": {"mode": "rpc"}, "raises": either})
    assert undeclared(scenario, ALL) == undeclared(scenario, {*ALL, "rpc"}) == ""


@pytest.mark.parametrize(
    "more",
    [
        {"world": {"agent": [{"step": [{"at_ms": 5, "status": "idle"}]}]}},
        {"world": {"agent": [{"step": [{"after_ms": 5, "status": "idle"}]}]}},
        {"world": {"fault": [{"method": "terminal.get", "from_ms": 5, "reply": False}]}},
        {"world": {"restart": [{"at_ms": 5}]}},
        {"world": {"bridge": [{"after_ms": 5, "exit_code": 1}]}},
        {"expect": [{"calls": "terminal.get", "before_ms": 5}]},
        {"time": "virtual"},
    ],
)
def test_what_comes_at_a_set_time_is_left_to_virtual_time(more: dict[str, Any]) -> None:
    assert "set times" in only_virtual(made(SPAWN, **more))
    assert only_virtual(made(SPAWN, hosts=("memory", "socket"), **{**more, "time": None})) == ""


def test_a_step_at_a_set_time_is_left_to_virtual_time() -> None:
    assert only_virtual(made({**SPAWN, "at_ms": 10}))


def test_what_follows_the_calls_is_played() -> None:
    steps = [{"at_ms": 0, "status": "idle"}, {"after_observations": 1, "status": "done"}]
    assert only_virtual(made(SPAWN, world={"agent": [{"step": steps}]})) == ""


def test_a_number_that_json_does_not_have_is_not_sent() -> None:
    wait = {"do": "wait", "child": "a"}
    assert "JSON" in only_virtual(made(SPAWN, {**wait, "args": {"timeoutMs": math.nan}}))
    assert only_virtual(made(SPAWN, {**wait, "args": {"timeoutMs": math.inf}})) == ""


def test_long_ones_are_left_to_virtual_time() -> None:
    assert too_long(LONGEST_MS) == ""
    assert too_long(LONGEST_MS + 1_000) == "it takes 9 s, which only virtual time has"


def test_times_that_were_stated_for_virtual_time_get_slack() -> None:
    scenario = made({**SPAWN, "at": {"min": 5, "max": 10}, "took": 7}, {**SPAWN, "as": "b", "took": {"min": 3}})
    first, second = in_real_time(scenario).drive
    assert (first.at, first.took) == ({"min": 5, "max": 10 + SLACK_MS}, {"min": 7, "max": 7 + SLACK_MS})
    assert second.took == {"min": 3}
    assert in_real_time(scenario).hosts == ["socket"]


def test_times_that_were_stated_for_the_socket_stay_as_they_are() -> None:
    scenario = made({**SPAWN, "took": {"max": 10}}, hosts=("memory", "socket"))
    assert in_real_time(scenario).drive == scenario.drive


MUST = [f"D{number}" for number in range(1, 14)] + [f"I{number}" for number in range(1, 7)] + ["A1", "A2", "A3", "A4"]


@pytest.mark.parametrize("clause", MUST)
def test_every_clause_of_the_frozen_contract_is_asked_of_a_driver(clause: str) -> None:
    asked = [
        scenario
        for scenario in SCENARIOS.values()
        if clause in clauses_of(scenario) and not undeclared(scenario, ALL) and not only_virtual(scenario)
    ]
    assert asked
