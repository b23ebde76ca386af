"""Waiting in time, status and collect: polls, deadlines, cancellation (D8, D9; BC-032 to BC-065, BC-112, BC-116)."""

import asyncio
import json
import math
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from legion_terminal.client import Answer, HcClient, Method
from legion_terminal.errors import SupervisorError
from legion_terminal.settle import SettleResult
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import Child

NAME = "lgl-run00001-alpha"
MISSING = SupervisorError("call-failed", "no terminal", known="not-applied", kind="no_such_terminal")
TIMED_OUT = SupervisorError("call-timeout", "no answer", known="not-applied")
HANG = SupervisorError("call-timeout", "never comes")

Shown = Mapping[str, Any] | SupervisorError


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


def seen(turn: int, status: str | None, **more: Any) -> dict[str, Any]:
    return {"state": "running", "turn": turn, "status": {"state": status} if status else None, **more}


class Timeline(HcClient):
    """Shows a terminal as it is at each moment: (from this second on, what a look shows). Counts looks."""

    def __init__(self, *steps: tuple[float, Shown], latency: float = 0.0) -> None:
        super().__init__(_no_transport)
        self.steps = steps
        self.latency = latency
        self.looks: list[float] = []
        self.others: list[str] = []
        self.core_id = "core-1"
        self.under_way = 0
        self.together = 0

    async def ask(
        self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
    ) -> Answer:
        if method != "terminal.get":
            self.others.append(method)
        assert params["terminal"] == NAME
        loop = asyncio.get_running_loop()
        self.looks.append(round(loop.time(), 6))
        self.under_way += 1
        self.together = max(self.together, self.under_way)
        try:
            if self.latency:
                await asyncio.sleep(self.latency)
            shown = [shown for since, shown in self.steps if since <= round(loop.time(), 6)][-1]
            if shown is HANG:
                await asyncio.Event().wait()
        finally:
            self.under_way -= 1
        if isinstance(shown, SupervisorError):
            raise shown
        return Answer(result=dict(shown), core_id=self.core_id, link=1)


def _no_transport() -> Any:
    raise AssertionError("no transport is opened here")


def a_child(**more: Any) -> Child:
    values: dict[str, Any] = {
        "id": "c1",
        "mode": "terminal",
        "handle": "alpha",
        "run_id": "run00001",
        "session_file": "/nonexistent/session.jsonl",
        "name": NAME,
        "address": "t9",
        "core_id": "core-1",
        "created_ms": 1000,
        "argv": ("pi", "task"),
    }
    return Child(**{**values, **more})


def supervise(client: HcClient, poll_ms: int = 250) -> TerminalSupervisor:
    return TerminalSupervisor(client, {}, poll_ms=poll_ms)


