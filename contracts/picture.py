"""Draw one run as lanes down a page: the drive, each child's turn and status, the calls, the poll that settled.

Pure: values in, lines of text out. Time goes down; moments at which nothing but the same poll happened are one row.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from contracts.judging.traces import Who, find_child, is_about
from contracts.records import RunRecord, RunVerdict, StepRecord
from contracts.report.content import seconds, show
from contracts.scenario import Scenario
from hc_sim.trace import Event

_RowAt = Callable[[int], "_Row"]

MAX_ROWS: Final = 400
"""Of a longer run only so many rows are drawn."""
SETTLED: Final = "<= settled"
_SHORT: Final = 40
_MIN_LANE: Final = 12


@dataclass(slots=True)
class _Row:
    """One moment: what happened in each lane. `polls` counts the moments that were folded into it."""

    t: int
    lanes: list[list[str]]
    until: int = 0
    polls: int = 1
    marked: bool = field(default=False)


def draw(scenario: Scenario, record: RunRecord, verdict: RunVerdict, width: int = 100) -> list[str]:
    """The whole picture as lines of at most `width` columns, commands and values at the end excepted."""
    children = _children(scenario, record)
    titles = ["drive", *(f"{name}: {_terminal(record, name)}" for name, _ in children), "calls"]
    rows = _folded(_rows(record, children))
    return [
        f"{scenario.id} on {record.host}: {verdict.verdict}",
        scenario.why,
        f"clauses {', '.join(verdict.clauses)}; level {scenario.level}; poll every {scenario.poll_ms} ms",
        "",
        *_table(titles, rows, width),
        "",
        *_statements(verdict),
        *_end(record, verdict),
    ]


# ------------------------------------------------------------------- the rows


def _children(scenario: Scenario, record: RunRecord) -> list[tuple[str, Who]]:
    names = [*record.children, *(one.name for one in scenario.world.terminal if one.name)]
    found = [(name, find_child(scenario, record, name)) for name in dict.fromkeys(names)]
    return [(name, who) for name, who in found if who is not None]


def _terminal(record: RunRecord, child: str) -> str:
    return record.children.get(child) or "terminal"


def _rows(record: RunRecord, children: Sequence[tuple[str, Who]]) -> list[_Row]:
    rows: dict[int, _Row] = {}

    def row(t: int) -> _Row:
        return rows.setdefault(t, _Row(t, [[] for _ in range(len(children) + 2)]))

    settling = _settling(record, children)
    for event in record.trace:
        lane, text = _event(event, children)
        if text:
            here = row(event.t)
            if id(event) in settling:
                text, here.marked = f"{text} {SETTLED}", True
            here.lanes[lane].append(text)
    for step in record.steps:
        if step.started_ms or step.at_ms is not None:
            _step(step, row)
    return [rows[t] for t in sorted(rows)]


def _step(step: StepRecord, row: _RowAt) -> None:
    name = f"{step.do} {step.child or step.name}".strip()
    ended = _ended(step)
    if step.at_ms == step.started_ms:
        row(step.started_ms).lanes[0].append(f"{name}{ended}")
        return
    row(step.started_ms).lanes[0].append(f"{name} ...")
    if step.at_ms is not None:
        row(step.at_ms).lanes[0].append(f"{name}{ended}")


def _ended(step: StepRecord) -> str:
    if step.raised is not None:
        return f" ! {step.raised.get('code', 'error')}"
    told = step.returned or {}
    if step.do == "wait":
        return " = settled" if told.get("settled") else f" = {told.get('reason') or 'not settled'}"
    word = next((told[key] for key in ("mode", "verdict", "status", "available") if key in told), None)
    return f" = {show(word, _SHORT)}" if word is not None else ""


def _event(event: Event, children: Sequence[tuple[str, Who]]) -> tuple[int, str]:
    """The lane of an event and its words; no words for what a picture leaves out."""
    last = len(children) + 1
    if event.kind == "call":
        return last, event.method.removeprefix("terminal.")
    if event.kind == "reply":
        return last, f"! {_error(event)}" if event.error else ""
    if event.kind in ("restart", "clock"):
        return last, f"{event.kind}: {event.note}"
    if event.kind == "fault":
        return last, f"fault {event.note}".strip()
    text = _happened(event)
    for lane, (_, who) in enumerate(children, 1):
        if text and is_about(event, who):
            return lane, text
    return last, ""


def _happened(event: Event) -> str:
    match event.kind:
        case "run":
            return "starts"
        case "gone":
            return "removed"
        case "text":
            return f"<- {show(event.text, _SHORT)}"
        case "key":
            return f"<- key {event.text}"
        case "file":
            return f"file {event.note}".strip()
        case "step":
            return f"({event.note})" if event.note else ""
        case "state":
            return _state(event)
        case _:
            return ""


def _state(event: Event) -> str:
    if event.state == "finished":
        end = event.signal or f"exit {event.exit_code}"
        return f"finished ({end})"
    turn = "" if event.turn is None else f"turn {event.turn} "
    return f"{turn}{event.status or 'none'}"


def _error(event: Event) -> str:
    error = event.error if isinstance(event.error, dict) else {}
    data = error.get("data")
    return str(data.get("kind") if isinstance(data, dict) else error.get("message", "error"))


def _settling(record: RunRecord, children: Sequence[tuple[str, Who]]) -> set[int]:
    """The last look at its child before each wait that settled came back (the first one of its millisecond)."""
    named = dict(children)
    marked: set[int] = set()
    for step in record.steps:
        if step.do != "wait" or step.at_ms is None or not (step.returned or {}).get("settled"):
            continue
        who = named.get(step.child)
        looks = [
            event
            for event in record.trace
            if event.kind == "call" and event.method == "terminal.get" and step.started_ms <= event.t <= step.at_ms
            and (who is None or is_about(event, who))
        ]  # fmt: skip
        last = [event for event in looks if event.t == looks[-1].t and id(event) not in marked]
        marked |= {id(event) for event in last[:1]}
    return marked


def _folded(rows: list[_Row]) -> list[_Row]:
    """Rows in which only the same calls happened again become one row."""
    folded: list[_Row] = []
    for row in rows:
        before = folded[-1] if folded else None
        if before and not row.marked and not before.marked and _only_calls(row) and row.lanes == before.lanes:
            before.until, before.polls = row.t, before.polls + 1
        else:
            folded.append(row)
    return folded


def _only_calls(row: _Row) -> bool:
    return not any(row.lanes[:-1])


# ------------------------------------------------------------------ the layout


def _table(titles: list[str], rows: list[_Row], width: int) -> Iterator[str]:
    shown = rows[:MAX_ROWS]
    times = [_time(row) for row in shown]
    first = max([len("ms"), *map(len, times)])
    cells = [[_cell(row, lane) for lane in range(len(titles))] for row in shown]
    widths = _widths(titles, cells, width - first)
    yield from _wrapped("ms".rjust(first), titles, widths)
    yield "-" * first + "".join("-+-" + "-" * lane for lane in widths)
    for time, row in zip(times, cells, strict=True):
        yield from _wrapped(time.rjust(first), row, widths)
    if len(rows) > MAX_ROWS:
        yield f"... and {len(rows) - MAX_ROWS} more moments"


def _time(row: _Row) -> str:
    return f"{row.t}-{row.until}" if row.polls > 1 else str(row.t)


def _cell(row: _Row, lane: int) -> str:
    text = ", ".join(row.lanes[lane])
    if lane == len(row.lanes) - 1 and row.polls > 1:
        return f"{text} x{row.polls}"
    return text


def _widths(titles: list[str], cells: list[list[str]], width: int) -> list[int]:
    """As wide as the contents, narrowed evenly from the widest until everything fits."""
    widths = [max([len(titles[lane]), *(len(row[lane]) for row in cells)]) for lane in range(len(titles))]
    room = width - 3 * len(widths)
    while sum(widths) > room and max(widths) > _MIN_LANE:
        widths[widths.index(max(widths))] -= 1
    return widths


def _wrapped(time: str, cells: list[str], widths: list[int]) -> Iterator[str]:
    parts = [list(_pieces(cell, width)) for cell, width in zip(cells, widths, strict=True)]
    for index in range(max([1, *map(len, parts)])):
        yield _line(
            time if index == 0 else " " * len(time),
            [part[index] if index < len(part) else "" for part in parts],
            widths,
        )


def _pieces(text: str, width: int) -> Iterator[str]:
    """A cell cut into lines, at spaces where there are any."""
    while len(text) > width:
        cut = text.rfind(" ", 1, width + 1)
        cut = cut if cut > 0 else width
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _line(time: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    return (time + "".join(f" | {cell[:width]:<{width}}" for cell, width in zip(cells, widths, strict=True))).rstrip()


# -------------------------------------------------------------- what was stated


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
