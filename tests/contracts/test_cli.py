"""The command `legion-contracts`: exit codes, filters, formats and clear words for every wrong use."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from click.testing import CliRunner, Result

from contracts.clauses import load_clauses
from contracts.cli import main
from contracts.records import Finding, RunRecord, RunVerdict, StepRecord
from contracts.running.engine import Engine, real_engine
from contracts.scenario import HostName, Scenario

Play = Callable[[Scenario, HostName], RunRecord]

SCENARIO = """\
id = "mine"
why = "One fact."
clauses = ["D8"]
hosts = ["memory", "socket"]

[[drive]]
do = "spawn"
as = "a"
returns = { mode = "terminal" }
"""


def good(scenario: Scenario, host: HostName) -> RunRecord:
    steps = [StepRecord(index=0, do="spawn", name="a", at_ms=5, took_ms=5, returned={"mode": "terminal"})]
    return RunRecord(scenario=scenario.id, host=host, steps=steps, children={"a": "lgl-x"}, real_ms=5)


def bad(scenario: Scenario, host: HostName) -> RunRecord:
    steps = [StepRecord(index=0, do="spawn", name="a", at_ms=5, took_ms=5, returned={"mode": "rpc"})]
    return RunRecord(scenario=scenario.id, host=host, steps=steps)


def broken(scenario: Scenario, host: HostName) -> RunRecord:
    return RunRecord(scenario=scenario.id, host=host, errored="the worker died")


class Asked:
    """Remembers what the command asked of the engine."""

    def __init__(self) -> None:
        self.scenarios: list[str] = []
        self.hosts: Sequence[str] = ()
        self.checks: Sequence[str] = ()
        self.workers: int | None = -1


def engine(play: Play = good, asked: Asked | None = None, check: str = "pass") -> Engine:
    seen = asked or Asked()

    def run_all(
        scenarios: Sequence[Scenario],
        *,
        workers: int | None,
        on_result: Callable[[RunRecord | RunVerdict], None] | None,
        hosts: Sequence[HostName],
        checks: Sequence[str],
    ) -> list[RunRecord | RunVerdict]:
        seen.scenarios, seen.hosts, seen.checks = [scenario.id for scenario in scenarios], hosts, checks
        seen.workers = workers
        results: list[RunRecord | RunVerdict] = [
            play(scenario, host) for scenario in scenarios for host in scenario.hosts if host in hosts
        ]
        for name in checks:
            finding = Finding(clause="I4", ok=check == "pass", where=name)
            told = [] if check == "skipped" else [finding]
            results.append(
                RunVerdict(
                    scenario=name, host="check", verdict=check, clauses=["I4"], findings=told, why="a reason"  # type: ignore[arg-type]
                )
            )  # fmt: skip
        for result in results:
            if on_result is not None:
                on_result(result)
        return results

    return Engine(run_all, play, {"modes-are-mapped": "I4"})


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(SCENARIO)
    return path


def invoke(*arguments: str, with_engine: Engine | None = None) -> Result:
    return CliRunner().invoke(main, [*arguments], obj=with_engine or engine(), env={"COLUMNS": "100"})


def check(path: Path, *arguments: str, play: Play = good) -> Result:
    return invoke("check", "--scenario", str(path), *arguments, with_engine=engine(play))


# ----------------------------------------------------------------- exit codes


def test_what_holds_ends_with_zero_and_one_summary_line(mine: Path) -> None:
    result = check(mine)

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].split() == ["D8", "Settle", "must", "pass", "1", "scenario,", "1", "over", "the", "socket"]  # fmt: skip  # noqa: E501
    assert result.stdout.splitlines()[-1].startswith("holds: 1 of 1 must; 1 scenario, 2 runs (1 over the socket); ")
    assert result.stderr == ""


def test_a_must_that_fails_ends_with_one_and_the_command_that_shows_it_again(mine: Path) -> None:
    result = check(mine, play=bad)

    assert result.exit_code == 1
    assert "D8 drive[0].returns.mode" in result.stdout
    assert "expected  terminal" in result.stdout
    assert "got       rpc" in result.stdout
    assert f"again: legion-contracts check --scenario {mine} --host socket" in result.stdout


def test_a_should_that_fails_ends_with_one_only_under_strict(mine: Path) -> None:
    mine.write_text(SCENARIO.replace("D8", "W1"))

    assert check(mine, play=bad).exit_code == 0
    assert check(mine, "--strict", play=bad).exit_code == 1


def test_something_that_broke_ends_with_three(mine: Path) -> None:
    result = check(mine, play=broken)

    assert result.exit_code == 3
    assert "errored mine (memory)" in result.stdout
    assert "the worker died" in result.stdout


def test_an_engine_that_breaks_ends_with_three_and_no_traceback(mine: Path) -> None:
    def burst(*_: Any, **__: Any) -> list[RunRecord]:
        raise RuntimeError("no more workers")

    result = invoke("check", "--scenario", str(mine), with_engine=Engine(burst, good, {}))

    assert result.exit_code == 3
    assert result.stderr == "Error: the run broke: RuntimeError: no more workers\n"


def test_an_interrupted_run_ends_with_none_of_the_four_codes(mine: Path) -> None:
    def interrupted(*_: Any, **__: Any) -> list[RunRecord]:
        raise KeyboardInterrupt

    result = invoke("check", "--scenario", str(mine), with_engine=Engine(interrupted, good, {}))

    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_an_error_that_nobody_foresaw_ends_with_three(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contracts.commands.check._emit", lambda *_: 1 // 0)
    result = check(mine)

    assert result.exit_code == 3
    assert "this is a bug: ZeroDivisionError" in result.stderr


def test_an_unproven_must_fails_the_whole_run() -> None:
    one_of_each = {
        name: Finding(clause=name, ok=True, where="x") for name, clause in load_clauses().items() if name != "D1"
    }

    def proves(scenario: Scenario, host: HostName) -> RunRecord:
        return good(scenario, host)

    def run_all(*_: Any, **__: Any) -> list[RunVerdict]:
        return [
            RunVerdict(scenario="s", host="memory", verdict="pass", findings=list(one_of_each.values())),
            RunVerdict(
                scenario="h", host="memory", verdict="hazard", level="hazard", findings=list(one_of_each.values())
            ),
        ]

    result = invoke("check", "--format", "json", with_engine=Engine(run_all, proves, {}))
    report = json.loads(result.stdout)

    assert [one["id"] for one in report["clauses"] if one["verdict"] == "unproven"] == ["D1"]
    assert result.exit_code == 1


@pytest.mark.parametrize(("option", "code"), [((), 0), (("--require",), 1)])
def test_a_skipped_check_fails_only_when_it_is_required(option: tuple[str, ...], code: int) -> None:
    skipped = RunVerdict(scenario="modes", host="check", verdict="skipped", clauses=["I4"], why="a reason")
    passed = RunVerdict(
        scenario="s", host="check", verdict="pass", clauses=["I4"], findings=[Finding(clause="I4", ok=True, where="x")]
    )
    result = invoke(
        "check",
        "--clause",
        "I4",
        *option,
        with_engine=Engine(lambda *_, **__: [skipped, passed], good, {"modes": "I4"}),
    )

    assert result.exit_code == code
    assert "modes: a reason" in result.stdout


# -------------------------------------------------------------------- filters


def test_a_run_without_filters_asks_for_everything() -> None:
    asked = Asked()
    invoke("check", "--workers", "2", with_engine=engine(asked=asked))

    assert len(asked.scenarios) >= 90
    assert (tuple(asked.hosts), asked.checks, asked.workers) == (("memory", "socket"), ["modes-are-mapped"], 2)


def test_a_clause_asks_for_its_scenarios_and_checks_and_shows_only_its_row() -> None:
    asked = Asked()
    result = invoke("check", "--clause", "D13", "--clause", "I4", with_engine=engine(asked=asked))
    rows = [line.split()[0] for line in result.stdout.splitlines()[1:3]]

    assert rows == ["D13", "I4"]
    assert asked.checks == ["modes-are-mapped"]
    assert 0 < len(asked.scenarios) < 20


def test_a_scenario_and_a_host_ask_for_no_checks(mine: Path) -> None:
    asked = Asked()
    invoke("check", "--scenario", str(mine), "--host", "memory", with_engine=engine(asked=asked))

    assert (asked.scenarios, tuple(asked.hosts), asked.checks) == (["mine"], ("memory",), [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--clause", "D88"), "there is no clause 'D88'; near: D8"),
        (("--scenario", "settle-bot-idle"), "near: settle-boot-idle"),
        (("--scenario", "nowhere/x.toml"), "nowhere/x.toml: no such file or folder"),
        (("--host", "cloud"), "'cloud' is not one of 'memory', 'socket'"),
        (("--level", "may"), "'may' is not one of"),
        (("--format", "yaml"), "'yaml' is not one of"),
        (("--workers", "-1"), "-1 is not in the range"),
        (("--clause", "D8", "--level", "hazard"), "none of the named clauses has the level hazard"),
        (("--out", "/nowhere/at/all.json"), "there is no folder /nowhere/at"),
        (("--unknown",), "No such option"),
    ],
)
def test_a_wrong_use_ends_with_two_and_says_what_is_wrong(arguments: tuple[str, ...], message: str) -> None:
    result = invoke("check", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_broken_scenario_file_ends_with_two_and_names_file_line_and_field(mine: Path) -> None:
    mine.write_text(SCENARIO.replace("returns", "retruns"))
    result = check(mine)

    assert result.exit_code == 2
    assert f"{mine}:9: drive[0].retruns: " in result.stderr
    assert "did you mean 'returns'?" in result.stderr


# -------------------------------------------------------------------- formats


def test_json_is_the_only_thing_on_standard_output(mine: Path) -> None:
    report = json.loads(check(mine, "--format", "json").stdout)

    assert report["schema"] == 1
    assert report["clauses"][0]["verdict"] == "pass"
    assert report["scenarios"][0]["file"] == str(mine)
    assert report["filtered"] is True


def test_junit_is_xml(mine: Path) -> None:
    root = fromstring(check(mine, "--format", "junit", play=bad).stdout)  # noqa: S314 - our own output

    assert root.get("failures") == "3"


def test_github_names_the_line_of_the_statement(mine: Path) -> None:
    line = check(mine, "--format", "github", play=bad).stdout.splitlines()[0]

    assert line.startswith(f"::error file={mine},line=9,title=D8 in mine (memory)::drive[0].returns.mode: ")


@pytest.mark.parametrize("form", ["table", "json", "junit", "github"])
def test_a_report_can_go_to_a_file_and_the_summary_stays(mine: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "report"
    result = check(mine, "--format", form, "--out", str(out))

    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1
    assert result.stdout.startswith("holds: ")
    assert "1 of 1 must" in out.read_text() or "D8" in out.read_text()
    assert "\x1b" not in out.read_text()


def test_a_pipe_gets_no_colour_no_bar_and_no_padding(mine: Path) -> None:
    result = check(mine, play=bad)

    assert "\x1b" not in result.output
    assert [line for line in result.stdout.splitlines() if line != line.rstrip()] == []


# ------------------------------------------------------------- other commands


def test_clauses_lists_all_of_them() -> None:
    result = invoke("clauses")

    assert result.exit_code == 0
    assert [name for name in load_clauses() if f"\n{name} " not in f"\n{result.stdout}"] == []


def test_clauses_tells_all_about_one() -> None:
    result = invoke("clauses", "d11")

    assert result.stdout.startswith("D11  Retire  (must)\n")
    assert "source: centurion terminal backend v1, D11" in result.stdout


def test_clauses_are_there_as_json() -> None:
    entries = json.loads(invoke("clauses", "--format", "json").stdout)

    assert [entry["id"] for entry in entries] == list(load_clauses())


def test_clauses_names_what_is_near_an_unknown_one() -> None:
    result = invoke("clauses", "W9")

    assert result.exit_code == 2
    assert "there is no clause 'W9'" in result.stderr


@pytest.mark.parametrize(("play", "code", "word"), [(good, 0, "pass"), (bad, 1, "fail"), (broken, 3, "errored")])
def test_show_draws_the_run_and_ends_as_it_did(mine: Path, play: Play, code: int, word: str) -> None:
    result = invoke("show", str(mine), with_engine=engine(play))

    assert result.exit_code == code
    assert result.stdout.startswith(f"mine on memory: {word}\nOne fact.\n")


def test_show_runs_on_the_host_that_was_asked_for(mine: Path) -> None:
    assert invoke("show", str(mine), "--host", "socket").stdout.startswith("mine on socket: pass\n")


@pytest.mark.parametrize(("name", "message"), [("nope-nope", "no scenario matches"), ("settle-*", "matches")])
def test_show_wants_exactly_one_scenario(name: str, message: str) -> None:
    result = invoke("show", name)

    assert result.exit_code == 2
    assert message in result.stderr


def test_lint_says_how_many_are_good(mine: Path) -> None:
    assert invoke("lint", str(mine)).stdout == "1 scenario is good, 0 mistakes\n"
    mine.write_text("x")

    assert invoke("lint", str(mine)).exit_code == 2
    assert invoke("lint", str(mine.parent / "nowhere")).exit_code == 2


def test_schema_agrees_or_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke("schema").exit_code == 0
    monkeypatch.setattr("contracts.loading.schema.drift", lambda: ["scenario.schema.json"])
    result = invoke("schema")

    assert result.exit_code == 1
    assert "legion-contracts schema --write" in result.stderr


def test_a_recording_becomes_scenarios_that_load(tmp_path: Path) -> None:
    recording = Path(__file__).parents[2] / "contracts" / "recordings" / "osc7501-timelines.json"
    result = invoke("import-recording", str(recording), "--out", str(tmp_path / "out"))

    assert result.exit_code == 0, result.output
    assert invoke("lint", str(tmp_path / "out")).exit_code == 0
    assert len(list((tmp_path / "out").glob("*.toml"))) > 10


def test_a_recording_that_is_none_ends_with_two(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[")
    result = invoke("import-recording", str(tmp_path / "x.json"), "--out", str(tmp_path / "out"))

    assert result.exit_code == 2
    assert "x.json" in result.stderr


@pytest.mark.parametrize("name", ["check", "clauses", "show", "schema", "import-recording", "lint"])
def test_every_command_explains_itself(name: str) -> None:
    result = invoke(name, "--help")

    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def test_the_real_engine_has_a_check_for_clauses_that_exist() -> None:
    assert set(real_engine().checks.values()) <= set(load_clauses())


def test_listing_clauses_starts_without_the_machinery_of_runs_and_tables() -> None:
    code = (
        "import sys, contracts.cli; print([name for name in ('rich', 'jinja2', 'hypothesis') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)

    assert told.stdout.strip() == "[]"


# ----------------------------------------------------------------- a terminal


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    for descriptor in (ours, theirs):
        os.close(descriptor)


@pytest.mark.parametrize(("extra", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colour_unless_it_does_not_want_it(
    terminal: tuple[int, int], extra: dict[str, str], coloured: bool
) -> None:
    ours, theirs = terminal
    env = {"PATH": os.defpath, "TERM": "xterm-256color", "COLUMNS": "90", "PYTHONPATH": str(Path.cwd()), **extra}
    subprocess.run(
        [sys.executable, "-m", "contracts.cli", "clauses", "D8-idle-end"],
        stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=env, check=True, timeout=30,
    )  # fmt: skip
    text = os.read(ours, 65_536).decode()

    assert "ends in idle" in text
    assert ("\x1b[35mhazard" in text) is coloured


def test_a_must_that_a_should_scenario_fails_is_a_warning_everywhere(mine: Path) -> None:
    mine.write_text(SCENARIO.replace('why = "One fact."', 'why = "One fact."\nlevel = "should"'))
    table = check(mine, play=bad)
    told = json.loads(check(mine, "--format", "json", play=bad).stdout)

    assert (table.exit_code, check(mine, "--strict", play=bad).exit_code) == (0, 1)
    assert " warn " in table.stdout
    assert "holds: 1 of 1 must" in table.stdout
    [d8] = told["clauses"]
    assert (told["outcome"], d8["verdict"], d8["failed"]) == ("holds", "pass", [])
    assert {one["level"] for one in d8["warnings"]} == {"should"}
    assert invoke("show", str(mine), with_engine=engine(bad)).exit_code == 0
