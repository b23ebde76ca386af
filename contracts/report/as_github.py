"""The report as GitHub workflow commands: one annotation for each statement that does not hold, on its own line."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from contracts.judging.tally import effective_level
from contracts.records import Finding, RunVerdict
from contracts.report.content import Content, failed, reproduce, seconds, show, summary

MAX_ANNOTATIONS: Final = 50
"""GitHub shows no more of one step; the rest is counted in a last notice."""

LineOf = Callable[[Path, str], int]
"""The line of a field in a scenario file."""


def as_github(content: Content, line_of: LineOf) -> str:
    """Annotations, one a line, and the summary as a notice."""
    found = [note for verdict in content.verdicts for note in _annotations(content, verdict, line_of)]
    found += [
        _command("error" if content.gates(row.level) and content.complete else "warning",
                 f"{row.id} is unproven", "no scenario or check gave evidence")
        for row in content.rows
        if row.verdict == "unproven"
    ]  # fmt: skip
    if len(found) > MAX_ANNOTATIONS:
        more = len(found) - MAX_ANNOTATIONS
        found = [*found[:MAX_ANNOTATIONS], _command("notice", "more", f"{more} more annotations are not shown")]
    return "\n".join([*found, _command("notice", "legion-contracts", summary(content))]) + "\n"


def _annotations(content: Content, verdict: RunVerdict, line_of: LineOf) -> list[str]:
    path = content.files.get(verdict.scenario)
    again = f"again: {reproduce(content, verdict)}"
    run = f"{verdict.scenario} ({verdict.host})"
    if verdict.verdict == "errored":
        return [_command("error", f"errored: {run}", f"{verdict.errored}\n{again}", path, 1)]
    if verdict.verdict == "hazard":
        lost = f"{verdict.why} Lost: {seconds(verdict.cost_ms)}."
        return [_command("notice", f"hazard: {run}", lost, path, 1)]
    if verdict.verdict != "fail":
        return []
    levels = {row.id: row.level for row in content.rows}
    return [
        _command(
            "error"
            if content.gates(effective_level(verdict.level, levels.get(one.clause, verdict.level)))
            else "warning",
            f"{one.clause} in {run}",
            f"{_differs(one)}\n{verdict.why}\n{again}",
            path,
            line_of(path, field_of(one.where)) if path else 0,
        )
        for one in failed(verdict)
    ]


def field_of(where: str) -> str:
    """The field of a scenario file that a finding is about: its place without what stands in parentheses."""
    return where.split("(", 1)[0]


def _differs(finding: Finding) -> str:
    said = f"{finding.say}: " if finding.say else ""
    return f"{said}{finding.where}: expected {show(finding.expected)}, got {show(finding.got)}"


def _command(kind: str, title: str, message: str, path: Path | None = None, line: int = 0) -> str:
    place = f"file={_property(_relative(path))},line={max(1, line)}," if path else ""
    return f"::{kind} {place}title={_property(title)}::{_data(message)}"


def _relative(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
