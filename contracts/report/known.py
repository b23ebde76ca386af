"""A finished run of the gate, judged once more with a baseline."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from contracts.judging.baseline import Baseline, apply
from contracts.judging.tally import outcome, totals
from contracts.report.content import Content, Known


def with_baseline(content: Content, baseline: Baseline, path: Path, lines: Sequence[int], *, require: bool) -> Content:
    """The same run, in which what the baseline names is known. `lines` has the line of each entry in its file."""
    done = apply(baseline, content.rows, content.verdicts)
    said = outcome(done.rows, done.verdicts, strict=content.strict, require=require, whole=content.complete)
    stale = [(lines[number], baseline.known[number]) for number in done.stale]
    return dataclasses.replace(
        content,
        rows=done.rows,
        verdicts=done.verdicts,
        totals=totals(done.rows, done.verdicts),
        outcome="fails" if stale else said,
        baseline=Known(path=path, failures=done.known, stale=stale, unseen=done.unseen),
    )


def stale_line(known: Known, line: int, scenario: str, host: str, clause: str) -> str:
    """What is said of an entry that has to go."""
    return f"{known.path}:{line}: {clause} holds in {scenario} ({host}) now; take this entry out of the baseline"
