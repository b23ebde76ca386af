"""The default backend: an agent is an async callable in this very process, and its answer is what it returns (I5)."""

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from legion_terminal.errors import SupervisorError
from legion_terminal.messages import printable
from legion_terminal.settle import Observation, SettleResult
from legion_terminal.transcript import Transcript, verdict
from legion_terminal.types import (
    AbortResult,
    Cancel,
    Capabilities,
    Child,
    RetireResult,
    SpawnRequest,
    SteerResult,
    Verdict,
)
from legion_terminal.waiting import clipped

RETIRE_MS = 2_000


class InProcessSupervisor:
    """A `Supervisor` over one async callable: given a request, it works and returns its final text.

    There is nothing to type into and no session file: a steer is refused, an abort cancels the callable, and the
    verdict is read from the returned text by the same grammar as everywhere (D9).
    """

    def __init__(self, run: Callable[[SpawnRequest], Awaitable[str]]) -> None:
        self._run = run
        self._numbers = itertools.count(1)
        self._tasks: WeakKeyDictionary[Child, asyncio.Task[str]] = WeakKeyDictionary()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """Neither a disposition of prompts nor events."""
        return Capabilities()

    async def spawn(self, request: SpawnRequest) -> Child:
        """Start the callable. Raises SupervisorError `worktree-refused` for a request with a worktree."""
        if self._closed:
            raise SupervisorError("closed", "the supervisor was closed", child=request.handle)
        if request.worktree:
            raise SupervisorError(
                "worktree-refused", "an in-process agent cannot hold a worktree", child=request.handle
            )
        child = Child(
            id=f"inprocess/{next(self._numbers)}",
            mode="inprocess",
            handle=request.handle,
            run_id=request.run_id,
            session_file=request.session_file,
        )
        self._tasks[child] = asyncio.create_task(_answer(self._run, request))
        return child

    async def steer(self, child: Child, text: str) -> SteerResult:
        """Refused: a callable takes no further text."""
        raise SupervisorError("bad-request", "an in-process agent cannot be steered", child=child.handle)

    async def abort(self, child: Child) -> AbortResult:
        """Cancel the callable."""
        self._task(child).cancel()
        return AbortResult()

    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        """Wait until the callable has returned: settled. One that raised or was cancelled is abnormal."""
        task = self._task(child)
        waiting: set[asyncio.Future[Any]] = {task}
        off = asyncio.ensure_future(_called_off(cancelled)) if cancelled is not None else None
        if off is not None:
            waiting.add(off)
        try:
            await asyncio.wait(waiting, timeout=_seconds(timeout_ms), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if off is not None:
                off.cancel()
        if task.done():
            return _ended(task)
        called_off = cancelled is not None and cancelled.is_set()
        return SettleResult(settled=False, reason="aborted by parent" if called_off else "timeout")

    async def status(self, child: Child) -> Observation:
        """Working while the callable runs; then done, or error when it raised or was cancelled."""
        task = self._task(child)
        if not task.done():
            return Observation(turn=1, status="working", state="running")
        return Observation(turn=1, status="done" if _failure(task) is None else "error", state="finished")

    async def collect(self, child: Child) -> Verdict:
        """Read the verdict from the returned text; unknown while there is none."""
        task = self._task(child)
        if not task.done():
            return Verdict(outcome="unknown", reason="it has not returned yet")
        failure = _failure(task)
        if failure is not None:
            return Verdict(outcome="unknown", reason=failure)
        return verdict(Transcript(last_turn_output=task.result(), stop_reason="stop", newest_role="assistant"))

    async def retire(self, child: Child) -> RetireResult:
        """Cancel the callable if it still runs. Never raises; waits for its end for a bounded time."""
        task = self._tasks.get(child)
        child.retired = True
        if task is None:
            return RetireResult(ended=True, removed=True)
        task.cancel()
        await asyncio.wait({task}, timeout=RETIRE_MS / 1000)
        note = None if task.done() else "it ignores its cancellation"
        return RetireResult(ended=task.done(), removed=task.done(), note=note)

    async def close(self) -> None:
        """Cancel what still runs: nothing in this process goes on without its supervisor."""
        self._closed = True
        tasks = [task for task in self._tasks.values() if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=RETIRE_MS / 1000)

    def _task(self, child: Child) -> "asyncio.Task[str]":
        task = self._tasks.get(child)
        if task is None:
            raise SupervisorError("bad-request", "it was not started by this supervisor", child=child.handle)
        return task


async def _answer(run: Callable[[SpawnRequest], Awaitable[str]], request: SpawnRequest) -> str:
    return await run(request)


async def _called_off(cancelled: Cancel) -> None:
    await cancelled.wait()


def _seconds(timeout_ms: float) -> float | None:
    limit_ms = clipped(timeout_ms)
    return None if limit_ms == math.inf else limit_ms / 1000


def _failure(task: "asyncio.Task[str]") -> str | None:
    if task.cancelled():
        return "it was cancelled"
    error = task.exception()
    return None if error is None else printable(f"it raised {type(error).__name__}: {error}")


def _ended(task: "asyncio.Task[str]") -> SettleResult:
    failure = _failure(task)
    return SettleResult(settled=failure is None, abnormal=failure is not None, reason=failure)
