"""The Python supervisor behind the calls of the protocol: parameters in, spelling out, failures as values."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from contracts.running.one_run import run_scenario
from contracts.scenario import HostName, Scenario, Step, World
from contracts.sut import METHODS, SutError, SutSetup
from contracts.sut.base import ERROR_KEYS, RESULTS
from contracts.sut.python import (
    PythonSut,
    spawn_request,
    spell,
    spell_child,
    spell_error,
    spell_observation,
    spell_settle,
    spell_verdict,
)
from hc_sim.clock import run_virtual
from hc_sim.script.format import Agent, Finish
from hc_sim.script.format import Step as AgentStep
from legion_terminal.errors import SupervisorError
from legion_terminal.routing import RoutingSupervisor
from legion_terminal.settle import Observation, SettleResult
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import Capabilities, Child, SpawnRequest, Verdict

INSIDE = {"HC_TERMINAL_SOCKET": "/nowhere/s", "HC_TERMINAL_ID": "t1"}
SPAWN = {"handle": "alpha", "runId": "run00001", "task": "t", "cwd": "/", "sessionFile": "/nowhere/x.jsonl"}


def asked(env: dict[str, str], *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers (or the errors) of calls on one system, on virtual time, without any core."""

    async def go() -> list[dict[str, Any]]:
        sut = PythonSut(SutSetup(env=env, connect=_Unreachable))
        answers = []
        for method, params in calls:
            try:
                answers.append(await sut.call(method, params))
            except SutError as error:
                answers.append(error.error)
        await sut.close()
        await sut.close()
        return answers

    return run_virtual(go())


class _Unreachable:
    """A link to nobody."""

    async def open(self) -> None:
        raise ConnectionResetError("nobody is there")

    async def write(self, data: bytes) -> None:
        raise BrokenPipeError

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        return None

    def tail(self) -> str:
        return ""

    def ended(self) -> str | None:
        return None


def test_detection_uses_the_environment_of_the_world_or_the_one_given() -> None:
    assert asked(INSIDE, ("host.available", {}), ("host.available", {"env": {}})) == [
        {"available": True},
        {"available": False},
    ]


@pytest.mark.parametrize(
    ("params", "mode"),
    [
        ({}, "terminal"),
        ({"worktree": False}, "inprocess"),
        ({"agent": "scout"}, "rpc"),
        ({"env": {}}, "rpc"),
    ],
)
def test_arbitration_answers_with_the_mode(params: dict[str, Any], mode: str) -> None:
    assert asked(INSIDE, ("arbitrate", params)) == [{"mode": mode}]


def test_a_card_is_loaded_by_name_and_a_forbidden_one_is_an_error() -> None:
    loaded, refused = asked(
        {},
        ("card.load", {"text": "---\nname: centurion\n---\nYou are.\n", "source": "c.md"}),
        ("card.load", {"text": "---\nname: centurion\nspawnMode: rpc\n---\n"}),
    )

    assert (loaded["name"], loaded["source"]) == ("centurion", "c.md")
    assert refused["code"] == "card-refused"


def test_capabilities_claim_nothing() -> None:
    assert asked(INSIDE, ("capabilities", {})) == [{"promptDisposition": False, "events": False}]


def test_a_failure_is_spelt_with_all_six_fields() -> None:
    (error,) = asked(INSIDE, ("spawn", {**SPAWN, "agent": "centurion", "worktree": True}))

    assert sorted(error) == ["child", "code", "hint", "kind", "known", "message"]
    assert error["code"] == "host-unreachable"


def test_an_error_keeps_its_values() -> None:
    error = SupervisorError("blocked", "m", child="c", known="not-applied", kind="k", hint="h")

    assert spell_error(error) == {
        "code": "blocked",
        "message": "m",
        "child": "c",
        "known": "not-applied",
        "kind": "k",
        "hint": "h",
    }


def test_an_agent_without_worktree_runs_in_process_and_is_waited_for_there() -> None:
    spawned, waited, status = asked(
        INSIDE,
        ("spawn", {**SPAWN, "agent": "scout", "worktree": False}),
        ("wait", {"child": "child-1", "timeoutMs": 1_000}),
        ("collect", {"child": "child-1"}),
    )

    assert spawned["mode"] == "inprocess"
    assert waited["settled"] is True
    assert status["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"agent": "centurion", "worktree": True, "mode": "inprocess"}, "worktree-refused"),
        ({"agent": "scout", "worktree": True, "mode": "terminal"}, "worktree-refused"),
        ({"agent": "centurion", "worktree": True, "mode": "rpc"}, "mode-unavailable"),
        ({"agent": "centurion", "worktree": True, "mode": "telepathy"}, "mode-unavailable"),
    ],
)
def test_a_forced_mode_is_guarded_like_any_other(params: dict[str, Any], code: str) -> None:
    (error,) = asked(INSIDE, ("spawn", {**SPAWN, **params}))

    assert error["code"] == code