def wait(
    timeline: Timeline, timeout_ms: float, *, child: Child | None = None, cancel_at: float | None = None
) -> tuple[SettleResult, float]:
    """The result of one wait, and the second at which it came."""
    got: list[tuple[SettleResult, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        cancelled = asyncio.Event()
        if cancel_at is not None:
            loop.call_at(cancel_at, cancelled.set)
        result = await supervise(timeline).wait_settled(child or a_child(), timeout_ms, cancelled)
        got.append((result, round(loop.time(), 6)))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())
    assert timeline.others == []
    return got[0]


@pytest.mark.parametrize("boot", [seen(0, "idle"), seen(0, None), seen(0, "done"), seen(0, "blocked")])
def test_nothing_at_the_turn_of_the_prompt_settles(boot: dict[str, Any]) -> None:
    result, at = wait(Timeline((0, boot), (2, seen(1, "working")), (5, seen(1, "done"))), 30_000)
    assert result == SettleResult(settled=True, last_turn=1, last_status="done")
    assert at == 5


def test_a_turn_that_is_over_before_the_next_look_settles() -> None:
    timeline = Timeline((0, seen(0, "idle")), (0.05, seen(1, "working")), (0.08, seen(1, "done")))
    assert wait(timeline, 30_000) == (SettleResult(settled=True, last_turn=1, last_status="done"), 0.25)


def test_the_first_look_is_at_once_and_the_next_ones_come_after_each_answer() -> None:
    timeline = Timeline((0, seen(0, "idle")), (2, seen(1, "done")), latency=0.5)
    wait(timeline, 30_000)
    assert timeline.looks == [0, 0.75, 1.5]
    assert timeline.together == 1


@pytest.mark.parametrize(
    "end", [seen(1, "idle"), seen(1, "working"), seen(1, "blocked"), seen(1, "error"), seen(1, None)]
)
def test_no_other_status_settles_and_the_time_is_kept_exactly(end: dict[str, Any]) -> None:
    result, at = wait(Timeline((0, end)), 20_100)
    status = (end["status"] or {}).get("state")
    assert result == SettleResult(settled=False, reason="timeout", last_turn=1, last_status=status)
    assert at == 20.1


def test_a_look_that_hangs_does_not_stretch_the_deadline() -> None:
    timeline = Timeline((0, seen(1, "working")), (1, HANG))
    result, at = wait(timeline, 3_300)
    assert result == SettleResult(settled=False, reason="timeout", last_turn=1, last_status="working")
    assert at == 3.3
    assert timeline.looks[-1] == 1


def test_nothing_is_polled_at_the_deadline_itself() -> None:
    timeline = Timeline((0, seen(0, "idle")))
    wait(timeline, 500)
    assert timeline.looks == [0, 0.25]


def test_a_finished_program_settles_at_once_with_its_exit() -> None:
    timeline = Timeline((0, seen(0, None, state="finished", exit_code=127)))
    assert wait(timeline, 60_000) == (SettleResult(settled=True, exit_code=127, last_turn=0), 0)
    killed = Timeline((0, seen(1, "working", state="finished", exit_code=None, signal="SIGKILL")))
    assert wait(killed, 60_000)[0].signal == "SIGKILL"


def test_failed_looks_decide_nothing() -> None:
    broken = SupervisorError("call-failed", "internal", kind="internal")
    lost = SupervisorError("host-unreachable", "closed")
    garbage = {"killed": True}
    steps: list[tuple[float, Shown]] = [
        (0.0, seen(1, "working")),
        (2.0, TIMED_OUT),
        (3.0, broken),
        (4.0, lost),
        (5.0, garbage),
        (6.0, seen(1, "done")),
    ]
    assert wait(Timeline(*steps), 30_000)[1] == 6


def test_a_vanished_terminal_is_gone_within_two_looks() -> None:
    result, at = wait(Timeline((0, seen(1, "working")), (3, MISSING)), 900_000)
    assert result == SettleResult(settled=False, abnormal=True, reason="gone", last_turn=1, last_status="working")
    assert at <= 3.5


def test_a_single_miss_is_not_the_end() -> None:
    timeline = Timeline((0, seen(1, "working")), (1, MISSING), (1.2, seen(1, "working")), (2, seen(1, "done")))
    assert wait(timeline, 900_000)[0].settled


@pytest.mark.parametrize(
    "other", [{"created_ms": 9000}, {"argv": ["/bin/bash"]}, {"address": "t10"}, {"name": "lgl-run00001-other"}]
)
def test_another_incarnation_is_gone_and_never_settles(other: dict[str, Any]) -> None:
    result, at = wait(Timeline((0, seen(1, "working")), (1, seen(2, "done", **other))), 900_000)
    assert (result.settled, result.abnormal, result.reason) == (False, True, "gone")
    assert at <= 1.5


def test_another_core_is_another_incarnation() -> None:
    timeline = Timeline((0, seen(1, "done")))
    timeline.core_id = "core-2"
    assert wait(timeline, 900_000)[0].reason == "gone"


@pytest.mark.parametrize("timeout_ms", [2_147_483_648, math.inf, 1.7976931348623157e308, 10**400])
def test_a_very_long_timeout_does_not_fire_at_once(timeout_ms: float) -> None:
    assert wait(Timeline((0, seen(1, "working")), (5, seen(1, "done"))), timeout_ms)[1] == 5


@pytest.mark.parametrize("timeout_ms", [0, -1, math.nan, -math.inf])
def test_no_time_at_all_takes_one_look(timeout_ms: float) -> None:
    timeline = Timeline((0, seen(1, "working")))
    result, at = wait(timeline, timeout_ms)
    assert result == SettleResult(settled=False, reason="timeout", last_turn=1, last_status="working")
    assert (at, timeline.looks) == (0, [0])
    assert wait(Timeline((0, seen(1, "done"))), timeout_ms)[0].settled


def test_one_look_without_time_is_bounded_when_it_hangs() -> None:
    result, at = wait(Timeline((0, HANG)), 0)
    assert result == SettleResult(settled=False, reason="timeout")
    assert at <= 1


@pytest.mark.parametrize("latency", [0.0, 0.1, 7.0])
def test_a_wait_that_is_called_off_ends_then_and_looks_no_more(latency: float) -> None:
    timeline = Timeline((0, seen(1, "working")), (5, seen(1, "done")), latency=latency)
    result, at = wait(timeline, 60_000, cancel_at=3.0)
    assert (result.settled, result.abnormal, result.reason) == (False, False, "aborted by parent")
    assert at == 3
    assert max(timeline.looks) < 3


def test_a_wait_called_off_beforehand_looks_not_once() -> None:
    timeline = Timeline((0, seen(1, "done")))

    async def main() -> None:
        cancelled = asyncio.Event()
        cancelled.set()
        result = await supervise(timeline).wait_settled(a_child(), 1_000, cancelled)
        assert result.reason == "aborted by parent"

    run(main())
    assert timeline.looks == []


def test_a_cancelled_task_leaves_nothing_running() -> None:
    async def main() -> None:
        task = asyncio.create_task(supervise(Timeline((0, HANG))).wait_settled(a_child(), 60_000, asyncio.Event()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_a_timeout_leaves_the_child_to_be_waited_for_again() -> None:
    async def main() -> None:
        supervisor, child = supervise(Timeline((0, seen(1, "working")), (8, seen(1, "done")))), a_child()
        first = await supervisor.wait_settled(child, 5_000)
        assert first.reason == "timeout"
        second = await supervisor.wait_settled(child, 5_000)
        assert second.settled
        assert asyncio.get_running_loop().time() == 8
        third = await supervisor.wait_settled(child, 5_000)
        assert third.settled

    run(main())


def test_a_prompt_sent_during_the_wait_raises_what_it_waits_for() -> None:
    async def main() -> None:
        child = a_child()
        timeline = Timeline(
            (0, seen(1, "working")), (4, seen(1, "done")), (4.6, seen(2, "working")), (7, seen(2, "done"))
        )

        def steered() -> None:
            child.prompt_turn = 1

        asyncio.get_running_loop().call_at(2, steered)
        result = await supervise(timeline).wait_settled(child, 30_000)
        assert (result.settled, result.last_turn) == (True, 2)
        assert asyncio.get_running_loop().time() == 7

    run(main())


def test_a_retired_child_is_gone_without_a_look() -> None:
    timeline = Timeline((0, seen(1, "done")))
    result, _ = wait(timeline, 1_000, child=a_child(retired=True))
    assert (result.abnormal, result.reason, timeline.looks) == (True, "gone", [])


def test_closing_the_supervisor_ends_a_wait() -> None:
    closed = SupervisorError("closed", "the client was closed")
    assert wait(Timeline((0, seen(1, "working")), (1, closed)), 60_000)[0].reason == "aborted by parent"


def test_status_is_one_look() -> None:
    async def main() -> None:
        timeline = Timeline((0, seen(3, "blocked")))
        child = a_child()
        observation = await supervise(timeline).status(child)
        assert (observation.turn, observation.status, observation.state) == (3, "blocked", "running")
        assert child.last == observation
        assert timeline.looks == [0]

    run(main())


@pytest.mark.parametrize("shown", [MISSING, seen(0, None, created_ms=9000)])
def test_the_status_of_what_is_gone_says_so(shown: Shown) -> None:
    async def main() -> None:
        with pytest.raises(SupervisorError) as caught:
            await supervise(Timeline((0, shown))).status(a_child())
        assert (caught.value.code, caught.value.child) == ("gone", NAME)

    run(main())


def user(number: int) -> str:
    return _entry(f"u{number}", f"a{number - 1}" if number > 1 else None, {"role": "user", "content": "prompt"})


def answer(number: int, text: str) -> str:
    message = {"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": text}]}
    return _entry(f"a{number}", f"u{number}", message)


def _entry(entry_id: str, parent: str | None, message: dict[str, Any]) -> str:
    return json.dumps({"type": "message", "id": entry_id, "parentId": parent, "message": message}) + "\n"


def collect(path: Path, *later: tuple[float, str]) -> tuple[str, float]:
    got: list[tuple[str, float]] = []

    def append(text: str) -> Callable[[], None]:
        def write() -> None:
            path.write_text(path.read_text() + text)

        return write

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for at, text in later:
            loop.call_at(at, append(text))
        verdict = await supervise(Timeline((0, seen(1, "done")))).collect(a_child(session_file=str(path)))
        got.append((verdict.outcome, round(loop.time(), 6)))

    run(main())
    return got[0]


def test_collect_reads_the_verdict_at_once_when_there_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"session","id":"s"}\n' + user(1) + answer(1, "VERDICT: accept"))
    assert collect(path) == ("accept", 0)


