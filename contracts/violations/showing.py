"""The matrix as lines that a person reads: what each violation breaks, what caught it, and what else turned red."""

from collections.abc import Iterator, Sequence
from typing import Final

from contracts.violations.entries import TARGETS
from contracts.violations.judgement import Control, Judged, Matrix

WIDTH: Final = 100
GAP: Final = "  "
LONGEST_ID: Final = 32
LONGEST_BREAKS: Final = 30
LONGEST_ALSO: Final = 24
MAX_PROBLEMS: Final = 40


def as_lines(matrix: Matrix) -> Iterator[str]:
    """A table for each target, the controls, what is wrong, and a summary; no line is longer than `WIDTH`."""
    for target in TARGETS:
        rows = [one for one in matrix.planted if one.target == target]
        if rows:
            yield from _table(target, rows)
            yield ""
    for control in matrix.controls:
        yield from _control(control)
    if matrix.controls:
        yield ""
    for problem in matrix.problems[:MAX_PROBLEMS]:
        yield _cut(f"problem: {problem}", 4 * WIDTH)
    yield summary(matrix)


def _table(target: str, rows: Sequence[Judged]) -> Iterator[str]:
    head = (f"{target} ({len(rows)})", "breaks", "caught by", "also red")
    cells = [head, *(_cells(one) for one in rows)]
    widths = [
        min(LONGEST_ID, max(len(row[0]) for row in cells)),
        min(LONGEST_BREAKS, max(len(row[1]) for row in cells)),
    ]
    also = min(LONGEST_ALSO, max(len(row[3]) for row in cells))
    widths += [WIDTH - sum(widths) - also - 3 * len(GAP), also]
    for row in cells:
        yield GAP.join(_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(one: Judged) -> tuple[str, str, str, str]:
    also = ", ".join(f"{name}!" if name in one.unexplained else name for name in one.also)
    return one.id, ", ".join(one.breaks), _caught_by(one), also


def _caught_by(one: Judged) -> str:
    if not one.caught:
        return f"MISSED ({one.error})" if one.error else "MISSED"
    if one.target == "core":
        return "live"
    count = len(one.caught_by)
    return one.caught_by[0] if count == 1 else f"{count}: {one.caught_by[0]}, ..."


def _control(control: Control) -> Iterator[str]:
    complaints = [*control.failed, *control.errored]
    yield f"control, {control.name}: {control.runs} runs, {'nothing red' if not complaints else 'FALSE ALARM'}"
    for complaint in complaints[:MAX_PROBLEMS]:
        yield _cut(f"  {complaint}", 4 * WIDTH)


def summary(matrix: Matrix) -> str:
    """`80 planted (60 supervisor, 20 suite), 0 missed, 0 false alarms; 2 controls; 61 s`."""
    by = ", ".join(
        f"{count} {target}" for target in TARGETS if (count := sum(one.target == target for one in matrix.planted))
    )
    alarms = f"{matrix.false_alarms} false alarm{'' if matrix.false_alarms == 1 else 's'}"
    count = len(matrix.controls)
    controls = f"{count} control{'' if count == 1 else 's'}"
    problems = f", {len(matrix.problems)} problems" if matrix.problems else ""
    return (
        f"{len(matrix.planted)} planted ({by}), {matrix.missed} missed, {alarms}{problems}; "
        f"{controls}; {matrix.seconds:.0f} s"
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
