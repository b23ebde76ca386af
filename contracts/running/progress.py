"""A progress bar on standard error while the gate works, and nothing at all where nobody is looking."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contracts.records import RunVerdict


@contextmanager
def progress(total: int, *, shown: bool) -> Iterator[Callable[[RunVerdict], None]]:
    """Gives a function that is told of each verdict as it comes in. The bar is gone when the block ends."""
    if not shown or total == 0:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    bad = 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=total)

        def tell(verdict: RunVerdict) -> None:
            nonlocal bad
            bad += verdict.verdict in ("fail", "errored")
            note = f"{bad} bad  " if bad else ""
            bar.update(task, advance=1, description=f"{note}{verdict.scenario}")

        yield tell