def test_a_cancel_without_a_wait_says_so() -> None:
    assert asked(INSIDE, ("cancel", {"token": "w"})) == [{"cancelled": False}]


def call(method: str, params: dict[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
    async def go() -> dict[str, Any]:
        return await PythonSut(SutSetup(env={}, connect=_Unreachable)).call(method, params)

    return go()


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("spwan", {}, "there is no call 'spwan'"),
        ("wait", {"child": "child-1", "timeout": 5}, "wait takes no 'timeout'"),
        ("wait", {"child": "child-9"}, "there is no child 'child-9'"),
    ],
)
def test_what_the_protocol_does_not_have_is_a_mistake_of_the_caller(method: str, params: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        asyncio.run(call(method, params))


def test_every_call_of_the_protocol_is_there() -> None:
    sut = PythonSut(SutSetup(env={}, connect=_Unreachable))

    assert set(sut._handlers) == set(METHODS)


def test_every_parameter_of_a_spawn_arrives_in_the_request() -> None:
    request = spawn_request(
        {
            **SPAWN,
            "agent": "centurion",
            "worktree": True,
            "branch": "b",
            "model": "m",
            "provider": "p",
            "tools": ["read"],
            "extensions": ["/e"],
            "skills": ["/s"],
            "noExtensions": False,
            "noSkills": False,
            "noContextFiles": False,
            "systemPrompt": "/p",
            "env": {"A": "1"},
            "allowNested": True,
            "mode": "terminal",
        }
    )

    assert request == SpawnRequest(
        agent="centurion",
        run_id="run00001",
        handle="alpha",
        task="t",
        cwd="/",
        session_file="/nowhere/x.jsonl",
        worktree=True,
        worktree_branch="b",
        allow_nested=True,
        model="m",
        provider="p",
        tools=("read",),
        extensions=("/e",),
        no_extensions=False,
        skills=("/s",),
        no_skills=False,
        no_context_files=False,
        system_prompt="/p",
        env={"A": "1"},
    )


def test_what_a_spawn_leaves_out_has_the_default_of_the_request() -> None:
    request = spawn_request(SPAWN)

    assert request.no_extensions is True
    assert request.model is None
    assert request.tools == ()


def test_an_unknown_parameter_of_a_spawn_is_refused() -> None:
    with pytest.raises(ValueError, match="spawn takes no 'tool'"):
        spawn_request({**SPAWN, "tool": "x"})


def test_results_are_camel_case_and_leave_out_what_is_not_known() -> None:
    assert spell_settle(SettleResult(settled=False, reason="timeout", last_turn=1, last_status="idle")) == {
        "settled": False,
        "abnormal": False,
        "reason": "timeout",
        "lastTurn": 1,
        "lastStatus": "idle",
    }
    assert spell_settle(SettleResult(settled=True, exit_code=0, signal="SIGHUP")) == {
        "settled": True,
        "abnormal": False,
        "exitCode": 0,
        "signal": "SIGHUP",
    }
    assert spell_observation(Observation(turn=2, status=None, state="finished", exit_code=3)) == {
        "turn": 2,
        "status": None,
        "state": "finished",
        "exitCode": 3,
    }
    assert spell_verdict(Verdict(outcome="accept", text="x", stop_reason="stop", bad_lines=1)) == {
        "verdict": "accept",
        "text": "x",
        "badLines": 1,
        "stopReason": "stop",
    }


def test_a_field_that_a_supervisor_adds_to_a_result_is_spelt_too() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Told(SettleResult):
        last_event_at: int | None = None

    assert spell(Told(settled=True, last_event_at=7)) == {"settled": True, "abnormal": False, "lastEventAt": 7}
    assert spell(Told(settled=True)) == {"settled": True, "abnormal": False}, "what is not known is no claim"


def test_what_a_supervisor_keeps_of_a_child_is_not_told_and_what_is_new_in_it_is() -> None:
    @dataclass(eq=False, kw_only=True)
    class Told(Child):
        in_flight_tool: str = "bash"

    kept: dict[str, Any] = {"id": "terminal/1", "mode": "terminal", "handle": "a", "run_id": "r", "session_file": "/x"}
    assert spell_child(Child(**kept, name="n")) == {"mode": "terminal", "name": "n", "promptTurn": 0}
    assert spell_child(Told(**kept))["inFlightTool"] == "bash"


@pytest.mark.parametrize("claimant", [TerminalSupervisor, RoutingSupervisor])
def test_a_claim_of_the_backend_or_of_the_router_is_a_claim(claimant: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimant, "capabilities", property(lambda self: Capabilities(prompt_disposition=True)))

    assert asked(INSIDE, ("capabilities", {})) == [{"promptDisposition": True, "events": False}]


@pytest.mark.parametrize("mode", ["terminal", None])
def test_a_retire_asks_the_router_and_ends_a_child_that_the_router_did_not_start(mode: str | None) -> None:
    forced = {} if mode is None else {"mode": mode}
    scenario = Scenario(
        id="x",
        why="x",
        clauses=["D11"],
        world=World(agent=[Agent(turn=1, status="working")]),
        drive=[Step(do="spawn", as_="a", args=forced), Step(do="retire", child="a")],
    )
    record = run_scenario(scenario, "memory")

    assert record.steps[1].returned == {"ended": True, "removed": True, "note": None}
    assert record.aftermath.terminals.get("lgl-run00001-alpha") is None


ENDS = Agent(
    status="idle",
    step=[
        AgentStep(at_ms=100, turn=1, status="working"),
        AgentStep(on_call="terminal.send", turn_add=1),
        AgentStep(after_ms=900, finish=Finish(code=3)),
    ],
)


def test_a_whole_life_goes_through_every_call() -> None:
    scenario = Scenario(
        id="x",
        why="x",
        clauses=["D8"],
        world=World(agent=[ENDS]),
        drive=[
            Step(do="spawn", as_="a"),
            Step(do="steer", child="a", at_ms=500, args={"text": "go on"}),
            Step(do="status", child="a"),
            Step(do="abort", child="a"),
            Step(do="wait", child="a", as_="w"),
            Step(do="retire", child="a"),
            Step(do="shutdown"),
        ],
    )
    host: HostName = "memory"
    steps = run_scenario(scenario, host).steps

    assert [step.raised for step in steps] == [None] * 7
    assert steps[1].returned == {"started": True, "promptTurn": 1}
    assert (steps[2].returned or {})["turn"] == 2
    assert steps[3].returned == {"status": "interrupted"}
    assert {"settled": True, "exitCode": 3}.items() <= (steps[4].returned or {}).items()
    assert steps[5].returned == {"ended": True, "removed": True, "note": None}


def test_a_wait_that_is_called_off_says_so() -> None:
    scenario = Scenario(
        id="x",
        why="x",
        clauses=["D8"],
        world=World(agent=[Agent(status="idle")]),
        drive=[
            Step(do="spawn", as_="a"),
            Step(do="wait", child="a", as_="w", background=True, args={"timeoutMs": 60_000}),
            Step(do="pause", args={"ms": 1_000}),
            Step(do="cancel", of=["w"]),
            Step(do="join", of=["w"]),
        ],
    )
    waited = run_scenario(scenario, "memory").steps[1]

    assert {"settled": False, "reason": "aborted by parent"}.items() <= (waited.returned or {}).items()
    assert waited.at_ms == 1_000


def test_the_protocol_lists_the_keys_of_every_result() -> None:
    settled = SettleResult(
        settled=True,
        abnormal=True,
        reason="x",
        exit_code=1,
        signal="SIGHUP",
        last_turn=1,
        last_status="done",
        node="settled",
        aborted=False,
        unconfirmed=1,
        detail="x",
    )
    seen = Observation(turn=1, status="done", state="finished", exit_code=1, signal="SIGHUP")
    verdict = Verdict(outcome="accept", text="x", stop_reason="stop", reason="x", bad_lines=1)

    assert set(RESULTS) == set(METHODS)
    assert set(spell_settle(settled)) == RESULTS["wait"]
    assert set(spell_observation(seen)) == RESULTS["status"]
    assert set(spell_verdict(verdict)) == RESULTS["collect"]
    assert set(spell_error(SupervisorError("bad-request", "x"))) == ERROR_KEYS


def test_every_result_of_a_life_has_the_keys_that_the_protocol_lists() -> None:
    agent = Agent(turn=1, status="working", step=[AgentStep(on_call="terminal.interrupt", status="done")])
    calls = ["steer", "abort", "status", "capabilities", "retire"]
    drive = [
        Step(do="host.available"),
        Step(do="arbitrate"),
        Step(do="card.load", args={"text": "---\nname: a\n---\nYou are.\n"}),
        Step(do="spawn", as_="a"),
        *(Step(do=name, child="a", args={"text": "x"} if name == "steer" else {}) for name in calls),
        Step(do="shutdown"),
    ]
    record = run_scenario(Scenario(id="x", why="x", clauses=["D8"], world=World(agent=[agent]), drive=drive), "memory")

    assert record.errored is None
    optional = {"exitCode", "signal", "disposition", "cleared"}
    for step in record.steps:
        assert set(step.returned or {}) | optional == RESULTS[step.do] | optional, step
