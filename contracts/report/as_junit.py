"""The report as JUnit XML: one suite of clauses, one of scenario runs and checks."""

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from contracts.judging.tally import ClauseRow, Failure, effective_level
from contracts.records import RunVerdict
from contracts.report.content import Content, evidence, failed, reproduce, seconds, show

_UNPRINTABLE: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(content: Content) -> str:
    """The whole report as an XML document.

    What fails the gate is a failure, what broke is an error. A failed should clause that does not fail the gate, a
    skipped and an unproven one are `skipped` with the reason, so that a CI shows them and stays as green as the gate. A
    clause that holds with warnings passed, and its output has them.
    """
    root = Element("testsuites", name="legion-contracts", time=f"{content.seconds:.3f}")
    clauses = SubElement(root, "testsuite", name="clauses")
    for row in content.rows:
        _clause(content, row, SubElement(clauses, "testcase", classname="clauses", name=row.id, time="0"))
    runs = SubElement(root, "testsuite", name="scenarios")
    levels = {row.id: row.level for row in content.rows}
    for verdict in content.verdicts:
        name = f"{verdict.scenario}[{verdict.host}]"
        owner = verdict.clauses[0] if verdict.clauses else "none"
        case = SubElement(
            runs, "testcase", classname=f"scenarios.{owner}", name=_clean(name), time=f"{verdict.real_ms / 1_000:.3f}"
        )
        gates = any(
            content.gates(effective_level(verdict.level, levels.get(finding.clause, verdict.level)))
            for finding in failed(verdict)
        )
        _run(content, verdict, case, gates)
    for suite in (clauses, runs):
        _count(suite)
    _count(root)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _clause(content: Content, row: ClauseRow, case: Element) -> None:
    warned = [f"warning: {line}" for line in _lines(row.warnings)]
    SubElement(case, "system-out").text = _clean("\n".join([f"{row.level}: {row.title}. {evidence(row)}", *warned]))
    lines = _lines(row.failed)
    if row.verdict == "fail":
        kind = "failure" if content.gates(row.failed_level) else "skipped"
        _say(case, kind, f"{row.id} does not hold ({row.failed_level})", lines)
    elif row.verdict == "errored":
        _say(case, "error", f"{row.id} could not be judged", row.errored)
    elif row.verdict == "unproven":
        fails = content.gates(row.level) and content.complete
        _say(case, "failure" if fails else "skipped", f"{row.id} is unproven: no scenario or check gave evidence", [])
    elif row.verdict == "skipped":
        _say(case, "skipped", f"{row.id} was skipped", row.skipped)


def _lines(failures: Sequence[Failure]) -> list[str]:
    return [f"{one.scenario} ({one.host}) {_differs(one.finding.where, one.finding)}" for one in failures]


def _run(content: Content, verdict: RunVerdict, case: Element, gates: bool) -> None:
    if verdict.verdict == "errored":
        _say(case, "error", verdict.errored or "errored", [f"again: {reproduce(content, verdict)}"])
    elif verdict.verdict == "fail":
        lines = [f"{finding.clause} {_differs(finding.where, finding)}" for finding in failed(verdict)]
        _say(case, "failure" if gates else "skipped", verdict.why, [*lines, f"again: {reproduce(content, verdict)}"])
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
