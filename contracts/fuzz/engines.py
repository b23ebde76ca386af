"""Who carries the batches of a campaign out: this process, a pool of processes here, or (`dask_engine`) a cluster.

An engine takes batches and gives reports, in any order. A worker that dies costs nothing but time: its batch is carried
out again by another one. A batch that costs several workers their lives is given back as what it is.
"""

import concurrent.futures
import gc
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor
from typing import Protocol

from contracts.fuzz.batch import Batch, Failure, Report, carry_out

MAX_WORKERS = 64
MAX_DEATHS = 3
"""Workers that one batch may cost before it counts as a failure itself."""
GC_OBJECTS = 100_000
"""New objects after which a worker looks for garbage: a run leaves little, and looking is dear."""
PRELOADED = ("contracts.fuzz.batch",)

Work = Callable[[Batch], Report]


class EngineError(Exception):
    """This engine cannot be had: in words, why not."""


class Engine(Protocol):
    """Carries batches out. `workers`: how many at a time. `deaths`: workers that were lost so far."""

    workers: int
    deaths: int

    def submit(self, batch: Batch) -> None:
        """Take a batch on."""

    def next(self, timeout_s: float) -> Report | None:
        """The next report there is, None if none comes in time."""

    def close(self) -> None:
        """Leave nothing running."""


class HereEngine:
    """One batch after the other, in this process."""

    def __init__(self, work: Work = carry_out) -> None:
        self.workers = 1
        self.deaths = 0
        self._work = work
        self._waiting: deque[Batch] = deque()

    def submit(self, batch: Batch) -> None:
        """Take a batch on."""
        self._waiting.append(batch)

    def next(self, timeout_s: float) -> Report | None:
        """Carry the oldest batch out."""
        return self._work(self._waiting.popleft()) if self._waiting else None

    def close(self) -> None:
        """Nothing runs."""


class PoolEngine:
    """A pool of processes on this machine, renewed when one of them dies.

    Whatever was under way then is suspected, and tried alone: so only the batch that really kills is ever given up.
    """

    def __init__(self, workers: int, work: Work = carry_out) -> None:
        self.workers = workers
        self.deaths = 0
        self._work = work
        self._lives: Counter[int] = Counter()
        self._folder = tempfile.mkdtemp(prefix="fuzz-")
        self._pool = self._fresh()
        self._running: dict[Future[Report], Batch] = {}
        self._suspects: deque[Batch] = deque()
        self._held: deque[Batch] = deque()
        self._given_up: deque[Report] = deque()

    def submit(self, batch: Batch) -> None:
        """Take a batch on."""
        self._held.append(batch)
        self._go_on()

    def next(self, timeout_s: float) -> Report | None:
        """The next report there is, None if none comes in time."""
        if self._given_up:
            return self._given_up.popleft()
        done, _ = concurrent.futures.wait(self._running, timeout=timeout_s, return_when=FIRST_COMPLETED)
        for future in done:
            try:
                report = future.result()
            except BrokenExecutor:
                self._renew()
                return None
            except Exception as error:  # the harness broke over this batch, and over no other
                report = lost(self._running[future], f"{type(error).__name__}: {error}")
            del self._running[future]
            self._go_on()
            return report
        return None

    def close(self) -> None:
        """End the workers, whatever they are doing, and remove what they have left."""
        _end(self._pool)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _go_on(self) -> None:
        """Start what may be started: one suspect alone, or all that was held back."""
        if self._suspects:
            if not self._running:
                self._start(self._suspects.popleft())
            return
        if any(self._lives[batch.index] for batch in self._running.values()):
            return
        while self._held:
            self._start(self._held.popleft())

    def _start(self, batch: Batch) -> None:
        try:
            self._running[self._pool.submit(self._work, batch)] = batch
        except BrokenExecutor:
            self._suspects.append(batch)
            self._renew()

    def _renew(self) -> None:
        """A worker died, and with it the pool."""
        self.deaths += 1
        _end(self._pool)
        self._pool = self._fresh()
        batches, self._running = sorted(self._running.values(), key=lambda one: one.index), {}
        for batch in batches:
            self._lives[batch.index] += 1
            if len(batches) == 1 and self._lives[batch.index] > MAX_DEATHS:
                self._given_up.append(lost(batch, f"{MAX_DEATHS} workers died over it"))
            else:
                self._suspects.append(batch)
        self._go_on()

    def _fresh(self) -> ProcessPoolExecutor:
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            context.set_forkserver_preload(list(PRELOADED))
        return ProcessPoolExecutor(self.workers, mp_context=context, initializer=_settle_in, initargs=(self._folder,))


def engine(name: str, *, workers: int | None = None, scheduler: str = "") -> Engine:
    """The engine of this name. `workers` = 0: this process. Raises `EngineError`."""
    if name == "dask":
        if not scheduler:
            raise EngineError("--engine dask needs the address of a scheduler: --scheduler tcp://HOST:PORT")
        from contracts.fuzz.dask_engine import DaskEngine

        return DaskEngine(scheduler)
    if name != "local":
        raise EngineError(f"there is no engine {name!r}; there are local and dask")
    if scheduler:
        raise EngineError("--scheduler is for --engine dask")
    count = workers if workers is not None else (os.cpu_count() or 1)
    return HereEngine() if count == 0 else PoolEngine(min(count, MAX_WORKERS))


def lost(batch: Batch, why: str) -> Report:
    """The report of a batch that cannot be carried out."""
    words = f"the batch of seeds {batch.first} to {batch.first + batch.count - 1} was lost: {why}"
    failure = Failure(invariant="harness", clause="", words=words, step=0, number=batch.first, seed=batch.first)
    return Report(index=batch.index, drawn=batch.count, runs=0, failures=[failure], failed=1)


def _settle_in(folder: str) -> None:
    """The life of a worker begins: a Ctrl-C is for the campaign, and little of what is made here lives long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = folder
    gc.freeze()
    gc.set_threshold(GC_OBJECTS)


def _end(pool: ProcessPoolExecutor) -> None:
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
    for process in processes:
        process.join(5)
