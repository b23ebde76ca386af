"""A campaign: batch after batch of random runs until the time or the examples are over, always where it was put down.

Reports are taken in the order of their batches, whoever was faster, and a batch is made from what was known some
batches before (`Setting.window`). So the number of workers, the engine and a stop in between change nothing of what
is found.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from contracts.fuzz.batch import Batch, Report
from contracts.fuzz.dice import Dice
from contracts.fuzz.engines import Engine
from contracts.fuzz.saved import State, fold

MAX_LOOK_BACK = 1_000
"""Of earlier runs only so many of the newest are started from."""
PARENTS = 24
"""Earlier runs that a guided batch starts from."""
STREAM = 4
"""The stream of a seed by which a campaign picks the parents of its batches."""
REPORT_S = 0.5
"""How long an engine is waited for before the campaign looks at the clock again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """When a campaign ends: after so many runs, after so many seconds, or when it has found a failure."""

    examples: int | None = None
    seconds: float | None = None
    first_failure: bool = False


def pursue(
    state: State,
    engine: Engine,
    until: Until,
    *,
    on_report: Callable[[State, Report], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Go on with a campaign until it is over; `state` grows as it goes on, and may be saved at any moment."""
    begun, spent = clock(), state.seconds
    course = _Course(state, engine, until)
    while True:
        over = until.seconds is not None and clock() - begun >= until.seconds
        course.submit(over=over)
        if course.finished():
            break
        report = engine.next(REPORT_S)
        state.seconds = spent + clock() - begun
        for taken in course.take(report):
            if on_report is not None:
                on_report(state, taken)


class _Course:
    """Which batches are out, and which reports wait for an earlier one."""

    def __init__(self, state: State, engine: Engine, until: Until) -> None:
        self._state = state
        self._engine = engine
        self._until = until
        self._made = state.next
        self._drawn = state.drawn
        self._window = min(state.setting.window, 2 * engine.workers)
        self._early: dict[int, Report] = {}

    def submit(self, *, over: bool) -> None:
        """Hand out what may be handed out."""
        while not over and not self._enough() and self._made - self._state.next < self._window:
            batch = self._batch(self._made)
            if batch.count == 0:
                break
            self._engine.submit(batch)
            self._made += 1
            self._drawn += batch.count

    def finished(self) -> bool:
        """Whether nothing is under way any more."""
        return self._made == self._state.next

    def take(self, report: Report | None) -> list[Report]:
        """Reports whose turn has come, in order."""
        if report is not None:
            self._early[report.index] = report
        taken = []
        while (one := self._early.pop(self._state.next, None)) is not None:
            fold(self._state, one)
            taken.append(one)
        return taken

    def _enough(self) -> bool:
        return self._until.first_failure and bool(self._state.failures or self._state.disagreements)

    def _batch(self, index: int) -> Batch:
        setting = self._state.setting
        left = setting.batch_runs if self._until.examples is None else self._until.examples - self._drawn
        parents, known = self._lagging(index)
        return Batch(
            index=index,
            first=setting.seed + self._drawn,
            count=max(0, min(setting.batch_runs, left)),
            mode=setting.mode,
            parents=parents,
            known=known,
            plant=setting.plant,
        )

    def _lagging(self, index: int) -> tuple[list[list[int]], list[str]]:
        """Parents and features as they were some batches ago, whatever has come in since."""
        state = self._state
        until = index - state.setting.window
        known = sorted(feature for feature, since in state.features.items() if since <= until)
        if state.setting.mode == "blind":
            return [], known
        corpus = [choices for since, choices in state.corpus if since <= until][-MAX_LOOK_BACK:]
        dice = Dice(state.setting.seed + index, STREAM)
        count = min(PARENTS, len(corpus))
        return [corpus[len(corpus) - 1 - dice.below(len(corpus))] for _ in range(count)], known
