"""Where everything of one run stands on its drawing: time goes down, each lane is a column. Values in, numbers out."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from contracts.report.content import seconds
from contracts.report.html.svg import columns
from contracts.report.moments import DRIVE, Mark, Moment, Story

FIRST: Final = 80
LAST: Final = 40
"""Of more moments only the first and the last ones are drawn, and the rest is counted."""
MAX_LINES: Final = 9
"""Of more lines in one cell the rest is counted."""
MAX_CHILDREN: Final = 8
"""Of more children only the first ones have a lane."""

LINE: Final = 17
TOP: Final = 34
TIME_WIDTH: Final = 118
DRIVE_CHARS: Final = 31
CALL_CHARS: Final = 25
CHILD_CHARS: Final = 28
INDENT: Final = 20
TRACK: Final = 8
MAX_TRACKS: Final = 5
LONG_GAP_MS: Final = 1_000
"""A pause of this length is named."""

LineKind = Literal["mark", "more", "held", "differs"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line in a cell: of a mark, or of what was said of it. `goes_on`: not the first line of its mark. `calm`: what
    went wrong was meant to."""

    text: str
    kind: LineKind = "mark"
    mark: Mark | None = None
    goes_on: bool = False
    calm: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One lane: its number, title, left edge, width, and where its text begins (pixels)."""

    lane: int
    title: str
    x: int
    width: int
    text_x: int
    chars: int


@dataclass(frozen=True, slots=True)
class Row:
    """One moment on the drawing; `left_out` moments stand in its place when there are any. `pause` says how long
    nothing happened before it."""

    moment: Moment
    y: int
    height: int
    cells: Mapping[int, Sequence[Line]]
    times: Sequence[str]
    pause: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Sheet:
    """The whole drawing. `spots` maps the id of a mark to the height (y) at which it stands."""

    width: int
    height: int
    columns: Sequence[Column]
    rows: Sequence[Row]
    tracks: Mapping[int, int]
    spots: Mapping[int, int]
    left_out: int
    hidden_children: int


@dataclass(frozen=True, slots=True)
class Notes:
    """What the judge said: of each step of the drive (by index), and from when to when (ms) a hazard lost time."""

    steps: Mapping[int, Sequence[Line]] = field(default_factory=dict)
    lost: tuple[int, int] | None = None


def sheet(told: Story, notes: Notes) -> Sheet:
    """Place everything that one run has to tell."""
    tracks = _tracks(told.moments)
    placed = list(_columns(told, tracks))
    chars = {column.lane: column.chars for column in placed}
    spots: dict[int, int] = {}
    rows: list[Row] = []
    y, before = TOP, None
    for moment, left_out in _shown(told.moments):
        since = moment.t - before if before is not None else 0
        y += _gap(since)
        cells = {} if left_out else {lane: list(_cell(moment, lane, chars[lane], notes)) for lane in chars}
        times = [] if left_out else _times(moment, notes)
        height = LINE * max([1, len(times), *map(len, cells.values())])
        pause = f"+ {seconds(since)}" if since >= LONG_GAP_MS and not left_out else ""
        rows.append(Row(moment, y, height, cells, times, pause, left_out))
        _note_spots(spots, cells, y)
        y, before = y + height, moment.until or moment.t
    _note_left_out(spots, told.moments, rows)
    width = placed[-1].x + placed[-1].width
    more = len(told.children) - MAX_CHILDREN
    return Sheet(width, y + 14, placed, rows, tracks, spots, sum(row.left_out for row in rows), max(0, more))


def _shown(moments: Sequence[Moment]) -> Iterator[tuple[Moment, int]]:
    """The moments to draw; with a count, the first of those that are left out."""
    more = len(moments) - FIRST - LAST
    if more <= 1:
        yield from ((moment, 0) for moment in moments)
        return
    yield from ((moment, 0) for moment in moments[:FIRST])
    yield moments[FIRST], more
    yield from ((moment, 0) for moment in moments[-LAST:])


def _gap(since: int) -> int:
    """Pixels between two moments: more for a longer pause, never very many."""
    return 2 if since <= 0 else min(24, 3 + 3 * (since.bit_length() // 2))


def _times(moment: Moment, notes: Notes) -> list[str]:
    times = [f"{moment.t} to" if moment.times > 1 else f"{moment.t}"]
    if moment.times > 1:
        times.append(f"{moment.until}")
    if notes.lost is not None and moment.t == notes.lost[1]:
        times.append(f"{seconds(notes.lost[1] - notes.lost[0])} lost")
    return times


# ----------------------------------------------------------------- the columns


def _columns(told: Story, tracks: Mapping[int, int]) -> Iterator[Column]:
    x = TIME_WIDTH
    indent = INDENT + TRACK * max(tracks.values(), default=0)
    lanes = [(DRIVE, "drive", DRIVE_CHARS, indent), (told.calls, "calls to the core", CALL_CHARS, INDENT)]
    for number, (name, terminal) in enumerate(told.children[:MAX_CHILDREN], 1):
        lanes.append((number, f"{name}: {terminal}", CHILD_CHARS, INDENT + 20))
    for lane, title, chars, before in lanes:
        width = before + columns(chars) + 8
        yield Column(lane, title, x, width, x + before, chars)
        x += width


def _tracks(moments: Sequence[Moment]) -> dict[int, int]:
    """A track for each step of the drive that took time: steps side by side do not share one."""
    busy: dict[int, int] = {}
    tracks: dict[int, int] = {}
    for mark in (mark for moment in moments for mark in moment.lane(DRIVE)):
        step = mark.step if mark.step is not None else -1
        if mark.ends:
            tracks.setdefault(step, 0)
            busy = {track: owner for track, owner in busy.items() if owner != step}
            continue
        free = next(track for track in range(len(busy) + 1) if track not in busy)
        tracks[step] = min(free, MAX_TRACKS - 1)
        busy[free] = step
    return tracks


# ------------------------------------------------------------------- the cells


def _cell(moment: Moment, lane: int, chars: int, notes: Notes) -> Iterator[Line]:
    lines = [line for mark in moment.lane(lane) for line in _lines(mark, chars, moment.times, notes)]
    if len(lines) > MAX_LINES:
        more = sum(line.mark is not None and not line.goes_on for line in lines[MAX_LINES - 1 :])
        lines = [*lines[: MAX_LINES - 1], Line(f"… {more} more" if more else "…", "more")]
    yield from lines


def _lines(mark: Mark, chars: int, times: int, notes: Notes) -> Iterator[Line]:
    words = mark.text.removeprefix("! ").removeprefix("<- ") + (f" → {mark.reply}" if mark.reply else "")
    words += f" ×{times}" if times > 1 else ""  # noqa: RUF001 - a sign of multiplication is what is meant
    if mark.settled and mark.lane != DRIVE:
        words += ": settled"
    said = notes.steps.get(mark.step, ()) if mark.ends and mark.step is not None else ()
    calm = any(note.kind == "held" for note in said)
    for number, text in enumerate(wrapped(words, chars)):
        yield Line(text, mark=mark, goes_on=number > 0, calm=calm)
    for note in said:
        yield from (Line(text, note.kind) for text in wrapped(note.text, chars))


def wrapped(words: str, chars: int) -> list[str]:
    """A text cut into at most four lines of so many characters."""
    return textwrap.wrap(words, chars, max_lines=4, placeholder=" …", break_on_hyphens=False) or [""]


def _note_spots(spots: dict[int, int], cells: Mapping[int, Sequence[Line]], y: int) -> None:
    for lines in cells.values():
        for number, line in enumerate(lines):
            if line.mark is not None and not line.goes_on:
                spots[id(line.mark)] = y + LINE * number + LINE // 2


def _note_left_out(spots: dict[int, int], moments: Sequence[Moment], rows: Sequence[Row]) -> None:
    """What is not drawn still changes what its child shows: it stands where the moments are counted, or its cell."""
    by_time = {row.moment.t: row for row in rows}
    gap = next((row for row in rows if row.left_out), None)
    for moment in moments:
        row = by_time.get(moment.t) or gap
        if row is None:
            continue
        for mark in moment.marks:
            spots.setdefault(id(mark), row.y + row.height - LINE // 2)
