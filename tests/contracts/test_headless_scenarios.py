"""The scenarios of headless children: the format of their world, what is told of the child, and a few broken lives."""

import os
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contracts.hosts.aftermath import open_pipes
from contracts.judging.judge import judge
from contracts.loading import SCENARIOS, ScenarioError, load_all, load_scenario
from contracts.loading.scripts import RECORDINGS, script_of
from contracts.records import RunVerdict
from contracts.running.one_run import run_scenario
from contracts.scenario import Pi, Scenario
from contracts.sut.python import PythonSut
from contracts.sut.scope import needs, undeclared
from hc_sim.programs.pi_rpc.script import SCRIPT
from legion_terminal.rpc import exit_table, running
from legion_terminal.rpc.messages import encode

HEADLESS = {one.id: one for one in load_all([SCENARIOS / "headless"]).scenarios}
VIOLATIONS = sorted((SCENARIOS.parent / "violations" / "supervisor").glob("headless*.toml"))
CASE = """
id = "case"
why = "A case."
clauses = ["H7"]
hosts = ["socket"]

[world.pi]

[[world.pi.reply]]
do = "answer"

[[drive]]
do = "spawn"
as = "a"
args = { mode = "rpc" }

[[drive]]
do = "wait"
child = "a"
returns = { settled = true }

[[expect]]
child = "a"
lines = [{ type = "prompt" }]

[[expect]]
pi = true
with = { told = { any = true } }

[[expect]]
starts = 1
"""


def loaded(folder: Path, text: str = CASE) -> Scenario:
    path = folder / "case.toml"
    path.write_text(text)
    return load_scenario(path)


def verdict(scenario: Scenario) -> RunVerdict:
    return judge(scenario, run_scenario(scenario, "socket"))


def red(result: RunVerdict) -> set[str]:
    return {finding.clause for finding in result.findings if not finding.ok}


# ------------------------------------------------------------------- the format


@pytest.mark.parametrize(
    ("old", "new", "where", "says"),
    [
        ('hosts = ["socket"]', 'hosts = ["memory", "socket"]', "world.pi", "only the socket host starts a pi"),
        ('do = "answer"', 'do = "anser"', "world.pi.reply[0].do", "'anser' is none of answer"),
        ('do = "answer"', 'dou = "answer"', "world.pi.reply[0].dou", "no such key"),
        ("[world.pi]\n", '[world.pi]\nrecording = "ster"\n', "world.pi.recording", "did you mean 'steer'"),
        ("[world.pi]\n", '[world.pi]\nrecording = "steer"\n', "world.pi.recording", "leave out reply"),
        ("[world.pi]\n", "[world.pi]\nspeed = 1000.0\n", "world.pi.speed", "from 0 to 100"),
        ("told = {", "tolt = {", "expect[1].with.tolt", "a started pi has no 'tolt'"),
        ("starts = 1", "starts = -1", "expect[2].starts", "must not be negative"),
        ('[world.pi]\n\n[[world.pi.reply]]\ndo = "answer"', "", "expect[0]", "the world has no [world.pi]"),
    ],
)
def test_a_mistake_in_the_world_of_a_headless_child_is_named(
    old: str, new: str, where: str, says: str, tmp_path: Path
) -> None:
    assert CASE.count(old) == 1

    with pytest.raises(ScenarioError) as caught:
        loaded(tmp_path, CASE.replace(old, new))

    found = [problem for problem in caught.value.problems if problem.key == where]
    assert found
    assert any(says in problem.message for problem in found)


def test_an_end_without_a_program_is_a_mistake(tmp_path: Path) -> None:
    text = CASE.replace('[world.pi]\n\n[[world.pi.reply]]\ndo = "answer"', "[[world.child]]\ncode = 1")

    with pytest.raises(ScenarioError, match=r"give the world its program"):
        loaded(tmp_path, text)


def test_the_world_knows_the_keys_of_the_script_and_no_others() -> None:
    assert set(script_of(Pi())) == set(SCRIPT) - {"log"}


def test_a_driver_without_the_feature_is_not_asked() -> None:
    assert {name for name, one in HEADLESS.items() if "rpc" not in needs(one) and one.drive[0].raises is None} == set()
    assert "does not declare" in undeclared(HEADLESS["headless-row-settled"], {"terminal"})


# --------------------------------------------------------------------- the runs


