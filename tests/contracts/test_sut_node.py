"""The second supervisor, in JavaScript: its own tests, and a part of the contract through the suite."""

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from contracts.cli import main

NODE = shutil.which("node")
FOLDER = Path(__file__).parents[1] / "sut" / "node"
LIMIT_S = 120

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def test_its_own_tests_pass() -> None:
    tests = [str(path) for path in sorted((FOLDER / "test").glob("*.test.mjs"))]

    done = subprocess.run([str(NODE), "--test", *tests], capture_output=True, text=True, timeout=LIMIT_S, check=False)

    assert tests
    assert done.returncode == 0, done.stdout[-4000:]


def test_it_keeps_what_a_black_box_can_show_of_every_clause_of_a_start_and_an_end() -> None:
    result = CliRunner().invoke(
        main,
        ["check", "--sut", f"{NODE} {FOLDER / 'driver.mjs'}"]
        + [word for clause in ("D1", "D5", "D6", "D7", "D11", "I5", "I6") for word in ("--clause", clause)],
    )

    assert result.exit_code == 0, result.output[-4000:]
    assert "holds: 7 of 7 must" in result.output
