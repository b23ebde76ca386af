"""A campaign as it goes on, on standard error: runs a second, coverage, failures; nothing where nobody is looking."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contracts.fuzz.batch import Report
from contracts.fuzz.campaign import Until
from contracts.fuzz.outcome import coverage, never_seen
from contracts.fuzz.saved import State
from contracts.fuzz.sometimes import SOMETIMES

Tell = Callable[[State, Report], None]


@contextmanager
def watching(until: Until, *, shown: bool, begun_runs: int = 0) -> Iterator[Tell]:
    """Gives a function that is told of each report. The line is gone when the block ends."""
    if not shown:
        yield lambda _state, _report: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(bar_width=16), TimeElapsedColumn(), TextColumn("{task.description}"))
    begun = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=until.examples or until.seconds)

        def tell(state: State, _: Report) -> None:
            elapsed = time.monotonic() - begun
            rate = (state.runs - begun_runs) / elapsed if elapsed else 0.0
            bar.update(task, completed=state.drawn if until.examples else elapsed, description=said(state, rate))

        yield tell


def said(state: State, rate: float) -> str:
    """One line about a campaign under way."""
    covered = coverage(state)
    clauses, faults = covered["clauses"], covered["faults"]
    return (
        f"{state.runs:,} runs, {rate:,.0f}/s | clauses {clauses[0]}/{clauses[1]} | faults {faults[0]}/{faults[1]} | "
        f"pairs {covered['pairs']:,} | sometimes {len(SOMETIMES) - len(never_seen(state))}/{len(SOMETIMES)} | "
        f"failures {state.failed}"
    )
