"""The in-process backend: a callable as an agent (I5)."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from legion_terminal.errors import SupervisorError
from legion_terminal.inprocess import InProcessSupervisor
from legion_terminal.settle import SettleResult
from legion_terminal.types import SpawnRequest

REQUEST = SpawnRequest(agent="worker", run_id="r", handle="w", task="count", cwd="/", session_file="/s")


class Loop(asyncio.SelectorEventLoop):
    """Time stands still while there is work, and jumps to the next timer when there is none."""

    _now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main)


def after(seconds: float, outcome: str | Exception) -> Callable[[SpawnRequest], Awaitable[str]]:
    async def work(request: SpawnRequest) -> str:
        await asyncio.sleep(seconds)
        if isinstance(outcome, Exception):
            raise outcome
        return f"{outcome} for {request.handle}" if "VERDICT" not in outcome else outcome

    return work


def test_a_callable_settles_when_it_returns_and_its_text_is_the_answer() -> None:
    async def main() -> None:
        supervisor = InProcessSupervisor(after(5, "VERDICT: accept"))
        child = await supervisor.spawn(REQUEST)
        assert child.mode == "inprocess"
        early = await supervisor.wait_settled(child, 2_000)
        assert early == SettleResult(settled=False, reason="timeout")
        assert (await supervisor.status(child)).status == "working"
        assert (await supervisor.collect(child)).outcome == "unknown"
        assert await supervisor.wait_settled(child, math.inf) == SettleResult(settled=True)
        assert asyncio.get_running_loop().time() == 5
        assert (await supervisor.status(child)).status == "done"
        assert (await supervisor.collect(child)).outcome == "accept"

    run(main())


def test_a_text_without_a_verdict_is_unknown() -> None:
    async def main() -> None:
        supervisor = InProcessSupervisor(after(0, "done"))
        child = await supervisor.spawn(REQUEST)
        await supervisor.wait_settled(child, 1_000)
        verdict = await supervisor.collect(child)
        assert (verdict.outcome, verdict.text) == ("unknown", "done for w")

    run(main())


def test_a_callable_that_raises_is_abnormal_with_its_reason() -> None:
    async def main() -> None:
        supervisor = InProcessSupervisor(after(1, ValueError("no such\x1bfile")))
        child = await supervisor.spawn(REQUEST)
        result = await supervisor.wait_settled(child, 5_000)
        assert (result.settled, result.abnormal) == (False, True)
        assert result.reason == "it raised ValueError: no such file"
        assert (await supervisor.collect(child)).outcome == "unknown"
        assert (await supervisor.status(child)).status == "error"

    run(main())


def test_a_wait_can_be_called_off_and_the_work_goes_on() -> None:
    async def main() -> None:
        supervisor = InProcessSupervisor(after(5, "done"))
        child = await supervisor.spawn(REQUEST)
        cancelled = asyncio.Event()
        asyncio.get_running_loop().call_later(3, cancelled.set)
        result = await supervisor.wait_settled(child, 60_000, cancelled)
        assert result == SettleResult(settled=False, reason="aborted by parent")
        assert asyncio.get_running_loop().time() == 3
        assert (await supervisor.wait_settled(child, 60_000)).settled

    run(main())


@pytest.mark.parametrize("timeout_ms", [0, -5, math.nan, 10**400])
def test_odd_timeouts_neither_hang_nor_fail(timeout_ms: float) -> None:
    async def main() -> None:
        supervisor = InProcessSupervisor(after(5, "done"))
        child = await supervisor.spawn(REQUEST)
        assert (await supervisor.wait_settled(child, timeout_ms)).settled == (timeout_ms == 10**400)

    run(main())


def test_abort_and_retire_cancel_the_callable() -> None:
    async def main() -> None:
        supervisor = InProcessSupervisor(after(60, "done"))
        first, second = await supervisor.spawn(REQUEST), await supervisor.spawn(REQUEST)
        assert first.id != second.id
        assert (await supervisor.abort(first)).status == "interrupted"
        result = await supervisor.wait_settled(first, 1_000)
        assert (result.settled, result.abnormal) == (False, True)
        retired = await supervisor.retire(second)
        assert (retired.ended, retired.removed, second.retired) == (True, True, True)
        assert asyncio.get_running_loop().time() == 0

    run(main())


def test_a_callable_that_ignores_its_cancellation_is_not_claimed_to_have_ended() -> None:
    async def stubborn(request: SpawnRequest) -> str:
        while asyncio.get_running_loop().time() < 60:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue
        return "done"

    async def main() -> None:
        supervisor = InProcessSupervisor(stubborn)
        child = await supervisor.spawn(REQUEST)
        await asyncio.sleep(0)
        retired = await supervisor.retire(child)
        assert not retired.ended
        assert retired.note
        assert asyncio.get_running_loop().time() <= 2
        await supervisor.wait_settled(child, math.inf)

    run(main())


def test_steering_a_worktree_and_strangers_are_refused() -> None:
    async def main() -> None:
        supervisor, other = InProcessSupervisor(after(0, "x")), InProcessSupervisor(after(0, "x"))
        child, stranger = await supervisor.spawn(REQUEST), await other.spawn(REQUEST)
        worktree = SpawnRequest(
            agent="centurion", run_id="r", handle="w", task="t", cwd="/", session_file="/s", worktree=True
        )
        attempts = [
            (supervisor.steer(child, "more"), "bad-request"),
            (supervisor.status(stranger), "bad-request"),
            (supervisor.spawn(worktree), "worktree-refused"),
        ]
        for attempt, code in attempts:
            with pytest.raises(SupervisorError) as caught:
                await attempt
            assert caught.value.code == code
        assert (await supervisor.retire(stranger)).ended
        assert supervisor.capabilities.events is False
        await other.close()

    run(main())


def test_closing_cancels_what_still_runs_and_refuses_more() -> None:
    async def main() -> None:
        supervisor = InProcessSupervisor(after(60, "x"))
        child = await supervisor.spawn(REQUEST)
        await supervisor.close()
        assert (await supervisor.status(child)).state == "finished"
        with pytest.raises(SupervisorError) as caught:
            await supervisor.spawn(REQUEST)
        assert caught.value.code == "closed"

    run(main())
