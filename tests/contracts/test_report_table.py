"""The table: one row a clause, in words, at any width, with and without colour."""

import io
from typing import Any

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from contracts.clauses import Clause, Clauses, load_clauses
from contracts.judging.tally import clause_table, outcome, totals
from contracts.records import Finding, RunVerdict
from contracts.report import Content
from contracts.report.as_clauses import clauses_as_json, print_clauses
from contracts.report.as_table import MAX_FAILED_RUNS, MAX_FINDINGS, MAX_NAMES, as_table
from contracts.scenario import Level

LONG = "lgl-run00001-a-handle-that-is-long " * 4


def clause(name: str, title: str, level: Level = "must") -> Clause:
    return Clause(id=name, title=title, statement="x", source="x", proof=["x"], level=level)


CLAUSES: Clauses = {
    one.id: one
    for one in (
        clause("D6", "Visibility"),
        clause("D8", "Settle"),
        clause("D9", "Verdict"),
        clause("I4", "Every map knows every mode"),
        clause("W4", "Lost links and unknown outcomes", "should"),
        clause("D8-idle-end", "A turn that ends in idle", "hazard"),
    )
}


def run(name: str, word: str, *findings: Finding, **more: Any) -> RunVerdict:
    told = {"host": "memory", "why": f"One fact about {name}.", "clauses": [one.clause for one in findings], **more}
    return RunVerdict(scenario=name, verdict=word, findings=list(findings), **told)  # type: ignore[arg-type]


def held(name: str) -> Finding:
    return Finding(clause=name, ok=True, where="drive[0].returns")


RUNS = (
    run("labels-space", "pass", held("D6")),
    run("labels-space", "pass", held("D6"), host="socket"),
    run(
        "settle-boot-idle",
        "fail",
        Finding(
            clause="D8", ok=False, where="drive[1].returns.settled", expected=True, got=False, say="the first done"
        ),
        Finding(clause="D8", ok=False, where="drive[1].returns.name", expected={"starts": "lgl-"}, got=LONG),
    ),
    run(
        "wire-cut",
        "fail",
        Finding(clause="W4", ok=False, where="expect[0].calls(terminal.run)", expected="1 call", got="no call"),
        host="socket",
    ),
    run("session-torn", "errored", clauses=["D9"], errored="the run was over its limit of 20000 ms"),
    run("hazard-idle-end", "hazard", held("D8-idle-end"), level="hazard", cost_ms=117_000),
    run("modes-are-mapped", "skipped", host="check", clauses=["I4"], why="mypy is not installed"),
)


def content(*runs: RunVerdict, **more: Any) -> Content:
    rows = clause_table(CLAUSES, runs)
    said = outcome(rows, runs, strict=bool(more.get("strict")))
    return Content(rows=rows, verdicts=runs, totals=totals(rows, runs), outcome=said, seconds=3.25, **more)


def painted(content: Content, width: int, **options: Any) -> str:
    buffer = io.StringIO()
    as_table(content, Console(file=buffer, width=width, highlight=False, emoji=False, markup=False, **options))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_as_a_person_reads_it(width: int, snapshot: SnapshotAssertion) -> None:
    assert painted(content(*RUNS), width) == snapshot


def test_the_table_when_everything_holds(snapshot: SnapshotAssertion) -> None:
    runs = [run("all", "pass", *(held(name) for name in CLAUSES if name != "D8-idle-end")), RUNS[5]]

    assert painted(content(*runs), 80) == snapshot


def test_a_verdict_is_a_word_and_not_only_a_colour() -> None:
    text = painted(content(*RUNS), 80)
    words = {line.split()[0]: line.split()[2] for line in text.splitlines()[1:7]}

    assert words == {
        "D6": "pass", "D8": "FAIL", "D9": "errored", "I4": "skipped", "W4": "warn", "D8-idle-end": "hazard",
    }  # fmt: skip


def test_colour_adds_nothing_but_colour() -> None:
    plain = painted(content(*RUNS), 80)
    coloured = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard", highlight=False)
    as_table(content(*RUNS), coloured)
    buffer = coloured.file
    assert isinstance(buffer, io.StringIO)

    from rich.text import Text

    bare = "\n".join(line.rstrip() for line in Text.from_ansi(buffer.getvalue()).plain.splitlines())
    assert "\x1b[" in buffer.getvalue()
    assert bare == plain


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_command_to_copy_is_never_cut(width: int) -> None:
    assert (
        "  again: legion-contracts check --scenario settle-boot-idle --host memory"
        in painted(content(*RUNS), width).splitlines()
    )


def test_a_should_that_fails_is_a_warning_and_a_failure_under_strict() -> None:
    assert "warn W4 in wire-cut (socket)" in painted(content(*RUNS), 80)
    assert "FAIL W4 in wire-cut (socket)" in painted(content(*RUNS, strict=True), 80)


def test_of_runs_that_show_the_same_hazard_the_longest_tells_what_it_costs() -> None:
    shorter = run("hazard-idle-end-socket", "hazard", held("D8-idle-end"), level="hazard", cost_ms=500, host="socket")
    for runs in ([RUNS[5], shorter], [shorter, RUNS[5]]):
        text = painted(content(*runs), 120)
        assert "hazard-idle-end (memory)  117.0 s lost" in text
        assert "hazard-idle-end-socket" not in text
        assert "2 scenarios, 1 over the socket, up to 117.0 s lost" in text


def test_runs_that_were_skipped_for_one_reason_share_a_line() -> None:
    runs = [run(f"case-{n}", "skipped", clauses=["D6", "D8"], why="no time: none at all") for n in range(MAX_NAMES + 2)]
    text = painted(content(*runs, RUNS[6]), 120)

    assert "  case-0, case-1, case-2, case-3, case-4 and 2 more: no time: none at all" in text
    assert "  modes-are-mapped: mypy is not installed" in text


def test_what_is_unproven_is_said_below_the_table() -> None:
    text = painted(content(RUNS[0]), 80)

    assert "unproven: D8, D9, I4, W4, D8-idle-end (no scenario or check gave evidence)" in text
    assert text.splitlines()[-1].startswith("fails: 1 of 4 must")


def test_many_failures_are_cut_and_counted() -> None:
    findings = [Finding(clause="D8", ok=False, where=f"drive[{n}]") for n in range(MAX_FINDINGS + 3)]
    runs = [run(f"s{n}", "fail", *findings) for n in range(MAX_FAILED_RUNS + 2)]
    text = painted(content(*runs), 80)

    assert "and 3 more fields" in text
    assert "2 more failed runs are not shown; --format json has them all" in text


def test_the_list_of_clauses_names_each_with_its_level() -> None:
    buffer = io.StringIO()
    print_clauses(load_clauses(), Console(file=buffer, width=100))
    first = [line.split()[:2] for line in buffer.getvalue().splitlines()]

    assert ["D8", "must"] in first
    assert ["W1", "should"] in first
    assert ["D8-idle-end", "hazard"] in first


def test_the_details_of_a_clause_hold_all_that_is_known(snapshot: SnapshotAssertion) -> None:
    buffer = io.StringIO()
    print_clauses({"D8": load_clauses()["D8"]}, Console(file=buffer, width=80), details=True)

    assert "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) == snapshot


def test_the_clauses_as_json_keep_every_field() -> None:
    import json

    entries = json.loads(clauses_as_json(load_clauses()))

    assert {"id", "level", "title", "statement", "source", "decision", "proof"} == set(entries[0])
    assert len(entries) == len(load_clauses())
