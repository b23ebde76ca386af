"""The figures of the searches: each is measured over what it names, and says whether it is good enough."""

import json

import pytest
from click.testing import CliRunner

from contracts.cli import main
from contracts.fuzz import bench as measured
from contracts.fuzz.bench import Bench, Figure, Hit, exhaustive_rate, hit, run_rate, timeline_rate
from contracts.fuzz.one import Runner
from contracts.fuzz.planted import PLANTED, Planted, planted
from legion_terminal.settle import Wait

GOOD = Figure(name="runs", value=2_000.0, unit="runs/s", says="runs", target=1_000)


def test_rates_are_measured_over_work_that_was_done() -> None:
    assert exhaustive_rate(1) > 0
    assert exhaustive_rate(1, unmerged=True) > 0
    assert timeline_rate(200) > 0
    assert run_rate(3) > 0


def test_the_run_that_is_measured_is_a_whole_one() -> None:
    with Runner() as runner:
        result = runner.carry_out(measured.ONE_CHILD)
    assert result.broken == ()
    assert len(measured.ONE_CHILD.drive) == 10
    assert {"terminal.run", "terminal.send", "terminal.interrupt", "terminal.kill"} <= {
        event.method for event in result.trace if event.kind == "call"
    }
    assert result.calls > 10


@pytest.mark.parametrize(
    ("value", "target", "least", "holds"),
    [(2.0, 1.0, True, True), (0.5, 1.0, True, False), (0.5, 1.0, False, True), (2.0, 1.0, False, False),
     (0.0, None, True, True)],
)  # fmt: skip
def test_a_figure_holds_when_it_reaches_its_target(
    value: float, target: float | None, least: bool, holds: bool
) -> None:
    assert Figure(name="x", value=value, unit="s", says="x", target=target, least=least).holds is holds


def test_a_planted_rule_that_is_not_found_fails_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "FIND_STEPS", 2)
    lost = hit(Planted("honest", "nothing is wrong with it", Wait))
    assert lost == Hit(plant="honest", seconds=None)
    assert Bench(figures=[GOOD], found=[]).holds
    assert not Bench(figures=[GOOD], found=[lost]).holds


def test_a_planted_rule_that_is_found_is_shown_with_its_history() -> None:
    found = hit(planted("signal-is-no-end"))
    assert found.steps == ["killed"]
    assert found.seconds is not None
    assert len(PLANTED) >= 8


def test_the_command_prints_every_figure_and_fails_when_one_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Figure(name="slow", value=1.0, unit="runs/s", says="slow runs", target=5.0)
    hits = [Hit(plant="idle-settles", seconds=0.1, steps=["same idle"])]
    monkeypatch.setattr(measured, "bench", lambda say: Bench(figures=[GOOD], found=hits))
    result = CliRunner().invoke(main, ["fuzz", "--bench", "--format", "json"])
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["schema"] == 1
    assert document["figures"][0] == {
        "name": "runs", "value": 2_000.0, "unit": "runs/s", "says": "runs", "target": 1_000, "least": True,
        "holds": True,
    }  # fmt: skip
    assert document["found"] == [{"plant": "idle-settles", "seconds": 0.1, "steps": ["same idle"]}]
    monkeypatch.setattr(measured, "bench", lambda say: Bench(figures=[GOOD, slow], found=hits))
    table = CliRunner().invoke(main, ["fuzz", "--bench"])
    assert table.exit_code == 1
    assert [line.split()[0] for line in table.stdout.splitlines()[:2]] == ["ok", "MISS"]
