"""The memory host: a core in the same event loop on virtual time, reached by links that behave like `hc connect`."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from contracts.hosts import Built, MemoryHost, WorldError, build, world_folder
from contracts.hosts.memory import MemoryTransport
from contracts.running.one_run import run_scenario
from contracts.scenario import Bridge, Scenario, Step, Terminal, World
from hc_sim.clock import run_virtual
from hc_sim.script.format import Agent, FileWrite
from hc_sim.script.format import Step as AgentStep

T = TypeVar("T")


def scenario(world: World, *drive: Step, **more: Any) -> Scenario:
    return Scenario(id="x", why="x", clauses=["D8"], world=world, drive=list(drive), **more)


def within(world: World, act: Callable[[Built, MemoryHost], Awaitable[T]]) -> T:
    """Build a world on virtual time, let `act` do something in it, tear it down."""

    async def go() -> T:
        built = build(scenario(world), folder, asyncio.get_running_loop())
        host = MemoryHost(built)
        built.start()
        try:
            return await act(built, host)
        finally:
            await host.stop()
            built.driver.close()

    with world_folder() as folder:
        return run_virtual(go())


async def asked(link: MemoryTransport, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    await link.write(
        json.dumps({"jsonrpc": "2.0", "id": "1", "method": method, "params": params or {}}).encode() + b"\n"
    )
    reply: dict[str, Any] = json.loads(await link.read())
    return reply


def test_a_call_over_a_link_is_answered_by_the_core() -> None:
    async def act(built: Built, host: MemoryHost) -> dict[str, Any]:
        link = host.connect()
        await link.open()
        return await asked(link, "terminal.get", {"terminal": built.parent})

    reply = within(World(), act)

    assert reply["result"]["labels"] == {"herdr.space": "space-1", "herdr.tab": "tab-7"}


def test_a_closed_link_is_gone_from_the_core_and_ended_well() -> None:
    async def act(built: Built, host: MemoryHost) -> tuple[int, str | None]:
        link = host.connect()
        await link.open()
        await asked(link, "hello")
        await link.close()
        await asyncio.sleep(0)
        return len(built.hub.connections), link.ended()

    assert within(World(), act) == (0, "exit code 0")


@pytest.mark.parametrize(
    ("core", "why"),
    [
        ("down", "nobody listens there"),
        ("absent", "there is no such socket"),
        ("directory", "that is not a socket"),
        ("regular-file", "that is not a socket"),
    ],
)
def test_without_a_core_the_link_ends_as_the_executable_would(core: str, why: str) -> None:
    async def act(built: Built, host: MemoryHost) -> tuple[bytes, str | None, str]:
        link = host.connect()
        await link.open()
        return await link.read(), link.ended(), link.tail()

    data, ended, tail = within(World(core=core), act)

    assert (data, ended) == (b"", "exit code 1")
    assert tail.startswith("hc: cannot reach a core at ")
    assert tail.endswith(f": {why}\n")


def test_a_core_that_comes_up_later_is_reached_from_then_on() -> None:
    async def act(built: Built, host: MemoryHost) -> list[str | None]:
        ends = []
        for _ in range(3):
            link = host.connect()
            await link.open()
            ends.append(link.ended())
            await asyncio.sleep(0.15)
        return ends

    assert within(World(core="down-until:300"), act) == ["exit code 1", "exit code 1", None]


def test_a_bridge_that_exits_at_once_leaves_its_words_and_its_code() -> None:
    async def act(built: Built, host: MemoryHost) -> tuple[str | None, str, int, str | None]:
        first, second = host.connect(), host.connect()
        await first.open()
        await second.open()
        return first.ended(), first.tail(), len(built.hub.connections), second.ended()

    world = World(bridge=[Bridge(nth=1, exit_code=9, stderr="panic\n")])

    assert within(world, act) == ("exit code 9", "panic\n", 1, None)


def test_a_bridge_that_ends_after_its_second_request_never_passes_that_one_on() -> None:
    async def act(built: Built, host: MemoryHost) -> tuple[str | None, bytes, list[str]]:
        link = host.connect()
        await link.open()
        await asked(link, "hello")
        await link.write(b'{"jsonrpc":"2.0","id":"2","method":"terminal.list"}\n')
        return link.ended(), await link.read(), [event.method for event in built.events() if event.kind == "call"]

    world = World(bridge=[Bridge(nth=0, signal="SIGKILL", after_requests=2)])

    assert within(world, act) == ("signal SIGKILL", b"", ["hello"])


def test_a_flood_on_stderr_leaves_only_its_end() -> None:
    async def act(built: Built, host: MemoryHost) -> int:
        link = host.connect()
        await link.open()
        await asked(link, "hello")
        return len(link.tail())

    assert within(World(bridge=[Bridge(nth=0, stderr_bytes=10_000_000)]), act) == 4_096


def test_a_write_after_the_end_is_a_broken_pipe() -> None:
    async def act(built: Built, host: MemoryHost) -> None:
        link = host.connect()
        await link.open()
        await link.close()
        with pytest.raises(BrokenPipeError):
            await link.write(b"x\n")

    within(World(), act)


def test_a_restart_ends_every_link_and_keeps_the_terminals() -> None:
    async def act(built: Built, host: MemoryHost) -> tuple[bytes, str | None, str | None, int]:
        link = host.connect()
        await link.open()
        await asked(link, "hello")
        restarting = asyncio.create_task(host.restart(200))
        data = await link.read()
        meanwhile = host.connect()
        await meanwhile.open()
        await restarting
        again = host.connect()
        await again.open()
        reply = await asked(again, "terminal.get", {"terminal": built.parent})
        return data, link.ended(), meanwhile.ended(), len(reply["result"]["labels"])

    assert within(World(), act) == (b"", "exit code 1", "exit code 1", 2)


def test_only_the_socket_host_can_have_a_broken_executable() -> None:
    with pytest.raises(WorldError, match="needs the socket host"):
        within(World(hc="missing"), lambda built, host: asyncio.sleep(0))


def test_terminals_of_the_world_stand_there_and_only_the_played_ones_are_played() -> None:
    world = World(
        agent=[Agent(turn=3, status="working")],
        terminal=[
            Terminal(name="still", labels={"a": "b"}),
            Terminal(name="over", finished=4),
            Terminal(name="played", played=True),
            Terminal(name="below", parent="still"),
        ],
    )

    async def act(built: Built, host: MemoryHost) -> dict[str, tuple[str, int, int | None]]:
        return {one.name: (one.state, one.turn, one.exit_code) for one in built.core.terminals() if one.name}

    assert within(world, act) == {
        "still": ("running", 0, None),
        "over": ("finished", 0, 4),
        "played": ("running", 3, None),
        "below": ("running", 0, None),
    }


def test_files_of_the_world_lie_there_private_with_placeholders_filled() -> None:
    async def act(built: Built, host: MemoryHost) -> tuple[str, int]:
        path = built.folder.path / "session-alpha.jsonl"
        return path.read_text(), path.stat().st_mode & 0o777

    text, mode = within(World(files={"{session}": "in {cwd}\n"}), act)

    assert text.startswith("in /")
    assert text.endswith("/work\n")
    assert mode == 0o600


def test_a_file_outside_the_folder_is_refused() -> None:
    with pytest.raises(WorldError, match="outside"):
        within(World(files={"../escaped": "x"}), lambda built, host: asyncio.sleep(0))


def test_a_profile_field_that_does_not_exist_is_named() -> None:
    with pytest.raises(WorldError, match=r"world.profile: .*no_such_field"):
        within(World(profile={"no_such_field": 1}), lambda built, host: asyncio.sleep(0))


def test_until_returns_with_the_nth_call_and_gives_up_in_the_end() -> None:
    async def act(built: Built, host: MemoryHost) -> int:
        link = host.connect()
        await link.open()
        waiting = asyncio.create_task(built.calls("terminal.list", 2))
        await asked(link, "terminal.list")
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await asked(link, "terminal.list")
        await waiting
        await built.calls("terminal.list", 1)
        with pytest.raises(WorldError, match=r"3 calls of terminal\.list; 2 came"):
            await built.calls("terminal.list", 3)
        return built.now()

    assert within(World(), act) == 3_600_100


WORKS_LONG = Agent(
    status="idle",
    step=[
        AgentStep(at_ms=10, turn=1, status="working"),
        AgentStep(
            at_ms=900_000,
            status="done",
            file=FileWrite(append='{"type":"message","id":"a","message":{"role":"assistant","content":[]}}'),
        ),
    ],
)


def test_fifteen_virtual_minutes_are_waited_through() -> None:
    record = run_scenario(
        scenario(
            World(agent=[WORKS_LONG]),
            Step(do="spawn", as_="a"),
            Step(do="wait", child="a", args={"timeoutMs": 1_000_000}),
            poll_ms=1_000,
        ),
        "memory",
    )

    assert record.errored is None
    assert record.steps[1].returned == {"settled": True, "abnormal": False, "lastTurn": 1, "lastStatus": "done"}
    assert 900_000 <= record.virtual_ms <= 901_000


def test_two_runs_of_one_scenario_are_equal_to_the_millisecond() -> None:
    same = scenario(
        World(agent=[WORKS_LONG]), Step(do="spawn", as_="a"), Step(do="wait", child="a"), Step(do="retire", child="a")
    )
    first, second = run_scenario(same, "memory"), run_scenario(same, "memory")

    assert first.steps == second.steps
    assert [(event.t, event.kind, event.method) for event in first.trace] == [
        (event.t, event.kind, event.method) for event in second.trace
    ]


def test_the_folder_is_gone_after_a_run() -> None:
    record = run_scenario(scenario(World(), Step(do="spawn", as_="a")), "memory")

    assert not Path(record.fills["dir"]).exists()
