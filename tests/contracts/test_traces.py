"""The questions that are asked of a trace."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.judging.traces import WORK_ENDS, Who, calls, cost_ms, find_child, in_order, is_about, received, starts
from contracts.records import RunRecord, StepRecord
from contracts.scenario import Scenario, Step, Terminal, World
from hc_sim.trace import Event

METHODS = st.lists(st.sampled_from(["terminal.kill", "terminal.rm", "terminal.get"]), max_size=8)


def record(*trace: Event, **more: Any) -> RunRecord:
    return RunRecord(scenario="s", host="memory", trace=list(trace), **more)


def scenario(*terminals: str) -> Scenario:
    world = World(terminal=[Terminal(name=name) for name in terminals])
    return Scenario(id="s", why="x", clauses=["D8"], drive=[Step(do="spawn")], world=world)


def call(t: int, method: str, **params: Any) -> Event:
    return Event(t=t, kind="call", method=method, params=params)


def run(terminal: str, name: str) -> Event:
    return Event(t=0, kind="run", terminal=terminal, name=name)


def test_a_child_is_known_by_its_name_and_by_every_address_it_was_started_under() -> None:
    found = find_child(scenario(), record(run("t3", "x"), run("t4", "y"), run("t5", "x"), children={"a": "x"}), "a")

    assert found == Who(["x", "t3", "t5"])


def test_a_terminal_of_the_world_is_known_by_its_name() -> None:
    assert find_child(scenario("other"), record(), "other") == Who(["other"])


@pytest.mark.parametrize("child", ["ghost", "t3"])
def test_nobody_else_is_known(child: str) -> None:
    assert find_child(scenario("other"), record(run("t3", "x"), children={"a": "x"}), child) is None


def test_a_child_whose_spawn_gave_no_terminal_is_not_known() -> None:
    assert find_child(scenario(), record(children={"a": ""}), "a") is None


@pytest.mark.parametrize(
    ("event", "about"),
    [
        (Event(t=0, kind="text", terminal="t3"), True),
        (Event(t=0, kind="run", name="x"), True),
        (call(0, "terminal.get", terminal="x"), True),
        (call(0, "terminal.run", name="x"), True),
        (call(0, "terminal.get", terminal="t9"), False),
        (call(0, "hello"), False),
        (Event(t=0, kind="call", method="hello", params=["t3"]), False),
        (Event(t=0, kind="call", method="hello", params={"terminal": ["t3"]}), False),
    ],
)
def test_an_event_is_about_a_terminal_by_its_marks_or_its_parameters(event: Event, about: bool) -> None:
    assert is_about(event, Who(["x", "t3"])) is about


def test_calls_are_found_by_name_and_glob() -> None:
    trace = [
        call(0, "hello"),
        call(1, "terminal.get"),
        call(2, "terminal.rm"),
        Event(t=3, kind="reply", method="hello"),
    ]

    assert [event.t for event in calls(trace, "hello")] == [0]
    assert [event.t for event in calls(trace, "terminal.*")] == [1, 2]
    assert [event.t for event in calls(trace, "*")] == [0, 1, 2]


@given(METHODS)
def test_an_order_is_what_the_first_appearances_say(came: list[str]) -> None:
    trace = [call(n, method) for n, method in enumerate(came)]
    holds, seen = in_order(trace, ["terminal.kill", "terminal.rm"], None)
    kills = [n for n, method in enumerate(came) if method == "terminal.kill"]
    rms = [n for n, method in enumerate(came) if method == "terminal.rm"]

    assert holds is bool(kills and rms and kills[0] < rms[0])
    assert seen == [method for method in came if method != "terminal.get"]


def test_an_order_may_name_a_method_twice() -> None:
    trace = [call(n, f"terminal.{word}") for n, word in enumerate(["get", "kill", "get", "rm"])]
    wanted = ["terminal.get", "terminal.kill", "terminal.get", "terminal.rm"]

    assert in_order(trace, wanted, None)[0]
    assert not in_order(trace[:2] + trace[3:], wanted, None)[0]


def test_a_start_is_told_with_what_was_asked_for() -> None:
    trace = [
        call(0, "terminal.run", name="x", cwd="/one", caller="t1", env={"A": "1"}),
        Event(t=1, kind="run", terminal="t3", name="x", argv=["pi"], env={"A": "1", "PATH": "/x"}, labels={"k": "v"}),
    ]

    assert starts(trace) == [
        {
            "terminal": "t3",
            "name": "x",
            "argv": ["pi"],
            "env": {"A": "1", "PATH": "/x"},
            "overlay": {"A": "1"},
            "labels": {"k": "v"},
            "cwd": "/one",
            "parent": "t1",
            "t": 1,
        }
    ]


def test_texts_and_keys_are_told_apart() -> None:
    trace = [Event(t=0, kind="text", terminal="t3", text="a"), Event(t=1, kind="key", terminal="t3", text="esc")]

    assert received(trace, "text", Who(["t3"])) == ["a"]
    assert received(trace, "key", None) == ["esc"]
    assert received(trace, "text", Who(["t4"])) == []


def waited(at_ms: int | None) -> StepRecord:
    return StepRecord(index=0, do="wait", at_ms=at_ms)


@pytest.mark.parametrize(
    ("trace", "steps", "cost"),
    [
        ([Event(t=100, kind="step", note=WORK_ENDS), Event(t=300, kind="state")], [waited(1_000)], 900),
        ([Event(t=100, kind="state"), Event(t=300, kind="state")], [waited(1_000)], 700),
        ([Event(t=1_100, kind="step", note=WORK_ENDS), Event(t=300, kind="state")], [waited(1_000)], 700),
        ([Event(t=100, kind="state")], [waited(500), waited(1_000)], 900),
        ([Event(t=100, kind="state")], [waited(None)], None),
        ([Event(t=100, kind="state")], [], None),
        ([], [waited(1_000)], None),
    ],
)
def test_a_cost_counts_from_the_end_of_the_work_to_the_end_of_the_last_wait(
    trace: list[Event], steps: list[StepRecord], cost: int | None
) -> None:
    assert cost_ms(record(*trace, steps=steps)) == cost
