"""Steer and abort: looked at first, sent once, one at a time (D10, D8; BC-041 to BC-064, BC-082, BC-110, BC-116)."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from legion_terminal.client import Answer, HcClient, Method
from legion_terminal.errors import SupervisorError
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import AbortResult, Child

NAME = "lgl-run00001-alpha"
LOST = SupervisorError("outcome-unknown", "the connection was closed", known="unknown")
LINK_CHANGED = SupervisorError("host-unreachable", "the connection changed before it was sent")


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


def core_error(kind: str) -> SupervisorError:
    return SupervisorError("call-failed", f"the core says {kind}", known="not-applied", kind=kind)


class Core(HcClient):
    """One terminal that shows `shown`. `failures` are raised once each, by method; a change takes `took` s."""

    def __init__(self, turn: int = 1, status: str | None = "working", **more: Any) -> None:
        super().__init__(_no_transport)
        self.shown: dict[str, Any] = {"state": "running", "turn": turn, "status": {"state": status}, **more}
        self.failures: dict[str, list[SupervisorError]] = {}
        self.result: dict[str, Any] = {"started": True}
        self.took = 0.0
        self.seen: list[str] = []
        self.texts: list[str] = []
        self.links: list[int] = []
        self.under_way = 0

    async def ask(
        self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
    ) -> Answer:
        await asyncio.sleep(0)
        assert params["terminal"] == NAME
        self.seen.append(method)
        if method != "terminal.get":
            self.links.append(on_link)
            self.under_way += 1
            assert self.under_way == 1, "two changing calls at once"
            await asyncio.sleep(self.took)
            self.under_way -= 1
        if failures := self.failures.get(method):
            raise failures.pop(0)
        if method == "terminal.send":
            self.texts.append(params["text"])
        return Answer(result=dict(self.shown if method == "terminal.get" else self.result), core_id="core-1", link=3)

    @property
    def keys(self) -> int:
        return self.seen.count("terminal.interrupt")


def _no_transport() -> Any:
    raise AssertionError("no transport is opened here")


def a_child(**more: Any) -> Child:
    values: dict[str, Any] = {
        "id": "c1",
        "mode": "terminal",
        "handle": "alpha",
        "run_id": "run00001",
        "session_file": "/s",
        "name": NAME,
        "created_ms": 1000,
        "core_id": "core-1",
    }
    return Child(**{**values, **more})


def supervise(core: Core) -> TerminalSupervisor:
    return TerminalSupervisor(core, {})


async def failure(coroutine: Coroutine[Any, Any, Any]) -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        await coroutine
    return caught.value


def test_a_steer_looks_then_sends_and_remembers_the_turn_it_saw() -> None:
    async def main() -> None:
        core, child = Core(turn=2, status="done"), a_child(prompt_turn=1)
        result = await supervise(core).steer(child, "go on")
        assert (result.started, result.prompt_turn, child.prompt_turn) == (True, 2, 2)
        assert core.seen == ["terminal.get", "terminal.send"]
        assert core.texts == ["go on"]
        assert core.links == [3]

    run(main())


@pytest.mark.parametrize(("reply", "started"), [({"started": False}, False), ({}, None), ({"started": "yes"}, None)])
def test_an_unconfirmed_start_is_no_failure_and_nothing_is_sent_again(reply: dict[str, Any], started: Any) -> None:
    async def main() -> None:
        core = Core()
        core.result = reply
        assert (await supervise(core).steer(a_child(), "S")).started is started
        assert core.texts == ["S"]

    run(main())


def test_a_blocked_child_is_sent_nothing() -> None:
    async def main() -> None:
        core, child = Core(status="blocked"), a_child()
        error = await failure(supervise(core).steer(child, "use the other branch"))
        assert (error.code, error.known, error.child) == ("blocked", "not-sent", NAME)
        assert core.seen == ["terminal.get"]
        assert child.prompt_turn == 0

    run(main())


@pytest.mark.parametrize("status", ["idle", None, "done"])
def test_nothing_is_sent_before_the_first_turn_began(status: str | None) -> None:
    async def main() -> None:
        core = Core(turn=0, status=status)
        error = await failure(supervise(core).steer(a_child(), "fix it"))
        assert (error.code, error.known) == ("not-started", "not-sent")
        assert core.seen == ["terminal.get"]

    run(main())


def test_a_child_that_was_at_work_when_its_start_was_answered_can_be_steered() -> None:
    async def main() -> None:
        child = a_child(spawn_turn=1, prompt_turn=1)
        assert (await supervise(Core(turn=1, status="working")).steer(child, "x")).prompt_turn == 1

    run(main())


def test_the_first_turn_is_counted_from_the_turn_at_the_start() -> None:
    async def main() -> None:
        child = a_child(spawn_turn=1, prompt_turn=1)
        assert (await failure(supervise(Core(turn=1, status="idle")).steer(child, "x"))).code == "not-started"
        assert (await supervise(Core(turn=2)).steer(child, "x")).prompt_turn == 2

    run(main())


@pytest.mark.parametrize(
    "other",
    [{"created_ms": 9000}, {"argv": ["/bin/bash"]}, {"name": "other"}, {"address": "t8"}, {"state": "finished"}],
)
def test_another_incarnation_or_an_ended_one_is_not_touched(other: dict[str, Any]) -> None:
    async def main() -> None:
        core = Core(**{"created_ms": 1000, "address": "t9", "argv": ["pi"], **other})
        child = a_child(address="t9", argv=("pi",))
        for attempt in (supervise(core).steer(child, "rm the branch"), supervise(core).abort(child)):
            error = await failure(attempt)
            assert (error.code, error.known, error.child) == ("gone", "not-sent", NAME)
        assert core.seen == ["terminal.get", "terminal.get"]

    run(main())


@pytest.mark.parametrize("kind", ["no_such_terminal", "not_live"])
def test_a_terminal_that_went_away_is_gone(kind: str) -> None:
    async def main() -> None:
        core = Core()
        core.failures = {"terminal.send": [core_error(kind)], "terminal.interrupt": [core_error(kind)]}
        supervisor, child = supervise(core), a_child()
        assert (await failure(supervisor.steer(child, "x"))).code == "gone"
        assert (await failure(supervisor.abort(child))).code == "gone"

    run(main())


@pytest.mark.parametrize(
    ("kind", "code"), [("blocked", "blocked"), ("draft_present", "call-failed"), ("x", "call-failed")]
)
def test_a_refusal_of_the_core_reaches_the_caller_and_nothing_new_is_waited_for(kind: str, code: str) -> None:
    async def main() -> None:
        core, child = Core(turn=1), a_child(prompt_turn=0)
        core.failures = {"terminal.send": [core_error(kind)]}
        error = await failure(supervise(core).steer(child, "x"))
        assert (error.code, error.kind, error.child) == (code, kind, NAME)
        assert core.seen.count("terminal.send") == 1
        assert child.prompt_turn == 0

    run(main())


def test_a_lost_reply_is_unknown_sent_once_and_counted_as_sent() -> None:
    async def main() -> None:
        core, child = Core(turn=1), a_child(prompt_turn=0)
        core.failures = {"terminal.send": [LOST]}
        error = await failure(supervise(core).steer(child, "x"))
        assert (error.code, error.known, error.child) == ("outcome-unknown", "unknown", NAME)
        assert core.seen.count("terminal.send") == 1
        assert child.prompt_turn == 1

    run(main())


def test_a_connection_that_changed_before_anything_was_sent_begins_with_a_new_look() -> None:
    async def main() -> None:
        core = Core()
        core.failures = {"terminal.send": [LINK_CHANGED], "terminal.interrupt": [LINK_CHANGED]}
        supervisor, child = supervise(core), a_child()
        await supervisor.steer(child, "x")
        assert core.seen == ["terminal.get", "terminal.send"] * 2
        assert core.texts == ["x"]
        assert await supervisor.abort(child) == AbortResult()
        assert core.seen[4:] == ["terminal.get", "terminal.interrupt"] * 2

    run(main())


def test_a_connection_that_keeps_changing_is_given_up() -> None:
    async def main() -> None:
        core = Core()
        core.failures = {"terminal.send": [LINK_CHANGED] * 9, "terminal.interrupt": [LINK_CHANGED] * 9}
        supervisor, child = supervise(core), a_child()
        assert (await failure(supervisor.steer(child, "x"))).known == "not-sent"
        assert (await failure(supervisor.abort(child))).known == "not-sent"
        assert len(core.seen) == 8

    run(main())


@pytest.mark.parametrize("text", ["", " \n\t", "€" * 350_000])
def test_an_empty_or_huge_prompt_is_refused_without_a_call(text: str) -> None:
    async def main() -> None:
        core = Core()
        assert (await failure(supervise(core).steer(a_child(), text))).code == "bad-request"
        assert core.seen == []

    run(main())


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a\nb\u2028c\ud800d\0e", "a\nb\u2028c\ufffdd\0e"),
        ("\ufeffmark", "\ufeffmark"),
        ("\ud83d\ude00", "😀"),
        ("\udc00", "\ufffd"),
        ("-x @y", "-x @y"),
        ("x" * 1024 * 1024, "x" * 1024 * 1024),
    ],
)
def test_text_arrives_as_it_is_but_for_half_pairs(text: str, sent: str) -> None:
    async def main() -> None:
        core = Core()
        await supervise(core).steer(a_child(), text)
        assert core.texts == [sent]

    run(main())


def test_an_abort_looks_then_presses_once() -> None:
    async def main() -> None:
        core, child = Core(), a_child()
        assert await supervise(core).abort(child) == AbortResult(status="interrupted")
        assert core.seen == ["terminal.get", "terminal.interrupt"]

    run(main())


@pytest.mark.parametrize(("pause", "keys"), [(0.05, 1), (0.49, 1), (0.5, 2), (3.0, 2)])
def test_a_second_abort_of_the_same_turn_within_half_a_second_presses_no_second_key(pause: float, keys: int) -> None:
    async def main() -> None:
        core, child = Core(), a_child()
        supervisor = supervise(core)
        await supervisor.abort(child)
        core.shown["status"] = {"state": "idle"}
        await asyncio.sleep(pause)
        assert await supervisor.abort(child) == AbortResult()
        assert core.keys == keys

    run(main())


def test_aborts_at_the_same_moment_press_one_key() -> None:
    async def main() -> None:
        core, child = Core(), a_child()
        supervisor = supervise(core)
        assert await asyncio.gather(*(supervisor.abort(child) for _ in range(5))) == [AbortResult()] * 5
        assert core.keys == 1

    run(main())


def test_a_new_turn_may_be_interrupted_at_once() -> None:
    async def main() -> None:
        core, child = Core(), a_child()
        supervisor = supervise(core)
        await supervisor.abort(child)
        core.shown["turn"] = 2
        await supervisor.abort(child)
        assert core.keys == 2

    run(main())


def test_an_interrupt_that_failed_is_not_claimed_and_may_be_tried_again() -> None:
    async def main() -> None:
        core, child = Core(), a_child()
        core.failures = {"terminal.interrupt": [core_error("unknown_method")]}
        supervisor = supervise(core)
        assert (await failure(supervisor.abort(child))).kind == "unknown_method"
        await supervisor.abort(child)
        assert core.keys == 2

    run(main())


def test_an_interrupt_whose_reply_was_lost_is_not_pressed_again_at_once_nor_claimed() -> None:
    async def main() -> None:
        core, child = Core(), a_child()
        core.failures = {"terminal.interrupt": [LOST]}
        supervisor = supervise(core)
        assert (await failure(supervisor.abort(child))).code == "outcome-unknown"
        assert (await failure(supervisor.abort(child))).code == "outcome-unknown"
        assert core.keys == 1

    run(main())


def test_a_steer_after_an_abort_waits_for_the_answer_to_the_interrupt() -> None:
    async def main() -> None:
        core, child = Core(), a_child()
        core.took = 2.0
        supervisor = supervise(core)
        await asyncio.gather(supervisor.abort(child), supervisor.steer(child, "next"), supervisor.steer(child, "last"))
        assert core.texts == ["next", "last"]
        assert next(method for method in core.seen if method != "terminal.get") == "terminal.interrupt"
        assert asyncio.get_running_loop().time() == pytest.approx(6)

    run(main())


def test_a_retired_child_and_a_closed_supervisor_change_nothing() -> None:
    async def main() -> None:
        core = Core()
        supervisor = supervise(core)
        assert (await failure(supervisor.steer(a_child(retired=True), "x"))).code == "gone"
        assert (await failure(supervisor.abort(a_child(retired=True)))).code == "gone"
        await supervisor.close()
        for attempt in (supervisor.steer(a_child(), "x"), supervisor.abort(a_child()), supervisor.status(a_child())):
            assert (await failure(attempt)).code == "closed"
        assert core.seen == []

    run(main())
