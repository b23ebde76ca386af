"""What a child does at the worst moment: it ends at once, tells things twice, asks without end, crashes unasked."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from headless_world import AT_WORK, RUN, SETTLED, STARTED, World, run

from legion_terminal.errors import SupervisorError
from legion_terminal.headless import HeadlessSupervisor
from legion_terminal.rpc import process
from legion_terminal.rpc.messages import Dialog
from legion_terminal.rpc.running import MAX_COMMAND_BYTES
from legion_terminal.types import Child

QUESTION = 'say {"type":"extension_ui_request","id":"%s","method":"confirm","title":"t","message":"m"}'


@pytest.mark.parametrize(
    ("script", "exit_code", "signal"),
    [("exit 0", 0, None), ("exec 0<&- 1>&- 2>&-; exit 3", 3, None), ("exec 1>&-; kill -9 $$", None, "SIGKILL")],
)
def test_a_program_that_has_ended_before_its_pipes_are_attached_is_a_row_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, exit_code: int | None, signal: str | None
) -> None:
    world = World(tmp_path)
    program = tmp_path / "quick"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)

    class Ended(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **rest: Any) -> None:
            super().__init__(*args, **rest)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    monkeypatch.setattr(f"{process.__name__}.subprocess.Popen", Ended)

    async def main(supervisor: HeadlessSupervisor) -> None:
        result = await supervisor.wait_settled(await supervisor.spawn(world.request()), 5_000)
        assert (result.settled, result.node, result.exit_code, result.signal) == (False, "failed", exit_code, signal)

    run(world, (), main, {"program": (str(program),)})


def test_an_end_that_is_told_twice_does_not_settle_the_next_prompt(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 5_000)).settled
        await supervisor.steer(child, "more")
        assert (await supervisor.wait_settled(child, 0)).node == "timeout"
        assert (await supervisor.wait_settled(child, 300)).node == "timeout"

    run(world, (*AT_WORK, SETTLED, "read", SETTLED, STARTED, RUN, "stay"), main)


def test_a_crash_that_was_seen_before_the_retire_is_no_retirement(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        while not supervisor._of(child).process.exited:  # noqa: ASYNC110  (nothing else tells that it was seen)
            await asyncio.sleep(0.01)
        waiting = asyncio.create_task(supervisor.wait_settled(child, 10_000))
        await asyncio.sleep(0)
        await supervisor.retire(child)
        result = await waiting
        assert (result.node, result.abnormal, result.exit_code) == ("failed", True, 3)

    run(world, (*AT_WORK, "hold 5", "exit 3"), main, {"drain_ms": 500})


def test_a_start_that_a_close_ends_is_told_so_and_cancels_nobody(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def main(supervisor: HeadlessSupervisor) -> None:
        starting = asyncio.create_task(supervisor.spawn(world.request()))
        await asyncio.sleep(0.05)
        await supervisor.close()
        with pytest.raises(SupervisorError) as caught:
            await starting
        assert caught.value.code == "closed"

    run(world, ("stay",), main)


def test_a_question_that_is_asked_many_times_is_told_once_and_leaves_no_task(tmp_path: Path) -> None:
    world = World(tmp_path)
    told: list[str] = []

    async def ask(child: Child, dialog: Dialog) -> None:
        told.append(dialog.id)
        await asyncio.sleep(30)

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 5_000)).settled

    story = (*AT_WORK, *[QUESTION % "q"] * 50, SETTLED, "idle")
    run(world, story, main, {"on_blocked": "notify"}, ask=ask)
    assert told == ["q"]


def test_answers_that_nobody_reads_are_bounded(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 20_000)).settled
        assert supervisor._of(child).process.unread() < 2 * MAX_COMMAND_BYTES

    many = f"many 400 {QUESTION % ('x' * 100_000)}"
    run(world, (*AT_WORK, many, SETTLED, "stay"), main, {"on_blocked": "auto-approve"})
