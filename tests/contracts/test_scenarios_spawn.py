"""Spawn and arbitration scenarios: they hold for our supervisor, and a planted break turns its own clause red."""

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from contracts import loading
from contracts.judging.judge import judge
from contracts.loading import load_all
from contracts.records import RunVerdict
from contracts.running.one_run import run_scenario
from contracts.scenario import HostName, Scenario
from legion_terminal import client
from legion_terminal.errors import SupervisorError
from legion_terminal.types import SpawnRequest

LAYERS = ("spawn", "arbitration")
SCENARIOS = {s.id: s for s in load_all([loading.SCENARIOS / layer for layer in LAYERS]).scenarios}
RUNS = [(name, host) for name, scenario in SCENARIOS.items() for host in scenario.hosts]

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


def replace(patch: pytest.MonkeyPatch, name: str, change: Callable[..., Any]) -> None:
    """Put `change(original, ...)` in the place of a function of the supervisor or its SUT."""
    module, _, attribute = name.rpartition(".")
    original = getattr(importlib.import_module(module), attribute)
    patch.setattr(name, partial(change, original))


def before_start(patch: pytest.MonkeyPatch, act: Callable[[Any, dict[str, Any]], Any]) -> None:
    """Do something on the client just before each `terminal.run`."""
    ask = client.HcClient.ask

    async def acting(self: client.HcClient, method: Any, params: Any, **rest: Any) -> Any:
        if method == "terminal.run":
            await act(partial(ask, self), params)
        return await ask(self, method, params, **rest)

    patch.setattr(client.HcClient, "ask", acting)


def no_prefix(patch: pytest.MonkeyPatch) -> None:
    def bare(build: Any, request: SpawnRequest) -> list[str]:
        return [*build(request)[:-1], request.task]

    replace(patch, "legion_terminal.terminal.terminal_argv", bare)


def no_extensions(patch: pytest.MonkeyPatch) -> None:
    def without(build: Any, request: SpawnRequest) -> Any:
        return build(dataclasses.replace(request, extensions=()))

    replace(patch, "legion_terminal.terminal.terminal_argv", without)


def through_a_shell(patch: pytest.MonkeyPatch) -> None:
    def wrapped(build: Any, request: SpawnRequest) -> list[str]:
        return ["/bin/sh", "-c", " ".join(build(request))]

    replace(patch, "legion_terminal.terminal.terminal_argv", wrapped)


def memory_last(patch: pytest.MonkeyPatch) -> None:
    def swapped(merge: Any, process: Any, memory: Any, request: Any) -> Any:
        return merge(process, request, memory)

    replace(patch, "legion_terminal.terminal.overlay", swapped)


def no_path(patch: pytest.MonkeyPatch) -> None:
    def without(merge: Any, process: Mapping[str, str], memory: Any, request: Any) -> Any:
        return merge({key: value for key, value in process.items() if key != "PATH"}, memory, request)

    replace(patch, "legion_terminal.terminal.overlay", without)


def whole_environment(patch: pytest.MonkeyPatch) -> None:
    def everything(merge: Any, process: Mapping[str, str], memory: Any, request: Any) -> dict[str, str]:
        return {**process, **merge(process, memory, request)}

    replace(patch, "legion_terminal.terminal.overlay", everything)


