"""`legion-contracts violations`: the matrix printed, exit codes, clear words for wrong use, nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from contracts.cli import main
from contracts.commands import violations as command
from contracts.violations import TARGETS

SEEN = """\
[[violation]]
id = "unproven-passes"
breaks = ["without-evidence-is-unproven"]
why = "What nobody spoke of counts as passed."
file = "contracts/judging/tally.py"
old = '''for verdict in concerned) else "unproven"'''
new = '''for verdict in concerned) else "pass"'''
"""
UNSEEN = """
[[violation]]
id = "nothing-changes"
breaks = ["without-evidence-is-unproven"]
why = "A comment."
file = "contracts/judging/tally.py"
old = "HOLDS: Final = 0"
new = "HOLDS: Final = 0  # as before"
"""
LIMIT_S = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "mine.toml").write_text(SEEN)
    return tmp_path


def invoke(folder: Path | None, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["violations", *arguments], obj=folder)


def test_what_is_seen_ends_well(folder: Path) -> None:
    result = invoke(folder, "--controls", "0")

    assert result.exit_code == 0, result.output
    head, row, blank, summary = result.stdout.splitlines()
    assert (head.split(), blank) == (["suite", "(1)", "breaks", "caught", "by", "also", "red"], "")
    assert row.split()[0] == "unproven-passes"
    assert summary.startswith("1 planted (1 suite), 0 missed, 0 false alarms; 0 controls; ")


def test_what_nobody_sees_fails(folder: Path) -> None:
    (folder / "suite" / "mine.toml").write_text(SEEN + UNSEEN)

    result = invoke(folder, "--controls", "0", "--format", "json")

    told = json.loads(result.stdout)
    assert (result.exit_code, told["schema"], told["missed"], told["false_alarms"]) == (1, 1, 1, 0)
    assert [(one["id"], one["caught"]) for one in told["planted"]] == [
        ("unproven-passes", True),
        ("nothing-changes", False),
    ]
    assert invoke(folder, "--only", "unproven-*").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "nothing-at-*"), "no violation is called 'nothing-at-*'"),
        (("--target", "core"), "no violation is called so, of target core"),
        (("--target", "wire"), "'wire' is not one of 'supervisor', 'core', 'suite'"),
        (("--workers", "0"), "0 is not in the range 1<=x<=64"),
        (("--controls", "-1"), "-1 is not in the range"),
        (("--format", "yaml"), "'yaml' is not one of 'table', 'json'"),
        (("--sut", "no-such-driver-anywhere"), "--sut: there is no program no-such-driver-anywhere on PATH"),
    ],
)
def test_wrong_use_is_said_in_one_sentence(arguments: tuple[str, ...], said: str, folder: Path) -> None:
    result = invoke(folder, *arguments)

    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_a_program_that_is_no_driver_is_not_the_users_mistake(folder: Path) -> None:
    result = invoke(folder, "--sut", "/bin/true")

    assert result.exit_code == 3
    assert "--sut /bin/true: " in result.stderr


def test_a_bad_file_is_named_and_nothing_is_planted(folder: Path) -> None:
    path = folder / "suite" / "mine.toml"
    path.write_text(SEEN.replace("why =", "wyh ="))

    result = invoke(folder)

    assert result.exit_code == 2
    assert result.stderr == f"Error: {path}:4: violation[0].wyh: unknown key 'wyh'; did you mean 'why'?\n"


def test_a_stale_edit_is_an_error_that_names_the_file(folder: Path) -> None:
    path = folder / "suite" / "mine.toml"
    path.write_text(SEEN.replace("in concerned", "in nothing", 1))

    result = invoke(folder)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {path}:6: violation[0].old: contracts/judging/tally.py does not hold")


def test_the_command_knows_the_targets() -> None:
    assert command.TARGETS == TARGETS


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder so short that everything temporary goes there."""
    with tempfile.TemporaryDirectory(prefix="v-", dir="/tmp") as path:
        yield Path(path)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"])
def test_a_command_that_is_stopped_leaves_nothing(number: signal.Signals, code: int, short: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "contracts", "violations", "--only", "settle-on-*", "--workers", "1"],
        env={**os.environ, "TMPDIR": str(short)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + LIMIT_S
    while not list(short.glob("hc-*/hc-*/plan.json")) and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    process.send_signal(number)
    said = process.communicate(timeout=LIMIT_S)

    assert (process.returncode, said[0]) == (code, "")
    assert "Traceback" not in said[1]
    assert list(short.iterdir()) == []
