"""Lifecycle scenarios: they hold for our supervisor, and a planted break turns its own clause red."""

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts import loading
from contracts.judging.judge import judge
from contracts.loading import load_all
from contracts.records import RunVerdict
from contracts.running.one_run import run_scenario
from contracts.scenario import HostName, Scenario
from legion_terminal import client, settle, terminal
from legion_terminal.errors import SupervisorError
from legion_terminal.types import Capabilities

LAYERS = ("spawn", "session", "lifecycle", "arbitration", "recorded")
EVERY = {s.id: s for s in load_all([loading.SCENARIOS / layer for layer in LAYERS]).scenarios}
SCENARIOS = {s.id: s for s in load_all([loading.SCENARIOS / "lifecycle"]).scenarios}
RUNS = [(name, host) for name, scenario in SCENARIOS.items() for host in scenario.hosts]
DECISIONS = [f"D{number}" for number in range(1, 14)] + [f"I{number}" for number in range(1, 7)]
CLAUSES = DECISIONS + [f"A{number}" for number in range(1, 5)]

Break = Callable[[pytest.MonkeyPatch], None]


def verdict(scenario: Scenario, host: HostName = "memory") -> RunVerdict:
    return judge(scenario, run_scenario(scenario, host))


def red(result: RunVerdict) -> set[str]:
    return {finding.clause for finding in result.findings if not finding.ok}


@pytest.mark.parametrize(("name", "host"), RUNS)
def test_scenario_holds(name: str, host: HostName) -> None:
    result = verdict(SCENARIOS[name], host)
    assert result.verdict == "pass", [finding for finding in result.findings if not finding.ok] or result.errored


# planted breaks


def around(patch: pytest.MonkeyPatch, act: Callable[..., Any]) -> None:
    """Put `act(ask, method, params)` around every call of the client; `ask` makes a call as it was meant."""
    original = client.HcClient.ask

    async def acting(self: client.HcClient, method: Any, params: Any, **rest: Any) -> Any:
        async def ask(method: Any = method, params: Any = params) -> Any:
            return await original(self, method, params, **rest)

        return await act(ask, method, dict(params))

    patch.setattr(client.HcClient, "ask", acting)


def no_removal(patch: pytest.MonkeyPatch) -> None:
    retired: set[str] = set()

    async def look_instead(ask: Any, method: str, params: dict[str, Any]) -> Any:
        if method == "terminal.kill":
            retired.add(params["terminal"])
        skipped = method == "terminal.rm" and params["terminal"] in retired
        return await ask("terminal.get" if skipped else method)

    around(patch, look_instead)


def removal_at_once(patch: pytest.MonkeyPatch) -> None:
    async def hasty(ask: Any, method: str, params: dict[str, Any]) -> Any:
        answer = await ask("terminal.get" if method == "terminal.rm" else method)
        if method == "terminal.kill":
            with contextlib.suppress(SupervisorError):
                await ask("terminal.rm")
        return answer

    around(patch, hasty)


def settle_on_idle(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settle, "SETTLE_ROWS", (("any", "any", "idle", True), *settle.SETTLE_ROWS))


def finished_is_not_settled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settle, "SETTLE_ROWS", settle.SETTLE_ROWS[1:])


def git_at_launch(patch: pytest.MonkeyPatch) -> None:
    async def probe(ask: Any, method: str, params: dict[str, Any]) -> Any:
        if method == "terminal.run":
            subprocess.run(["git", "--version"], check=False, stdout=subprocess.DEVNULL)  # noqa: S607, ASYNC221
        return await ask()

    around(patch, probe)


def note_in_the_worktree(patch: pytest.MonkeyPatch) -> None:
    async def prepare(ask: Any, method: str, params: dict[str, Any]) -> Any:
        if method == "terminal.run":
            (Path(params["cwd"]) / "NOTES.md").write_text("prepared")
        return await ask()

    around(patch, prepare)


def identity_ignored(patch: pytest.MonkeyPatch) -> None:
    for module in ("terminal", "retiring", "steering"):
        patch.setattr(f"legion_terminal.{module}.difference", lambda child, sight: None)


def claims_disposition(patch: pytest.MonkeyPatch) -> None:
    claimed = property(lambda self: Capabilities(prompt_disposition=True))
    patch.setattr(terminal.TerminalSupervisor, "capabilities", claimed)


