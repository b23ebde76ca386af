"""The report as GitHub workflow commands: one annotation for each statement that does not hold, on its own line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from contracts.judging.tally import effective_level
from contracts.records import Finding, RunVerdict
from contracts.report.content import Content, fresh, plural, reproduce, seconds, show, summary
from contracts.report.known import stale_line
from contracts.report.places import LineOf, place, relative

Kind = Literal["error", "warning", "notice"]

MAX_OF_KIND: Final = 10
"""GitHub shows no more errors of one step, and no more warnings, and no more notices; the rest is counted in the last
one of its kind."""
MAX_TITLE: Final = 255
"""Longer titles are refused."""
MAX_MESSAGE: Final = 4_000
"""Longer messages are cut: an annotation is a pointer, the whole story is in the other formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One annotation, at a file and line when there is one."""

    kind: Kind
    title: str
    message: str
    at: tuple[Path, int] | None = None


def as_github(content: Content, line_of: LineOf) -> str:
    """Annotations, one a line and the gravest first, and the summary as a notice."""
    found = [note for verdict in content.verdicts for note in _of_run(content, verdict, line_of)]
    found += [*_of_clauses(content), *_of_baseline(content), *_of_skipped(content)]
    last = Note(kind="notice", title="legion-contracts", message=summary(content))
    kinds: tuple[Kind, ...] = ("error", "warning", "notice")
    shown = [note for kind in kinds for note in _limited(kind, [one for one in found if one.kind == kind])]
    return "".join(f"{_command(note)}\n" for note in (*shown, last))


def _limited(kind: Kind, notes: Sequence[Note]) -> Sequence[Note]:
    room = MAX_OF_KIND - (kind == "notice")  # the summary is a notice too
    if len(notes) <= room:
        return notes
    more = f"{plural(len(notes) - room + 1, 'more annotation')} of this kind; --format table or --html has them all"
    return [*notes[: room - 1], Note(kind=kind, title="and more", message=more)]


def _of_run(content: Content, verdict: RunVerdict, line_of: LineOf) -> Iterator[Note]:
    again = f"again: {reproduce(content, verdict)}"
    run = f"{verdict.scenario} ({verdict.host})"
    at = place(content, verdict, "", line_of)
    if verdict.verdict == "errored":
        yield Note(kind="error", title=f"errored: {run}", message=f"{verdict.errored}\n{again}", at=at)
    elif verdict.verdict == "hazard":
        lost = f"{verdict.why} Lost: {seconds(verdict.cost_ms)}."
        yield Note(kind="notice", title=f"hazard: {run}", message=lost, at=at)
    elif verdict.verdict == "fail":
        levels = {row.id: row.level for row in content.rows}
        for one in fresh(verdict):
            level = effective_level(verdict.level, levels.get(one.clause, verdict.level))
            yield Note(
                kind="error" if content.gates(level) else "warning",
                title=f"{one.clause} in {run}",
                message=f"{_differs(one)}\n{verdict.why}\n{again}",
                at=place(content, verdict, one.where, line_of),
            )


def _of_skipped(content: Content) -> Iterator[Note]:
    """One for each reason, and all that was skipped for it."""
    reasons: dict[str, list[str]] = {}
    for verdict in content.verdicts:
        if verdict.verdict == "skipped":
            reasons.setdefault(verdict.why, []).append(verdict.scenario)
    for why, names in reasons.items():
        yield Note(kind="notice", title=f"skipped: {why}", message=", ".join(names))


def _of_clauses(content: Content) -> Iterator[Note]:
    for row in content.rows:
        if row.verdict == "unproven":
            kind: Kind = "error" if content.gates(row.level) and content.complete else "warning"
            yield Note(kind=kind, title=f"{row.id} is unproven", message="no scenario or check gave evidence")


def _of_baseline(content: Content) -> Iterator[Note]:
    known = content.baseline
    if known is None:
        return
    for line, entry in known.stale:
        message = stale_line(known, line, entry.scenario, entry.host, entry.clause)
        yield Note(kind="error", title=f"known no longer: {entry.clause}", message=message, at=(known.path, line))
    if known.failures:
        message = f"{plural(known.failures, 'statement')} known to fail"
        yield Note(kind="notice", title="baseline", message=message, at=(known.path, 1))


def _differs(finding: Finding) -> str:
    said = f"{finding.say}: " if finding.say else ""
    return f"{said}{finding.where}: expected {show(finding.expected)}, got {show(finding.got)}"


def _command(note: Note) -> str:
    where = f"file={_property(relative(note.at[0]))},line={note.at[1]}," if note.at else ""
    title, message = note.title[:MAX_TITLE], note.message
    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE - 1]}…"
    return f"::{note.kind} {where}title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Text after the second `::`: a line end would end the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of `file=` or `title=`: a colon or a comma would end it."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
