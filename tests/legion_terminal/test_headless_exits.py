"""The exit table on real processes, and how a child is ended: signals, groups, grandchildren, held pipes."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from headless_world import AT_WORK, RUN, SETTLED, STARTED, World, alive, children, run

from legion_terminal.headless import HeadlessSupervisor
from legion_terminal.settle import SettleResult


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def waited(world: World, *story: str, timeout_ms: float = 5_000) -> SettleResult:
    found: list[SettleResult] = []

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        found.append(await supervisor.wait_settled(child, timeout_ms))

    run(world, story, main)
    return found[0]


@pytest.mark.parametrize(
    ("end", "code", "name"),
    [
        ("exit 0", 0, None),
        ("exit 1", 1, None),
        ("exit 137", 137, None),
        ("exit 143", 143, None),
        ("kill SIGKILL", None, "SIGKILL"),
        ("kill SIGTERM", None, "SIGTERM"),
    ],
)
def test_an_unexpected_end_is_abnormal_with_code_or_signal_as_delivered(
    world: World, end: str, code: int | None, name: str | None
) -> None:
    result = waited(world, *AT_WORK, end)

    assert (result.settled, result.abnormal, result.reason, result.node) == (False, True, "gone", "failed")
    assert (result.exit_code, result.signal) == (code, name)
    assert result.last_turn == 1


def test_an_end_that_somebody_else_has_collected_is_unknown_and_abnormal(world: World) -> None:
    found: list[SettleResult] = []

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        pid = supervisor.pid(child)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)  # noqa: ASYNC222 - at once: nobody can know its code any more
        found.append(await supervisor.wait_settled(child, 5_000))

    run(world, (*AT_WORK, "stay"), main)

    [result] = found
    assert (result.settled, result.abnormal, result.node) == (False, True, "failed")
    assert (result.exit_code, result.signal) == (None, None)


def test_an_end_that_somebody_else_has_collected_is_retired_when_it_was_asked_for(world: World) -> None:
    found: list[SettleResult] = []

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        pid = supervisor.pid(child)
        assert pid is not None
        retiring = asyncio.create_task(supervisor.retire(child))
        await asyncio.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)  # noqa: ASYNC222
        assert (await retiring).ended
        found.append(await supervisor.wait_settled(child, 5_000))

    run(world, ("ignore SIGTERM", *AT_WORK, "stay"), main)

    [result] = found
    assert (result.settled, result.abnormal, result.node) == (False, False, "retired")
    assert (result.exit_code, result.signal) == (None, None)


@pytest.mark.parametrize("end", ["exit 0", "exit 3", "kill SIGKILL"])
def test_an_end_without_a_word_before_the_prompt_was_read_is_a_row_too(world: World, end: str) -> None:
    result = waited(world, end)

    assert (result.settled, result.abnormal, result.node) == (False, True, "failed")


@pytest.mark.parametrize("aborted", ["true", "false"])
def test_agent_settled_settles_and_says_aborted(world: World, aborted: str) -> None:
    result = waited(world, *AT_WORK, f'say {{"type":"agent_settled","aborted":{aborted}}}', "idle")

    assert (result.settled, result.abnormal, result.reason, result.node) == (True, False, None, "settled")
    assert result.aborted is (aborted == "true")


def test_agent_end_settles_nothing_and_a_timeout_leaves_the_process_alive(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        result = await supervisor.wait_settled(child, 150)
        assert (result.settled, result.abnormal, result.reason, result.node) == (False, False, "timeout", "timeout")
        assert (await supervisor.status(child)).state == "running"
        assert alive(supervisor.pid(child) or 0)
        late = await supervisor.wait_settled(child, 5_000)
        assert late.settled

    retried = 'say {"type":"agent_end","willRetry":true}'
    run(world, (*AT_WORK, retried, RUN, 'say {"type":"agent_end"}', "sleep 0.4", SETTLED, "idle"), main)


def test_a_parent_that_calls_the_wait_off_ends_it_and_nothing_else(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        off = asyncio.Event()
        waiting = asyncio.create_task(supervisor.wait_settled(child, 5_000, off))
        await asyncio.sleep(0.05)
        off.set()
        result = await waiting
        assert (result.settled, result.abnormal, result.node) == (False, False, "aborted")
        assert result.reason == "aborted by parent"
        assert [one["type"] for one in world.commands()] == ["prompt"]
        assert (await supervisor.status(child)).state == "running"

    run(world, (*AT_WORK, "idle"), main)


@pytest.mark.parametrize(
    ("deaf", "code", "name"),
    [
        ("on SIGTERM 0", 0, None),
        ("on SIGTERM 1", 1, None),
        ("on SIGTERM 143", 143, None),
        ("sleep 0", None, "SIGTERM"),
        ("ignore SIGTERM", None, "SIGKILL"),
    ],
)
def test_an_exit_while_retiring_is_retired_whatever_the_code(
    world: World, deaf: str, code: int | None, name: str | None
) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        waiting = asyncio.create_task(supervisor.wait_settled(child, 5_000))
        await asyncio.sleep(0)
        first, second = await asyncio.gather(supervisor.retire(child), supervisor.retire(child))
        assert first is second
        assert (first.ended, first.removed, first.note) == (True, True, None)
        result = await waiting
        assert (result.settled, result.abnormal, result.reason, result.node) == (False, False, "retired", "retired")
        assert (result.exit_code, result.signal) == (code, name)
        assert await supervisor.wait_settled(child, 0) == result
        assert (await supervisor.retire(child)).ended

    run(world, (deaf, *AT_WORK, "stay"), main)


def test_a_child_that_ends_within_the_grace_is_not_killed(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        await supervisor.retire(child)
        assert (await supervisor.wait_settled(child, 0)).exit_code == 7

    run(world, ("on SIGTERM 7", *AT_WORK, "stay"), main, {"grace_ms": 5_000})


def test_a_settled_result_stands_whatever_comes_later(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        settled = await supervisor.wait_settled(child, 5_000)
        assert settled.settled
        while (await supervisor.status(child)).state == "running":  # noqa: ASYNC110  (nothing else tells of it)
            await asyncio.sleep(0.01)
        assert (await supervisor.wait_settled(child, 0)).settled
        assert (await supervisor.status(child)).exit_code == 1
        assert (await supervisor.retire(child)).ended
        assert (await supervisor.wait_settled(child, 0)).settled

    run(world, (*AT_WORK, SETTLED, "sleep 0.1", "exit 1"), main)


def test_a_settle_that_is_still_in_the_pipe_at_the_exit_counts(world: World) -> None:
    event = 'say {"type":"message_update","text":"' + "x" * 900 + '"}'
    result = waited(world, *AT_WORK, f"many 230 {event}", SETTLED, "exit 0")

    assert result.settled


def test_the_exit_is_judged_when_the_output_has_ended_and_not_before(world: World) -> None:
    assert waited(world, *AT_WORK, 'late {"type":"agent_settled","aborted":false}', "exit 0").settled


def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_result(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        leader = supervisor.pid(child) or 0
        result = await supervisor.wait_settled(child, 10_000)
        assert (result.abnormal, result.exit_code) == (True, 1)
        for _ in range(200):  # it was killed with the group, which takes a moment to show
            if not alive(leader, group=True):
                return
            await asyncio.sleep(0.01)
        pytest.fail("the grandchild lives")

    run(world, (*AT_WORK, "hold 30", "sleep 0.1", "exit 1"), main)


def test_a_retire_ends_the_whole_group(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        leader = supervisor.pid(child) or 0
        await asyncio.sleep(0.05)
        result = await supervisor.retire(child)
        assert (result.ended, result.note) == (True, None)
        assert not alive(leader, group=True)

    run(world, ("ignore SIGTERM", *AT_WORK, "hold 30", "stay"), main)


def test_a_kill_ends_the_tools_that_the_child_was_running_in_groups_of_their_own(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        leader = supervisor.pid(child) or 0
        await asyncio.sleep(0.1)
        (tool,) = children(of=leader)
        assert os.getpgid(tool) != leader
        assert (await supervisor.retire(child)).ended
        assert (await supervisor.wait_settled(child, 0)).signal == "SIGKILL"
        for _ in range(200):
            if not alive(tool):
                return
            await asyncio.sleep(0.01)
        pytest.fail("the tool lives")

    run(world, ("ignore SIGTERM", *AT_WORK, "tool 30", "stay"), main)


def test_a_child_that_was_retired_takes_no_commands_and_another_of_its_name_may_start(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        await supervisor.retire(child)
        for call in (supervisor.steer(child, "x"), supervisor.abort(child), supervisor.clear_queue(child)):
            with pytest.raises(Exception, match="ended") as caught:
                await call
            assert getattr(caught.value, "code", "") == "gone"
        assert (await supervisor.spawn(world.request())).handle == "alpha"

    run(world, ("echo",), main)


def test_closing_retires_every_child_and_open_waits_end(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        children = [await supervisor.spawn(world.request(handle)) for handle in ("a", "b")]
        waits = [asyncio.create_task(supervisor.wait_settled(child, 60_000)) for child in children]
        await asyncio.sleep(0)
        await supervisor.close()
        assert [(await wait).node for wait in waits] == ["retired", "retired"]
        with pytest.raises(Exception, match="closed"):
            await supervisor.spawn(world.request("c"))

    run(world, (*AT_WORK, "stay"), main)


def test_output_that_is_closed_early_ends_commands_and_no_wait(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        with pytest.raises(Exception, match="closed its output"):
            await supervisor.steer(child, "x")
        assert (await supervisor.wait_settled(child, 50)).reason == "timeout"

    run(world, (*AT_WORK, "close 1", "stay"), main, {"drain_ms": 50})


def test_an_end_by_hand_is_seen(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        os.kill(supervisor.pid(child) or 0, signal.SIGHUP)
        assert (await supervisor.wait_settled(child, 5_000)).signal == "SIGHUP"

    run(world, ("read", STARTED, "stay"), main)
