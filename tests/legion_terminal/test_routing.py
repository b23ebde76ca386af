"""Arbitration, spawn guard, owner map, routing over the three modes (D1, D2, I1, I4 to I6)."""

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.errors import SupervisorError
from legion_terminal.routing import (
    INPROCESS_WORKTREE,
    RoutingSupervisor,
    arbitrate,
    check_spawn,
    may_hold_worktree,
    mode_label,
)
from legion_terminal.settle import Observation, SettleResult
from legion_terminal.types import (
    SPAWN_MODES,
    AbortResult,
    Cancel,
    Capabilities,
    Child,
    RetireResult,
    SpawnMode,
    SpawnRequest,
    SteerResult,
    Supervisor,
    Verdict,
)

INSIDE = {"HC_TERMINAL_SOCKET": "/s", "HC_TERMINAL_ID": "t1"}
OUTSIDES: list[Mapping[str, str]] = [
    {},
    {"HC_TERMINAL_SOCKET": "/s"},
    {"HC_TERMINAL_ID": "t1"},
    {"HC_TERMINAL_SOCKET": "", "HC_TERMINAL_ID": "t1"},
    {"HC_TERMINAL_SOCKET": "/s", "HC_TERMINAL_ID": ""},
    {"HC_SOCKET": "/s", "HC_SESSION": "x", "HERDR_ENV": "1"},
]
ROLES = ["centurion", "worker", "scout", "vexillatio", "utility", "Centurion", ""]
REQUEST = SpawnRequest(agent="worker", run_id="r", handle="w", task="t", cwd="/", session_file="/s")


class Backend:
    """A `Supervisor` that records what it is asked."""

    def __init__(self, mode: SpawnMode, *, claims: bool = False, fails_to_close: bool = False) -> None:
        self.mode = mode
        self.claims = claims
        self.fails_to_close = fails_to_close
        self.asked: list[str] = []
        self.children: list[Child] = []
        self.numbers = itertools.count(1)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(prompt_disposition=self.claims, events=self.claims)

    async def spawn(self, request: SpawnRequest) -> Child:
        self.asked.append("spawn")
        return Child(
            id=f"{self.mode}{next(self.numbers)}", mode=self.mode, handle=request.handle, run_id="r", session_file="/s"
        )

    async def steer(self, child: Child, text: str) -> SteerResult:
        self.asked.append(f"steer {text}")
        self.children.append(child)
        return SteerResult(started=True, prompt_turn=1)

    async def abort(self, child: Child) -> AbortResult:
        self.asked.append("abort")
        self.children.append(child)
        return AbortResult()

    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        self.asked.append(f"wait {timeout_ms} {cancelled is not None}")
        self.children.append(child)
        return SettleResult(settled=True)

    async def status(self, child: Child) -> Observation:
        self.asked.append("status")
        self.children.append(child)
        return Observation(turn=1, status="done", state="running")

    async def collect(self, child: Child) -> Verdict:
        self.asked.append("collect")
        self.children.append(child)
        return Verdict(outcome="accept")

    async def retire(self, child: Child) -> RetireResult:
        self.asked.append("retire")
        self.children.append(child)
        return RetireResult(ended=True, removed=True)

    async def close(self) -> None:
        self.asked.append("close")
        if self.fails_to_close:
            raise RuntimeError(f"{self.mode} does not close")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("env", [INSIDE, *OUTSIDES])
def test_the_whole_truth_table(role: str, env: Mapping[str, str]) -> None:
    assert arbitrate(role, False, env) == "inprocess"
    expected = "terminal" if role == "centurion" and env is INSIDE else "rpc"
    assert arbitrate(role, True, env) == expected


@given(st.text(), st.dictionaries(st.text(max_size=3), st.text(max_size=3)))
def test_without_the_markers_only_the_worktree_decides(role: str, env: dict[str, str]) -> None:
    assert arbitrate(role, True, env) == "rpc"
    assert arbitrate(role, False, env) == "inprocess"


@pytest.mark.parametrize("worktree", [1, "true", None, 0])
def test_only_true_itself_is_a_worktree(worktree: Any) -> None:
    assert arbitrate("centurion", worktree, INSIDE) == "inprocess"


def test_every_mode_has_a_label_and_an_answer_about_worktrees() -> None:
    assert [mode_label(mode) for mode in ("inprocess", "rpc", "terminal")] == ["in process", "headless", "terminal"]
    assert len({mode_label(mode) for mode in SPAWN_MODES}) == len(SPAWN_MODES)
    assert {mode: may_hold_worktree(mode) for mode in SPAWN_MODES} == {
        "inprocess": False,
        "rpc": True,
        "terminal": True,
    }


@pytest.mark.parametrize("mode", SPAWN_MODES)
@pytest.mark.parametrize("role", ROLES)
def test_only_a_centurion_outside_this_process_may_hold_a_worktree(mode: SpawnMode, role: str) -> None:
    request = replace(REQUEST, agent=role)
    check_spawn(mode, request)
    if role == "centurion" and mode != "inprocess":
        check_spawn(mode, replace(request, worktree=True))
        return
    with pytest.raises(SupervisorError) as caught:
        check_spawn(mode, replace(request, worktree=True))
    assert caught.value.code == "worktree-refused"


def test_a_refused_worktree_is_told_with_the_child_the_role_and_what_to_do() -> None:
    with pytest.raises(SupervisorError) as caught:
        check_spawn("terminal", replace(REQUEST, worktree=True))
    error = caught.value
    assert error.child == "w"
    assert error.message == "only a centurion can hold a worktree, and this is 'worker'"
    assert error.hint == "start it without a worktree, or as a centurion"


