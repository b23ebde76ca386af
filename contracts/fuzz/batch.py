"""A batch of random runs: what a worker is told, and what it reports. The same batch gives the same report.

A guided batch starts half of its runs from earlier ones that reached something new, changed a little. What counts as
new is measured against what the campaign knew when it made the batch, so a report does not depend on who else was fast.
"""

import time
from collections import Counter
from typing import Literal

import msgspec

from contracts.fuzz.broken import supervisor
from contracts.fuzz.decisions import search
from contracts.fuzz.dice import Dice, neighbour
from contracts.fuzz.invariants import Invariant
from contracts.fuzz.one import Result, Runner

Mode = Literal["guided", "blind"]
GUIDE = 3
"""The stream of a seed that decides whether and how a run follows an earlier one."""
DECISIONS_A_RUN = 20
"""Timelines that go through the decision alone, for each run of the whole supervisor."""
MAX_FAILURES = 20
"""Failures that one batch reports; more are only counted."""
MAX_FRESH = 40
"""Runs with something new that one batch reports."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of the seeds from `first` on. `parents` and `known`: earlier runs to start from, features reached so far.

    `plant` names the fault of the supervisor under test; "" is the correct one.
    """

    index: int
    first: int
    count: int
    mode: Mode = "guided"
    parents: list[list[int]] = []
    known: list[str] = []
    plant: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A run in which an invariant broke. `seed` is None when it followed an earlier run: then `choices` repeat it."""

    invariant: Invariant
    clause: str
    words: str
    step: int
    number: int
    seed: int | None = None
    choices: list[int] = []


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch came to. `drawn`: seeds that it was given. `features`: those that were new. `fresh`: the
    choices of runs that reached something new.
    """

    index: int
    drawn: int
    runs: int
    calls: int = 0
    decisions: int = 0
    virtual_ms: int = 0
    cpu_s: float = 0.0
    seen: dict[str, int] = {}
    features: list[str] = []
    fresh: list[list[int]] = []
    failures: list[Failure] = []
    failed: int = 0
    disagreements: list[str] = []


def carry_out(batch: Batch) -> Report:
    """Make every run of a batch."""
    begun = time.process_time()
    with supervisor(batch.plant) as make, Runner(make) as runner:
        return _Work(batch, runner).report(begun)


class _Work:
    def __init__(self, batch: Batch, runner: Runner) -> None:
        self._batch = batch
        self._runner = runner
        self._known = set(batch.known)
        self._new: set[str] = set()
        self._fresh: list[list[int]] = []
        self._seen: Counter[str] = Counter()
        self._failures: list[Failure] = []
        self._failed = 0

    def report(self, begun: float) -> Report:
        """Make the runs and add them up."""
        batch = self._batch
        calls = virtual_ms = 0
        disagreements: list[str] = []
        for seed in range(batch.first, batch.first + batch.count):
            followed, result = self._run(seed)
            calls += result.calls
            virtual_ms += result.virtual_ms
            self._take(result, seed, followed=followed)
            found = search(seed, DECISIONS_A_RUN) if not batch.plant else None
            if found is not None:
                disagreements.append(f"seed {seed}: {found.timeline}: {'; '.join(found.objections)}")
        return Report(
            index=batch.index,
            drawn=batch.count,
            runs=batch.count,
            calls=calls,
            decisions=0 if batch.plant else DECISIONS_A_RUN * batch.count,
            virtual_ms=virtual_ms,
            cpu_s=time.process_time() - begun,
            seen=dict(sorted(self._seen.items())),
            features=sorted(self._new),
            fresh=self._fresh[:MAX_FRESH],
            failures=self._failures,
            failed=self._failed,
            disagreements=disagreements[:MAX_FAILURES],
        )

    def _run(self, seed: int) -> tuple[bool, Result]:
        parents = self._batch.parents
        dice = Dice(seed, GUIDE)
        if self._batch.mode == "blind" or not parents or dice.below(2):
            return False, self._runner.run(seed)
        one, other = parents[dice.below(len(parents))], parents[dice.below(len(parents))]
        return True, self._runner.replay(neighbour(one, dice, other=other))

    def _take(self, result: Result, seed: int, *, followed: bool) -> None:
        self._seen.update(result.seen)
        new = result.features - self._known
        if new:
            self._known |= new
            self._new |= new
            self._fresh.append(list(result.choices))
        self._failed += bool(result.broken)
        for broken in result.broken[: MAX_FAILURES - len(self._failures)]:
            self._failures.append(
                Failure(
                    invariant=broken.invariant,
                    clause=broken.clause,
                    words=broken.words,
                    step=broken.step,
                    number=seed,
                    seed=None if followed else seed,
                    choices=list(result.choices) if followed else [],
                )
            )
