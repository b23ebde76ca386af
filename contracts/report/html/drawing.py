"""Draw one run as SVG: what the drive did, what was called, what each child showed, and when it was seen to settle.

Pure: values in, text out. Everything that is not the run's own is in the page: shapes (`#g-…`), patterns and colours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.report.content import plural, seconds
from contracts.report.html.layout import LINE, TIME_WIDTH, TOP, TRACK, Column, Line, Notes, Row, Sheet, sheet
from contracts.report.html.svg import columns, glyph, line, tag, text
from contracts.report.moments import DRIVE, Mark, Story

RAIL: Final = 10
"""The width of the bar that shows the status of a child."""
_GLYPHS: Final[Mapping[str, str]] = {
    "call": "call", "error": "cross", "fault": "bolt", "core": "box", "start": "dot", "text": "in", "key": "key",
    "file": "box", "step": "ring", "gone": "cross",
}  # fmt: skip
_STATUSES: Final = ("idle", "working", "blocked", "done", "error", "none", "finished")


@dataclass(frozen=True, slots=True)
class Drawing:
    """`svg` is markup. `left_out`: moments, `hidden`: children that it has no room for."""

    svg: str
    left_out: int
    hidden: int


def draw(told: Story, notes: Notes, label: str) -> Drawing:
    """The drawing of one run; `label` is what it is called for those who do not see it."""
    placed = sheet(told, notes)
    parts = [
        *_frame(placed),
        *_bands(placed),
        *_lost(placed, notes),
        *(part for column in placed.columns[2:] for part in _rail(told, placed, column)),
        *_spans(told, placed),
        *(_row(placed, row) for row in placed.rows),
    ]
    svg = tag(
        "svg", "".join(parts), class_="lanes", role="group", aria_label=label,
        viewBox=f"0 0 {placed.width} {placed.height}", width=placed.width, height=placed.height,
    )  # fmt: skip
    return Drawing(svg, placed.left_out, placed.hidden_children)


def in_words(told: Story, ms: int) -> str:
    """What a drawing shows, in one line: `1 child, 12 moments in 2.9 s`."""
    children = f"{len(told.children)} {'child' if len(told.children) == 1 else 'children'}"
    return f"{children}, {plural(len(told.moments), 'moment')} in {seconds(ms)}"


# ------------------------------------------------------------------ the ground


def _frame(placed: Sheet) -> Iterator[str]:
    bottom = placed.height - 4
    yield text("time, ms", TIME_WIDTH - 12, TOP - 16, "h t")
    for column in placed.columns:
        yield line(column.x, 6, column.x, bottom, "v")
        yield text(_cut(column.title, column.chars + 2), column.x + 10, TOP - 16, "h")
    yield line(0, TOP - 8, placed.width, TOP - 8, "v")


def _cut(words: str, chars: int) -> str:
    return words if len(words) <= chars else f"{words[: chars - 1]}…"


def _bands(placed: Sheet) -> Iterator[str]:
    """A band across all lanes at each moment at which a wait settled."""
    for row in placed.rows:
        if any(mark.settled for mark in row.moment.marks):
            css = "settled wrong" if _is_wrong(row) else "settled"
            yield tag("rect", x=0, y=row.y - 1, width=placed.width, height=row.height + 2, class_=css)


def _is_wrong(row: Row) -> bool:
    return any(one.kind == "differs" for one in row.cells.get(DRIVE, ()))


def _lost(placed: Sheet, notes: Notes) -> Iterator[str]:
    if notes.lost is None:
        return
    began, ended = (next((row for row in placed.rows if row.moment.t >= t), None) for t in notes.lost)
    if began is not None and ended is not None:
        x = TIME_WIDTH - 5
        top, bottom = began.y + LINE // 2, ended.y + LINE // 2
        yield tag("path", d=f"M{x - 4} {top}H{x}V{bottom}H{x - 4}", class_="lost")


# ----------------------------------------------------------------- the children


def _rail(told: Story, placed: Sheet, column: Column) -> Iterator[str]:
    """The bar of one child: a piece for each status, from where it began to where the next one did."""
    x, shown, since = column.x + 10, "", 0
    for mark in (mark for moment in told.moments for mark in moment.lane(column.lane)):
        word = _status(mark, shown)
        if word != shown:
            yield from _piece(x, since, placed.spots[id(mark)], shown)
            shown, since = word, placed.spots[id(mark)]
    yield from _piece(x, since, placed.height - 10, shown)


def _status(mark: Mark, before: str) -> str:
    if mark.kind == "gone":
        return ""
    if mark.kind == "start":
        return before or "none"
    if mark.kind != "state":
        return before
    word = "finished" if mark.state == "finished" else mark.status or "none"
    return word if word in _STATUSES else "none"


def _piece(x: int, top: int, bottom: int, status: str) -> Iterator[str]:
    if status and bottom > top:
        yield tag("rect", x=x, y=top, width=RAIL, height=bottom - top, rx=2, class_=f"s-{status}")


# -------------------------------------------------------------------- the drive


def _spans(told: Story, placed: Sheet) -> Iterator[str]:
    """A line from where each step of the drive began to where it came back; to the end when it never did."""
    x = placed.columns[0].x + 10
    open_: dict[int, int] = {}
    for mark in (mark for moment in told.moments for mark in moment.lane(DRIVE)):
        step, y = mark.step if mark.step is not None else -1, placed.spots[id(mark)]
        if not mark.ends:
            open_[step] = y
        elif step in open_:
            at = x + TRACK * placed.tracks.get(step, 0)
            yield line(at, open_.pop(step), at, y, "span")
    for step, y in open_.items():
        at = x + TRACK * placed.tracks.get(step, 0)
        yield line(at, y, at, placed.height - 10, "span open")


# --------------------------------------------------------------------- the rows


def _row(placed: Sheet, row: Row) -> str:
    if row.left_out:
        words = f"… {plural(row.left_out, 'more moment')} left out …"
        return tag("g", text(words, TIME_WIDTH + 12, row.y + 13, "more"))
    parts = [*_times(row)]
    for column in placed.columns:
        parts += _cell(placed, column, row.cells.get(column.lane, ()), row.y)
    return tag("g", "".join(parts), **({"class_": "wrong"} if _is_wrong(row) else {}))


def _times(row: Row) -> Iterator[str]:
    if row.pause:
        yield text(row.pause, TIME_WIDTH - 12, row.y - 6, "pause t")
    for number, words in enumerate(row.times):
        css = "t lostword" if words.endswith("lost") else "t"
        yield text(words, TIME_WIDTH - 12, row.y + LINE * number + 13, css)


def _cell(placed: Sheet, column: Column, lines: Sequence[Line], y: int) -> Iterator[str]:
    for number, one in enumerate(lines):
        top = y + LINE * number
        if one.mark is not None and not one.goes_on:
            yield from _mark(placed, column, one, top + LINE // 2)
        css = _css(one)
        yield text(one.text, column.text_x, top + 13, css)


def _css(one: Line) -> str:
    if one.kind != "mark":
        return one.kind
    if one.mark is None:
        return ""
    if one.mark.settled:
        return "k-settled"
    if one.mark.bad:
        return "k-refused" if one.calm else "k-bad"
    return f"k-{one.mark.kind}"


def _mark(placed: Sheet, column: Column, one: Line, y: int) -> Iterator[str]:
    mark = one.mark
    if mark is None:
        return
    x = column.text_x - 11
    if column.lane == DRIVE:
        x = column.x + 10 + TRACK * placed.tracks.get(mark.step if mark.step is not None else -1, 0)
        yield glyph("cross" if mark.bad else "diamond" if mark.settled else "dot", x, y, _css(one))
    elif mark.kind == "state":
        yield line(column.x + 10, y, column.text_x - 4, y, "tick")
    else:
        yield glyph("diamond" if mark.settled else _GLYPHS.get(mark.kind, "dot"), x, y, _css(one))
        if mark.to:
            yield from _arrow(placed, column.text_x + columns(len(one.text)) + 4, y, mark.to)


def _arrow(placed: Sheet, x: int, y: int, to: int) -> Iterator[str]:
    """From a call to the bar of the child that it acts on."""
    target = next((column for column in placed.columns[2:] if column.lane == to), None)
    if target is not None:
        end = target.x + 7
        yield tag("path", d=f"M{x} {y}H{end}M{end - 4} {y - 3}L{end} {y}L{end - 4} {y + 3}", class_="arrow")
