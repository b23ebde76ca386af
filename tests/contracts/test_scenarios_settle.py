"""Settle scenarios and hazards: they hold, the oracle agrees with every wait, and wrong rules turn D8 red."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.fuzz import Failed, History, Look, Missing, Outcome, Prompt, Seen, objections
from contracts.judging.judge import judge
from contracts.loading import load_all
from contracts.loading.rules import clauses_of
from contracts.records import RunRecord, RunVerdict, StepRecord
from contracts.running.one_run import run_scenario
from contracts.scenario import Scenario
from legion_terminal import settle

ROOM = Path(__file__).parents[2] / "contracts" / "scenarios"
SETTLE = {scenario.id: scenario for scenario in load_all([ROOM / "settle"]).scenarios}
EVERY_HAZARD = {scenario.id: scenario for scenario in load_all([ROOM / "hazard"]).scenarios}
HAZARDS = {name: scenario for name, scenario in EVERY_HAZARD.items() if "memory" in scenario.hosts}
OVER_THE_SOCKET = {name: scenario for name, scenario in EVERY_HAZARD.items() if "socket" in scenario.hosts}
ON_MEMORY = [name for name, scenario in SETTLE.items() if "memory" in scenario.hosts]
P0_CASES = [32, 33, 34, 35, 36, 37, 39, 41, 42, 43, 44, 48, 49, 50, 56, 60, 61, 64]
DONE = settle.SETTLE_ROWS[:-1]
NOT_YET = settle.SETTLE_ROWS[-1]


def told(verdict: RunVerdict) -> str:
    wrong = [f"{f.clause} {f.where}: expected {f.expected}, got {f.got}" for f in verdict.findings if not f.ok]
    return "\n".join([verdict.errored or "", *wrong])


def red_clauses(scenarios: dict[str, Scenario]) -> set[str]:
    verdicts = [judge(scenario, run_scenario(scenario, "memory")) for scenario in scenarios.values()]
    assert [verdict.errored for verdict in verdicts if verdict.errored] == []
    return {finding.clause for verdict in verdicts for finding in verdict.findings if not finding.ok}


@pytest.mark.parametrize("name", ON_MEMORY)
def test_a_settle_scenario_holds_on_the_memory_host(name: str) -> None:
    verdict = judge(SETTLE[name], run_scenario(SETTLE[name], "memory"))
    assert verdict.verdict == "pass", told(verdict)


@pytest.mark.parametrize("name", ["settle-boot-idle", "settle-terminal-removed", "settle-steer-into-a-dialog"])
def test_a_settle_scenario_holds_over_a_real_socket_and_a_real_bridge(name: str) -> None:
    verdict = judge(SETTLE[name], run_scenario(SETTLE[name], "socket"))
    assert verdict.verdict == "pass", told(verdict)


@pytest.mark.parametrize("name", HAZARDS)
def test_a_hazard_ends_badly_and_says_what_it_cost(name: str) -> None:
    verdict = judge(HAZARDS[name], run_scenario(HAZARDS[name], "memory"))
    assert verdict.verdict == "hazard", told(verdict)
    assert verdict.cost_ms is not None
    assert verdict.cost_ms > 100_000, "nearly the whole wait of two minutes is lost"


@pytest.mark.parametrize("name", OVER_THE_SOCKET)
def test_a_hazard_ends_badly_over_a_real_bridge_too(name: str) -> None:
    verdict = judge(EVERY_HAZARD[name], run_scenario(EVERY_HAZARD[name], "socket"))
    assert verdict.verdict == "hazard", told(verdict)
    assert (verdict.cost_ms or 0) > 0
    assert all(step.args.get("timeoutMs", 0) <= 600 for step in EVERY_HAZARD[name].drive), "a short wait"


@pytest.mark.parametrize("hazards", [HAZARDS, OVER_THE_SOCKET], ids=["memory", "socket"])
def test_the_four_hazards_of_the_design_are_there_on_both_hosts(hazards: dict[str, Scenario]) -> None:
    shown = {clause for scenario in hazards.values() for clause in scenario.clauses}
    assert shown == {"D8-done-withdrawn", "D8-idle-end", "D8-error-end", "D10-steer-absorbed"}


@pytest.mark.parametrize("case", P0_CASES)
def test_every_urgent_settle_case_has_a_scenario(case: int) -> None:
    every = {**SETTLE, **HAZARDS}
    assert [name for name, scenario in every.items() if f"BC-{case:03}" in scenario.source]


def test_a_third_of_the_settle_scenarios_and_more_run_on_both_hosts() -> None:
    both = [name for name, scenario in SETTLE.items() if {"memory", "socket"} <= set(scenario.hosts)]
    assert len(both) >= 25


# --- the oracle on every wait -----------------------------------------------------------------------------------------


def waits(record: RunRecord, scenario: Scenario) -> Iterator[tuple[StepRecord, History]]:
    """Each wait of a run with what it saw, read from the trace alone."""
    prompt_turns: dict[str, int] = {}
    for step, asked in zip(record.steps, scenario.drive, strict=True):
        child = step.child or step.name
        if step.returned is not None and "promptTurn" in step.returned:
            prompt_turns[child] = int(step.returned["promptTurn"])
        if step.do == "wait" and step.at_ms is not None:
            yield (
                step,
                History(
                    prompt_turn=prompt_turns[child],
                    timeout_ms=float(asked.args["timeoutMs"]),
                    looks=tuple(looks(record, record.children[child], step.started_ms, step.at_ms)),
                    started_ms=step.started_ms,
                    cancelled_ms=called_off(step, record, scenario),
                    prompts=tuple(prompts(step, record)),
                ),
            )


def prompts(wait: StepRecord, record: RunRecord) -> Iterator[Prompt]:
    """What was sent to the child while the wait went on."""
    for step in record.steps:
        during = wait.started_ms < step.started_ms <= (wait.at_ms or 0)
        if during and step.do == "steer" and step.child == wait.child and step.returned and step.at_ms is not None:
            yield Prompt(at_ms=step.at_ms, turn=int(step.returned["promptTurn"]))


def called_off(wait: StepRecord, record: RunRecord, scenario: Scenario) -> int | None:
    times = [
        step.at_ms
        for step, asked in zip(record.steps, scenario.drive, strict=True)
        if step.do == "cancel" and wait.name in asked.of
    ]
    return times[0] if times else None


def looks(record: RunRecord, terminal: str, from_ms: int, to_ms: int) -> Iterator[Look]:
    born = next(
        event.result["created_ms"]
        for event in record.trace
        if event.kind == "reply" and event.method == "terminal.run" and event.result["name"] == terminal
    )
    asked = {
        (event.conn, str(event.id)): event.t
        for event in record.trace
        if event.kind == "call" and event.method == "terminal.get" and event.params == {"terminal": terminal}
    }
    for event in record.trace:
        call = (event.conn, str(event.id))
        if event.kind == "reply" and call in asked and from_ms <= asked[call] and event.t <= to_ms:
            yield look(event.t, event.result, event.error, born)


def look(at_ms: int, result: dict[str, Any] | None, error: dict[str, Any] | None, born: int) -> Look:
    if result is None:
        kind = str(((error or {}).get("data") or {}).get("kind", ""))
        return Missing(at_ms=at_ms) if kind.lower() == "no_such_terminal" else Failed(at_ms=at_ms)
    return Seen(
        at_ms=at_ms,
        turn=result["turn"],
        status=(result.get("status") or {}).get("state"),
        state=result["state"],
        exit_code=result.get("exit_code"),
        signal=result.get("signal"),
        ours=result["created_ms"] == born,
    )


WAITING = {
    name: scenario
    for name, scenario in {**SETTLE, **HAZARDS}.items()
    if any(step.do == "wait" for step in scenario.drive)
}


@pytest.mark.parametrize("name", WAITING)
def test_the_oracle_agrees_with_every_wait_of_a_scenario(name: str) -> None:
    scenario = WAITING[name]
    record = run_scenario(scenario, "memory")
    found = list(waits(record, scenario))
    assert len(found) == len([step for step in scenario.drive if step.do == "wait"])
    for step, history in found:
        back = step.returned or {}
        assert step.at_ms is not None
        outcome = Outcome(
            at_ms=step.at_ms,
            settled=back["settled"],
            abnormal=back.get("abnormal", False),
            reason=back.get("reason"),
            exit_code=back.get("exitCode"),
            signal=back.get("signal"),
            last_turn=back.get("lastTurn"),
            last_status=back.get("lastStatus"),
        )
        assert objections(history, outcome) == []


# --- wrong rules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        (*DONE, ("any", "any", "idle", True), NOT_YET),
        (*DONE, ("any", "new", "idle", True), NOT_YET),
        (*DONE, ("any", "new", "error", True), NOT_YET),
        (*DONE, ("any", "any", "done", True), NOT_YET),
        (*DONE, ("any", "any", "blocked", True), NOT_YET),
        (DONE[0], NOT_YET),
        (DONE[1], NOT_YET),
    ],
    ids=[
        "idle settles",
        "idle at a new turn settles",
        "error settles",
        "an old done settles",
        "blocked settles",
        "done never settles",
        "finished never settles",
    ],
)
def test_a_wrong_settle_rule_turns_d8_red(rows: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "SETTLE_ROWS", rows)
    endless = "settle-very-long-timeouts"  # its waits would never end when nothing settles them
    only_d8 = {
        name: scenario
        for name, scenario in SETTLE.items()
        if name in ON_MEMORY and name != endless and scenario.clauses == ["D8"] and scenario.level == "must"
    }
    assert red_clauses(only_d8) == {"D8"}


@pytest.mark.parametrize("turn", ["any", "new"])
def test_settling_on_idle_turns_no_other_clause_red(turn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "SETTLE_ROWS", (*DONE, ("any", turn, "idle", True), NOT_YET))
    others = {name: SETTLE[name] for name in ON_MEMORY if clauses_of(SETTLE[name]) != ["D8"]}
    assert len(others) > 10
    assert red_clauses(others) <= {"D8"}


def test_settling_on_idle_avoids_the_hazards_that_end_in_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "SETTLE_ROWS", (*DONE, ("any", "new", "idle", True), NOT_YET))
    verdicts = {name: judge(scenario, run_scenario(scenario, "memory")).verdict for name, scenario in HAZARDS.items()}
    assert {name for name, verdict in verdicts.items() if verdict == "avoided"} == {
        "hazard-done-withdrawn",
        "hazard-idle-end",
    }


def test_a_wait_that_never_notices_a_missing_terminal_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "GONE_AFTER", 10)
    assert red_clauses({"settle-terminal-removed": SETTLE["settle-terminal-removed"]}) == {"D8-gone"}


def test_a_wait_that_gives_up_at_the_first_miss_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "GONE_AFTER", 1)
    assert red_clauses({"settle-missed-once": SETTLE["settle-missed-once"]}) == {"D8-gone"}
