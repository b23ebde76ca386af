"""What the page shows, as plain values: an entry for each scenario and check, a run in it for each host. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contracts.judging.tally import ClauseRow
from contracts.records import Finding, RunRecord, RunVerdict
from contracts.report.content import Content, evidence, reproduce, run_word, seconds, show, verdict_word
from contracts.report.html.drawing import draw, in_words
from contracts.report.html.layout import Line, LineKind, Notes
from contracts.report.html.words import WORDS, Word, gravest
from contracts.report.moments import story
from contracts.report.places import LineOf, relative, run_place

MAX_DIFFERS: Final = 60
MAX_HELD: Final = 40
"""Of more statements that do not hold, of more that do, in one run, the rest is counted."""
MAX_LONG: Final = 2_000
MAX_SHORT: Final = 160
"""Values are cut at so many characters: those that differ, those that do not."""
MAX_NOTE: Final = 48
_STEP: Final = re.compile(r"drive\[(\d+)\]\.?(.*)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: what was expected, and what came (of a statement that holds, only the first)."""

    clause: str
    where: str
    expected: str
    got: str
    say: str
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a scenario, or one check. `drawing` is markup, "" when there is nothing to draw."""

    host: str
    word: Word
    took: str
    drawing: str
    in_words: str
    left_out: int
    hidden: int
    differs: Sequence[Statement]
    held: Sequence[Statement]
    more_differ: int
    more_held: int
    errored: str
    lost: str
    again: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A scenario or a check. `anchor` is its place in the page, `place` its file and line."""

    anchor: str
    name: str
    layer: str
    level: str
    clauses: Sequence[str]
    why: str
    word: Word
    place: str
    runs: Sequence[Run]


@dataclass(frozen=True, slots=True)
class Clause:
    """A row of the table. `links`: name and anchor of what fails in it."""

    id: str
    title: str
    level: str
    word: Word
    evidence: str
    links: Sequence[tuple[str, str]]
    runs: int


def entries(content: Content, line_of: LineOf) -> list[Entry]:
    """One entry for each scenario and check, the gravest first, otherwise in the order of the run."""
    grouped: dict[tuple[str, bool], list[RunVerdict]] = {}
    for verdict in content.verdicts:
        grouped.setdefault((verdict.scenario, verdict.host == "check"), []).append(verdict)
    order = list(WORDS)
    found = [_entry(content, name, verdicts, line_of) for (name, _), verdicts in grouped.items()]
    return sorted(found, key=lambda entry: min(order.index(entry.word.word), order.index("avoided")))


def clauses(content: Content, shown: Sequence[Entry]) -> list[Clause]:
    """The rows of the table, with links to the entries that fail them."""
    anchors = {(entry.name, entry.layer == "check"): entry.anchor for entry in shown}
    return [_clause(content, row, anchors, shown) for row in content.rows]


def _clause(content: Content, row: ClauseRow, anchors: dict[tuple[str, bool], str], shown: Sequence[Entry]) -> Clause:
    failing = dict.fromkeys((one.scenario, one.host == "check") for one in (*row.failed, *row.warnings, *row.known))
    links = [(name, anchors[name, is_check]) for name, is_check in failing if (name, is_check) in anchors]
    runs = sum(row.id in entry.clauses for entry in shown)
    return Clause(row.id, row.title, row.level, WORDS[verdict_word(content, row)], evidence(row), links, runs)


def _entry(content: Content, name: str, verdicts: Sequence[RunVerdict], line_of: LineOf) -> Entry:
    first = verdicts[0]
    is_check = first.host == "check"
    path = None if is_check else content.files.get(name)
    words = {verdict.host: run_word(content, verdict) for verdict in verdicts}
    worst = gravest(list(words.values()))
    at = run_place(content, next(one for one in verdicts if words[one.host] == worst), line_of)
    spoken = [finding.clause for verdict in verdicts for finding in verdict.findings]
    return Entry(
        anchor=f"{'check' if is_check else 'scenario'}-{name}",
        name=name,
        layer="check" if is_check else path.parent.name if path else "scenario",
        level=first.level,
        clauses=list(dict.fromkeys([*first.clauses, *spoken])),
        why=first.why,
        word=WORDS[worst],
        place=f"{relative(at[0])}:{at[1]}" if at else "",
        runs=[_run(content, verdict) for verdict in verdicts],
    )


def _run(content: Content, verdict: RunVerdict) -> Run:
    drawing, words, left_out, hidden = _drawn(content, verdict)
    differs = [finding for finding in verdict.findings if not finding.ok]
    held = [finding for finding in verdict.findings if finding.ok]
    return Run(
        host=verdict.host,
        word=WORDS[run_word(content, verdict)],
        took=seconds(verdict.real_ms),
        drawing=drawing,
        in_words=words,
        left_out=left_out,
        hidden=hidden,
        differs=[_statement(finding, MAX_LONG) for finding in differs[:MAX_DIFFERS]],
        held=[_statement(finding, MAX_SHORT) for finding in held[:MAX_HELD]],
        more_differ=max(0, len(differs) - MAX_DIFFERS),
        more_held=max(0, len(held) - MAX_HELD),
        errored=verdict.errored or "",
        lost="" if verdict.cost_ms is None else seconds(verdict.cost_ms),
        again=reproduce(content, verdict),
    )


def _statement(finding: Finding, limit: int) -> Statement:
    expected, got = show(finding.expected, limit), "" if finding.ok else show(finding.got, limit)
    return Statement(finding.clause, finding.where, expected, got, finding.say, finding.known)


def _drawn(content: Content, verdict: RunVerdict) -> tuple[str, str, int, int]:
    record = content.records.get((verdict.scenario, verdict.host))
    scenario = content.scenarios.get(verdict.scenario)
    if record is None or scenario is None:
        return "", "", 0, 0
    told = story(scenario, record)
    if not told.moments:
        return "", "nothing happened in this run", 0, 0
    words = in_words(told, record.virtual_ms or told.moments[-1].t)
    label = f"{verdict.scenario} on {verdict.host}, time going down: {words}"
    drawn = draw(told, _notes(verdict, record), label)
    return drawn.svg, words, drawn.left_out, drawn.hidden


# --------------------------------------------------------------------- the notes


def _notes(verdict: RunVerdict, record: RunRecord) -> Notes:
    return Notes({index: list(lines) for index, lines in _said(verdict).items()}, _lost(verdict, record))


def _lost(verdict: RunVerdict, record: RunRecord) -> tuple[int, int] | None:
    """From when to when a hazard lost time: until the last wait came back."""
    ends = [step.at_ms for step in record.steps if step.do == "wait" and step.at_ms is not None]
    return (max(ends) - verdict.cost_ms, max(ends)) if ends and verdict.cost_ms is not None else None


def _said(verdict: RunVerdict) -> dict[int, list[Line]]:
    """Of each step of the drive that something was said of: what differs, or that all is as expected."""
    said: dict[int, list[Line]] = {}
    held: set[int] = set()
    for finding in verdict.findings:
        found = _STEP.fullmatch(finding.where)
        if found is None:
            continue
        index = int(found[1])
        if finding.ok:
            held.add(index)
        else:
            said.setdefault(index, []).append(_differing(found[2], finding))
    kind: LineKind = "held"
    return said | {index: [Line("✓ as expected", kind)] for index in held if index not in said}


def _differing(where: str, finding: Finding) -> Line:
    name = where.removeprefix("returns").removeprefix("raises").removeprefix(".") or "came"
    return Line(f"✗ {name} = {show(finding.got, MAX_NOTE)}, not {show(finding.expected, MAX_NOTE)}", "differs")
