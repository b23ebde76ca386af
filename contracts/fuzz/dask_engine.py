"""The workers of a dask cluster as the engine of a campaign. Needs the package distributed (extra `dask`)."""

import importlib
import queue
from typing import Any

from contracts.fuzz.batch import Batch, Report, carry_out
from contracts.fuzz.engines import MAX_DEATHS, EngineError, Work, lost

CONNECT_S = 5.0
"""How long a scheduler may take to answer."""


class DaskEngine:
    """The workers of a dask cluster. What a worker that dies had under way, the scheduler gives to another one."""

    def __init__(self, scheduler: str, work: Work = carry_out) -> None:
        self._distributed = _distributed()
        self._client = self._connected(scheduler)
        self.deaths = 0
        self._work = work
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running: dict[Any, tuple[Batch, Any]] = {}
        self._known: set[str] = set(self._threads())
        self.workers = max(1, sum(self._threads().values()))

    def submit(self, batch: Batch) -> None:
        """Take a batch on."""
        promise = self._client.submit(self._work, batch, pure=False, retries=MAX_DEATHS)
        self._running[promise.key] = (batch, promise)
        promise.add_done_callback(self._done.put)

    def next(self, timeout_s: float) -> Report | None:
        """The next report there is, None if none comes in time. Raises `EngineError` when the scheduler is gone."""
        if not self._running:
            return None
        try:
            promise = self._done.get(timeout=timeout_s)
        except queue.Empty:
            promise = None
        self._count_deaths()
        return None if promise is None else self._taken(promise)

    def close(self) -> None:
        """Call off what is under way, and leave the cluster as it is."""
        self._client.cancel([promise for _, promise in self._running.values()])
        self._client.close()

    def _taken(self, promise: Any) -> Report:
        batch, _ = self._running.pop(promise.key)
        if promise.status == "finished":
            report: Report = promise.result()
            return report
        if self._client.status != "running":
            raise EngineError("the scheduler is gone")
        error = promise.exception()
        return lost(batch, f"{type(error).__name__}: {error}")

    def _threads(self) -> dict[str, int]:
        try:
            found: dict[str, int] = self._client.nthreads()
        except OSError as error:
            raise EngineError(f"the scheduler is gone: {error}") from error
        return found

    def _count_deaths(self) -> None:
        alive = set(self._threads())
        self.deaths += len(self._known - alive)
        self._known = alive

    def _connected(self, scheduler: str) -> Any:
        try:
            return self._distributed.Client(scheduler, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EngineError(f"no scheduler answers at {scheduler}: {error}") from error


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise EngineError('the dask engine needs the package "distributed": install legion-contracts[dask]') from error
