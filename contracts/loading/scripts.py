"""The program of headless children in a scenario: the script that it stands for, and what is wrong with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.loading.problem import Problem, nearest
from contracts.scenario import Pi, Scenario
from hc_sim.programs.pi_rpc.script import complete

RECORDINGS: Final = Path(__file__).parents[1] / "recordings" / "rpc"
"""What the real program said, one file a recording."""


def script_of(pi: Pi) -> dict[str, Any]:
    """The script of `hc_sim.programs.install_pi` that a world's table stands for."""
    return {name: value for name, value in msgspec.structs.asdict(pi).items() if name != "recording"}


def pi_problems(scenario: Scenario) -> Iterator[Problem]:
    """Everything that is wrong with the `pi` of a scenario's world, or with there being none."""
    world = scenario.world
    if world.pi is None:
        if world.child:
            yield Problem("world.child", "says how a headless child ends; give the world its program, [world.pi]")
        return
    if "memory" in scenario.hosts:
        yield Problem("world.pi", "only the socket host starts a pi; use hosts = ['socket']")
    if world.pi.recording:
        known = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))
        if world.pi.recording not in known:
            near = nearest(world.pi.recording, known)
            yield Problem("world.pi.recording", f"there is no recording {world.pi.recording!r}{near}")
        if world.pi.reply or world.pi.twist or world.child:
            yield Problem("world.pi.recording", "says everything itself; leave out reply, twist and world.child")
    try:
        complete(script_of(world.pi))
    except ValueError as error:
        place, _, message = str(error).partition(": ")
        yield Problem(f"world.pi.{place}", message)