def test_what_the_child_saw_is_in_the_record(tmp_path: Path) -> None:
    record = run_scenario(loaded(tmp_path), "socket")

    [one] = record.pi
    assert (one.argv[:2], one.session, one.leads) == (["--mode", "rpc"], record.fills["session:a"], True)
    assert (one.told, one.code, one.signal, one.cwd) == (["SIGTERM"], 143, None, record.fills["cwd"])
    assert judge(loaded(tmp_path), record).verdict == "pass"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{ type = "prompt" }', '{ type = "prompt" }, { type = "abort" }'),
        ("told = { any = true }", 'told = ["EOF"]'),
        ("starts = 1", "starts = 2"),
        ("pi = true", "pi = true\nnth = 2"),
        ("lines = [", "nth = 2\nlines = ["),
    ],
)
def test_a_statement_about_a_child_can_fail(old: str, new: str, tmp_path: Path) -> None:
    result = verdict(loaded(tmp_path, CASE.replace(old, new)))

    assert (result.verdict, red(result)) == ("fail", {"H7"})


def test_the_pipes_of_a_child_are_descriptors_that_can_be_left(tmp_path: Path) -> None:
    before = open_pipes()
    with (tmp_path / "file").open("w"):
        assert open_pipes() == before


def test_pipes_left_open_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    async def forgets(self: PythonSut) -> None:
        kept.extend(os.pipe())
        await close(self)

    close: Callable[[PythonSut], Awaitable[None]] = PythonSut.close
    monkeypatch.setattr(PythonSut, "close", forgets)
    text = f'{CASE}\n[[expect]]\nclause = "H-held-pipe"\nleft = "nothing"\n'
    try:
        result = verdict(loaded(tmp_path, text))
    finally:
        for one in kept:
            os.close(one)

    assert red(result) == {"H-held-pipe"}


def planted_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 0 is success."""
    monkeypatch.setitem(exit_table.EXIT_ROWS, "exit-zero", exit_table.EXIT_ROWS["agent-settled"])


def planted_null(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line null before each prompt, which the child does not survive."""
    monkeypatch.setattr(running, "encode", lambda command: b"null\n" + encode(command))


@pytest.mark.parametrize(
    ("planted", "scenario", "clause"),
    [
        (planted_zero, "headless-exit-0-in-a-run", "H9"),
        (planted_null, "headless-never-null", "H-null"),
        (planted_null, "headless-row-settled", "H7"),
    ],
)
def test_a_supervisor_that_breaks_a_clause_turns_it_red(
    planted: Callable[[pytest.MonkeyPatch], None], scenario: str, clause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(monkeypatch)

    assert clause in red(verdict(HEADLESS[scenario]))


# --------------------------------------------------------------- what there must be


def test_every_recording_of_a_headless_child_is_played() -> None:
    played = {one.world.pi.recording for one in HEADLESS.values() if one.world.pi is not None}

    assert played - {""} == {path.stem for path in RECORDINGS.glob("*.jsonl")}


def test_every_field_case_of_headless_children_has_a_scenario() -> None:
    sources = " ".join(one.source for one in HEADLESS.values())

    assert [f"BC-{number}" for number in range(136, 157) if f"BC-{number}" not in sources] == []


def test_every_clause_of_the_document_has_a_scenario_of_its_own() -> None:
    first = {one.clauses[0] for one in HEADLESS.values()}
    text = (SCENARIOS.parent / "clauses" / "headless.toml").read_text()

    assert {clause["id"] for clause in tomllib.loads(text)["clause"]} - first == set()


def test_every_clause_is_broken_by_a_planted_violation() -> None:
    planted = [one for path in VIOLATIONS for one in tomllib.loads(path.read_text())["violation"]]
    text = (SCENARIOS.parent / "clauses" / "headless.toml").read_text()

    assert {one["breaks"][0] for one in planted} == {clause["id"] for clause in tomllib.loads(text)["clause"]}
    assert all(one["id"].startswith("headless-") and one["hosts"] == ["socket"] for one in planted)


def test_a_scenario_of_a_headless_child_is_short() -> None:
    assert [one.id for one in HEADLESS.values() if one.limit_ms != msgspec.structs.asdict(one)["limit_ms"]] == []
    assert all(one.hosts == ["socket"] for one in HEADLESS.values())