def claims_events(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terminal.TerminalSupervisor, "capabilities", property(lambda self: Capabilities(events=True)))


def sends_twice(patch: pytest.MonkeyPatch) -> None:
    async def twice(ask: Any, method: str, params: dict[str, Any]) -> Any:
        if method == "terminal.send":
            await ask()
        return await ask()

    around(patch, twice)


def kills_to_abort(patch: pytest.MonkeyPatch) -> None:
    async def kill(ask: Any, method: str, params: dict[str, Any]) -> Any:
        return await ask("terminal.kill" if method == "terminal.interrupt" else method)

    around(patch, kill)


def address_instead_of_name(patch: pytest.MonkeyPatch) -> None:
    async def addressed(ask: Any, method: str, params: dict[str, Any]) -> Any:
        return await ask(method, params | ({"terminal": "t2"} if method in ("terminal.kill", "terminal.rm") else {}))

    around(patch, addressed)


BREAKS: list[tuple[Break, str, set[str]]] = [
    (no_removal, "retire-kill-then-rm", {"D11"}),
    (no_removal, "retire-already-ended", {"D11"}),
    (removal_at_once, "retire-slow-end", {"D11-finish"}),
    (settle_on_idle, "recorded-esc-midstream", {"D8"}),
    (finished_is_not_settled, "child-killed-mid-turn", {"D8"}),
    (git_at_launch, "no-git-in-a-life", {"I3"}),
    (note_in_the_worktree, "worktree-untouched", {"I2"}),
    (identity_ignored, "reborn-shell-retire", {"ID1"}),
    (identity_ignored, "reborn-shell-abort", {"ID1"}),
    (claims_disposition, "abort-claims-no-queue", {"D10"}),
    (claims_events, "no-event-facts", {"D12"}),
    (sends_twice, "steer-is-one-send", {"D10"}),
    (kills_to_abort, "abort-keeps-the-child", {"D10", "D8"}),
    (address_instead_of_name, "name-in-every-call", {"D7"}),
]


@pytest.mark.parametrize(
    ("plant", "name", "clauses"), BREAKS, ids=[f"{plant.__name__}-{name}" for plant, name, _ in BREAKS]
)
def test_break_turns_its_clause_red(
    monkeypatch: pytest.MonkeyPatch, plant: Break, name: str, clauses: set[str]
) -> None:
    plant(monkeypatch)
    assert red(verdict(EVERY[name])) == clauses


def test_a_claim_of_events_turns_no_other_clause_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only scenarios that ask for the capabilities could notice; what breaks a whole life is planted elsewhere."""
    claims_events(monkeypatch)
    asking = [one for one in EVERY.values() if any(step.do == "capabilities" for step in one.drive)]
    assert {found for scenario in asking for found in red(verdict(scenario))} == {"D12"}


def test_a_quick_poll_does_not_change_how_patient_a_retire_is() -> None:
    slow, quick = SCENARIOS["retire-never-ends"], SCENARIOS["retire-never-ends-quick-polls"]

    assert (slow.world, slow.drive, slow.expect) == (quick.world, quick.drive, quick.expect)
    assert quick.poll_ms < slow.poll_ms
    assert red(verdict(quick)) == set()


# what the scenarios cover


def test_every_p0_case_of_the_layer_has_a_scenario() -> None:
    sources = " ".join(scenario.source for scenario in SCENARIOS.values())
    assert {case for case in ("BC-102", "BC-103", "BC-108", "BC-110") if case not in sources} == set()


def test_every_clause_is_proved_over_a_real_socket() -> None:
    """The first clause of a scenario is what it is about."""
    proved = {clause for scenario in EVERY.values() if "socket" in scenario.hosts for clause in spoken(scenario)}
    assert set(CLAUSES) - proved == set()


def spoken(scenario: Scenario) -> set[str]:
    named = [step.clause for step in scenario.drive] + [one.clause for one in scenario.expect]
    return {scenario.clauses[0], *filter(None, named)}


def test_there_are_many_by_hand_and_many_of_them_run_on_the_socket() -> None:
    by_hand = [scenario for name, scenario in EVERY.items() if not name.startswith("recorded-")]
    assert len(by_hand) >= 50
    assert sum("socket" in scenario.hosts for scenario in by_hand) >= 20
