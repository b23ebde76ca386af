"""Random lives for a driver: what is owed for each follows from its looks, and a driver that owes it not is found."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from contracts.cli import main
from contracts.fuzz.looks import Life, Shown, Turn, as_scenario, drawn, smaller
from contracts.judging.judge import judge
from contracts.running.one_run import run_scenario

SUT = Path(__file__).parents[1] / "sut" / "python"
DONE = Turn(1, Shown(1, "done"))


def fuzz(script: str, *words: str) -> Result:
    command = shlex.join([sys.executable, str(SUT / script)])
    return CliRunner().invoke(main, ["fuzz", "--sut", command, "--workers", "0", *words])


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_our_own_supervisor_owes_nothing_in_two_hundred_lives(first: int) -> None:
    for seed in range(first, first + 50):
        scenario = as_scenario(drawn(seed), f"seed-{seed}")
        verdict = judge(scenario, run_scenario(scenario, "memory"))
        assert (seed, verdict.verdict, [one for one in verdict.findings if not one.ok]) == (seed, "pass", [])


def test_a_seed_is_a_life_and_lives_differ() -> None:
    assert drawn(7) == drawn(7)
    assert len({drawn(seed) for seed in range(60)}) > 50


def test_lives_meet_what_matters() -> None:
    waits = [
        step.returns or {} for seed in range(300) for step in as_scenario(drawn(seed), "x").drive if step.do == "wait"
    ]
    assert any(told.get("reason") == "timeout" for told in waits)
    assert any("lastTurn" in told for told in waits)
    assert any(told.get("exitCode") == 70 for told in waits)
    steered = [as_scenario(drawn(seed), "x") for seed in range(300)]
    assert any([step.do for step in one.drive].count("steer") > 1 for one in steered)


def test_a_smaller_life_is_smaller_in_one_piece() -> None:
    life = Life((Turn(2, Shown(1, "working")), DONE), ("status", "wait", "wait"))
    sizes = [(len(one.turns), len(one.acts), sum(turn.looks for turn in one.turns)) for one in smaller(life)]
    assert sorted(sizes) == [(1, 3, 1), (1, 3, 2), (2, 2, 3), (2, 2, 3), (2, 3, 2)]


def test_what_is_owed_after_a_timeout_is_not_stated() -> None:
    scenario = as_scenario(Life((), ("wait", "status", "wait")), "x")
    assert [step.do for step in scenario.drive] == ["spawn", "wait", "retire"]


def test_a_steer_that_might_not_arrive_is_left_out() -> None:
    blocked = Life((Turn(1, Shown(1, "working")), Turn(1, Shown(1, "blocked")), DONE), ("status", "steer", "wait"))
    assert [step.do for step in as_scenario(blocked, "x").drive] == ["spawn", "status", "wait", "retire"]


def test_a_right_driver_is_left_in_peace() -> None:
    told = fuzz("driver.py", "--examples", "4", "--seed", "3", "--format", "json")
    document = json.loads(told.stdout)
    assert (told.exit_code, document["runs"], document["failed"], document["errored"]) == (0, 4, [], [])


def test_a_wrong_driver_is_found_and_its_life_made_small(tmp_path: Path) -> None:
    told = fuzz("wrong.py", "--examples", "1", "--seed", "1", "--keep", str(tmp_path))
    assert told.exit_code == 1, told.output
    assert "1 went wrong" in told.stdout
    assert "D8 drive[1].returns.settled: expected False, got True" in told.stdout
    [path] = tmp_path.iterdir()
    assert f"--scenario {path}" in told.stdout
    text = path.read_text()
    assert text.count("[[drive]]") == 3
    assert text.count("after_observations") == 1


def test_options_of_the_other_searches_do_not_go_with_a_driver() -> None:
    assert fuzz("driver.py", "--bench").exit_code == 2
    assert fuzz("driver.py", "--plant", "no-gate").exit_code == 2
