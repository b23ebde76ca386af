"""The phrases that all reports share."""

from pathlib import Path
from typing import Any

import pytest

from contracts.judging.match import MISSING
from contracts.judging.tally import ClauseRow, Failure, Totals
from contracts.records import Finding, RunVerdict
from contracts.report.content import Content, evidence, reproduce, seconds, show, summary, verdict_word

TOTALS = Totals(scenarios=2, runs=3, checks=1, statements=9, clauses={}, run_verdicts={}, real_ms=0)

WARNING = Failure(
    scenario="s", host="memory", level="should", finding=Finding(clause="D8", ok=False, where="drive[0]", got="x")
)


def content(*rows: ClauseRow, **more: Any) -> Content:
    return Content(rows=rows, verdicts=(), totals=TOTALS, outcome="holds", **more)


def row(**more: Any) -> ClauseRow:
    return ClauseRow(**{"id": "D8", "title": "Settle", "level": "must", "verdict": "pass", **more})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (MISSING, "nothing"),
        ("timeout", "timeout"),
        ("", '""'),
        (" padded", '" padded"'),
        ("two\nlines", '"two\\nlines"'),
        (True, "true"),
        ({"min": 1}, '{"min": 1}'),
        ([1, "a"], '[1, "a"]'),
        ("x" * 50, "x" * 9 + "…"),
    ],
)
def test_a_value_is_shown_on_one_line(value: Any, text: str) -> None:
    assert show(value, 10 if value == "x" * 50 else 300) == text


@pytest.mark.parametrize(("ms", "text"), [(0, "0.0 s"), (14_500, "14.5 s"), (119_999, "120.0 s"), (900_000, "15 min")])
def test_a_duration_is_shown_in_the_unit_that_fits(ms: int, text: str) -> None:
    assert seconds(ms) == text


def test_the_command_that_runs_it_again_names_scenario_and_host() -> None:
    verdict = RunVerdict(scenario="my-case", host="socket", verdict="fail")

    assert reproduce(content(), verdict) == "legion-contracts check --scenario my-case --host socket"
    assert reproduce(content(strict=True), verdict).endswith("--host socket --strict")


def test_a_scenario_that_is_not_of_the_product_is_named_by_its_file() -> None:
    verdict = RunVerdict(scenario="mine", host="memory", verdict="fail")
    foreign = content(files={"mine": Path("/my work/mine.toml")}, foreign=frozenset({"mine"}))

    assert reproduce(foreign, verdict) == "legion-contracts check --scenario '/my work/mine.toml' --host memory"


def test_a_check_is_run_again_by_its_clause() -> None:
    verdict = RunVerdict(scenario="modes", host="check", verdict="fail", clauses=["I4"])

    assert reproduce(content(), verdict) == "legion-contracts check --clause I4"


@pytest.mark.parametrize(
    ("fields", "strict", "word"),
    [
        ({}, False, "pass"),
        ({"verdict": "fail", "failed_level": "must"}, False, "FAIL"),
        ({"verdict": "fail", "failed_level": "should"}, False, "warn"),
        ({"verdict": "fail", "failed_level": "should"}, True, "FAIL"),
        ({"warnings": [WARNING]}, False, "warn"),
        ({"warnings": [WARNING], "verdict": "errored"}, False, "errored"),
        ({"level": "hazard", "verdict": "hazard"}, True, "hazard"),
        ({"level": "hazard"}, False, "avoided"),
        ({"verdict": "unproven"}, False, "unproven"),
    ],
)
def test_each_verdict_has_a_word(fields: dict[str, Any], strict: bool, word: str) -> None:
    assert verdict_word(content(strict=strict), row(**fields)) == word


def test_evidence_is_put_in_words() -> None:
    assert evidence(row()) == "no evidence"
    assert evidence(row(scenarios=1)) == "1 scenario"
    assert evidence(row(scenarios=9, socket=3, checks=1)) == "9 scenarios, 3 over the socket, 1 check"
    assert evidence(row(scenarios=1, cost_ms=14_500, level="hazard")) == "1 scenario, up to 14.5 s lost"
    assert evidence(row(skipped=["c: x"], errored=["a", "b"])) == "1 skipped, 2 errored"


def test_the_summary_counts_each_level_that_is_there() -> None:
    rows = [row(), row(verdict="fail"), row(level="should"), row(level="hazard", verdict="hazard")]

    assert summary(content(*rows, seconds=1.25)) == (
        "holds: 1 of 2 must, 1 of 1 should, 1 hazard; 2 scenarios, 3 runs (0 over the socket), 1 check; 1.2 s"
    )


def test_only_a_must_gates_unless_strict() -> None:
    assert [content().gates(level) for level in ("must", "should", "hazard", None)] == [True, False, False, False]
    assert content(strict=True).gates("should")
    assert Finding(clause="D1", ok=True, where="x").say == ""
