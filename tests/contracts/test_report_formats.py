"""The report formats: what each shows of the same run, and that each is valid in its own terms."""

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from contracts.clauses import Clause, Clauses
from contracts.judging.tally import clause_table, outcome, totals
from contracts.records import Finding, RunVerdict
from contracts.report import Content, as_github, as_json, as_junit
from contracts.report.as_github import MAX_MESSAGE, MAX_OF_KIND, MAX_TITLE
from contracts.report.content import summary
from contracts.report.places import field_of
from contracts.scenario import Level

FILE = Path("/home/user/scenarios/settle/one.toml")


def clause(name: str, level: Level) -> Clause:
    return Clause(id=name, title=f"Title of {name}", statement="x", source="x", proof=["x"], level=level)


CLAUSES: Clauses = {
    one.id: one for one in (clause("D8", "must"), clause("D9", "must"), clause("W1", "should"), clause("H1", "hazard"))
}


def verdict(name: str, word: str, *findings: Finding, **more: Any) -> RunVerdict:
    told = {"host": "memory", "why": f"Why {name}.", "clauses": [one.clause for one in findings], **more}
    return RunVerdict(scenario=name, verdict=word, findings=list(findings), **told)  # type: ignore[arg-type]


def finding(name: str, ok: bool, **more: Any) -> Finding:
    return Finding(clause=name, ok=ok, where=more.pop("where", "drive[1].returns.settled"), **more)


RUNS = [
    verdict("one", "fail", finding("D8", False, expected=True, got=False, say="it settles"), real_ms=1_500),
    verdict("two", "fail", finding("W1", False, expected="a", got="b\x00c"), host="socket", level="should"),
    verdict("three", "errored", clauses=["D9"], errored="the core & its <host> fell"),
    verdict("four", "hazard", finding("H1", True), level="hazard", cost_ms=14_500),
    verdict("five", "pass", finding("W1", True)),
    verdict("six", "skipped", host="check", clauses=["D9"], why="mypy is not there"),
]


def content(*runs: RunVerdict, **more: Any) -> Content:
    rows = clause_table(CLAUSES, runs, strict=bool(more.get("strict")))
    said = outcome(rows, runs, strict=bool(more.get("strict")))
    told: dict[str, Any] = {"files": {"one": FILE}, "sut": {"name": "python"}, "host": {"core": "hc_sim"}, **more}
    return Content(rows=rows, verdicts=runs, totals=totals(rows, runs), outcome=said, seconds=2.0, **told)


# ----------------------------------------------------------------------- JSON


def test_json_has_the_promised_shape() -> None:
    report = json.loads(as_json(content(*RUNS)))

    assert report["schema"] == 1
    assert list(report) == [
        "schema", "outcome", "strict", "filtered", "seconds", "sut", "host", "clauses", "scenarios", "checks", "totals",
    ]  # fmt: skip
    assert report["outcome"] == "fails"
    assert report["sut"] == {"name": "python"}
    assert [
        (one["id"], one["level"], one["verdict"], one["scenarios"], one["checks"]) for one in report["clauses"]
    ] == [
        ("D8", "must", "fail", 1, 0),
        ("D9", "must", "errored", 0, 0),
        ("W1", "should", "fail", 2, 0),
        ("H1", "hazard", "hazard", 1, 0),
    ]


def test_json_tells_every_failed_statement_field_by_field() -> None:
    report = json.loads(as_json(content(*RUNS)))

    assert report["clauses"][0]["failed"] == [
        {
            "scenario": "one",
            "host": "memory",
            "level": "must",
            "clause": "D8",
            "where": "drive[1].returns.settled",
            "expected": True,
            "got": False,
            "say": "it settles",
        }
    ]
    [one] = [entry for entry in report["scenarios"] if entry["id"] == "one"]
    assert one["verdict"] == "fail"
    assert one["why"] == "Why one."
    assert one["file"] == str(FILE)
    assert one["runs"][0]["seconds"] == 1.5
    assert one["runs"][0]["again"] == "legion-contracts check --scenario one --host memory"


def test_json_keeps_findings_that_held_out_and_errors_in() -> None:
    by_id = {entry["id"]: entry for entry in json.loads(as_json(content(*RUNS)))["scenarios"]}

    assert by_id["five"]["runs"][0]["findings"] == []
    assert by_id["three"]["runs"][0]["errored"] == "the core & its <host> fell"
    assert by_id["four"]["runs"][0]["costSeconds"] == 14.5


def test_json_gives_a_scenario_the_worst_of_its_runs() -> None:
    runs = [verdict("s", "pass", finding("D8", True)), verdict("s", "fail", finding("D8", False), host="socket")]
    [entry] = json.loads(as_json(content(*runs)))["scenarios"]

    assert (entry["verdict"], [run["verdict"] for run in entry["runs"]]) == ("fail", ["pass", "fail"])


def test_json_lists_checks_apart_and_counts_everything() -> None:
    report = json.loads(as_json(content(*RUNS)))

    assert [one["id"] for one in report["checks"]] == ["six"]
    assert report["totals"]["scenarios"] == 5
    assert report["totals"]["clauses"] == {"fail": 2, "errored": 1, "hazard": 1}


# ---------------------------------------------------------------------- JUnit


def cases(content: Content) -> dict[str, Element]:
    root = fromstring(as_junit(content, lambda *_: 7))  # noqa: S314 - our own output
    return {f"{case.get('classname')}/{case.get('name')}": case for case in root.iter("testcase")}


def kind(case: Element) -> str:
    return next((part.tag for part in case if part.tag in ("failure", "error", "skipped")), "pass")


def test_junit_is_xml_with_counts_that_add_up() -> None:
    root = fromstring(as_junit(content(*RUNS), lambda *_: 7))  # noqa: S314 - our own output

    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == ["clauses", "scenarios"]
    for suite in (root, *root):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(name) == str(len(list(suite.iter(tag)))), (suite.get("name"), name)


def test_junit_says_of_every_clause_and_run_what_the_gate_says() -> None:
    assert {name: kind(case) for name, case in cases(content(*RUNS)).items()} == {
        "clauses/D8": "failure",
        "clauses/D9": "error",
        "clauses/W1": "skipped",
        "clauses/H1": "pass",
        "scenarios.D8/one[memory]": "failure",
        "scenarios.W1/two[socket]": "skipped",
        "scenarios.D9/three[memory]": "error",
        "scenarios.H1/four[memory]": "pass",
        "scenarios.W1/five[memory]": "pass",
        "scenarios.D9/six[check]": "skipped",
    }


def test_junit_fails_a_should_under_strict() -> None:
    found = cases(content(*RUNS, strict=True))

    assert kind(found["clauses/W1"]) == "failure"
    assert kind(found["scenarios.W1/two[socket]"]) == "failure"


@pytest.mark.parametrize(("complete", "word"), [(True, "failure"), (False, "skipped")])
def test_junit_shows_what_is_unproven(complete: bool, word: str) -> None:
    found = cases(content(RUNS[4], complete=complete))

    assert kind(found["clauses/D8"]) == word


def test_junit_carries_difference_and_command() -> None:
    failure = cases(content(*RUNS))["scenarios.D8/one[memory]"].find("failure")

    assert failure is not None
    assert failure.get("message") == "Why one."
    assert failure.text == (
        "D8 drive[1].returns.settled: expected true, got false\n"
        "again: legion-contracts check --scenario one --host memory"
    )


def test_junit_replaces_what_xml_cannot_hold() -> None:
    bad = verdict("bad", "fail", finding("D8", False, expected="\ud800\x07", got="\ufffe"), why="bell \x07")

    assert "\x07" not in as_junit(content(bad), lambda *_: 7)
    assert kind(cases(content(bad))["scenarios.D8/bad[memory]"]) == "failure"


# --------------------------------------------------------------------- GitHub


def test_github_annotates_the_line_of_the_statement() -> None:
    asked: list[tuple[Path, str]] = []

    def line_of(path: Path, field: str) -> int:
        asked.append((path, field))
        return 27

    first = as_github(content(*RUNS), line_of).splitlines()[0]

    assert asked == [(FILE, "drive[1].returns.settled")]
    assert first == (
        f"::error file={FILE},line=27,title=D8 in one (memory)::it settles: drive[1].returns.settled: "
        "expected true, got false%0AWhy one.%0Aagain: legion-contracts check --scenario one --host memory"
    )


def test_github_grades_what_it_says() -> None:
    lines = as_github(content(*RUNS), lambda *_: 1).splitlines()

    assert [line.split(" ", 1)[0] for line in lines] == [
        "::error",
        "::error",
        "::warning",
        "::notice",
        "::notice",
        "::notice",
    ]
    assert as_github(content(*RUNS, strict=True), lambda *_: 1).count("::error") == 3
    assert lines[-1].startswith("::notice title=legion-contracts::fails: ")


def test_github_escapes_what_would_end_a_command() -> None:
    bad = verdict("a:b,c", "fail", finding("D8", False, expected="50%\r\n", got=None))
    line = as_github(content(bad), lambda *_: 1).splitlines()[0]

    assert "title=D8 in a%3Ab%2Cc (memory)::" in line
    assert "50%25" in line
    assert "\r" not in line