def test_the_frozen_refusal_of_a_worktree_in_process_names_the_child() -> None:
    with pytest.raises(SupervisorError) as caught:
        check_spawn("inprocess", replace(REQUEST, agent="centurion", worktree=True))
    assert (caught.value.child, caught.value.message) == ("w", INPROCESS_WORKTREE)


def backends(**more: Any) -> dict[SpawnMode, Backend]:
    return {mode: Backend(mode, **more) for mode in SPAWN_MODES}


def router(mine: Mapping[SpawnMode, Backend], env: Mapping[str, str] = INSIDE) -> RoutingSupervisor:
    filled: dict[SpawnMode, Supervisor] = dict(mine)
    return RoutingSupervisor(filled, env)


@pytest.mark.parametrize(
    ("agent", "worktree", "env", "mode"),
    [
        ("worker", False, INSIDE, "inprocess"),
        ("centurion", False, INSIDE, "inprocess"),
        ("centurion", True, INSIDE, "terminal"),
        ("centurion", True, {}, "rpc"),
    ],
)
def test_a_child_belongs_to_the_backend_that_started_it(
    agent: str, worktree: bool, env: Mapping[str, str], mode: SpawnMode
) -> None:
    async def main() -> None:
        mine = backends()
        routing = router(mine, env)
        child = await routing.spawn(replace(REQUEST, agent=agent, worktree=worktree))
        assert routing.owner(child) == mode
        assert routing.backend_for(child) is mine[mode]
        await routing.steer(child, "x")
        await routing.abort(child)
        await routing.wait_settled(child, 5, asyncio.Event())
        await routing.status(child)
        await routing.collect(child)
        await routing.retire(child)
        assert mine[mode].asked == ["spawn", "steer x", "abort", "wait 5 True", "status", "collect", "retire"]
        assert mine[mode].children == [child] * 6
        assert [backend.asked for other, backend in mine.items() if other != mode] == [[], []]

    asyncio.run(main())


@pytest.mark.parametrize("role", [role for role in ROLES if role != "centurion"])
def test_every_other_role_is_refused_a_worktree_before_any_backend_is_asked(role: str) -> None:
    async def main() -> None:
        mine = backends()
        with pytest.raises(SupervisorError) as caught:
            await router(mine).spawn(replace(REQUEST, agent=role, worktree=True))
        assert caught.value.code == "worktree-refused"
        assert [backend.asked for backend in mine.values()] == [[], [], []]

    asyncio.run(main())


def test_an_empty_slot_says_so_and_no_other_backend_steps_in() -> None:
    async def main() -> None:
        mine = backends()
        del mine["rpc"]
        with pytest.raises(SupervisorError) as caught:
            await router(mine, {}).spawn(replace(REQUEST, agent="centurion", worktree=True))
        assert caught.value.code == "mode-unavailable"
        assert "rpc" in caught.value.message
        assert (caught.value.child, caught.value.hint) == ("w", "give one to the RoutingSupervisor")
        assert [backend.asked for backend in mine.values()] == [[], []]

    asyncio.run(main())


def test_a_strangers_child_is_refused_and_its_retire_only_notes_it() -> None:
    async def main() -> None:
        mine = backends()
        stranger = await Backend("inprocess").spawn(REQUEST)
        routing = router(mine)
        assert routing.owner(stranger) is None
        with pytest.raises(SupervisorError) as caught:
            await routing.steer(stranger, "x")
        assert (caught.value.code, caught.value.child) == ("bad-request", "w")
        assert caught.value.message == "it was not started by this supervisor"
        retired = await routing.retire(stranger)
        assert (retired.ended, retired.removed) == (False, False)
        assert retired.note
        assert [backend.asked for backend in mine.values()] == [[], [], []]

    asyncio.run(main())


def test_a_child_whose_backend_has_gone_is_named_by_its_handle() -> None:
    async def main() -> None:
        mine = backends()
        routing = router(mine)
        child = await routing.spawn(REQUEST)
        routing._backends.clear()
        with pytest.raises(SupervisorError) as caught:
            await routing.status(child)
        assert (caught.value.code, caught.value.child) == ("mode-unavailable", "w")

    asyncio.run(main())


def test_a_stranger_with_a_terminal_is_named_by_it() -> None:
    async def main() -> None:
        stranger = replace(await Backend("terminal").spawn(REQUEST), name="lgl-r-w")
        with pytest.raises(SupervisorError) as caught:
            router(backends()).backend_for(stranger)
        assert caught.value.child == "lgl-r-w"

    asyncio.run(main())


def test_what_one_backend_cannot_do_is_not_claimed_for_all() -> None:
    mixed = {mode: Backend(mode, claims=mode == "inprocess") for mode in SPAWN_MODES}
    assert router(mixed).capabilities == Capabilities()
    assert router(backends(claims=True)).capabilities == Capabilities(prompt_disposition=True, events=True)
    assert router({}).capabilities == Capabilities()


def test_closing_closes_every_backend_even_when_one_fails() -> None:
    async def main() -> None:
        mine = backends(fails_to_close=True)
        with pytest.raises(RuntimeError, match="inprocess"):
            await router(mine).close()
        assert [backend.asked for backend in mine.values()] == [["close"]] * 3
        await router(backends()).close()

    asyncio.run(main())
