"""However a driver watches its child, the timeline goes on by its looks, each counted for the terminal it shows."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contracts.judging.judge import judge
from contracts.running.one_run import run_scenario
from contracts.scenario import Scenario
from contracts.sut.command import Command
from contracts.sut.stdio import StdioFactory

SUT = Path(__file__).parents[1] / "sut" / "python"

SETTLES: dict[str, Any] = {
    "id": "settles",
    "why": "A life that goes on by looks alone.",
    "clauses": ["D8"],
    "hosts": ["socket"],
    "limit_ms": 10_000,
    "world": {
        "agent": [
            {
                "status": "idle",
                "step": [
                    {"after_observations": 1, "turn": 1, "status": "working"},
                    {"after_observations": 2, "status": "blocked", "kind": "permission"},
                    {"after_observations": 1, "status": "working"},
                    {"after_observations": 1, "status": "done"},
                ],
            }
        ]
    },
    "drive": [
        {"do": "spawn", "as": "a"},
        {"do": "wait", "child": "a", "returns": {"settled": True, "lastTurn": 1, "lastStatus": "done"}},
    ],
}


@pytest.mark.parametrize("how", ["get", "list", "wait", "events", "hc"])
def test_a_child_settles_however_it_is_watched(how: str) -> None:
    scenario = msgspec.convert(SETTLES, Scenario)
    driver = StdioFactory(Command((sys.executable, str(SUT / "watcher.py"), how), str(SUT), "watcher"))
    record = run_scenario(scenario, "socket", driver)
    verdict = judge(scenario, record)
    assert (verdict.verdict, [finding.got for finding in verdict.findings if not finding.ok]) == ("pass", [])
