"""The report as JUnit XML: one suite of clauses, one of scenario runs and checks."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from contracts.judging.tally import ClauseRow, Failure
from contracts.records import RunVerdict
from contracts.report.content import Content, Known, evidence, failed, fresh, gating, reproduce, seconds, show
from contracts.report.known import stale_line
from contracts.report.places import LineOf, relative, run_place

_UNPRINTABLE: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(content: Content, line_of: LineOf) -> str:
    """The whole report as an XML document. A run names the file and line of its scenario (of what fails in it).

    What fails the gate is a failure, what broke is an error. A failed should clause that does not fail the gate, a
    skipped and an unproven one are `skipped` with the reason, so that a CI shows them and stays as green as the gate. A
    clause that holds with warnings passed, and its output has them. What a baseline knows of is `skipped` too; an
    entry of it whose statement holds again is a failure.
    """
    root = Element("testsuites", name="legion-contracts", time=f"{content.seconds:.3f}")
    clauses = SubElement(root, "testsuite", name="clauses")
    for row in content.rows:
        _clause(content, row, SubElement(clauses, "testcase", classname="clauses", name=row.id, time="0"))
    runs = SubElement(root, "testsuite", name="scenarios")
    for verdict in content.verdicts:
        name = f"{verdict.scenario}[{verdict.host}]"
        owner = verdict.clauses[0] if verdict.clauses else "none"
        case = SubElement(
            runs, "testcase", classname=f"scenarios.{owner}", name=_clean(name), time=f"{verdict.real_ms / 1_000:.3f}"
        )
        _locate(case, run_place(content, verdict, line_of))
        _run(content, verdict, case)
    if content.baseline is not None:
        _baseline(content.baseline, SubElement(root, "testsuite", name="baseline"))
    for suite in root:
        _count(suite)
    _count(root)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _locate(case: Element, at: tuple[Path, int] | None) -> None:
    if at is not None:
        case.set("file", _clean(relative(at[0])))
        case.set("line", str(at[1]))


def _baseline(known: Known, suite: Element) -> None:
    for line, entry in known.stale:
        name = f"{entry.scenario}[{entry.host}] {entry.clause}"
        case = SubElement(suite, "testcase", classname="baseline", name=_clean(name), time="0")
        _locate(case, (known.path, line))
        _say(case, "failure", "a known failure that fails no longer",
             [stale_line(known, line, entry.scenario, entry.host, entry.clause)])  # fmt: skip


def _clause(content: Content, row: ClauseRow, case: Element) -> None:
    warned = [f"warning: {line}" for line in _lines(row.warnings)]
    SubElement(case, "system-out").text = _clean("\n".join([f"{row.level}: {row.title}. {evidence(row)}", *warned]))
    lines = _lines(row.failed)
    if row.verdict == "fail":
        kind = "failure" if content.gates(row.failed_level) else "skipped"
        _say(case, kind, f"{row.id} does not hold ({row.failed_level})", lines)
    elif row.verdict == "known":
        _say(case, "skipped", f"{row.id} is known to fail", _lines(row.known))
    elif row.verdict == "errored":
        _say(case, "error", f"{row.id} could not be judged", row.errored)
    elif row.verdict == "unproven":
        fails = content.gates(row.level) and content.complete
        _say(case, "failure" if fails else "skipped", f"{row.id} is unproven: no scenario or check gave evidence", [])
    elif row.verdict == "skipped":
        _say(case, "skipped", f"{row.id} was skipped", row.skipped)


def _lines(failures: Sequence[Failure]) -> list[str]:
    return [f"{one.scenario} ({one.host}) {_differs(one.finding.where, one.finding)}" for one in failures]


def _run(content: Content, verdict: RunVerdict, case: Element) -> None:
    if verdict.verdict == "errored":
        _say(case, "error", verdict.errored or "errored", [f"again: {reproduce(content, verdict)}"])
    elif verdict.verdict == "fail":
        lines = [f"{finding.clause} {_differs(finding.where, finding)}" for finding in fresh(verdict)]
        kind = "failure" if gating(content, verdict) else "skipped"
        _say(case, kind, verdict.why, [*lines, f"again: {reproduce(content, verdict)}"])
    elif verdict.verdict == "known":
        lines = [f"{finding.clause} {_differs(finding.where, finding)}" for finding in failed(verdict)]
        _say(case, "skipped", f"known to fail: {verdict.why}", lines)
    elif verdict.verdict == "skipped":
        _say(case, "skipped", verdict.why or "skipped", [])
    elif verdict.verdict == "hazard":
        SubElement(case, "system-out").text = _clean(f"hazard: {verdict.why} Lost: {seconds(verdict.cost_ms)}.")


def _differs(where: str, finding: object) -> str:
    expected, got = getattr(finding, "expected", None), getattr(finding, "got", None)
    return f"{where}: expected {show(expected)}, got {show(got)}"


def _say(case: Element, kind: str, message: str, lines: list[str]) -> None:
    SubElement(case, kind, message=_clean(message)).text = _clean("\n".join(lines))


def _count(suite: Element) -> None:
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))


def _clean(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _UNPRINTABLE.sub("\ufffd", text)
