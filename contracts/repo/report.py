"""The report on a checkout as a table, as JSON and as GitHub annotations."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from contracts.repo.findings import ClauseResult, Finding, RepoReport

if TYPE_CHECKING:
    from rich.console import Console

MAX_ANNOTATIONS: Final = 50
"""GitHub shows no more of one step; the rest is counted in a last notice."""
_STYLES: Final = {"pass": "green", "fail": "bold red", "unproven": "yellow", "skipped": "dim"}
_KINDS: Final = {"fail": "error", "unproven": "error", "note": "notice"}


def summary(report: RepoReport) -> str:
    """One line: the outcome and how many clauses have which verdict."""
    words = [one.verdict for one in report.clauses]
    counted = ", ".join(
        f"{words.count(word)} {word}" for word in ("pass", "fail", "unproven", "skipped") if word in words
    )
    return f"{report.outcome}: {counted}; {report.judged} against {report.base} ({report.base_commit[:12]})"


def readable(report: RepoReport) -> RepoReport:
    """The same report with everything in it that is no text (odd bytes of file names) escaped."""
    clauses = [
        msgspec.structs.replace(one, looked_at=_text(one.looked_at), findings=[_readable(it) for it in one.findings])
        for one in report.clauses
    ]
    return msgspec.structs.replace(report, path=_text(report.path), clauses=clauses)


def _readable(finding: Finding) -> Finding:
    words = {"path": _text(finding.path), "say": _text(finding.say), "todo": _text(finding.todo)}
    return msgspec.structs.replace(finding, **words)


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def as_json(report: RepoReport) -> str:
    """The whole report; its first member is `"schema":1`."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode("utf-8", "replace") + "\n"


def as_github(report: RepoReport) -> str:
    """An annotation for each finding, on its file and line, and the summary as a notice."""
    found = [_annotation(clause, finding) for clause in report.clauses for finding in clause.findings]
    if len(found) > MAX_ANNOTATIONS:
        more = len(found) - MAX_ANNOTATIONS
        found = [*found[:MAX_ANNOTATIONS], f"::notice title=more::{more} more annotations are not shown"]
    found += [f"::notice title=note::{_data(note)}" for note in report.notes]
    return "\n".join([*found, f"::notice title=legion-contracts repo::{_data(summary(report))}"]) + "\n"


def paint(report: RepoReport, console: "Console") -> None:
    """The clauses as a table, then each finding with its place and what to do."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("clause", "verdict", "what holds or does not", "looked at"):
        table.add_column(heading, no_wrap=heading in ("clause", "verdict"))
    for one in report.clauses:
        table.add_row(one.id, Text(one.verdict, style=_STYLES[one.verdict]), Text(one.title), Text(one.looked_at))
    console.print(table)
    for line in _lines(report):
        console.print(Text(line))
    console.print(Text(summary(report), style=_STYLES["pass" if report.outcome == "holds" else "fail"]))


def _lines(report: RepoReport) -> Iterator[str]:
    for clause in report.clauses:
        for finding in clause.findings:
            yield ""
            yield f"{clause.id} {finding.weight}  {_place(finding)}"
            yield f"   {shown(finding.say)}"
            if finding.todo:
                yield f"   do: {shown(finding.todo)}"
    yield ""
    for note in report.notes:
        yield f"note: {shown(note)}"


def _place(finding: Finding) -> str:
    return f"{shown(finding.path)}:{finding.line}" + (" (in the base)" if finding.in_base else "")


def shown(text: str) -> str:
    """A text from a checkout for a terminal: nothing in it moves the cursor, and lone surrogates are escaped."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def _annotation(clause: ClauseResult, finding: Finding) -> str:
    place = f"file={_property(shown(finding.path))},line={finding.line},"
    title = _property(f"{clause.id} {finding.weight}")
    return f"::{_KINDS[finding.weight]} {place}title={title}::{_data(f'{shown(finding.say)}. {shown(finding.todo)}')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
