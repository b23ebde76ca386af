"""A1: inside an hc terminal, among another agent's variables, the gate gives the same result and strays nowhere."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLAUSES = ("D2", "D3", "D5", "D6", "I1", "I3", "A1")
"""Everything that could read a variable, start a program or reach a core."""
LIMIT_S = 120
TIMES = {"seconds", "real_ms", "cost_ms", "statements", "got"}


@dataclass(frozen=True)
class Decoy:
    """Somebody else's core: it counts its visitors."""

    path: str
    listener: socket.socket

    def visits(self) -> int:
        count = 0
        while True:
            try:
                visitor, _ = self.listener.accept()
            except BlockingIOError:
                return count
            visitor.close()
            count += 1


@pytest.fixture
def decoy() -> Iterator[Decoy]:
    with tempfile.TemporaryDirectory(prefix="hc-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(folder) / "s")
        listener.bind(path)
        listener.listen(256)
        listener.setblocking(False)
        yield Decoy(path, listener)


def surroundings(decoy: Decoy, folder: Path) -> dict[str, str]:
    """What a run inside an hc terminal, started by another agent, would find in its environment."""
    wrong_hc = folder / "hc"
    wrong_hc.write_text(f"#!{sys.executable}\nimport socket; socket.socket(socket.AF_UNIX).connect({decoy.path!r})\n")
    wrong_hc.chmod(0o755)
    return {
        "HC_TERMINAL_SOCKET": decoy.path,
        "HC_TERMINAL_ID": "t7",
        "HC_BIN": str(wrong_hc),
        "HC_SOCKET": decoy.path,
        "HC_SESSION": "theirs",
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PI_SUBAGENT_DEPTH": "2",
        "PI_SUBAGENT_RUN_ID": "theirs",
        "PI_SUBAGENT_WORKTREE": "1",
    }


def gate(extra: dict[str, str]) -> tuple[int, Any]:
    """Run the gate in a process of its own; its exit code and its report."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("HC_", "PI_SUBAGENT_"))}
    args = [argument for clause in CLAUSES for argument in ("--clause", clause)]
    done = subprocess.run(
        [sys.executable, "-m", "contracts.cli", "check", "--format", "json", "--workers", "3", *args],
        cwd=ROOT,
        env=plain | extra,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.stdout, done.stderr
    return done.returncode, without_times(json.loads(done.stdout))


def without_times(value: Any) -> Any:
    """The report without what differs between any two runs."""
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [without_times(inner) for inner in value]
    return value


def test_the_gate_gives_the_same_result_inside_an_hc_terminal(decoy: Decoy, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as both:
        outside, inside = both.map(gate, ({}, surroundings(decoy, tmp_path)))

    assert outside[0] == 0
    assert inside == outside
    assert decoy.visits() == 0


def test_the_decoy_would_notice_a_visitor(decoy: Decoy, tmp_path: Path) -> None:
    env = surroundings(decoy, tmp_path)

    subprocess.run([env["HC_BIN"], "connect"], env=env, check=True, timeout=LIMIT_S)

    assert decoy.visits() == 1
