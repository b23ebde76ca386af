"""Looks at real copies: what is judged is the copy; a broken one proves nothing; each clause's violations are seen."""

import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from contracts.checks import CHECKS
from contracts.loading import load_all
from contracts.running.pool import Job
from contracts.running.processes import processes
from contracts.violations import load_checked, looking, run_matrix
from contracts.violations import matrix as matrix_module
from contracts.violations.copies import installed, snapshot
from contracts.violations.entries import Edit, Violation
from contracts.violations.look import StrangeModuleError, carry_out
from contracts.violations.looking import Look, look
from contracts.violations.plans import AUDITS, DEAR, Looked, Plan, checks_of, plan_of, scenarios_of

SETTLE = "legion_terminal/settle.py"
SUITE_SAMPLE = (
    "absent-fields-match",
    "trace-loses-a-call",
    "witness-does-not-count",
    "unproven-is-green",
    "no-decoys",
)


@pytest.fixture(scope="module")
def every() -> list[Violation]:
    return load_checked()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A snapshot of the packages, alone in its folder."""
    root = tmp_path_factory.mktemp("hc") / "all"
    snapshot(root, installed())
    yield root
    assert [path.name for path in root.parent.iterdir()] == ["all"], "a look left something"


def seen(base: Path, old: str, new: str, file: str = SETTLE, plan: Plan | None = None) -> Looked:
    asked = plan or Plan(root="", clauses=["A3"])
    return look(Look(snapshot=str(base), plan=asked, edits=[Edit(file=file, old=old, new=new)]))


def test_what_is_looked_at_is_the_copy_wherever_it_is_asked_for(
    base: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap = tmp_path / "contracts"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise SystemExit('the folder that somebody stands in was imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    asked = Plan(root="", clauses=["D7"])

    looked = seen(base, "[: MAX_NAME - len(head)]", "[:19]", "legion_terminal/spawn/names.py", asked)

    assert (looked.why, looked.errored, list(looked.red)) == ("", [], ["D7"])
    assert "d7-names" in looked.red["D7"]


def test_a_look_refuses_to_judge_what_is_not_the_copy(tmp_path: Path) -> None:
    with pytest.raises(StrangeModuleError, match=f"not from the copy at {tmp_path}"):
        carry_out(Plan(root=str(tmp_path)))


def test_without_an_edit_nothing_is_red(base: Path) -> None:
    looked = look(Look(snapshot=str(base), plan=Plan(root="", clauses=["D6", "D13"])))

    assert looked.runs > 10
    assert msgspec.structs.replace(looked, runs=0, real_ms=0) == Looked()


def test_an_edit_that_breaks_nothing_is_missed(every: list[Violation]) -> None:
    idle = dataclasses.replace(
        next(one for one in every if one.breaks == ("D13",)),
        edits=(Edit(file=SETTLE, old="POLL_MS: Final = 250", new="POLL_MS: Final = 250  # as before"),),
    )

    found = run_matrix([idle], every, workers=1, depth="quick")

    assert (found.missed, found.problems, found.holds) == (1, [], False)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("import nothing_of_that_name\nPOLL_MS: Final = 250", "No module named 'nothing_of_that_name'"),
        ("raise SystemExit('gone')", "the look ended with exit code 1 and no result; it said: gone"),
        ("import os; os._exit(0)", "the look ended with exit code 0 and no result; it said: nothing"),
    ],
    ids=["an import that fails", "an exit", "an exit that looks good"],
)
def test_a_copy_that_cannot_be_imported_is_not_planted(base: Path, new: str, said: str) -> None:
    looked = seen(base, "POLL_MS: Final = 250", new)

    assert said in looked.why
    assert (looked.red, looked.runs) == ({}, 0)


def test_a_stale_edit_is_said_and_nothing_is_looked_at(base: Path) -> None:
    looked = seen(base, "no such text", "x")

    assert looked.why == f"{SETTLE} does not hold the text that is to be replaced, 'no such text'"


def test_a_copy_that_hangs_is_ended_with_all_that_it_started(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "LOOK_LIMIT_S", 1)
    mark = f"left-{os.getpid()}"
    hang = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)', {mark!r}])\n"
        "time.sleep(300)\nPOLL_MS: Final = 250"
    )
    looked = seen(base, "POLL_MS: Final = 250", hang)

    assert looked.why == "the look was still running after 1 s, and was ended"
    limit = time.monotonic() + 5
    while (left := [one for one in processes() if mark in one.command]) and time.monotonic() < limit:
        time.sleep(0.01)
    assert left == []


def test_runs_that_break_are_told_and_count_for_nothing(base: Path) -> None:
    file = "contracts/running/one_run.py"
    looked = seen(
        base, "    built = run.built = build(", "    raise OSError('no world')\n    built = run.built = build(", file
    )

    assert looked.red == {}
    assert "no-memory-gate (memory): the run broke with OSError: no world" in looked.errored


def test_one_violation_of_each_clause_is_caught_by_the_evidence_of_that_clause(every: list[Violation]) -> None:
    """A sample of the matrix; `legion-contracts violations` is the whole of it."""
    first = {one.breaks[0]: one for one in reversed(every) if one.target == "supervisor"}

    found = run_matrix(list(first.values()), every, workers=2, depth="quick")

    assert [one.id for one in found.planted if not one.is_clean] == []
    assert len(found.planted) >= 23


def test_a_whole_look_sees_one_clause_turn_red_and_no_other(every: list[Violation]) -> None:
    chosen = [one for one in every if one.id in ("settle-on-idle", "retire-without-rm")]

    found = run_matrix(chosen, every, workers=2)

    assert [(one.id, one.caught, one.also, one.error) for one in found.planted] == [
        ("settle-on-idle", True, (), ""),
        ("retire-without-rm", True, (), ""),
    ]
    assert found.holds


def test_a_broken_suite_no_longer_sees_what_it_should(every: list[Violation]) -> None:
    chosen = [one for one in every if one.id in SUITE_SAMPLE]

    found = run_matrix(chosen, every, workers=2)

    assert {one.id: one.caught_by for one in found.planted} == {one.id: one.breaks for one in chosen}
    assert found.holds


def test_drifts_of_a_core_are_named_by_a_live_run(every: list[Violation]) -> None:
    drifts = [one for one in every if one.id in ("core-turn-renamed", "core-names-for-ever", "core-kill-without-end")]

    found = run_matrix(drifts, every, controls=0)

    assert [one.caught for one in found.planted] == [True] * 3
    assert found.holds


def test_controls_differ_in_order_workers_and_polls(every: list[Violation], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Look] = []
    told: list[str] = []

    def looked(jobs: list[Job[Look]], **_: object) -> list[Looked]:
        asked.extend(job.payload for job in jobs)
        return [Looked(runs=500, red={"D8": ["a"]} if job.payload.plan.sut else {}) for job in jobs]

    monkeypatch.setattr(matrix_module, "run_jobs", lambda _, jobs, **rest: looked(jobs, **rest))
    monkeypatch.setattr(matrix_module, "snapshot", lambda *_: None)
    found = run_matrix([], every, controls=20, sut="node driver.mjs", on_done=lambda name, _: told.append(name))

    ours = [one.plan for one in asked if not one.plan.sut]
    assert all(plan.part == "whole" for plan in ours)
    assert len({(plan.seed, plan.workers, plan.poll) for plan in ours}) == 20
    assert len({plan.workers for plan in ours}) > 4
    assert len({plan.poll for plan in ours}) > 4
    assert [one.plan.sut_cwd for one in asked if one.plan.sut] == [str(Path.cwd())] * 20
    assert (len(found.controls), found.false_alarms, found.holds) == (40, 20, False)


def test_the_plan_of_a_violation_names_what_it_needs(every: list[Violation]) -> None:
    loop = next(one for one in every if one.id == "git-in-the-loop")

    assert plan_of(loop) == Plan(root="", socket_of=["I3"], audits_of=["I3"])
    assert plan_of(loop, "quick").clauses == ["I3"]


def test_audits_are_made_for_their_own_clause_and_for_all_when_thorough(every: list[Violation]) -> None:
    made = next(one for one in every if one.id == "started-when-made")
    idle = next(one for one in every if one.id == "settle-on-idle")

    assert AUDITS & set(checks_of(plan_of(made))) == {"i1-touches-nothing", "i1-made-in-silence"}
    assert AUDITS & set(checks_of(plan_of(idle))) == set()
    assert set(checks_of(plan_of(idle, "thorough"))) >= AUDITS
    assert DEAR & set(checks_of(plan_of(idle, "thorough"))) == set()


def test_every_check_but_the_slow_ones_belongs_to_every_look(every: list[Violation]) -> None:
    idle = next(one for one in every if one.id == "settle-on-idle")
    played = scenarios_of(plan_of(idle), list(load_all().scenarios))

    assert set(checks_of(plan_of(idle))) == set(CHECKS) - AUDITS - DEAR
    assert len(played) == sum(one.level == "must" and "memory" in one.hosts for one in load_all().scenarios)
