"""Retire: killed, seen to end, removed, in bounded time, never raising (D11; BC-102 to BC-104, BC-110 to BC-116)."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from legion_terminal.client import Answer, HcClient, Method
from legion_terminal.errors import SupervisorError
from legion_terminal.retiring import RETIRE_MS
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import Child, RetireResult, SpawnRequest

NAME = "lgl-run00001-alpha"
CLEAN = RetireResult(ended=True, removed=True)


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
    """Terminals by name. A kill ends one `kill_s` later (None: never). `hooks` replace what a method does."""

    def __init__(self, kill_s: float | None = 0.0, **more: Any) -> None:
        super().__init__(_no_transport)
        self.kill_s = kill_s
        self.terminals: dict[str, dict[str, Any]] = {NAME: {**LIVE, **more}}
        self.hooks: dict[str, Callable[[], None]] = {}
        self.seen: list[str] = []
        self.closed_at: float | None = None

    async def ask(
        self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
    ) -> Answer:
        await asyncio.sleep(0)
        self.seen.append(method)
        if method == "terminal.send":
            await asyncio.sleep(60)
        if method in self.hooks:
            self.hooks[method]()
        if self.terminals.get(params["terminal"]) is HANGING:
            await asyncio.sleep((within_ms or 10_000) / 1000)
            raise SupervisorError("call-timeout", "no answer before its deadline", known="not-applied")
        terminal = self.find(params["terminal"])
        if method == "terminal.kill":
            if terminal["state"] == "finished":
                raise core_error("not_live")
            if self.kill_s == 0:
                terminal["state"] = "finished"
            elif self.kill_s is not None:
                asyncio.get_running_loop().call_later(self.kill_s, terminal.update, {"state": "finished"})
        if method == "terminal.rm":
            if terminal["state"] != "finished":
                raise core_error("not_finished")
            del self.terminals[params["terminal"]]
        return Answer(result=dict(terminal), core_id="core-1", link=1)

    def find(self, target: str) -> dict[str, Any]:
        for name, terminal in self.terminals.items():
            if target in (name, terminal["address"]):
                return terminal
        raise core_error("no_such_terminal")

    async def close(self) -> None:
        self.closed_at = asyncio.get_running_loop().time()

    def count(self, method: str) -> int:
        return self.seen.count(method)


LIVE = {"address": "t9", "name": NAME, "state": "running", "turn": 1, "argv": ["pi"], "created_ms": 1000}
HANGING: dict[str, Any] = {"address": "t9"}


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
        "address": "t9",
        "created_ms": 1000,
        "argv": ("pi",),
        "core_id": "core-1",
    }
    return Child(**{**values, **more})


def retire(core: Core, child: Child | None = None, poll_ms: int = 250) -> tuple[RetireResult, float]:
    """The result of one retire, and the second at which it came."""
    got: list[tuple[RetireResult, float]] = []

    async def main() -> None:
        result = await TerminalSupervisor(core, {}, poll_ms=poll_ms).retire(child or a_child())
        got.append((result, round(asyncio.get_running_loop().time(), 6)))

    run(main())
    return got[0]


def raising(*errors: SupervisorError | None) -> Callable[[], None]:
    left = list(errors)

    def hook() -> None:
        error = left.pop(0) if left else None
        if error is not None:
            raise error

    return hook


def test_a_child_is_looked_at_killed_seen_to_end_and_removed() -> None:
    core = Core()
    assert retire(core) == (CLEAN, 0)
    assert core.seen == ["terminal.get", "terminal.kill", "terminal.get", "terminal.rm"]
    assert core.terminals == {}


def test_a_slow_death_is_waited_for_before_the_removal_and_not_killed_again() -> None:
    core = Core(kill_s=0.8)
    result, at = retire(core)
    assert result == CLEAN
    assert 0.8 <= at <= 1.1
    assert core.count("terminal.kill") == core.count("terminal.rm") == 1


def test_an_ended_child_is_still_removed() -> None:
    core = Core(state="finished")
    assert retire(core)[0] == CLEAN
    assert core.seen[-1] == "terminal.rm"


def test_a_terminal_that_was_removed_by_hand_is_retired_without_a_change() -> None:
    core = Core()
    core.terminals = {}
    assert retire(core)[0] == CLEAN
    assert set(core.seen) == {"terminal.get"}


def test_a_child_without_a_terminal_takes_no_call() -> None:
    core = Core()
    child = a_child(name="", address="")
    assert retire(core, child)[0] == CLEAN
    assert core.seen == []
    assert child.retired


def test_retires_at_once_and_again_later_share_one_kill_and_one_removal() -> None:
    core, child = Core(kill_s=0.5), a_child()

    async def main() -> None:
        supervisor = TerminalSupervisor(core, {})
        first, second = await asyncio.gather(supervisor.retire(child), supervisor.retire(child))
        assert first == second == CLEAN
        assert await supervisor.retire(child) == CLEAN

    run(main())
    assert core.count("terminal.kill") == core.count("terminal.rm") == 1
    assert child.retired


def test_a_caller_that_goes_away_does_not_stop_a_retirement() -> None:
    core, child = Core(kill_s=0.5), a_child()

    async def main() -> None:
        supervisor = TerminalSupervisor(core, {})
        caller = asyncio.create_task(supervisor.retire(child))
        await asyncio.sleep(0.1)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        await supervisor.close()
        assert core.closed_at is not None
        assert core.closed_at >= 0.5

    run(main())
    assert core.terminals == {}


@pytest.mark.parametrize("poll_ms", [1, 20, 49, 50, 250, 1_000])
def test_a_program_that_never_ends_is_given_up_in_bounded_time_and_not_claimed(poll_ms: int) -> None:
    core = Core(kill_s=None)
    result, at = retire(core, poll_ms=poll_ms)
    assert (result.ended, result.removed) == (False, False)
    assert "not seen" in (result.note or "")
    assert at <= RETIRE_MS / 1000
    assert core.count("terminal.kill") == 1
    assert core.count("terminal.rm") <= 4


def test_a_later_retire_of_a_survivor_tries_again() -> None:
    core, child = Core(kill_s=None), a_child()

    async def main() -> None:
        supervisor = TerminalSupervisor(core, {})
        assert not (await supervisor.retire(child)).removed
        core.kill_s = 0
        assert (await supervisor.retire(child)).removed

    run(main())


def test_a_kill_without_an_answer_is_decided_by_the_next_look() -> None:
    core = Core(kill_s=None)

    def killed_without_answer() -> None:
        core.terminals[NAME]["state"] = "finished"
        raise SupervisorError("outcome-unknown", "terminal.kill: no answer", known="unknown")

    core.hooks = {"terminal.kill": killed_without_answer}
    result, _ = retire(core)
    assert (result.ended, result.removed) == (True, True)
    assert "no answer" in (result.note or "")
    assert core.count("terminal.kill") == 1


def test_a_core_without_rm_still_retires_and_says_what_is_left() -> None:
    core = Core()
    core.hooks = {"terminal.rm": raising(*[core_error("unknown_method")] * 9)}
    result, _ = retire(core)
    assert (result.ended, result.removed) == (True, False)
    assert "unknown_method" in (result.note or "")
    assert core.count("terminal.rm") == 1


def test_a_removal_refused_as_too_early_is_tried_again_after_another_look() -> None:
    core = Core()
    core.hooks = {"terminal.rm": raising(core_error("not_finished"), core_error("not_finished"))}
    result, _ = retire(core)
    assert result.removed
    assert core.seen[-5:] == ["terminal.rm", "terminal.get", "terminal.rm", "terminal.get", "terminal.rm"]
    assert core.count("terminal.kill") == 1


def test_a_removal_without_an_answer_is_decided_by_the_next_look() -> None:
    core = Core()

    def removed_without_answer() -> None:
        core.terminals.clear()
        raise SupervisorError("outcome-unknown", "terminal.rm: no answer", known="unknown")

    core.hooks = {"terminal.rm": removed_without_answer}
    assert retire(core)[0].removed
    assert core.count("terminal.rm") == 1


def test_one_failed_look_is_not_the_end() -> None:
    core = Core()
    core.hooks = {"terminal.get": raising(core_error("internal"), None, core_error("internal"))}
    result, _ = retire(core)
    assert (result.ended, result.removed) == (True, True)


def test_a_core_that_answers_nothing_ends_in_bounded_time_without_a_change() -> None:
    core = Core()
    core.terminals[NAME] = HANGING
    result, at = retire(core)
    assert (result.ended, result.removed) == (False, False)
    assert result.note
    assert at <= RETIRE_MS / 1000
    assert set(core.seen) == {"terminal.get"}


@pytest.mark.parametrize("other", [{"created_ms": 3000}, {"argv": ["/bin/bash"]}, {"address": "t77"}])
def test_the_terminal_of_a_successor_is_left_alone(other: dict[str, Any]) -> None:
    core = Core(**other)
    result, _ = retire(core)
    assert (result.ended, result.removed) == (False, False)
    assert "another terminal" in (result.note or "")
    assert set(core.seen) == {"terminal.get"}


def test_a_successor_that_comes_while_the_old_one_dies_is_left_alone() -> None:
    core = Core()

    def replaced() -> None:
        core.terminals[NAME] = {**LIVE, "created_ms": 3000}
        raise core_error("not_live")

    core.hooks = {"terminal.kill": replaced}
    result, _ = retire(core)
    assert not result.removed
    assert core.count("terminal.rm") == 0


def test_a_renamed_terminal_is_left_alone_and_not_called_gone() -> None:
    core = Core()
    core.terminals = {"my review": {**LIVE, "name": "my review"}}
    result, _ = retire(core)
    assert (result.ended, result.removed) == (False, False)
    assert "my review" in (result.note or "")
    assert set(core.seen) == {"terminal.get"}


def test_even_an_unforeseen_failure_is_a_note() -> None:
    core = Core()

    def broken() -> None:
        raise RuntimeError("unforeseen")

    core.hooks = {"terminal.kill": broken}
    result, _ = retire(core)
    assert "unforeseen" in (result.note or "")


def test_a_retire_does_not_wait_for_a_send_that_the_core_holds() -> None:
    core, child = Core(), a_child()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        supervisor = TerminalSupervisor(core, {})
        held = asyncio.create_task(supervisor.steer(child, "x"))
        await asyncio.sleep(0.1)
        assert core.seen[-1] == "terminal.send"
        assert (await supervisor.retire(child)).removed
        assert loop.time() <= 1
        await asyncio.gather(held, return_exceptions=True)

    run(main())


def test_the_failure_of_one_does_not_keep_the_others_from_their_end() -> None:
    core = Core()
    core.terminals = {name: {**LIVE, "name": name, "address": name} for name in ("a", "b", "c")}
    core.hooks = {"terminal.kill": raising(None, core_error("permission"), None)}

    async def main() -> None:
        supervisor = TerminalSupervisor(core, {}, retire_ms=2_000)
        children = [a_child(name=name, address=name) for name in ("a", "b", "c")]
        results = await asyncio.gather(*(supervisor.retire(child) for child in children))
        assert [result.removed for result in results] == [True, False, True]
        assert "permission" in (results[1].note or "")

    run(main())


def test_a_retired_childs_name_is_free_again() -> None:
    request = SpawnRequest(
        agent="centurion", run_id="run00001", handle="alpha", task="t", cwd="/", session_file="/s", worktree=True
    )

    class Starting(Core):
        async def ask(
            self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
        ) -> Answer:
            if method == "terminal.run":
                self.seen.append(method)
                self.terminals[params["name"]] = {**LIVE, "argv": params["argv"]}
                return Answer(result=self.terminals[params["name"]], core_id="core-1", link=1)
            return await super().ask(method, params, on_link=on_link, within_ms=within_ms)

        async def hello(self) -> Any:
            return None

    core = Starting()

    async def main() -> None:
        supervisor = TerminalSupervisor(core, {})
        first = await supervisor.spawn(request)
        assert (await supervisor.retire(first)).removed
        second = await supervisor.spawn(request)
        assert second is not first

    run(main())
    assert core.count("terminal.run") == 2
