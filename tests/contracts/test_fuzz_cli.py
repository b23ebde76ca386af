"""`legion-contracts fuzz`: what it prints, what it writes, and its exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from contracts.cli import main
from contracts.fuzz.cli import Duration
from contracts.fuzz.saved import Setting, found, load

ROOT = Path(__file__).parents[2]
QUICK = ["--workers", "0", "--seed", "1"]


def fuzz(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["fuzz", *(str(one) for one in arguments)])


def document(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_clean_campaign_ends_with_0_and_says_what_it_reached() -> None:
    result = fuzz(*QUICK, "--examples", 30)

    assert result.exit_code == 0
    assert "30 runs of the whole supervisor (guided)" in result.stdout
    assert "never seen:" in result.stdout


def test_a_seed_and_a_number_of_examples_give_the_same_campaign() -> None:
    first, second = (document(fuzz(*QUICK, "--examples", 25, "--format", "json")) for _ in range(2))

    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    assert first["runs"] == 25


def test_under_require_coverage_a_state_that_was_never_reached_fails() -> None:
    result = fuzz(*QUICK, "--examples", 5, "--require-coverage", "--format", "json")

    assert result.exit_code == 1
    assert document(result)["never"]


def test_a_failure_is_kept_as_a_scenario_that_check_and_show_take(tmp_path: Path) -> None:
    result = fuzz(*QUICK, "--examples", 100, "--plant", "idle-settles", "--keep", tmp_path / "kept", "--format", "json")

    assert result.exit_code == 1
    told = document(result)
    assert told["failures"][0]["invariant"] == "consent"
    (path,) = map(Path, told["kept"])
    assert path.read_text(encoding="utf-8").startswith("# invariant: consent, clause D8\n")
    assert "legion-contracts fuzz --seed" in path.read_text(encoding="utf-8") or "guided" in path.read_text(
        encoding="utf-8"
    )
    check = CliRunner().invoke(main, ["check", "--scenario", str(path), "--workers", "0"])
    assert (check.exit_code, "pass" in check.stdout) == (0, True)
    assert CliRunner().invoke(main, ["show", str(path)]).exit_code == 0


def test_a_failing_seed_makes_the_failure_again() -> None:
    told = document(fuzz(*QUICK, "--blind", "--examples", 100, "--plant", "timeout-settles", "--format", "json"))
    seed = told["failures"][0]["seed"]

    again = fuzz("--workers", 0, "--seed", seed, "--examples", 1, "--plant", "timeout-settles", "--format", "json")

    assert document(again)["failures"][0] == told["failures"][0]


def test_a_saved_campaign_goes_on_under_its_own_seed(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    fuzz(*QUICK, "--examples", 50, "--saved", path)

    result = fuzz("--workers", 0, "--examples", 75, "--saved", path, "--format", "json")

    assert (document(result)["runs"], document(result)["seed"]) == (75, 1)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--engine", "spark"], "there is no engine 'spark'"),
        (["--engine", "dask"], "needs the address of a scheduler"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler is for --engine dask"),
        (["--sut", "no-such-program x"], "there is no program no-such-program"),
        (["--sut", "x", "--exhaustive", "3"], "--sut goes with"),
        (["--sut", "x", "--engine", "dask"], "--sut goes with"),
        (["--plant", "nonsense"], "no planted fault 'nonsense'"),
        (["--for", "soon"], "is no time"),
        (["--for", "0"], "is no time"),
        (["--examples", "0"], "--examples"),
        (["--exhaustive", "3", "--seed", "1"], "without the options of the random search"),
        (["--exhaustive", "3", "--bench"], "not both"),
        (["--saved", "/nonexistent/x.json"], "there is no folder"),
    ],
)
def test_bad_usage_is_one_clear_error_and_exit_code_2(arguments: list[str], why: str) -> None:
    result = fuzz(*arguments)

    assert result.exit_code == 2
    assert why in result.stderr
    assert "Traceback" not in result.stderr


def test_no_scheduler_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the package distributed is not installed (extra dask)")
    monkeypatch.setattr("contracts.fuzz.dask_engine.CONNECT_S", 1)
    done = subprocess.run(
        [sys.executable, "-m", "contracts.cli", "fuzz", "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 2
    assert "no scheduler answers at tcp://127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_corrupt_saved_campaign_is_one_clear_error_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    path.write_text("half a campa", encoding="utf-8")

    result = fuzz(*QUICK, "--examples", 5, "--saved", path)

    assert result.exit_code == 2
    assert "this is no saved campaign" in result.stderr
    assert path.read_text(encoding="utf-8") == "half a campa"


def test_another_campaigns_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    fuzz(*QUICK, "--examples", 5, "--saved", path)

    result = fuzz("--workers", 0, "--seed", 2, "--examples", 5, "--saved", path)

    assert (result.exit_code, "seed 1 there, 2 asked for" in result.stderr) == (2, True)


def test_an_interrupted_campaign_is_saved_goes_on_and_finds_the_same(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    command = [
        sys.executable, "-m", "contracts.cli", "fuzz", "--examples", "100000", "--seed", "1", "--workers", "1",
        "--saved", str(path),
    ]  # fmt: skip
    running = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        for _ in range(600):
            if path.exists():
                break
            time.sleep(0.1)
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()

    assert running.returncode == 130
    assert b"the same command goes on with" in said
    state = load(path, Setting(seed=1))
    assert state.runs >= 25
    straight = fuzz(*QUICK, "--examples", state.runs, "--saved", tmp_path / "straight.json")
    assert straight.exit_code == 0
    assert found(load(tmp_path / "straight.json", Setting(seed=1))) == found(state)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("10m", 600.0), ("1.5h", 5_400.0), ("2d", 172_800.0), ("7", 7.0)]
)
def test_times_are_written_as_people_write_them(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds
