"""The report of a live run as a person and a program see it."""

import io
import json

from rich.console import Console

from contracts.live.difference import Difference
from contracts.live.report import as_json, print_report, report_of, skipped_report
from contracts.live.run import LiveRun
from contracts.live.sheet import Sheet
from contracts.live.writing import diff_text
from contracts.records import Finding, RunVerdict, Verdict
from contracts.scenario import Level


def verdict(name: str, *findings: Finding, level: Level = "must") -> RunVerdict:
    word: Verdict = "pass" if all(finding.ok for finding in findings) else "fail"
    clauses = [finding.clause for finding in findings]
    return RunVerdict(
        scenario=f"live/{name}", host="check", verdict=word, level=level, clauses=clauses, findings=list(findings)
    )


def finding(clause: str, *, ok: bool, got: object = None) -> Finding:
    return Finding(clause=clause, ok=ok, where=f"{clause}.where", expected="this", got=got, say="in words")


def shown(run: LiveRun) -> str:
    out = io.StringIO()
    print_report(report_of(run, "hc 1"), Console(file=out, width=120))
    return out.getvalue()


def test_a_must_that_fails_and_a_should_that_fails_are_told_apart() -> None:
    good, bad = finding("C3", ok=True), finding("C4", ok=False, got="that")
    run = LiveRun(Sheet(), verdicts=[verdict("a", good, bad), verdict("b", finding("C9", ok=False), level="should")])
    text = shown(run)

    assert report_of(run, "hc 1").outcome == "fails"
    assert "FAIL C4 C4.where: in words: expected this, got that" in text
    assert "warn C9 C9.where" in text
    assert "C5" not in text


def test_differences_alone_do_not_fail_a_run() -> None:
    run = LiveRun(Sheet(), verdicts=[verdict("a", finding("C3", ok=True))])
    run.found = [Difference(name="profile.pid", core=1, fake=2, text="pid: core 1, fake 2")]

    assert report_of(run, "hc 1").outcome == "holds"
    assert "profile.pid  pid: core 1, fake 2" in shown(run)


def test_what_is_left_behind_and_where_it_stopped_are_said() -> None:
    run = LiveRun(Sheet(), verdicts=[verdict("a", finding("C3", ok=False))], left=["terminal t9: stuck"], stopped="a")
    text = shown(run)

    assert "left behind: terminal t9: stuck" in text
    assert "stopped after a (--keep-going goes on)" in text


def test_an_errored_probe_is_no_failure_and_not_passed_over() -> None:
    broken = RunVerdict(scenario="live/x", host="check", verdict="errored", clauses=["C6"], errored="no answer")
    run = LiveRun(Sheet(), verdicts=[broken])

    assert report_of(run, "hc 1").outcome == "errored"
    assert "errored live/x: no answer" in shown(run)


def test_the_json_says_the_same_without_secrets() -> None:
    bad = finding("C6", ok=False, got="API_KEY=sk-abcdefghijklmnop1234")
    report = json.loads(as_json(report_of(LiveRun(Sheet(), verdicts=[verdict("a", bad)]), "hc 1")))

    assert report["schema"] == 1
    assert report["checks"][0]["findings"][0]["got"] == "API_KEY=(hidden)"
    assert [row["id"] for row in report["clauses"]] == ["C6"]


def test_a_machine_without_a_core_has_a_report_too() -> None:
    assert json.loads(as_json(skipped_report("no hc", require=False))) == {
        "schema": 1,
        "outcome": "skipped",
        "core": "none",
        "skipped": "no hc",
    }
    assert skipped_report("no hc", require=True).outcome == "fails"


def test_the_file_of_differences_has_a_line_each() -> None:
    found = [Difference(name="a", core=1, fake=2, text="one"), Difference(name="bcd", core=1, fake=2, text="two")]

    assert diff_text(found, "hc 1") == "a    one\nbcd  two\n"
    assert "do not differ" in diff_text([], "hc 1")
