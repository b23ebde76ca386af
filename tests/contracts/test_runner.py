"""One run and all runs: what is errored and never passed, the order of results, and that a pool changes nothing."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contracts.checks import CHECKS
from contracts.records import RunRecord, RunVerdict
from contracts.running.one_run import NO_VIRTUAL_SOCKET
from contracts.running.runner import RunResult, failed, limit_ms, run_all, run_scenario
from contracts.scenario import HostName, Scenario, Step, World
from contracts.sut.base import SutSetup
from contracts.sut.python import PythonSut
from hc_sim.clock import VirtualTimeError
from hc_sim.script.format import Agent
from hc_sim.script.format import Step as AgentStep

TWO_TURNS = Agent(
    status="idle",
    step=[AgentStep(after_observations=1, turn=1, status="working"), AgentStep(after_observations=1, status="done")],
)
BOTH: list[HostName] = ["memory", "socket"]


def life(name: str = "a-life", hosts: list[HostName] | None = None, **more: Any) -> Scenario:
    return Scenario(
        id=name,
        why="x",
        clauses=["D8"],
        hosts=hosts or ["memory"],
        poll_ms=20,
        world=more.pop("world", World(agent=[TWO_TURNS])),
        drive=more.pop("drive", [Step(do="spawn", as_="a"), Step(do="wait", child="a"), Step(do="retire", child="a")]),
        **more,
    )


def outline(result: RunResult) -> tuple[Any, ...]:
    """What a run left, without its times."""
    assert isinstance(result, RunRecord)
    steps = [(step.do, step.returned, step.raised) for step in result.steps]
    trace = [(event.kind, event.method, event.status, event.turn) for event in result.trace]
    return (result.scenario, result.host, result.errored, steps, trace, result.aftermath)


@pytest.mark.parametrize("host", BOTH)
def test_a_run_leaves_steps_trace_children_placeholders_and_an_aftermath(host: HostName) -> None:
    record = run_scenario(life(), host)

    assert record.errored is None
    assert [step.do for step in record.steps] == ["spawn", "wait", "retire"]
    assert (record.steps[1].returned or {})["settled"] is True
    assert record.children == {"a": "lgl-run00001-alpha"}
    assert record.fills["name"] == record.fills["name:a"] == "lgl-run00001-alpha"
    assert record.fills["session:a"] == f"{record.fills['dir']}/session-alpha.jsonl"
    assert record.aftermath.left == []


@pytest.mark.parametrize("host", BOTH)
def test_times_count_from_the_beginning_of_the_drive(host: HostName) -> None:
    record = run_scenario(life(drive=[Step(do="pause", args={"ms": 50}), Step(do="spawn", as_="a")]), host)

    assert record.steps[0].started_ms < 20
    assert all(event.t >= 50 for event in record.trace)


def test_both_hosts_show_the_same_calls_in_the_same_order() -> None:
    memory, socket = (run_scenario(life(), host) for host in BOTH)

    assert outline(memory)[3:] == outline(socket)[3:]


def test_virtual_time_with_processes_is_refused_with_the_reason() -> None:
    record = run_scenario(life(time="virtual"), "socket")

    assert record.errored == NO_VIRTUAL_SOCKET
    assert "cannot see that another process is still working" in record.errored
    assert record.trace == []


def test_real_time_in_memory_is_refused_with_the_reason() -> None:
    record = run_scenario(life(time="real"), "memory")

    assert record.errored is not None
    assert "virtual time" in record.errored


def test_a_system_that_starts_a_process_on_virtual_time_is_errored_with_the_reason() -> None:
    class Starting(PythonSut):
        async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
            await asyncio.create_subprocess_exec("/bin/true")
            return {}

    record = run_scenario(life(), "memory", Starting)

    assert record.errored is not None
    assert "a real process cannot run on virtual time" in record.errored


class _Refused(PythonSut):
    """Starts a program at every spawn, in a way that virtual time refuses, and goes on if it may."""

    program: tuple[str, ...] = ("git", "--version")
    goes_on = False

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "spawn":
            try:
                if len(self.program) == 1:
                    await asyncio.create_subprocess_shell(self.program[0])
                else:
                    await asyncio.create_subprocess_exec(*self.program)
            except VirtualTimeError:
                if not self.goes_on:
                    raise
        return await super().call(method, params)


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize(
    "program", [("git", "--version"), ("/usr/bin/git", "log"), ("sh", "-c", "git log"), ("git log | cat",)]
)
def test_a_git_that_virtual_time_refuses_is_on_record_and_counts(program: tuple[str, ...], goes_on: bool) -> None:
    factory = type("Planted", (_Refused,), {"program": program, "goes_on": goes_on})
    record = run_scenario(life(), "memory", factory)

    assert record.errored is None
    assert record.aftermath.git_calls == 1
    assert len(record.refused) == 1
    assert "git" in record.refused[0]
    assert (record.steps[0].returned is not None) is goes_on


@pytest.mark.parametrize("goes_on", [False, True])
def test_another_process_that_virtual_time_refuses_breaks_the_run_whoever_catches_it(goes_on: bool) -> None:
    factory = type("Planted", (_Refused,), {"program": ("/bin/sleep", "1"), "goes_on": goes_on})
    record = run_scenario(life(), "memory", factory)

    assert record.errored is not None
    assert "cannot run on virtual time" in record.errored
    assert record.refused == []


def test_a_git_over_the_socket_runs_is_counted_and_refuses_nothing() -> None:
    record = run_scenario(life(), "socket", _Refused)

    assert (record.errored, record.refused, record.aftermath.git_calls) == (None, [], 1)


def test_the_git_of_the_harness_itself_is_not_counted() -> None:
    record = run_scenario(life(world=World(agent=[TWO_TURNS], repo=True)), "memory")

    assert (record.errored, record.aftermath.git_calls) == (None, 0)


def test_a_system_that_waits_for_ever_on_virtual_time_is_errored_and_named() -> None:
    class Hanging(PythonSut):
        async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
            if method == "wait":
                await asyncio.Event().wait()
            return await super().call(method, params)

    record = run_scenario(life(), "memory", Hanging)

    assert record.errored is not None
    assert record.errored.endswith("step 1 (wait) had not come back")
    assert (record.steps[0].returned or {})["mode"] == "terminal"


def test_a_system_that_cannot_be_made_is_errored() -> None:
    def broken(_: SutSetup) -> PythonSut:
        raise RuntimeError("no such supervisor")

    assert run_scenario(life(), "memory", broken).errored == "the run broke with RuntimeError: no such supervisor"


def test_a_world_that_cannot_be_built_is_errored_with_its_field() -> None:
    record = run_scenario(life(world=World(profile={"colour": 1})), "memory")

    assert record.errored is not None
    assert record.errored.startswith("world.profile: ")


@pytest.mark.parametrize("root", ["/", "x" * 90])
def test_no_folder_is_left_after_a_broken_run(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    run_scenario(life(world=World(profile={"colour": 1})), "memory")

    assert list(tmp_path.iterdir()) == []


def test_a_temporary_root_too_long_for_a_socket_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("d" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))

    record = run_scenario(life(), "socket")

    assert record.errored is None
    assert list(long.iterdir()) == []


def test_results_come_as_scenarios_and_their_hosts_are_listed_checks_last() -> None:
    results = run_all([life("one", BOTH), life("two")], workers=0, checks=["d2-markers"])

    assert [(result.scenario, result.host) for result in results] == [
        ("one", "memory"),
        ("one", "socket"),
        ("two", "memory"),
        ("d2-markers", "check"),
    ]


def test_only_the_hosts_that_are_asked_for_are_used() -> None:
    results = run_all([life("one", BOTH), life("two", ["socket"])], workers=0, hosts=["memory"])

    assert [(result.scenario, result.host) for result in results] == [("one", "memory")]


def test_each_result_is_told_once() -> None:
    told: list[RunResult] = []

    results = run_all([life("one"), life("two")], workers=0, checks=["d2-markers"], on_result=told.append)

    assert sorted(result.scenario for result in told) == sorted(result.scenario for result in results)


def test_a_pool_gives_the_same_results_as_this_process() -> None:
    scenarios = [life("one", BOTH), life("two", BOTH), life("broken", world=World(profile={"colour": 1}))]

    assert list(map(outline, run_all(scenarios, workers=2))) == list(map(outline, run_all(scenarios, workers=0)))


def test_records_survive_the_way_through_a_pool_to_the_byte() -> None:
    (there,) = run_all([life()], workers=1)
    assert isinstance(there, RunRecord)

    assert msgspec.json.decode(msgspec.json.encode(there), type=RunRecord) == there


@pytest.mark.parametrize("unknown", [{"sut": "cobol"}, {"checks": ["d99"]}])
def test_an_unknown_system_or_check_is_refused_before_anything_runs(unknown: dict[str, Any]) -> None:
    with pytest.raises(KeyError):
        run_all([life()], workers=0, **unknown)


def test_a_job_without_a_result_is_errored_and_never_passed() -> None:
    record = failed((life(), "socket"), "its worker died")
    verdict = failed(("d2-markers", "check"), "its worker died")

    assert (record.host, record.errored) == ("socket", "its worker died")
    assert isinstance(verdict, RunVerdict)
    assert (verdict.verdict, verdict.clauses, verdict.errored) == ("errored", ["D2"], "its worker died")


def test_the_hard_limit_of_a_socket_run_is_the_scenarios_own_and_a_grace() -> None:
    assert limit_ms((life(limit_ms=3_000), "socket")) == 13_000
    assert limit_ms((life(limit_ms=3_000), "memory")) == 30_000
    assert limit_ms(("d2-markers", "check")) == 120_000


def test_a_run_changes_nothing_in_the_environment_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_SUBAGENT_DEPTH", "2")
    before = dict(os.environ)

    run_scenario(life(), "memory")

    assert dict(os.environ) == before


def test_the_id_of_a_check_is_no_id_of_a_clause() -> None:
    assert all(name != check.clause and name == check.id for name, check in CHECKS.items())
