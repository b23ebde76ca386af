"""A failing history as a scenario file: it holds for the supervisor, and fails for the one with the planted rule."""

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from contracts.cli import main
from contracts.fuzz.alphabet import ALPHABET, NUMBERS, spelled
from contracts.fuzz.as_scenario import as_scenario, as_text, keep, named, notes
from contracts.fuzz.bench import find
from contracts.fuzz.planted import PLANTED, Planted, installed, planted
from contracts.fuzz.schedule import PHASES, Case, cases
from contracts.fuzz.shrink import Found
from contracts.fuzz.walk import Course, walked
from contracts.judging.judge import judge
from contracts.loading import load_scenario
from contracts.records import RunVerdict
from contracts.running.one_run import run_scenario
from contracts.scenario import Scenario

EARLY, LATE, TWICE, SPARSE, SLOW = PHASES
HISTORIES = 40
RARE = ("prompt", "interrupt", "vanished", "look fails", "finished 3", "killed", "torn turn first", "torn status first")


def found(case: Case, *names: str) -> Found:
    steps = tuple(NUMBERS[name] for name in names)
    return Found(steps, case, ("settled is True, not False",), walked(Course(case, len(steps)), steps))


def run(scenario: Scenario) -> RunVerdict:
    return judge(scenario, run_scenario(scenario, "memory"))


@pytest.mark.parametrize("rule", PLANTED, ids=lambda rule: rule.name)
def test_a_planted_rule_gives_a_file_that_fails_for_it_and_holds_without_it(rule: Planted, tmp_path: Path) -> None:
    small = find(rule)
    assert small is not None
    path = keep(tmp_path, as_scenario(small, named(rule.name)), notes(small))
    scenario = load_scenario(path)
    assert len(scenario.drive) <= 6
    assert sum(len(agent.step) for agent in scenario.world.agent) <= 6
    with installed(rule):
        assert run(scenario).verdict == "fail"
    assert run(scenario).verdict == "pass"


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_any_history_gives_a_scenario_that_the_supervisor_passes(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a history that can be drawn again, no secret
    length = dice.randint(1, 6)
    case = dice.choice(cases(length))
    names = [dice.choice(RARE) if dice.random() < 0.5 else dice.choice(ALPHABET).name for _ in range(length)]
    scenario = as_scenario(found(case, *names), "any-history")
    verdict = run(scenario)
    assert verdict.verdict == "pass", (names, case.name, verdict.errored, verdict.findings)


def test_check_runs_the_file_and_show_draws_it(tmp_path: Path) -> None:
    rule = planted("prompt-is-not-heeded")
    small = find(rule)
    assert small is not None
    path = keep(tmp_path, as_scenario(small, "not-heeded"), notes(small))
    check = ["check", "--scenario", str(path), "--host", "memory", "--workers", "0"]
    assert CliRunner().invoke(main, check).exit_code == 0
    with installed(rule):
        result = CliRunner().invoke(main, check)
    assert result.exit_code == 1
    assert "D8" in result.output
    drawn = CliRunner().invoke(main, ["show", str(path)])
    assert drawn.exit_code == 0
    assert "steer" in drawn.output


def test_a_file_says_how_it_came_about(tmp_path: Path) -> None:
    small = found(Case(LATE, 1_250), "+1 idle", "look fails")
    text = keep(tmp_path, as_scenario(small, "some-id", source="seed 7"), notes(small)).read_text()
    assert text.startswith("# steps: +1 idle | look fails\n# case: one look a step, after a tear;")
    assert "# broke: settled is True, not False\n" in text
    assert 'source = "seed 7"' in text
    assert not list(tmp_path.glob("*.part"))


def test_a_note_cannot_leave_its_comment() -> None:
    text = as_text(as_scenario(found(Case(EARLY, 0), "same idle"), "x"), ['two\nlines = "1"'])
    assert text.splitlines()[0] == '# two lines = "1"'


def test_what_is_only_about_a_terminal_that_is_gone_is_a_should() -> None:
    case = Case(EARLY, 2_500)
    gone = found(case, "vanished")
    late = as_scenario(Found(gone.steps, case, ("ended at 2600 ms, not 1100",), gone.walk), "x")
    lied = as_scenario(gone, "x")
    assert (late.clauses, late.level) == (["D8-gone"], "should")
    assert (lied.clauses, lied.level) == (["D8"], "must")


def test_either_right_end_is_allowed() -> None:
    wait = as_scenario(found(Case(EARLY, 2_500), "vanished"), "x").drive[-1]
    assert wait.at == {"min": 1_100, "max": 2_100}
    assert wait.returns is not None
    assert wait.returns["reason"] == "gone"


def test_an_agent_that_is_prompted_is_past_its_first_turn() -> None:
    scenario = as_scenario(found(Case(EARLY, 2_500), "prompt", "+1 done"), "x")
    assert [step.do for step in scenario.drive] == ["spawn", "steer", "steer", "wait"]
    assert scenario.world.agent[0].step[0].at_ms == 500


def test_an_id_is_made_of_any_words() -> None:
    assert named("found +1 done, killed") == "found-1-done-killed"
    assert named("???") == "found"
    assert len(named("word " * 40)) <= 60


def test_every_symbol_can_be_written_down() -> None:
    for number in range(len(ALPHABET)):
        text = as_text(as_scenario(found(Case(SLOW, 1_500), *spelled((number,))), "x"))
        assert 'id = "x"' in text
