"""Each invariant as a value: what it lets pass, what it objects to, and what it excuses."""

from typing import Any

import pytest

from contracts.fuzz.invariants import (
    Broken,
    Done,
    Watched,
    claims,
    consent,
    few_runs,
    in_time,
    own_only,
    reached_once,
    typed,
)
from contracts.fuzz.watched import Ask, Touch
from contracts.scenario import Step
from hc_sim.trace import Event
from legion_terminal.errors import SupervisorError
from legion_terminal.settle import SettleResult
from legion_terminal.types import Child, RetireResult

NAME = "lgl-run00001-alpha"
OWN = ("t2", 1_000)
SETTLED = SettleResult(settled=True, last_turn=1, last_status="done")
TIMEOUT = SettleResult(settled=False, reason="timeout", last_turn=1, last_status="working")


def a_child(**more: Any) -> Child:
    values: dict[str, Any] = {
        "name": NAME,
        "address": OWN[0],
        "created_ms": OWN[1],
        "argv": ("pi",),
        "core_id": "core-1",
    }
    return Child(id="1", mode="terminal", handle="alpha", run_id="r", session_file="s", **(values | more))


def a_look(at_ms: int, turn: int, status: str, *, step: int = 0, **more: Any) -> Ask:
    shown = {
        "address": OWN[0], "created_ms": OWN[1], "argv": ["pi"], "name": NAME, "state": "running", "turn": turn,
        "status": {"state": status}, **more,
    }  # fmt: skip
    return Ask(step, "terminal.get", NAME, at_ms, at_ms, result=shown, core_id="core-1")


def a_miss(at_ms: int) -> Ask:
    error = SupervisorError("call-failed", "no terminal", known="not-applied", kind="no_such_terminal")
    return Ask(0, "terminal.get", NAME, at_ms, at_ms, error=error)


def a_wait(result: SettleResult, ended_ms: int, timeout_ms: int = 500, **more: Any) -> Done:
    step = Step(do="wait", child="alpha", args={"timeoutMs": timeout_ms})
    return Done(0, step, 0, ended_ms, child=a_child(), identity=OWN, result=result, **more)


def done_at(t: int) -> dict[str, list[Event]]:
    return {OWN[0]: [Event(t=t, kind="state", terminal=OWN[0], turn=1, status="done", state="running")]}


def names(broken: Any) -> list[str]:
    return [one.invariant for one in broken]


def test_a_wait_that_settles_on_its_done_has_the_oracles_consent() -> None:
    asks = [a_look(0, 1, "working"), a_look(250, 1, "done")]

    assert names(consent(a_wait(SETTLED, 250), asks, done_at(200))) == []


@pytest.mark.parametrize(
    "asks",
    [
        [a_look(0, 1, "idle")],
        [a_look(0, 0, "done")],
        [a_look(0, 1, "done", created_ms=2_000)],
        [a_look(0, 1, "done", address="t9")],
        [a_miss(0)],
        [],
    ],
    ids=["idle", "old turn", "another incarnation", "another address", "missing", "no look"],
)
def test_a_wait_that_settles_on_anything_else_has_not(asks: list[Ask]) -> None:
    assert names(consent(a_wait(SETTLED, 0), asks, done_at(0))) == ["consent"]


def test_a_wait_that_settles_on_what_the_core_never_was_has_not() -> None:
    broken = list(consent(a_wait(SETTLED, 250), [a_look(250, 1, "done")], {}))

    assert [one.words for one in broken] == ["settled on what the core never showed"]


def test_a_wait_that_does_not_settle_on_its_done_is_no_better() -> None:
    asks = [a_look(0, 1, "done"), a_look(250, 1, "working")]

    assert names(consent(a_wait(TIMEOUT, 500), asks, done_at(0))) == ["consent"]


def test_looks_of_other_steps_are_no_looks_of_a_wait() -> None:
    asks = [a_look(100, 1, "working"), a_look(200, 1, "done", step=7)]

    assert names(consent(a_wait(TIMEOUT, 500), asks, done_at(150))) == []


def test_a_prompt_in_the_middle_of_a_wait_is_the_one_that_has_to_be_answered() -> None:
    steer = [a_look(100, 1, "working", step=3), Ask(3, "terminal.send", NAME, 100, 101, result={"started": True})]
    wait = a_wait(SETTLED, 250, disturbed=True)

    late = consent(wait, [a_look(0, 1, "working"), *steer, a_look(250, 1, "done")], done_at(240))
    early = consent(a_wait(SETTLED, 100, disturbed=True), [a_look(100, 1, "done"), *steer], done_at(90))

    assert (names(late), names(early)) == (["consent"], [])


def test_a_prompt_that_was_refused_changes_nothing() -> None:
    refused = SupervisorError("call-failed", "no", known="not-applied")
    steer = [a_look(100, 1, "working", step=3), Ask(3, "terminal.send", NAME, 100, 101, error=refused)]

    assert names(consent(a_wait(SETTLED, 250, disturbed=True), [*steer, a_look(250, 1, "done")], done_at(200))) == []


