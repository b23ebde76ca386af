"""Break a copy of the supervisor in one place, run the gate over it, and see exactly one must clause turn red.

The copy comes first on the path of a process of its own, so that every check sees it: those that run the supervisor,
those that watch it from another process, and those that read its source.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.checks.base import PACKAGE
from contracts.hosts.witness import real_git

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120

GATE = """
import json
from collections import Counter
import msgspec
from contracts.checks import CHECKS
from contracts.clauses import load_clauses
from contracts.judging.judge import judge
from contracts.judging.tally import clause_table
from contracts.loading import load_all
from contracts.records import RunVerdict
from contracts.running.runner import run_all

scenarios = [one for one in load_all().scenarios if one.level != "hazard"]
over_the_socket = {}
for one in reversed(scenarios):
    if "socket" in one.hosts and one.level == "must":
        over_the_socket[one.clauses[0]] = one.id
chosen = {*over_the_socket.values(), "settle-boot-idle", "labels-space-and-role", "retire-kill-then-rm"}
hosts = {one.id: [host for host in one.hosts if host == "memory" or one.id in chosen] for one in scenarios}
by_id = {one.id: msgspec.structs.replace(one, hosts=hosts[one.id]) for one in scenarios}
results = run_all(list(by_id.values()), workers=3, checks=list(CHECKS))
verdicts = [one if isinstance(one, RunVerdict) else judge(by_id[one.scenario], one) for one in results]
rows = [row for row in clause_table(load_clauses(), verdicts) if row.level != "hazard"]
print(json.dumps({
    "must": {
        row.id: {"verdict": row.verdict, "hosts": sorted({failure.host for failure in row.failed})}
        for row in rows if row.level == "must"
    },
    "warnings": [row.id for row in rows if row.level == "should" and row.verdict == "fail"],
    "errored": [f"{one.scenario} ({one.host}): {one.errored}" for one in verdicts if one.errored],
    "skipped": Counter(one.host for one in verdicts if one.verdict == "skipped"),
    "runs": Counter(one.host for one in verdicts),
    "reasons": sorted({one.why for one in verdicts if one.verdict == "skipped"}),
}))
"""
"""Every scenario but the hazards on the memory host, one over the socket for each clause, and every check."""

SETTLE_ON_IDLE = """
_honest = decide

def decide(prompt_turn, observation):
    return _honest(prompt_turn, observation) or observation.status == "idle"
"""

SKIP_THE_RM = """
async def _never(self, sight):
    return False

Retirement._remove = _never
"""

DROP_THE_SPACE = """
def child_labels(parent):
    return {"legion.role": "centurion"}
"""

GIT_AT_SPAWN = """
import asyncio, subprocess

_honest = TerminalSupervisor.spawn

async def _git():
    {git}

async def _curious(self, request):
    await _git()
    return await _honest(self, request)

TerminalSupervisor.spawn = _curious
"""

GIT_BY_NAME = 'subprocess.run(["git", "--version"], capture_output=True)'
GIT_IN_THE_LOOP = 'await (await asyncio.create_subprocess_exec("git", "--version", stdout=-1)).communicate()'
GIT_BY_PATH = f'subprocess.run([{real_git()!r}, "--version"], capture_output=True)'

Gate = Callable[[str, str], dict[str, Any]]


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Add some text to the end of a module in a copy of the package, and run the gate over the copy."""

    def run(module: str, text: str) -> dict[str, Any]:
        package = tmp_path / "legion_terminal"
        shutil.copytree(PACKAGE, package)  # with its compiled modules: all but the broken one stay valid
        with (package / module).open("a") as source:
            source.write(text)
        done = subprocess.run(
            [sys.executable, "-c", GATE],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


def red(found: dict[str, Any]) -> set[str]:
    return {name for name, row in found["must"].items() if row["verdict"] == "fail"}


def not_proved(found: dict[str, Any]) -> set[str]:
    return {name for name, row in found["must"].items() if row["verdict"] not in ("pass", "fail")}


def test_the_supervisor_as_it_is_turns_nothing_red(gate: Gate) -> None:
    found = gate("terminal.py", "")

    assert (found["errored"], red(found), not_proved(found), found["skipped"]) == ([], set(), set(), {})
    assert found["warnings"] == []
    assert found["runs"]["memory"] > 200
    assert found["runs"]["socket"] >= 20


@pytest.mark.parametrize(
    ("module", "text", "clause", "warnings"),
    [
        ("settle.py", SETTLE_ON_IDLE, "D8", []),
        ("retiring.py", SKIP_THE_RM, "D11", ["D11-finish"]),
        ("terminal.py", DROP_THE_SPACE, "D6", []),
    ],
    ids=["settle-on-idle", "no-rm", "no-space-label"],
)
def test_a_break_turns_exactly_its_clause_red(
    module: str, text: str, clause: str, warnings: list[str], gate: Gate
) -> None:
    found = gate(module, text)

    assert (found["errored"], red(found), not_proved(found)) == ([], {clause}, set())
    assert found["warnings"] == warnings
    assert {"memory", "socket"} <= set(found["must"][clause]["hosts"])


@pytest.mark.skipif(real_git() is None, reason="the planted call needs a git on this machine")
@pytest.mark.parametrize("call", [GIT_BY_NAME, GIT_IN_THE_LOOP, GIT_BY_PATH], ids=["by-name", "in-the-loop", "by-path"])
def test_one_git_call_at_spawn_turns_exactly_i3_red_wherever_it_is_looked_for(call: str, gate: Gate) -> None:
    found = gate("terminal.py", GIT_AT_SPAWN.format(git=call))

    assert (found["errored"], red(found), not_proved(found)) == ([], {"I3"}, set())
    assert found["warnings"] == []
    assert found["must"]["I3"]["hosts"] == ["check", "memory", "socket"]
    if call == GIT_IN_THE_LOOP:
        assert found["skipped"]["memory"] > 100
        assert all("started under virtual time" in reason for reason in found["reasons"])
    else:
        assert found["skipped"] == {}