def no_space(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("legion_terminal.terminal.child_labels", lambda labels: {"legion.role": "centurion"})


def copied_tab(patch: pytest.MonkeyPatch) -> None:
    def with_tab(build: Any, labels: Mapping[str, str] | None) -> dict[str, str]:
        tab = (labels or {}).get("herdr.tab")
        return {**build(labels), **({"herdr.tab": tab} if tab else {})}

    replace(patch, "legion_terminal.terminal.child_labels", with_tab)


def lowered_names(patch: pytest.MonkeyPatch) -> None:
    def lowered(build: Any, run_id: str, handle: str) -> str:
        return str(build(run_id, handle.lower()))

    replace(patch, "legion_terminal.terminal.terminal_name", lowered)


def evicted_holder(patch: pytest.MonkeyPatch) -> None:
    async def evict(ask: Any, params: dict[str, Any]) -> None:
        for method in ("terminal.kill", "terminal.rm"):
            with contextlib.suppress(SupervisorError):
                await ask(method, {"terminal": params["name"]})

    before_start(patch, evict)


def read_for_each(patch: pytest.MonkeyPatch) -> None:
    async def read(ask: Any, params: dict[str, Any]) -> None:
        await ask("terminal.get", {"terminal": params["caller"]})

    before_start(patch, read)


def memory_gate(patch: pytest.MonkeyPatch) -> None:
    async def gate(ask: Any, params: dict[str, Any]) -> None:
        if "max-old-space-size=1" in params["env"].get("NODE_OPTIONS", ""):
            raise SupervisorError("bad-request", "not enough memory")

    before_start(patch, gate)


def any_role(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("legion_terminal.routing.check_spawn", lambda mode, request: None)


def always_terminal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("contracts.sut.python.arbitrate", lambda agent, worktree, env: "terminal")


def socket_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("contracts.sut.python.terminal_host_available", lambda env: bool(env.get("HC_TERMINAL_SOCKET")))


def cards_pass(patch: pytest.MonkeyPatch) -> None:
    def blind(load: Any, text: str, source: str) -> Any:
        return load(text.replace("spawnMode", "other"), source)

    replace(patch, "contracts.sut.python.load_card", blind)


BREAKS: list[tuple[Break, str, str]] = [
    (no_prefix, "task-leading-dash", "D4"),
    (no_prefix, "task-leading-at", "D4"),
    (no_extensions, "extensions-inherited", "D4"),
    (through_a_shell, "no-shell", "D3"),
    (through_a_shell, "argv-whole", "D4"),
    (memory_last, "env-request-wins", "D5"),
    (no_path, "env-path-finds-interpreter", "D5"),
    (whole_environment, "env-terminal-variables", "D5"),
    (no_space, "labels-space-and-role", "D6"),
    (copied_tab, "labels-nothing-else", "D6"),
    (read_for_each, "labels-read-once", "D6"),
    (lowered_names, "name-mapping", "D7"),
    (evicted_holder, "name-taken-live", "A4"),
    (any_role, "worktree-refused-other-roles", "I6"),
    (always_terminal, "arbitrate-centurion-without-worktree", "D1"),
    (always_terminal, "arbitrate-other-roles-with-worktree", "D1"),
    (always_terminal, "arbitrate-outside", "I1"),
    (always_terminal, "arbitrate-worktree-false-never-terminal", "I5"),
    (socket_is_enough, "host-available-table", "D2"),
    (cards_pass, "card-spawn-mode-refused", "D13"),
    (cards_pass, "card-spawn-mode-nested-refused", "D13"),
    (memory_gate, "no-memory-gate", "A3"),
]


@pytest.mark.parametrize(
    ("plant", "name", "clause"), BREAKS, ids=[f"{plant.__name__}-{name}" for plant, name, _ in BREAKS]
)
def test_break_turns_its_clause_red(monkeypatch: pytest.MonkeyPatch, plant: Break, name: str, clause: str) -> None:
    plant(monkeypatch)
    assert red(verdict(SCENARIOS[name])) == {clause}


@pytest.mark.parametrize(
    ("plant", "clause"),
    [(copied_tab, "D6"), (memory_last, "D5"), (lowered_names, "D7"), (any_role, "I6")],
)
def test_break_turns_no_other_clause_red(monkeypatch: pytest.MonkeyPatch, plant: Break, clause: str) -> None:
    plant(monkeypatch)
    memory = [scenario for scenario in SCENARIOS.values() if "memory" in scenario.hosts]
    assert {found for scenario in memory for found in red(verdict(scenario))} == {clause}


# what the scenarios cover


def test_every_p0_case_of_the_layer_has_a_scenario() -> None:
    sources = " ".join(scenario.source for scenario in SCENARIOS.values())
    wanted = {66, 67, 70, 73, 74, 75, 76, 77, 79, 81}
    assert {case for case in wanted if f"BC-{case:03d}" not in sources} == set()