def test_collect_waits_shortly_for_an_answer_that_is_still_being_written(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"session","id":"s"}\n' + user(1))
    outcome, at = collect(path, (0.2, answer(1, "VERDICT: reject")))
    assert outcome == "reject"
    assert at <= 0.3


def test_collect_gives_an_honest_unknown_after_half_a_second(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"session","id":"s"}\n' + user(1) + answer(1, "VERDICT: accept") + user(2))
    assert collect(path, (0.9, answer(2, "VERDICT: accept"))) == ("unknown", 0.5)


def test_collect_of_no_file_is_unknown_at_once(tmp_path: Path) -> None:
    assert collect(tmp_path / "none.jsonl") == ("unknown", 0)


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (None, "unknown"),
        (SupervisorError("outcome-unknown", "lost", known="unknown"), "unknown"),
        (SupervisorError("call-failed", "refused", known="not-applied"), "accept"),
    ],
)
def test_an_answer_from_before_the_newest_steer_is_not_its_answer(
    tmp_path: Path, failure: SupervisorError | None, outcome: str
) -> None:
    class Steered(Timeline):
        async def ask(
            self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
        ) -> Answer:
            if method == "terminal.send" and failure is not None:
                raise failure
            return await super().ask(method, params, on_link=on_link, within_ms=within_ms)

    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"session","id":"s"}\n' + user(1) + answer(1, "VERDICT: accept"))

    async def main() -> None:
        supervisor, child = supervise(Steered((0, seen(1, "done")))), a_child(session_file=str(path))
        assert (await supervisor.collect(child)).outcome == "accept"
        await asyncio.gather(supervisor.steer(child, "look again"), return_exceptions=True)
        assert (await supervisor.collect(child)).outcome == outcome
        path.write_text(path.read_text() + user(2) + answer(2, "VERDICT: reject"))
        assert (await supervisor.collect(child)).outcome == "reject"

    run(main())
