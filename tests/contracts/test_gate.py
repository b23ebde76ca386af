"""One run of the gate: what is run, judged and handed to the reports, and the bar that shows it."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contracts.clauses import load_clauses
from contracts.loading import SCENARIOS, Catalogue, Loaded
from contracts.loading.selection import Selection, select
from contracts.records import Aftermath, Finding, RunRecord, RunVerdict, StepRecord
from contracts.report import Content
from contracts.running.engine import Engine
from contracts.running.gate import check_ids, job_count, run_gate
from contracts.running.progress import progress
from contracts.scenario import Expect, HostName, Scenario, Step

CHECKS = {"one": "I4", "two": "I3", "three": "I4"}


def loaded(name: str, clause: str, folder: Path = SCENARIOS / "settle", **more: Any) -> Loaded:
    scenario = Scenario(id=name, why="x", clauses=[clause], drive=[Step(do="spawn")], expect=[Expect(git=0)], **more)
    return Loaded(scenario, folder / f"{name}.toml")


CATALOGUE = Catalogue(
    {
        "both": loaded("both", "D8", hosts=["memory", "socket"]),
        "memory": loaded("memory", "D11"),
        "foreign": loaded("foreign", "D11", folder=Path("/elsewhere")),
    }
)


def play(scenario: Scenario, host: HostName) -> RunRecord:
    spawned = StepRecord(index=0, do="spawn", at_ms=1, took_ms=1, returned={})
    return RunRecord(
        scenario=scenario.id, host=host, steps=[spawned], aftermath=Aftermath(git_calls=int(scenario.id == "memory"))
    )


def run_all(scenarios: Sequence[Scenario], **asked: Any) -> list[RunRecord | RunVerdict]:
    results: list[RunRecord | RunVerdict] = [
        play(scenario, host) for scenario in scenarios for host in scenario.hosts if host in asked["hosts"]
    ]
    results += [
        RunVerdict(
            scenario=name, host="check", verdict="pass", findings=[Finding(clause=CHECKS[name], ok=True, where="x")]
        )
        for name in asked["checks"]
    ]
    for result in results:
        asked["on_result"](result)
    return results


ENGINE = Engine(run_all, play, CHECKS)


def chosen(**filters: Any) -> Selection:
    return select(CATALOGUE, load_clauses(), **filters)


def gate(selection: Selection, **options: Any) -> Content:
    return run_gate(selection, ENGINE, **options)


def test_jobs_are_counted_by_host_and_check() -> None:
    assert job_count(chosen(), ENGINE) == 4 + 3
    assert job_count(chosen(host="memory"), ENGINE) == 3
    assert job_count(chosen(ids=["I4"]), ENGINE) == 2
    assert job_count(chosen(ids=["D8"]), ENGINE) == 2


def test_the_checks_are_those_of_the_selected_clauses() -> None:
    assert check_ids(chosen(), ENGINE) == ["one", "two", "three"]
    assert check_ids(chosen(ids=["I3"]), ENGINE) == ["two"]
    assert check_ids(chosen(globs=["both"]), ENGINE) == []


def test_records_are_judged_and_checks_are_taken_as_they_are() -> None:
    content = gate(chosen())

    assert [(one.scenario, one.host, one.verdict) for one in content.verdicts] == [
        ("both", "memory", "pass"),
        ("both", "socket", "pass"),
        ("memory", "memory", "fail"),
        ("foreign", "memory", "pass"),
        ("one", "check", "pass"),
        ("two", "check", "pass"),
        ("three", "check", "pass"),
    ]
    assert content.outcome == "fails"


def test_each_verdict_is_heard_of_as_it_comes_in() -> None:
    heard: list[str] = []
    gate(chosen(ids=["D8", "I3"]), on_verdict=lambda verdict: heard.append(f"{verdict.scenario} {verdict.verdict}"))

    assert heard == ["both pass", "both pass", "two pass"]


def test_a_file_outside_the_product_is_known_as_foreign() -> None:
    content = gate(chosen())

    assert content.foreign == {"foreign"}
    assert content.files["foreign"] == Path("/elsewhere/foreign.toml")


@pytest.mark.parametrize(
    ("filters", "complete", "filtered", "outcome"),
    [
        ({}, True, False, "fails"),
        ({"ids": ["D8"]}, True, True, "holds"),
        ({"ids": ["D8", "D1"]}, True, True, "fails"),
        ({"globs": ["both"]}, False, True, "holds"),
        ({"host": "socket"}, False, True, "holds"),
    ],
)
def test_only_a_run_that_left_nothing_out_can_find_a_clause_unproven(
    filters: dict[str, Any], complete: bool, filtered: bool, outcome: str
) -> None:
    content = gate(chosen(**filters))

    assert (content.complete, content.filtered, content.outcome) == (complete, filtered, outcome)


def test_the_report_says_what_was_tested_and_on_what() -> None:
    content = gate(chosen(globs=["both"], host="socket"))

    assert content.sut["name"] == "python"
    assert content.host["hosts"] == ["socket"]
    assert content.seconds >= 0


# ------------------------------------------------------------ the progress bar


def verdict(word: str) -> RunVerdict:
    return RunVerdict(scenario="settle-one", host="memory", verdict=word)  # type: ignore[arg-type]


@pytest.mark.parametrize(("total", "shown"), [(3, False), (0, True)])
def test_where_nobody_looks_nothing_is_written(total: int, shown: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with progress(total, shown=shown) as tell:
        tell(verdict("pass"))

    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_the_bar_goes_to_standard_error_and_counts_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    error = io.StringIO()
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress(3, shown=True) as tell:
        for word in ("pass", "fail", "errored"):
            tell(verdict(word))

    assert "3/3" in error.getvalue()
    assert "2 bad" in error.getvalue()
    assert "settle-one" in error.getvalue()
