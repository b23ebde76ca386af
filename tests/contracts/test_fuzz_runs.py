"""A run of a whole supervisor from a seed: the same to the byte, clean when correct, caught and made small when not."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

from contracts.fuzz import kept
from contracts.fuzz.broken import VIOLATIONS, supervisor
from contracts.fuzz.invariants import Broken
from contracts.fuzz.one import Result, Runner, run
from contracts.fuzz.plans import MAX_MOVES, wants_files
from contracts.fuzz.smaller import candidates, size, smaller
from contracts.fuzz.strategies import plans, seeds
from contracts.judging.judge import judge
from contracts.loading.files import load_scenario
from contracts.running.one_run import run_scenario
from contracts.scenario import Scenario, Step, World
from hc_sim.faults import Fault
from hc_sim.script.format import Agent, Match
from hc_sim.script.format import Step as Act

FEW = 150
MOST_STEPS = 6
BROKEN = Broken(invariant="consent", words="", step=0)
MOST_RUNS = 1_500
FREQUENT = ("idle-settles", "gone-settles", "timeout-settles", "looks-are-mixed", "misses-are-no-end")
"""Wrong rules of the decision that show within a few runs; a campaign finds the others too."""


@pytest.fixture(name="runner")
def a_runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


def test_the_correct_supervisor_breaks_nothing(runner: Runner) -> None:
    broken = {seed: result.broken for seed in range(FEW) if (result := runner.run(seed)).broken}

    assert broken == {}


@given(plans())
@settings(max_examples=60)
def test_structured_runs_break_nothing(scenario: Scenario) -> None:
    with Runner() as runner:
        assert runner.carry_out(scenario).broken == ()


@given(seeds())
@settings(max_examples=15)
def test_one_drawn_seed_drives_many_runs(seed: int) -> None:
    with Runner() as runner:
        assert [result.broken for k in range(5) if (result := runner.run(seed + k)).broken] == []


def test_a_seed_gives_the_same_run_to_the_byte_whatever_ran_before(runner: Runner) -> None:
    later = {seed: runner.run(seed).bytes() for seed in range(40)}

    assert {seed: run(seed).bytes() for seed in (0, 13, 39)} == {seed: later[seed] for seed in (0, 13, 39)}


def test_another_process_makes_the_same_run() -> None:
    code = "import sys; from contracts.fuzz.one import run; sys.stdout.buffer.write(run(11).bytes())"
    root = Path(kept.__file__).parents[2]
    other = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=True, timeout=60)

    assert other.stdout == run(11).bytes()


def test_the_choices_of_a_run_repeat_it(runner: Runner) -> None:
    first = runner.run(21)

    again = runner.replay(first.choices)

    assert msgspec.json.encode(again.scenario) == msgspec.json.encode(first.scenario)
    assert again.bytes() == first.bytes()


def test_any_list_of_choices_is_a_run(runner: Runner) -> None:
    for choices in ([], [1], [65_535] * 300, list(range(200))):
        assert runner.replay(choices).broken == ()


def test_runs_are_of_bounded_size(runner: Runner) -> None:
    for seed in range(FEW):
        result = runner.run(seed)
        assert len(result.scenario.drive) <= MAX_MOVES + 2
        assert result.calls < 5_000


def test_files_are_there_only_for_runs_that_write_them_and_gone_afterwards(runner: Runner) -> None:
    results = [runner.run(seed) for seed in range(60)]
    folders = {result.folder for result in results if wants_files(result.scenario)}
    assert len(folders) == 1
    runner.close()

    assert not Path(folders.pop()).exists()
    assert {result.folder for result in results if not wants_files(result.scenario)} == {"/nonexistent"}


def first_failing(name: str, invariant: str) -> Result:
    with supervisor(name) as make, Runner(make) as runner:
        for seed in range(MOST_RUNS):
            result = runner.run(seed)
            if any(broken.invariant == invariant for broken in result.broken):
                return result
    raise AssertionError(f"{name} was not found")


@pytest.mark.parametrize("name", [*VIOLATIONS, *FREQUENT])
def test_every_planted_fault_is_found_made_small_and_fails_as_a_scenario(name: str, tmp_path: Path) -> None:
    wanted = VIOLATIONS[name].invariant if name in VIOLATIONS else "consent"
    found = first_failing(name, wanted)

    with supervisor(name) as make:
        small, broken = kept.shrunk(found.scenario, wanted, make)
        path = kept.write(tmp_path, small, broken, "a test")

    assert len(small.drive) <= MOST_STEPS
    assert size(small) <= size(found.scenario)
    scenario = load_scenario(path)
    assert scenario.clauses[0] == broken.clause
    honest = judge(scenario, run_scenario(scenario, "memory"))
    assert honest.verdict == "pass", honest


@pytest.mark.parametrize("name", ["idle-settles", "gone-settles", "done-is-confirmed-first", "signal-is-no-end"])
def test_a_kept_failure_of_the_decision_fails_its_clause_under_check(name: str, tmp_path: Path) -> None:
    with supervisor(name) as make:
        small, broken = kept.shrunk(first_failing(name, "consent").scenario, "consent", make)
        scenario = load_scenario(kept.write(tmp_path, small, broken, "a test"))
        verdict = judge(scenario, run_scenario(scenario, "memory"))

    assert verdict.verdict == "fail"
    assert {finding.clause for finding in verdict.findings if not finding.ok} == {"D8"}


def test_a_steer_in_the_middle_of_a_wait_is_what_has_to_be_answered() -> None:
    name = "lgl-run00001-alpha"
    acts = [Act(after_ms=10, turn=1, status="working"), Act(after_ms=300, status="done")]
    scenario = Scenario(
        id="random-run",
        why="A test.",
        clauses=["D8"],
        poll_ms=20,
        world=World(agent=[Agent(match=Match(name=name), step=acts)]),
        drive=[
            Step(do="spawn", as_="alpha", args={"handle": "alpha"}),
            Step(do="wait", as_="w", child="alpha", background=True, args={"timeoutMs": 1_000}),
            Step(do="pause", args={"ms": 100}),
            Step(do="steer", child="alpha", args={"text": "steer 1."}),
            Step(do="join", of=["w"]),
        ],
    )
    with supervisor("prompt-is-not-heeded") as make, Runner(make) as runner:
        assert [one.invariant for one in runner.carry_out(scenario).broken] == ["consent"]
    with Runner() as runner:
        assert runner.carry_out(scenario).broken == ()


def test_what_is_not_repeatable_is_said_and_not_written() -> None:
    with supervisor() as make, pytest.raises(LookupError, match="holds in this run"):
        kept.shrunk(run(3).scenario, "consent", make)


def test_shrinking_goes_to_the_smallest_run_and_stops() -> None:
    big = Scenario(
        id="random-run",
        why="A test.",
        clauses=["D8"],
        poll_ms=20,
        world=World(
            agent=[Agent(step=[Act(after_ms=1, status="idle"), Act(after_ms=1, status="done")], send="fuse")],
            fault=[Fault(method="terminal.get"), Fault(method="terminal.rm", reply=False)],
        ),
        drive=[
            Step(do="spawn", as_="alpha", args={"handle": "alpha"}),
            Step(do="wait", child="alpha", as_="w", background=True, args={"timeoutMs": 5}),
            Step(do="spawn", as_="beta", args={"handle": "beta"}),
            Step(do="retire", child="beta"),
            Step(do="join", of=["w"]),
        ],
    )

    small = smaller(big, lambda one: BROKEN if any(step.do == "wait" for step in one.drive) else None)

    assert [step.do for step in small.drive] == ["spawn", "wait"]
    assert (small.world.agent, small.world.fault, small.poll_ms) == ([], [], 250)
    assert not [one for one in candidates(small) if any(step.do == "wait" for step in one.drive)]


def test_a_join_goes_with_what_it_joins() -> None:
    drive = [Step(do="spawn", as_="alpha"), Step(do="retire", as_="r", child="alpha", background=True)]
    scenario = Scenario(id="x", why="A test.", clauses=["D8"], drive=[*drive, Step(do="join", of=["r"])])

    assert all(
        {name for step in one.drive for name in step.of} <= {step.as_ for step in one.drive}
        for one in candidates(scenario)
    )