def test_github_warns_of_what_is_unproven() -> None:
    lines = as_github(content(RUNS[4]), lambda *_: 1).splitlines()

    assert [line for line in lines if "unproven" in line] == [
        "::error title=D8 is unproven::no scenario or check gave evidence",
        "::error title=D9 is unproven::no scenario or check gave evidence",
        "::warning title=H1 is unproven::no scenario or check gave evidence",
    ]


def test_github_stops_at_its_limit_and_counts_the_rest() -> None:
    many = [verdict(f"s{n}", "fail", finding("D8", False)) for n in range(MAX_OF_KIND + 5)]
    warned = [
        verdict(f"w{n}", "fail", finding("W1", False, say="x" * 9_000), level="should", why="y" * 300)
        for n in range(MAX_OF_KIND)
    ]
    noticed = [verdict(f"h{n}", "hazard", finding("H1", True), level="hazard") for n in range(MAX_OF_KIND)]
    lines = as_github(content(*many, *warned, *noticed), lambda *_: 1).splitlines()
    kinds = [line.split(" ", 1)[0] for line in lines]

    assert [kinds.count(f"::{kind}") for kind in ("error", "warning", "notice")] == [MAX_OF_KIND] * 3
    assert [line for line in lines if "more annotations of this kind" in line] == [
        "::error title=and more::7 more annotations of this kind; --format table or --html has them all",
        "::notice title=and more::2 more annotations of this kind; --format table or --html has them all",
    ]
    assert lines[-1].startswith("::notice title=legion-contracts::")


def test_github_cuts_what_is_longer_than_an_annotation_may_be() -> None:
    long = verdict("s" * 400, "fail", finding("D8", False, say="x" * 9_000))
    line = as_github(content(long), lambda *_: 1).splitlines()[0]
    title = line.split("title=")[1].split("::")[0]

    assert len(title) == MAX_TITLE
    assert len(line) < MAX_MESSAGE + MAX_TITLE + 50
    assert line.endswith("…")


def gone(*_: object) -> int:
    raise FileNotFoundError("no such file")


def test_a_scenario_file_that_is_gone_is_still_named() -> None:
    assert "line=1," in as_github(content(*RUNS), gone).splitlines()[0]
    root = fromstring(as_junit(content(*RUNS), gone))  # noqa: S314 - our own output

    assert [case.get("line") for case in root.iter("testcase") if case.get("file")] == ["1"]


def test_junit_names_the_file_and_the_line_of_what_fails() -> None:
    found = cases(content(*RUNS))

    assert (found["scenarios.D8/one[memory]"].get("file"), found["scenarios.D8/one[memory]"].get("line")) == (
        str(FILE), "7",
    )  # fmt: skip
    assert found["scenarios.W1/two[socket]"].get("file") is None


def test_a_file_below_the_current_folder_is_named_as_a_ci_knows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    there = content(*RUNS, files={"one": tmp_path / "scenarios" / "one.toml"})

    assert "file=scenarios/one.toml,line=3," in as_github(there, lambda *_: 3)
    assert 'file="scenarios/one.toml" line="3"' in as_junit(there, lambda *_: 3)


def test_the_field_of_a_finding_is_its_place_in_the_file() -> None:
    assert field_of("expect[3].calls(terminal.rm)") == "expect[3].calls"
    assert field_of("drive[1].returns.settled") == "drive[1].returns.settled"


# ------------------------------------------------------------------- warnings

WARNED = [
    verdict("one", "pass", finding("D8", True)),
    verdict("two", "fail", finding("D8", False, expected=1, got=2), level="should"),
]


def test_every_report_says_that_a_clause_with_a_warning_holds() -> None:
    warned = content(*WARNED, complete=False)
    [d8, *_] = json.loads(as_json(warned))["clauses"]
    case = cases(warned)["clauses/D8"]

    assert (d8["verdict"], d8["failed"], len(d8["warnings"]), "failedLevel" in d8) == ("pass", [], 1, False)
    assert (kind(case), "warning: two (memory)" in (case.findtext("system-out") or "")) == ("pass", True)
    assert "1 of 2 must" in summary(warned)
    assert "::warning " in as_github(warned, lambda path, field: 1)
    assert "::error " not in as_github(warned, lambda path, field: 1)


def test_every_report_says_that_it_does_not_under_strict() -> None:
    strict = content(*WARNED, complete=False, strict=True)
    [d8, *_] = json.loads(as_json(strict))["clauses"]

    assert (d8["verdict"], len(d8["failed"]), d8["failedLevel"], "warnings" in d8) == ("fail", 1, "should", False)
    assert {kind(cases(strict)[name]) for name in ("clauses/D8", "scenarios.D8/two[memory]")} == {"failure"}
    assert summary(strict).startswith("fails: 0 of 2 must")
    assert "::error " in as_github(strict, lambda path, field: 1)
