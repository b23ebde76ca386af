"""The page that documents the scenario format: its example loads and holds, and it names every key."""

import re
from pathlib import Path

import msgspec
import pytest

from contracts.judging.judge import judge
from contracts.judging.match import OPERATORS
from contracts.loading import SCENARIOS, load_scenario
from contracts.loading.arguments import MOVES, SUT_CALLS
from contracts.loading.results import FORBIDDEN_CLAIMS
from contracts.loading.rules import SUBJECTS
from contracts.loading.worlds import EFFECTS, TRIGGERS
from contracts.running.drive import MOVES as DRIVE_MOVES
from contracts.running.placeholders import PLACEHOLDERS
from contracts.running.runner import run_scenario
from contracts.scenario import Bridge, Expect, HostName, Pi, Scenario, Step, Terminal, World
from contracts.sut.base import ERROR_KEYS, RESULTS
from hc_sim.faults import Fault
from hc_sim.script.format import Agent
from hc_sim.script.format import Step as AgentStep

PAGE = (SCENARIOS / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def example(tmp_path: Path) -> Scenario:
    found = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert found
    path = tmp_path / "example-steer.toml"
    path.write_text(found[1])
    return load_scenario(path)


@pytest.mark.parametrize("host", ["memory", "socket"])
def test_the_example_holds(example: Scenario, host: HostName) -> None:
    verdict = judge(example, run_scenario(example, host))

    assert verdict.errored is None
    assert [finding for finding in verdict.findings if not finding.ok] == []
    assert host in example.hosts


@pytest.mark.parametrize("type_", [Scenario, World, Pi, Terminal, Bridge, Fault, Agent, AgentStep, Step, Expect])
def test_the_page_names_every_key(type_: type[msgspec.Struct]) -> None:
    words = set(re.findall(r"[a-z_]+", PAGE))

    assert [name for name in type_.__struct_encode_fields__ if name not in words and name not in UNDOCUMENTED] == []


UNDOCUMENTED = {
    "limit_ms",  # a bound for the harness, with a default that no scenario needs to change
    "time",  # says only what the host says already
    "connection",  # part of a fault's address, in the schema
    "app",  # the name that a program reports, never looked at
}


@pytest.mark.parametrize("names", [TRIGGERS, EFFECTS, SUBJECTS, tuple(SUT_CALLS), tuple(MOVES), tuple(OPERATORS)])
def test_the_page_names_every_word(names: tuple[str, ...]) -> None:
    assert [name for name in names if not re.search(rf"\b{re.escape(name)}\b", PAGE)] == []


def test_the_page_names_every_placeholder() -> None:
    assert [name for name in PLACEHOLDERS if f"{{{name}" not in PAGE] == []


def test_the_page_names_every_argument_of_every_call() -> None:
    arguments = {argument for takes in SUT_CALLS.values() for argument in takes} - {"child", "token"}

    assert [name for name in sorted(arguments) if not re.search(rf"\b{name}\b", PAGE)] == []


def test_the_page_names_every_key_of_a_result_and_every_forbidden_claim() -> None:
    keys = {*ERROR_KEYS, *(key for name in SUT_CALLS for key in RESULTS[name])} - {"child", "cancelled"}
    keys |= {claim for claims in FORBIDDEN_CLAIMS.values() for claim in claims}

    assert [name for name in sorted(keys) if not re.search(rf"\b{name}\b", PAGE)] == []


def test_the_rules_know_the_same_moves_as_the_drive() -> None:
    assert {name: {*needed, *others} for name, (needed, others) in MOVES.items()} == DRIVE_MOVES


def test_every_trigger_and_effect_of_the_timeline_format_is_known_to_the_rules() -> None:
    known = {*TRIGGERS, *EFFECTS, "nth", "vanish"}

    assert set(AgentStep.__struct_encode_fields__) == known
