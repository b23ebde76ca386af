"""Two hundred lives that end at random moments leave no process, no zombie and no descriptor behind."""

import asyncio
import os
import random
import signal
from pathlib import Path

from headless_world import AT_WORK, SETTLED, World, run

from legion_terminal.errors import SupervisorError
from legion_terminal.headless import HeadlessSupervisor

LIVES = 200
SIDE_BY_SIDE = 8
SEED = 20261130
SCRIPT = """#!/bin/sh
read line
echo '{"id":"1","type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}'
echo '{"type":"agent_start"}'
(read held; echo noise) &
read line
"""


def test_lives_that_end_at_random_moments_leave_nothing_behind(tmp_path: Path) -> None:
    world = World(tmp_path)
    program = tmp_path / "quick"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    dice = random.Random(SEED)  # noqa: S311  (moments of a test, and no secret)
    nodes: list[str | None] = []

    async def live(supervisor: HeadlessSupervisor, number: int, how: str, after: float) -> None:
        starting = asyncio.create_task(supervisor.spawn(world.request(f"c{number}")))
        if how == "cancelled":
            await asyncio.sleep(after)
            starting.cancel()
        try:
            child = await starting
        except (asyncio.CancelledError, SupervisorError):
            return
        await asyncio.sleep(after)
        pid = supervisor.pid(child)
        if how == "killed" and pid is not None:
            os.kill(pid, signal.SIGKILL)
            nodes.append((await supervisor.wait_settled(child, 10_000)).node)
        elif how == "twice":
            await asyncio.gather(supervisor.retire(child), supervisor.retire(child))
        assert (await supervisor.retire(child)).ended

    async def main(supervisor: HeadlessSupervisor) -> None:
        ways = [("retired", "twice", "killed", "cancelled")[dice.randrange(4)] for _ in range(LIVES)]
        moments = [dice.random() * 0.02 for _ in range(LIVES)]
        for first in range(0, LIVES, SIDE_BY_SIDE):
            numbers = range(first, min(first + SIDE_BY_SIDE, LIVES))
            await asyncio.gather(*(live(supervisor, n, ways[n], moments[n]) for n in numbers))

    run(world, (), main, {"program": (str(program),), "grace_ms": 2_000}, limit_s=60)
    assert set(nodes) == {"failed"}


def test_a_supervisor_that_is_dropped_in_the_middle_of_a_life_leaves_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        waiting = asyncio.create_task(supervisor.wait_settled(child, 60_000))
        await asyncio.sleep(0.01)
        waiting.cancel()
        retiring = asyncio.create_task(supervisor.retire(child))
        await asyncio.sleep(0)
        retiring.cancel()  # the retirement goes on; close waits for it

    run(world, ("ignore SIGTERM", *AT_WORK, SETTLED, "stay"), main)
