"""Draw one run as lanes down a page: the drive, each child's turn and status, the calls, the poll that settled.

Pure: values in, lines of text out. Time goes down; moments at which nothing but the same poll happened are one row.
"""

from collections.abc import Iterator
from typing import Final

from contracts.records import PiRecord, RunRecord, RunVerdict
from contracts.report.content import seconds, show
from contracts.report.moments import Moment, story
from contracts.scenario import Scenario
from hc_sim.lanes import Row, page

MAX_ROWS: Final = 400
"""Of a longer run only so many rows are drawn."""
MAX_LINES: Final = 40
"""Of the lines that a headless child got only so many are shown."""
SETTLED: Final = "<= settled"


def draw(scenario: Scenario, record: RunRecord, verdict: RunVerdict, width: int = 100) -> list[str]:
    """The whole picture as lines of at most `width` columns, commands and values at the end excepted."""
    told = story(scenario, record)
    titles = ["drive", *(f"{name}: {terminal}" for name, terminal in told.children), "calls"]
    rows = [_row(moment, told.calls) for moment in told.moments]
    more = len(rows) - MAX_ROWS
    return [
        f"{scenario.id} on {record.host}: {verdict.verdict}",
        scenario.why,
        f"clauses {', '.join(verdict.clauses)}; level {scenario.level}; poll every {scenario.poll_ms} ms",
        "",
        *page(titles, rows, width, first=MAX_ROWS, last=0),
        *([f"... and {more} more moments"] if more > 0 else []),
        "",
        *(line for one in record.pi for line in _program(one)),
        *_statements(verdict),
        *_end(record, verdict),
    ]


def _row(moment: Moment, calls: int) -> Row:
    lanes = [
        [f"{mark.text} {SETTLED}" if mark.settled and lane == calls else mark.text for mark in moment.lane(lane)]
        for lane in range(calls + 1)
    ]
    return Row(moment.t, lanes, moment.until, moment.times)


def _program(one: PiRecord) -> Iterator[str]:
    """What a headless child was started with, was told and did."""
    yield f"pi {' '.join(one.argv)}"
    for line in one.lines[:MAX_LINES]:
        yield f"  < {show(line, 160)}"
    if len(one.lines) > MAX_LINES:
        yield f"  ... and {len(one.lines) - MAX_LINES} more lines"
    told = f"told {', '.join(one.told)}" if one.told else "not told to end"
    ended = one.signal or ("not its own" if one.code is None else f"exit code {one.code}")
    yield f"  {told}; its end: {ended}"
    yield ""


def _statements(verdict: RunVerdict) -> Iterator[str]:
    yield "expected, and what came"
    for finding in verdict.findings:
        said = f"  ({finding.say})" if finding.say else ""
        word = "ok  " if finding.ok else "FAIL"
        yield f"  {word} {finding.clause} {finding.where}: {show(finding.expected, 160)}{said}"
        if not finding.ok:
            yield f"       came: {show(finding.got, 160)}"
    if not verdict.findings:
        yield "  nothing was checked"


def _end(record: RunRecord, verdict: RunVerdict) -> Iterator[str]:
    if verdict.errored:
        yield f"errored: {verdict.errored}"
    if verdict.cost_ms is not None:
        yield f"hazard: {seconds(verdict.cost_ms)} lost"
    virtual = f", {seconds(record.virtual_ms)} of virtual time" if record.virtual_ms else ""
    yield f"took {seconds(record.real_ms)}{virtual}"
