"""A page of lanes: time goes down, each lane is a column, and moments that only repeat are folded into one row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MIN_LANE = 12
"""No lane gets narrower than this many columns to make room for others."""


@dataclass(slots=True)
class Row:
    """One moment (ms): what happened in each lane. `times` counts the moments that were folded into it."""

    t: int
    lanes: list[list[str]]
    until: int = 0
    times: int = 1


def folded(rows: Sequence[Row]) -> list[Row]:
    """Neighbouring rows that differ only in their time, and have nothing but calls (the last lane), become one row."""
    kept: list[Row] = []
    for row in rows:
        before = kept[-1] if kept else None
        if before is not None and not any(row.lanes[:-1]) and row.lanes == before.lanes:
            before.until, before.times = row.t, before.times + 1
        else:
            kept.append(row)
    return kept


def page(titles: Sequence[str], rows: Sequence[Row], width: int, *, first: int, last: int) -> Iterator[str]:
    """The lines of a page, `width` columns wide if that can be; of more rows only the `first` and the `last` ones."""
    left_out = len(rows) - first - last
    shown = rows if left_out <= 0 else [*rows[:first], *rows[len(rows) - last :]]
    times = [f"{row.t}-{row.until}" if row.times > 1 else str(row.t) for row in shown]
    margin = max([len("ms"), *map(len, times)])
    cells = [[_cell(row, lane) for lane in range(len(titles))] for row in shown]
    widths = _widths(titles, cells, width - margin)
    yield from _wrapped("ms".rjust(margin), titles, widths)
    yield "-" * margin + "".join("-+-" + "-" * lane for lane in widths)
    for number, (time, row) in enumerate(zip(times, cells, strict=True)):
        if left_out > 0 and number == first:
            yield f"... {left_out} more moments ..."
        yield from _wrapped(time.rjust(margin), row, widths)


def _cell(row: Row, lane: int) -> str:
    text = ", ".join(row.lanes[lane])
    return f"{text} x{row.times}" if row.times > 1 and text else text


def _widths(titles: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """As wide as the contents, narrowed evenly from the widest until everything fits."""
    widths = [max([len(titles[lane]), *(len(row[lane]) for row in cells)]) for lane in range(len(titles))]
    room = width - 3 * len(widths)
    while sum(widths) > room and max(widths) > MIN_LANE:
        widths[widths.index(max(widths))] -= 1
    return widths


def _wrapped(time: str, cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    parts = [list(_pieces(cell, width)) for cell, width in zip(cells, widths, strict=True)]
    for index in range(max([1, *map(len, parts)])):
        texts = [part[index] if index < len(part) else "" for part in parts]
        columns = "".join(f" | {text:<{width}}" for text, width in zip(texts, widths, strict=True))
        yield ((time if index == 0 else " " * len(time)) + columns).rstrip()


def _pieces(text: str, width: int) -> Iterator[str]:
    """A cell cut into lines, at spaces where there are any."""
    while len(text) > width:
        cut = text.rfind(" ", 1, width + 1)
        cut = cut if cut > 0 else width
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text
