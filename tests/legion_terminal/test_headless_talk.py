"""What is said to a headless child and what it says: prompts, steers, aborts, queues, questions, floods."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from headless_world import AT_WORK, RUN, SETTLED, STARTED, World, run

from legion_terminal.errors import SupervisorError
from legion_terminal.headless import HeadlessSupervisor
from legion_terminal.rpc import Dialog, DialogAnswer
from legion_terminal.types import Child, OnBlocked

QUEUED = 'say {"id":"{id}","type":"response","command":"prompt","success":true,"data":{"disposition":"queued"}}'
BUSY = 'say {"id":"{id}","type":"response","command":"prompt","success":false,"error":"already processing"}'
DONE = 'say {"id":"{id}","type":"response","command":"abort","success":true}'
ABORTED = 'say {"type":"agent_settled","aborted":true}'
ASKS = 'say {"type":"extension_ui_request","id":"u1","method":"confirm","title":"Allow bash?","message":"ls"}'


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def said(world: World) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "id"} for one in world.commands()]


def test_the_task_is_the_first_prompt_and_a_steer_after_it_is_a_run_of_its_own(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 5_000)).last_turn == 1
        steered = await supervisor.steer(child, "more\ud800")
        assert (steered.started, steered.disposition, steered.prompt_turn) == (True, "started", 1)
        assert (await supervisor.wait_settled(child, 5_000)).last_turn == 2
        assert (await supervisor.follow_up(child, "then")).started
        assert (await supervisor.prompt(child, "and")).started

    run(world, ("echo",), main)
    first, steer, follow, prompt = said(world)
    assert first["type"] == "prompt"
    assert first["message"].endswith("\n\ndo it")
    assert steer == {"type": "prompt", "message": "more\ufffd", "streamingBehavior": "steer"}
    assert follow == {"type": "prompt", "message": "then", "streamingBehavior": "followUp"}
    assert prompt == {"type": "prompt", "message": "and"}


def test_a_steer_into_a_run_is_answered_with_it(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        steered = await supervisor.steer(child, "S")
        assert (steered.started, steered.disposition) == (False, "queued")
        result = await supervisor.wait_settled(child, 5_000)
        assert (result.settled, result.unconfirmed) == (True, None)

    taken = 'say {"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"S"}]}}'
    run(world, (*AT_WORK, "read", QUEUED, taken, SETTLED, "idle"), main)


def test_a_steer_that_the_run_did_not_take_up_is_told(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        await supervisor.steer(child, "S")
        assert (await supervisor.wait_settled(child, 5_000)).unconfirmed == 1

    run(world, (*AT_WORK, "read", QUEUED, SETTLED, "idle"), main)


def test_a_prompt_to_a_child_at_work_is_refused_and_changes_nothing(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        with pytest.raises(SupervisorError) as caught:
            await supervisor.prompt(child, "x")
        assert (caught.value.code, caught.value.known, caught.value.child) == ("call-failed", "not-applied", "alpha")
        assert "already processing" in caught.value.message
        assert (await supervisor.wait_settled(child, 5_000)).settled

    run(world, (*AT_WORK, "read", BUSY, SETTLED, "idle"), main)


def test_the_events_may_come_before_the_answer_in_one_read(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 5_000)).settled

    answer = r'{"id":"1","type":"response","command":"prompt","success":true}\n'
    run(world, ("read", rf'raw {{"type":"agent_start"}}\n{{"type":"agent_settled"}}\n{answer}', "idle"), main)


def test_the_end_of_an_aborted_run_does_not_settle_the_next_prompt(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        old = asyncio.create_task(supervisor.wait_settled(child, 5_000))
        await supervisor.abort(child)
        await supervisor.steer(child, "next")
        new = asyncio.create_task(supervisor.wait_settled(child, 5_000))
        assert (await old).aborted is True
        result = await new
        assert (result.aborted, result.last_turn) == (False, 2)

    run(world, (*AT_WORK, "read", DONE, "read", STARTED, ABORTED, "sleep 0.1", RUN, SETTLED, "idle"), main)


def test_an_abort_takes_the_queue_back_first(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        await supervisor.steer(child, "S")
        aborted = await supervisor.abort(child)
        assert (aborted.status, aborted.cleared) == ("interrupted", ("S",))
        result = await supervisor.wait_settled(child, 5_000)
        assert (result.aborted, result.unconfirmed) == (True, None)

    cleared = (
        'say {"id":"{id}","type":"response","command":"clear_queue","success":true,'
        '"data":{"steering":["S"],"followUp":[]}}'
    )
    run(world, (*AT_WORK, "read", QUEUED, "read", cleared, "read", ABORTED, DONE, "idle"), main)
    assert [one["type"] for one in said(world)] == ["prompt", "prompt", "clear_queue", "abort"]


def test_an_abort_without_an_answer_comes_back_within_its_bound(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        with pytest.raises(SupervisorError) as caught:
            await supervisor.abort(child)
        assert (caught.value.code, caught.value.known) == ("outcome-unknown", "unknown")
        assert (await supervisor.wait_settled(child, 0)).reason == "timeout"

    run(world, (*AT_WORK, "idle"), main, {"abort_ms": 50})


def test_an_answer_without_an_id_ends_the_command_that_it_fits(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        with pytest.raises(SupervisorError) as caught:
            await supervisor.clear_queue(child)
        assert caught.value.code == "call-failed"
        assert "Unknown command" in caught.value.message

    lost = 'say {"type":"response","command":"clear_queue","success":false,"error":"Unknown command"}'
    foreign = 'say {"id":"99","type":"response","command":"clear_queue","success":true}'
    run(world, (*AT_WORK, "read", foreign, lost, "idle"), main)


def test_a_command_that_is_under_way_at_the_end_of_the_child_fails_at_once(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        with pytest.raises(SupervisorError) as caught:
            await supervisor.steer(child, "x")
        assert (caught.value.code, caught.value.known) == ("gone", "unknown")
        assert "exit code 4: TypeError: bad" in caught.value.message

    run(world, (*AT_WORK, "read", "err TypeError: bad", "exit 4"), main)


def test_only_objects_are_written_over_a_whole_life(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        await supervisor.wait_settled(child, 5_000)
        await supervisor.steer(child, "null")
        await supervisor.abort(child)
        await supervisor.clear_queue(child)

    run(world, ("echo",), main)
    assert len(world.commands()) == 4
    assert all(isinstance(one, dict) for one in world.commands())


def test_one_megabyte_of_errors_and_three_of_events_block_nobody(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 10_000)).settled

    run(world, (*AT_WORK, "flood 2 1000000", "flood 1 3000000", SETTLED, "idle"), main)


def test_a_giant_line_is_passed_over(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 15_000)).settled

    run(world, (*AT_WORK, "giant 1 20000000", SETTLED, "idle"), main)


@pytest.mark.parametrize(
    ("policy", "told"), [("auto-approve", {"confirmed": True}), ("notify", {"cancelled": True}), ("forward", {})]
)
def test_a_question_is_answered_by_the_policy(world: World, policy: OnBlocked, told: dict[str, Any]) -> None:
    asked: list[str] = []
    argv: list[str] = []

    async def ask(child: Child, dialog: Dialog) -> DialogAnswer | None:
        asked.append(f"{child.handle}: {dialog.title}")
        return None

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request(on_blocked=policy))
        argv.extend(child.argv)
        if policy == "forward":
            assert (await supervisor.wait_settled(child, 100)).last_status == "blocked"
            assert [dialog.id for dialog in supervisor.dialogs(child)] == ["u1"]
            assert await supervisor.answer(child, DialogAnswer(confirmed=False))
            assert not await supervisor.answer(child, DialogAnswer(confirmed=True))
        assert (await supervisor.wait_settled(child, 5_000)).settled

    run(world, (*AT_WORK, ASKS, "read", SETTLED, "idle"), main, ask=ask)
    assert "--approve" not in argv  # the policy is not pi's own trust
    assert said(world)[1:] == [{"type": "extension_ui_response", **(told or {"confirmed": False})}]
    assert asked == ([] if policy == "auto-approve" else ["alpha: Allow bash?"])


@pytest.mark.parametrize("fails", [False, True])
def test_the_parent_answers_a_forwarded_question_or_it_is_cancelled(world: World, fails: bool) -> None:
    async def ask(child: Child, dialog: Dialog) -> DialogAnswer:
        if fails:
            raise RuntimeError("nobody is at home")
        return DialogAnswer(confirmed=True)

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 5_000)).settled

    run(world, (*AT_WORK, ASKS, "read", SETTLED, "idle"), main, ask=ask)
    assert said(world)[1:] == [
        {"type": "extension_ui_response", **({"cancelled": True} if fails else {"confirmed": True})}
    ]


def test_a_question_that_nobody_answers_is_cancelled_and_one_with_a_time_of_its_own_gets_no_late_answer(
    world: World,
) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 5_000)).settled
        assert supervisor.dialogs(child) == ()

    timed = 'say {"type":"extension_ui_request","id":"u2","method":"select","options":["a"],"timeout":20}'
    notice = 'say {"type":"extension_ui_request","id":"u3","method":"notify","message":"hi"}'
    odd = 'say {"type":"extension_ui_request","id":"u4","method":"hologram"}'
    story = (*AT_WORK, timed, notice, odd, "read", ASKS, "read", SETTLED, "idle")
    run(world, story, main, {"dialog_ms": 200})
    assert [(one["id"], one.get("cancelled")) for one in world.commands()[1:]] == [("u4", True), ("u1", True)]


@pytest.mark.parametrize("ending", ["abort", "retire"])
def test_an_open_question_is_cancelled_before_an_abort_or_a_retire(world: World, ending: str) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        await supervisor.wait_settled(child, 50)
        if ending == "abort":
            await supervisor.abort(child)
        else:
            await supervisor.retire(child)

    after = ("read", DONE, "exit 0") if ending == "abort" else ("exit 0",)
    run(world, ("ignore SIGTERM", *AT_WORK, ASKS, "read", *after), main, {"grace_ms": 5_000})
    assert said(world)[1] == {"type": "extension_ui_response", "cancelled": True}


def test_a_prompt_without_an_answer_is_unknown_and_its_late_answer_counts(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        with pytest.raises(SupervisorError) as caught:
            await supervisor.steer(child, "S")
        assert caught.value.code == "outcome-unknown"
        assert (await supervisor.wait_settled(child, 5_000)).settled

    run(world, (*AT_WORK, "read", "sleep 0.2", QUEUED, SETTLED, "idle"), main, {"call_ms": 50})


def test_a_caller_that_is_cancelled_leaves_the_prompt_to_its_answer(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        steering = asyncio.create_task(supervisor.steer(child, "S"))
        await asyncio.sleep(0.02)
        steering.cancel()
        assert (await supervisor.wait_settled(child, 5_000)).settled

    run(world, (*AT_WORK, "read", "sleep 0.1", QUEUED, SETTLED, "idle"), main)


def test_the_verdict_is_read_from_the_session_file(world: World) -> None:
    session = world.folder / "alpha.jsonl"

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        await supervisor.wait_settled(child, 5_000)
        assert (await supervisor.collect(child)).outcome == "unknown"
        session.write_text(
            '{"type":"session","id":"s","cwd":"/"}\n'
            '{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"x"}}\n'
            '{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","stopReason":"stop",'
            '"content":[{"type":"text","text":"VERDICT: accept"}]}}\n'
        )
        assert (await supervisor.collect(child)).outcome == "accept"
        await supervisor.steer(child, "again")
        verdict = await supervisor.collect(child)
        assert (verdict.outcome, verdict.reason) == ("unknown", "the prompt that was sent is not in the session file")

    run(world, ("echo",), main)