@pytest.mark.parametrize(
    ("timeout_ms", "took", "good"), [(500, 500, True), (500, 501, False), (0, 1_000, True), (-1, 1_001, False)]
)
def test_a_wait_ends_in_time(timeout_ms: int, took: int, good: bool) -> None:
    assert names(in_time(a_wait(TIMEOUT, took, timeout_ms))) == ([] if good else ["timeout"])


def test_calls_without_a_timeout_have_limits_too() -> None:
    retire = Done(0, Step(do="retire", child="alpha"), 0, 13_000)
    pause = Done(0, Step(do="pause", args={"ms": 10**6}), 0, 10**6)

    assert (names(in_time(retire)), names(in_time(pause))) == (["timeout"], [])


def test_a_failure_is_one_of_the_contracts_own() -> None:
    step = Step(do="status", child="alpha")

    assert names(typed(Done(0, step, 0, 0, error=SupervisorError("gone", "gone")))) == []
    assert names(typed(Done(0, step, 0, 0, error=SupervisorError("odd", "odd")))) == ["typed"]  # type: ignore[arg-type]
    assert names(typed(Done(0, step, 0, 0, error=KeyError("x")))) == ["typed"]


def test_a_spawn_makes_two_runs_and_no_third() -> None:
    spawn = Done(0, Step(do="spawn", as_="alpha"), 0, 0)

    assert names(few_runs(spawn, {NAME: 2, "other": 2})) == []
    assert names(few_runs(spawn, {NAME: 3})) == ["two-runs"]


def test_a_text_reaches_its_own_agent_once() -> None:
    kept = Watched()
    texts = {"steer 1.": OWN, "steer 2.": None}
    first = Event(t=1, kind="text", terminal="t2", text="draft steer 1.")

    assert names(reached_once(first, kept, 0, texts)) == []
    assert names(reached_once(first, kept, 1, texts)) == ["text-once"]
    assert names(reached_once(Event(t=2, kind="text", terminal="t9", text="steer 2."), kept, 1, texts)) == []


def test_a_text_that_reaches_another_agent_is_told() -> None:
    other = Event(t=1, kind="text", terminal="t9", text="steer 1.")

    assert names(reached_once(other, Watched(), 0, {"steer 1.": OWN})) == ["text-once"]


def a_touch(method: str, met: tuple[str, int] | None, target: str = NAME, *, live: bool = True) -> Touch:
    return Touch(method, target, 10, met, NAME, live, applied=True)


KILL = Ask(0, "terminal.kill", NAME, 10)


@pytest.mark.parametrize(
    ("touch", "asks", "good"),
    [
        (a_touch("terminal.kill", OWN), [KILL], True),
        (a_touch("terminal.kill", None), [KILL], True),
        (a_touch("terminal.kill", ("t9", 5)), [KILL], False),
        (a_touch("terminal.kill", ("t9", 5)), [a_look(5, 1, "idle"), KILL], True),
        (a_touch("terminal.kill", ("t9", 5)), [a_look(5, 1, "idle", address="t9", created_ms=5), KILL], False),
        (a_touch("terminal.kill", ("t9", 5)), [a_look(5, 1, "idle", step=4), KILL], False),
        (a_touch("terminal.rm", ("t9", 5), "t9", live=False), [], True),
        (a_touch("terminal.rm", ("t9", 5), "t9"), [], False),
        (a_touch("terminal.run", ("t9", 5)), [], True),
    ],
    ids=[
        "its own", "nobody", "another's, unseen", "another's, but its own was just seen", "another's, and seen",
        "seen by another call only", "a finished holder of the name", "a live holder", "a start",
    ],
)  # fmt: skip
def test_only_its_own_terminals_are_changed(touch: Touch, asks: list[Ask], good: bool) -> None:
    assert names(own_only(touch, asks, {OWN: 0}, 0)) == ([] if good else ["own-only"])


def a_retirement(ended: bool, removed: bool) -> Done:
    result = RetireResult(ended=ended, removed=removed)
    return Done(0, Step(do="retire", child="alpha"), 0, 0, child=a_child(), identity=OWN, result=result)


def test_a_retirement_claims_what_is_so() -> None:
    assert names(claims(a_retirement(True, True), [], {})) == []
    assert names(claims(a_retirement(False, False), [], {OWN: "running"})) == []
    assert names(claims(a_retirement(True, False), [], {OWN: "running"})) == ["claims"]
    assert names(claims(a_retirement(True, True), [], {OWN: "finished"})) == ["claims"]


def test_a_retirement_may_believe_the_core() -> None:
    removed = Ask(0, "terminal.rm", NAME, 0, 0, result={})

    assert names(claims(a_retirement(True, True), [removed], {OWN: "finished"})) == []
    assert names(claims(a_retirement(True, True), [a_miss(0)], {OWN: "running"})) == []


def test_every_invariant_names_its_clause() -> None:
    assert Broken(invariant="text-once", words="", step=0).clause == "D10"
    assert Broken(invariant="harness", words="", step=0).clause == ""
