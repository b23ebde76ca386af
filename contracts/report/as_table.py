"""The report for a person: one row a clause, then failures field by field, hazards, and a summary line."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contracts.records import Finding, RunVerdict
from contracts.report.content import (
    Content,
    evidence,
    fresh,
    reproduce,
    run_word,
    seconds,
    show,
    summary,
    verdict_word,
)
from contracts.report.known import stale_line

WIDE: Final = 100
"""From this many columns on, the table says what each clause is about."""
MAX_FAILED_RUNS: Final = 20
MAX_FINDINGS: Final = 12
MAX_NAMES: Final = 5
"""Of more failed runs, of more findings in one run, and of more names in one line, only so many are shown."""

_STYLES: Final = {
    "pass": "green",
    "FAIL": "bold red",
    "fails": "bold red",
    "warn": "yellow",
    "known": "yellow",
    "hazard": "magenta",
    "avoided": "green",
    "unproven": "yellow",
    "skipped": "dim",
    "errored": "bold red",
    "holds": "bold green",
}


def as_table(content: Content, console: Console) -> None:
    """Print the report on a console, as wide as it is."""
    console.print(_clauses(content, console.width >= WIDE))
    blocks = (_failures(content), _errors(content), _baseline(content), _hazards(content), _missing(content))
    for block in (block for found in blocks for block in found):
        console.print()
        for part in block:
            console.print(part, soft_wrap=isinstance(part, _Whole))
    console.print()
    console.print(_Whole(summary(content), style=_STYLES[content.outcome]), soft_wrap=True)


class _Whole(Text):
    """A line that is never cut or wrapped by us, so that it can be copied."""


_Block = Sequence[RenderableType]


def _clauses(content: Content, wide: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("clause", no_wrap=True)
    if wide:
        table.add_column("about", overflow="ellipsis", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("evidence", overflow="fold")
    for row in content.rows:
        word = verdict_word(content, row)
        cells: list[RenderableType] = [row.id, row.level, Text(word, style=_STYLES[word]), evidence(row)]
        if wide:
            cells.insert(1, Text(row.title, style="dim"))
        table.add_row(*cells)
    return table


def _failures(content: Content) -> Iterator[_Block]:
    runs = [verdict for verdict in content.verdicts if verdict.verdict == "fail"]
    for verdict in runs[:MAX_FAILED_RUNS]:
        yield list(_failure(content, verdict))
    if len(runs) > MAX_FAILED_RUNS:
        yield [Text(f"{len(runs) - MAX_FAILED_RUNS} more failed runs are not shown; --format json has them all")]


def _failure(content: Content, verdict: RunVerdict) -> Iterator[RenderableType]:
    shown = fresh(verdict)
    clauses = ", ".join(dict.fromkeys(finding.clause for finding in shown))
    word = run_word(content, verdict)
    yield Text.assemble((word, _STYLES[word]), f" {clauses} in ", (verdict.scenario, "bold"), f" ({verdict.host})")
    yield _indented(verdict.why, 2, "dim")
    for finding in shown[:MAX_FINDINGS]:
        yield _indented(f"{finding.clause} {finding.where}{_said(finding)}", 2)
        yield _pairs([("expected", show(finding.expected)), ("got", show(finding.got))])
    if len(shown) > MAX_FINDINGS:
        yield _indented(f"and {len(shown) - MAX_FINDINGS} more fields", 2)
    yield _command(reproduce(content, verdict))


def _said(finding: Finding) -> str:
    return f": {finding.say}" if finding.say else ""


def _errors(content: Content) -> Iterator[_Block]:
    runs = [verdict for verdict in content.verdicts if verdict.verdict == "errored"]
    for verdict in runs[:MAX_FAILED_RUNS]:
        yield [
            Text.assemble(("errored", _STYLES["errored"]), " ", (verdict.scenario, "bold"), f" ({verdict.host})"),
            _indented(verdict.errored or "no reason is known", 2),
            _command(reproduce(content, verdict)),
        ]
    if len(runs) > MAX_FAILED_RUNS:
        yield [Text(f"{len(runs) - MAX_FAILED_RUNS} more errored runs are not shown; --format json has them all")]


def _baseline(content: Content) -> Iterator[_Block]:
    known = content.baseline
    if known is None:
        return
    if known.stale:
        lines = [stale_line(known, line, one.scenario, one.host, one.clause) for line, one in known.stale]
        shown = [Text(f"  {line}", overflow="fold") for line in lines[:MAX_FAILED_RUNS]]
        more = len(lines) - MAX_FAILED_RUNS
        yield [
            Text.assemble(("FAIL", _STYLES["FAIL"]), " the baseline names what holds now"),
            *shown,
            *([Text(f"  and {more} more")] if more > 0 else []),
        ]
    names: dict[str, dict[str, None]] = {}  # clause to the runs that are known to fail it, each once
    for row in content.rows:
        for failure in row.known:
            names.setdefault(row.id, {})[f"{failure.scenario} ({failure.host})"] = None
    if names:
        title = Text.assemble(("known", _STYLES["known"]), f" failures, as {known.path} says")
        yield [title, *(_indented(f"{clause} in {_some(list(runs))}", 2) for clause, runs in names.items())]


def _hazards(content: Content) -> Iterator[_Block]:
    runs: dict[tuple[str, ...], RunVerdict] = {}  # the longest of those that show the same
    for verdict in content.verdicts:
        same = tuple(verdict.clauses)
        if verdict.verdict == "hazard" and (verdict.cost_ms or 0) >= (runs[same].cost_ms or 0 if same in runs else 0):
            runs[same] = verdict
    if not runs:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column("scenario", no_wrap=True)
    table.add_column("cost", no_wrap=True, justify="right")
    table.add_column("why", overflow="fold")
    for verdict in runs.values():
        table.add_row(f"  {verdict.scenario} ({verdict.host})", f"{seconds(verdict.cost_ms)} lost", verdict.why)
    yield [Text("hazards: the text was followed to the letter, and this is what it cost", style="magenta"), table]


def _missing(content: Content) -> Iterator[_Block]:
    unproven = [row.id for row in content.rows if row.verdict == "unproven"]
    if unproven:
        ids = ", ".join(unproven)
        yield [Text.assemble(("unproven", _STYLES["unproven"]), f": {ids} (no scenario or check gave evidence)")]
    skipped: dict[str, dict[str, None]] = {}  # reason to the runs and checks that have it, each once
    for row in content.rows:
        for name, _, reason in (entry.partition(": ") for entry in row.skipped):
            skipped.setdefault(reason, {})[name] = None
    if skipped:
        yield [Text("skipped"), *(_indented(f"{_some(list(names))}: {why}", 2) for why, names in skipped.items())]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"{', '.join(names[:MAX_NAMES])}{more}"


def _pairs(pairs: Iterable[tuple[str, str]]) -> Padding:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column("name", no_wrap=True)
    table.add_column("value", overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name, style="dim"), Text(value))
    return Padding(table, (0, 0, 0, 4))


def _indented(text: str, by: int, style: str = "") -> Padding:
    return Padding(Text(text, style=style, overflow="fold"), (0, 0, 0, by))


def _command(line: str) -> _Whole:
    return _Whole(f"  again: {line}")
