"""How a headless child is started, and the one clear error of each start that cannot be."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from headless_world import AT_WORK, SETTLED, World, alive, mode, run

from legion_terminal.errors import SupervisorError
from legion_terminal.headless import HeadlessSupervisor
from legion_terminal.routing import RoutingSupervisor
from legion_terminal.rpc import MemoryShortage
from legion_terminal.types import Capabilities


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def refused(world: World, *story: str, settings: dict[str, Any] | None = None, **request: Any) -> SupervisorError:
    found: list[SupervisorError] = []

    async def main(supervisor: HeadlessSupervisor) -> None:
        with pytest.raises(SupervisorError) as caught:
            await supervisor.spawn(world.request(**request))
        found.append(caught.value)
        assert not world.children()

    run(world, story, main, settings)
    assert found[0].child == "alpha"
    assert "\n" not in str(found[0])
    return found[0]


def test_a_child_is_rpc_mode_in_a_session_of_its_own_with_an_open_input(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request(model="m", approve=True))
        pid = supervisor.pid(child) or 0
        await supervisor.wait_settled(child, 5_000)
        assert (child.mode, child.name, child.prompt_turn) == ("rpc", "", 0)
        assert child.argv[:3] == ("pi", "--mode", "rpc")
        assert child.argv[-1] == "--approve"
        assert os.getpgid(pid) == os.getsid(pid) == pid
        assert supervisor.capabilities == Capabilities(prompt_disposition=True, events=False)
        assert mode(child.session_file) == 0o600
        await asyncio.sleep(0.05)
        assert alive(pid)  # it reads until the end of its input, which has not come

    run(world, (*AT_WORK, SETTLED, "idle"), main)


def test_a_session_file_that_is_there_is_left_as_it_is(world: World) -> None:
    session = world.folder / "alpha.jsonl"
    session.write_text('{"type":"session","id":"s"}\n')
    session.chmod(0o640)

    async def main(supervisor: HeadlessSupervisor) -> None:
        await supervisor.spawn(world.request())

    run(world, ("echo",), main)
    assert session.read_text() == '{"type":"session","id":"s"}\n'
    assert mode(str(session)) == 0o640


def test_no_such_program(world: World) -> None:
    error = refused(world, settings={"program": ("no-such-pi",)})

    assert (error.code, error.known) == ("program-missing", "not-sent")
    assert "'no-such-pi' cannot be started: No such file" in error.message
    assert not (world.folder / "alpha.jsonl").exists()


def test_a_program_that_may_not_be_run(world: World) -> None:
    (world.folder / "pi").chmod(0o644)

    assert refused(world, settings={"program": (str(world.folder / "pi"),)}).code == "program-missing"


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ((r"raw usage: it [options]\n", "exit 2"), "'usage: it [options]', and ended with exit code 2"),
        ((r"many 30 raw line 0\n", "stay"), "'line 0'"),
        ((r"raw hello\n", "stay"), "'hello'"),
    ],
)
def test_a_program_that_speaks_no_json(world: World, story: tuple[str, ...], words: str) -> None:
    error = refused(world, *story, settings={"start_ms": 400})

    assert error.code == "protocol"
    assert f"it does not speak the rpc protocol: it wrote {words}" in error.message


def test_a_program_that_says_nothing_at_all(world: World) -> None:
    assert refused(world, "stay", settings={"start_ms": 100}).code == "call-timeout"


def test_a_node_that_is_too_old(world: World) -> None:
    stderr = "SyntaxError: The requested module 'node:module' does not provide an export named 'registerHooks'"
    error = refused(world, "err file:///opt/pi/cli.js:2", f"err {stderr}", "err Node.js v20.20.2", "exit 1")

    assert error.code == "start-failed"
    assert "too old" in error.message
    assert "exit code 1: SyntaxError" in error.message
    assert "node 22.19" in error.hint


def test_a_model_that_is_not_known(world: World) -> None:
    error = refused(world, "err Warning: x", "err Error: Model nope/x not found", "exit 1")

    assert error.message == "it did not start: it ended with exit code 1: Error: Model nope/x not found"


def test_a_prompt_that_is_refused_ends_the_child(world: World) -> None:
    no = 'say {"id":"1","type":"response","command":"prompt","success":false,"error":"No API key\\n\\nSee"}'
    error = refused(world, "read", no, "idle")

    assert (error.code, error.known) == ("call-failed", "not-applied")
    assert error.message.startswith("it refused its first prompt: No API key")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"cwd": "/no/such/folder"}, "'/no/such/folder' does not exist"),
        ({"cwd": "/dev/null"}, "'/dev/null' is no folder"),
        ({"session_file": "/tmp"}, "'/tmp' is a folder"),
        ({"session_file": "/dev/null"}, "'/dev/null' is no regular file"),
        ({"session_file": "relative.jsonl"}, "not an absolute path"),
        ({"session_file": "/dev/null/x.jsonl"}, "Not a directory"),
        ({"task": " "}, "the task is empty"),
        ({"model": "a\0b"}, "NUL"),
        ({"env": {"A=B": "c"}}, "'A=B'"),
        ({"extensions": ("--no-approve",)}, "'--no-approve'"),
        ({"env": {"BIG": "x" * 200_000}}, "Argument list too long"),
    ],
)
def test_a_request_that_cannot_be_met(world: World, request_: dict[str, Any], words: str) -> None:
    error = refused(world, **request_)

    assert error.code == "bad-request"
    assert words in error.message


def test_a_start_that_is_held_up_by_a_question_counts_as_started(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.status(child)).status == "blocked"

    asks = 'say {"type":"extension_ui_request","id":"u","method":"confirm"}'
    run(world, (asks, "idle"), main)


def test_a_start_that_is_slow_but_not_silent_counts_as_started(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        assert (await supervisor.wait_settled(child, 5_000)).settled

    run(world, ('say {"type":"booting"}', "sleep 0.5", *AT_WORK, SETTLED, "idle"), main, {"start_ms": 250})


def test_too_little_memory_refuses_a_start_and_tells_the_parent(world: World) -> None:
    told: list[MemoryShortage] = []

    async def main(supervisor: HeadlessSupervisor) -> None:
        with pytest.raises(SupervisorError) as caught:
            await supervisor.spawn(world.request())
        assert (caught.value.code, caught.value.known) == ("memory-gate", "not-sent")
        assert told == [MemoryShortage(available_mb=100, limit_mb=200)]
        assert not (world.folder / "alpha.jsonl").exists()
        await supervisor.spawn(world.request(min_free_mb=100))

    run(world, ("echo",), main, {"min_free_mb": 200}, on_shortage=told.append, memory=lambda: 100)
    assert len(told) == 1


def test_one_handle_is_one_living_child(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        first, second = await asyncio.gather(
            supervisor.spawn(world.request()), supervisor.spawn(world.request()), return_exceptions=True
        )
        assert isinstance(second, SupervisorError)
        assert second.code == "name-taken"
        assert not isinstance(first, BaseException)
        assert (await supervisor.wait_settled(first, 5_000)).settled
        with pytest.raises(SupervisorError, match="is alive"):
            await supervisor.spawn(world.request())
        assert len(world.children()) == 1

    run(world, ("echo",), main)


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.1])
def test_a_start_that_is_called_off_leaves_nothing(world: World, delay: float) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        starting = asyncio.create_task(supervisor.spawn(world.request()))
        await asyncio.sleep(delay)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110  (what undoes the start has no name here)
            await asyncio.sleep(0.01)
        assert not world.children()
        assert not (world.folder / "alpha.jsonl").exists()

    run(world, ("stay",), main)


def test_a_start_that_is_called_off_in_the_instant_of_its_success_leaves_nothing(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        starting = asyncio.create_task(supervisor.spawn(world.request()))
        await asyncio.sleep(0)
        (start,) = (task for task in asyncio.all_tasks() if "._start" in repr(task))
        start.add_done_callback(lambda _: starting.cancel())
        with pytest.raises(asyncio.CancelledError):
            await starting
        while world.children():  # noqa: ASYNC110  (what undoes the start has no name here)
            await asyncio.sleep(0.01)

    run(world, ("echo",), main)


def test_a_close_during_a_start_leaves_nothing(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        starting = asyncio.create_task(supervisor.spawn(world.request()))
        await asyncio.sleep(0.05)
        starting.cancel()
        await asyncio.sleep(0)
        await supervisor.close()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not (world.folder / "alpha.jsonl").exists()

    run(world, ("ignore SIGTERM", "stay"), main)


def test_a_stranger_is_refused_and_its_retire_only_notes_it(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        child = await supervisor.spawn(world.request())
        other = HeadlessSupervisor({})
        with pytest.raises(SupervisorError, match="not started by this supervisor"):
            await other.status(child)
        assert not (await other.retire(child)).ended
        await other.close()

    run(world, ("echo",), main)


def test_it_fills_the_rpc_slot_of_the_router(world: World) -> None:
    async def main(supervisor: HeadlessSupervisor) -> None:
        router = RoutingSupervisor({"rpc": supervisor}, {})
        child = await router.spawn(world.request())
        assert (child.mode, router.owner(child)) == ("rpc", "rpc")
        assert (await router.wait_settled(child, 5_000)).settled
        assert (await router.steer(child, "x")).started
        assert (await router.abort(child)).status == "interrupted"
        assert (await router.collect(child)).outcome == "unknown"
        assert (await router.retire(child)).ended

    run(world, ("echo",), main)


def test_the_environment_is_the_supervisors_the_memory_settings_and_the_requests(world: World) -> None:
    program = world.folder / "tells"
    program.write_text(
        '#!/bin/sh\nenv > told\nread line\necho \'{"id":"1","type":"response","success":true}\'\nread line\n'
    )
    program.chmod(0o755)

    async def main(supervisor: HeadlessSupervisor) -> None:
        await supervisor.spawn(world.request(env={"OWN": "1", "STORY": None}))

    run(world, ("x",), main, {"program": (str(program),)}, memory_env={"NODE_OPTIONS": "--max"})
    told = dict(line.split("=", 1) for line in (world.folder / "told").read_text().splitlines() if "=" in line)
    assert told["HOME"] == str(world.folder)
    assert (told["OWN"], told["NODE_OPTIONS"]) == ("1", "--max")
    assert "STORY" not in told
    assert json.dumps(told).count("undefined") == 0
