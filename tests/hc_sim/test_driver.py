import asyncio
import json
import os
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from hc_sim import driver as driver_module
from hc_sim.clock import VirtualDeadlock, run_virtual
from hc_sim.core import Core, FileEffect
from hc_sim.driver import Driver
from hc_sim.faults import Fault
from hc_sim.hub.connection import Hub
from hc_sim.memory import MemoryLink
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, FileWrite, Step
from hc_sim.session_files import apply_file
from hc_sim.trace import Event


def request(method: str, id_: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n"


async def reply(link: MemoryLink) -> Any:
    data = b""
    while not data.endswith(b"\n"):
        chunk = await link.read()
        if not chunk:
            raise EOFError
        data += chunk
    return json.loads(data)


def flood(link: MemoryLink) -> None:
    for _ in range(100):
        link.write(request("hello"))


def test_a_link_in_memory_answers() -> None:
    async def scene() -> Any:
        link = Driver(Hub(Core())).open_link()
        link.write(request("hello"))
        return await reply(link)

    assert run_virtual(scene())["result"]["core_id"] == "core-1"


def test_a_held_send_is_answered_at_its_virtual_moment() -> None:
    async def scene() -> tuple[Any, int]:
        driver = Driver(Hub(Core(agents=[Agent(send="hold", hold_ms=60_000)])))
        link = driver.open_link()
        link.write(request("terminal.run", argv=["pi"], name="a"))
        await reply(link)
        link.write(request("terminal.send", terminal="a", text="go"))
        return await reply(link), driver.now()

    answer, now = run_virtual(scene())
    assert answer["result"]["started"] is True
    assert now == 60_000


def test_timeline_steps_fire_at_their_moment_although_nobody_calls() -> None:
    async def scene() -> list[tuple[int, str | None]]:
        core = Core(
            agents=[Agent(status="idle", step=[Step(at_ms=700, status="working"), Step(at_ms=900, status="done")])]
        )
        driver = Driver(Hub(core))
        link = driver.open_link()
        link.write(request("terminal.run", argv=["pi"], name="a"))
        await asyncio.sleep(2)
        return [(event.t, event.status) for event in core.trace.of("state")]

    assert [entry for entry in run_virtual(scene()) if entry[0]] == [(700, "working"), (900, "done")]


def test_a_poll_at_the_moment_of_a_step_sees_its_effect_in_every_run() -> None:
    async def scene() -> list[int]:
        core = Core(agents=[Agent(step=[Step(at_ms=ms, turn_add=1) for ms in range(250, 2_001, 250)])])
        link = Driver(Hub(core)).open_link()
        link.write(request("terminal.run", argv=["pi"], name="a"))
        await reply(link)
        turns = []
        for _ in range(8):
            await asyncio.sleep(0.25)
            link.write(request("terminal.get", terminal="a"))
            turns.append((await reply(link))["result"]["turn"])
        return turns

    assert [run_virtual(scene()) for _ in range(3)] == [[1, 2, 3, 4, 5, 6, 7, 8]] * 3


def test_two_runs_leave_the_same_trace() -> None:
    async def scene() -> list[Event]:
        agent = Agent(
            status="idle", step=[Step(on_call="terminal.send", status="working"), Step(after_ms=30, status="done")]
        )
        hub = Hub(Core(agents=[agent]), [Fault(method="terminal.get", nth=0, delay_ms=10)])
        driver = Driver(hub)
        links = [driver.open_link() for _ in range(3)]
        for number, link in enumerate(links):
            link.write(request("terminal.run", argv=["pi"], name=f"n{number}"))
        for number, link in enumerate(links):
            await reply(link)
            link.write(request("terminal.send", terminal=f"n{number}", text="go"))
            link.write(request("terminal.get", id_=2, terminal=f"n{(number + 1) % 3}"))
        await asyncio.sleep(1)
        return hub.core.trace.events

    assert run_virtual(scene()) == run_virtual(scene())


def test_a_reply_that_never_comes_is_a_deadlock_and_not_a_hang() -> None:
    async def scene() -> None:
        link = Driver(Hub(Core(), [Fault(method="hello", reply=False)])).open_link()
        link.write(request("hello"))
        await reply(link)

    with pytest.raises(VirtualDeadlock):
        run_virtual(scene())


def test_each_read_is_one_piece_of_a_cut_reply() -> None:
    async def scene() -> list[bytes]:
        link = Driver(Hub(Core(), [Fault(method="hello", cut=[2, 5])])).open_link()
        link.write(request("hello"))
        return [await link.read() for _ in range(3)]

    first, second, third = run_virtual(scene())
    assert (first, second) == (b'{"', b'id"')
    assert third.endswith(b"\n")


def test_the_end_comes_after_the_last_reply_when_the_client_says_no_more() -> None:
    async def scene() -> tuple[bytes, bytes, int]:
        driver = Driver(Hub(Core()))
        link = driver.open_link()
        link.write(request("hello"))
        link.write_eof()
        return await link.read(), await link.read(), driver.links

    data, end, links = run_virtual(scene())
    assert data.endswith(b"\n")
    assert (end, links) == (b"", 0)


def test_writing_to_an_ended_link_is_a_broken_pipe() -> None:
    async def scene() -> None:
        link = Driver(Hub(Core(), [Fault(method="hello", close="instead")])).open_link()
        link.write(request("hello"))
        assert await link.read() == b""
        link.write(b"more\n")

    with pytest.raises(BrokenPipeError):
        run_virtual(scene())


def test_closing_a_link_frees_its_reader_and_its_connection() -> None:
    async def scene() -> tuple[bytes, int, list[str]]:
        driver = Driver(Hub(Core()))
        link = driver.open_link()
        reading = asyncio.create_task(link.read())
        await asyncio.sleep(0)
        link.close()
        link.close()
        data = await reading
        await asyncio.sleep(0)
        return data, driver.links, [event.kind for event in driver.hub.core.trace]

    assert run_virtual(scene()) == (b"", 0, ["link", "unlink"])


def test_a_second_reader_is_refused() -> None:
    async def scene() -> None:
        link = Driver(Hub(Core())).open_link()
        first = asyncio.create_task(link.read())
        await asyncio.sleep(0)
        try:
            await link.read()
        finally:
            first.cancel()

    with pytest.raises(RuntimeError, match="already reading"):
        run_virtual(scene())


def test_a_peer_that_does_not_read_has_to_wait_and_loses_nothing() -> None:
    async def scene() -> tuple[int, int]:
        hub = Hub(Core(), [Fault(method="hello", nth=0, pad_bytes=200_000)])
        link = Driver(hub).open_link()
        for number in range(100):
            link.write(request("hello", id_=number))
        await asyncio.sleep(1)
        waiting = link.backlog()
        seen = 0
        while seen < 100:
            assert (await reply(link))["id"] == seen
            seen += 1
        return waiting, seen

    waiting, seen = run_virtual(scene())
    assert driver_module.HIGH_WATER_BYTES <= waiting < driver_module.HIGH_WATER_BYTES + 300_000
    assert seen == 100


def test_a_peer_that_floods_without_reading_loses_its_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "HIGH_WATER_BYTES", 10)
    monkeypatch.setattr(driver_module, "MAX_INBOX_BYTES", 1_000)

    async def scene() -> tuple[list[str], bytes, Any]:
        driver = Driver(Hub(Core()))
        flooding, other = driver.open_link(), driver.open_link()
        flooding.write(request("hello"))
        await asyncio.sleep(0.1)
        with pytest.raises(BrokenPipeError):
            flood(flooding)
        other.write(request("hello"))
        await flooding.read()
        return driver.problems, await flooding.read(), await reply(other)

    problems, end, answer = run_virtual(scene())
    assert problems == ["a peer sends without reading its replies"]
    assert end == b""
    assert "result" in answer


def test_a_defect_of_the_core_costs_one_connection_and_is_said() -> None:
    class Broken(Core):
        def call(self, method: str, params: Any, now: int, *, conn: int = 0) -> Any:
            if method == "terminal.list":
                raise ZeroDivisionError("boom")
            return super().call(method, params, now, conn=conn)

    async def scene() -> tuple[bytes, Any, list[str]]:
        driver = Driver(Hub(Broken()))
        victim, other = driver.open_link(), driver.open_link()
        victim.write(request("terminal.list"))
        other.write(request("hello"))
        return await victim.read(), await reply(other), driver.problems

    end, answer, problems = run_virtual(scene())
    assert end == b""
    assert "result" in answer
    assert problems == ["a request could not be carried out: ZeroDivisionError('boom')"]


def test_a_step_fired_by_hand_is_seen_at_once() -> None:
    async def scene() -> tuple[int, int, Any]:
        driver = Driver(Hub(Core(agents=[Agent(step=[Step(by_hand="go", status="working")])])))
        link = driver.open_link()
        link.write(request("terminal.run", argv=["pi"], name="a"))
        await reply(link)
        fired, missed = driver.fire("go"), driver.fire("go")
        link.write(request("terminal.get", terminal="a"))
        return fired, missed, (await reply(link))["result"]["status"]["state"]

    assert run_virtual(scene()) == (1, 0, "working")


def test_a_session_file_is_written_before_the_status_that_announces_it_is_answered(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    step = Step(on_call="terminal.get", status="done", file=FileWrite(append='{"type":"message"}'))

    async def scene() -> tuple[Any, str]:
        link = Driver(Hub(Core(agents=[Agent(step=[step])]))).open_link()
        link.write(request("terminal.run", argv=["pi", "--session", str(session)], name="a"))
        await reply(link)
        link.write(request("terminal.get", terminal="a"))
        return (await reply(link))["result"]["status"]["state"], session.read_text()

    assert run_virtual(scene()) == ("done", '{"type":"message"}\n')


def test_a_session_file_that_cannot_be_written_is_a_problem_and_no_end(tmp_path: Path) -> None:
    step = Step(on_call="terminal.get", status="done", file=FileWrite(append="x"))

    async def scene() -> tuple[Any, list[str]]:
        driver = Driver(Hub(Core(agents=[Agent(step=[step])])))
        link = driver.open_link()
        link.write(request("terminal.run", argv=["pi", "--session", str(tmp_path / "no" / "file")], name="a"))
        await reply(link)
        link.write(request("terminal.get", terminal="a"))
        return await reply(link), driver.problems

    answer, problems = run_virtual(scene())
    assert answer["result"]["status"]["state"] == "done"
    assert problems == [f"session file {tmp_path}/no/file: No such file or directory"]


def test_files_are_made_private_appended_replaced_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    apply_file(FileEffect(str(path), "append", b"one\n"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    apply_file(FileEffect(str(path), "append", b"two\n"))
    assert path.read_bytes() == b"one\ntwo\n"
    before = path.stat().st_ino
    apply_file(FileEffect(str(path), "replace", b"new"))
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino != before
    apply_file(FileEffect(str(path), "remove"))
    apply_file(FileEffect(str(path), "remove"))
    assert list(tmp_path.iterdir()) == []


def test_a_session_path_that_nobody_reads_cannot_hang_the_core(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        apply_file(FileEffect(str(tmp_path / "pipe"), "append", b"x"))


def test_nothing_is_scheduled_after_a_driver_is_closed() -> None:
    async def scene() -> tuple[bool, bool, bytes]:
        driver = Driver(Hub(Core(agents=[Agent(step=[Step(at_ms=5_000, turn=1)])])))
        link = driver.open_link()
        link.write(request("terminal.run", argv=["pi"]))
        await reply(link)
        before = driver.scheduled
        driver.close()
        return before, driver.scheduled, await link.read()

    assert run_virtual(scene()) == (True, False, b"")


@pytest.mark.parametrize(("keep", "left"), [(True, 4), (False, 0)])
def test_every_event_is_shown_once_and_kept_only_on_demand(keep: bool, left: int) -> None:
    async def scene() -> tuple[list[str], int]:
        seen: list[str] = []
        show: Callable[[Event], None] = lambda event: seen.append(event.kind)  # noqa: E731
        driver = Driver(Hub(Core()), on_event=show, keep_trace=keep)
        link = driver.open_link()
        link.write(request("hello"))
        await reply(link)
        link.close()
        driver.close()
        return seen, len(driver.hub.core.trace.events)

    assert run_virtual(scene()) == (["link", "call", "reply", "unlink"], left)


def test_a_busy_link_does_not_starve_the_others() -> None:
    async def scene() -> int:
        hub = Hub(Core())
        driver = Driver(hub)
        busy, other = driver.open_link(), driver.open_link()
        busy.write(request("hello") * 2_000)
        other.write(request("hello"))
        await reply(other)
        return len([event for event in hub.core.trace.of("call") if event.conn == busy.conn])

    assert run_virtual(scene()) <= 2 * driver_module.LINES_AT_ONCE


def test_the_same_driver_runs_on_a_real_loop() -> None:
    async def scene() -> Any:
        link = Driver(Hub(Core(), [Fault(method="hello", delay_ms=5)])).open_link()
        link.write(request("hello"))
        return await asyncio.wait_for(reply(link), 10)

    run: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run
    assert "result" in run(scene())


def test_a_subscriber_that_does_not_read_holds_bounded_memory_and_hears_how_much_it_missed() -> None:
    async def scene() -> tuple[int, list[Any]]:
        hub = Hub(Core(WireProfile(max_stream_bytes=20_000)))
        driver = Driver(hub)
        hub.core.add_terminal()
        link = driver.open_link()
        link.write(request("events.subscribe"))
        await reply(link)
        for number in range(6_000):
            hub.core.set_state("t1", turn=number + 1, now=driver.now())
            if number % 10 == 0:
                driver.kick()
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        backlog, data = link.backlog(), b""
        while b"events.lost" not in data:
            data += await link.read()
        return backlog, [json.loads(line) for line in data.splitlines()]

    backlog, told = run_virtual(scene())
    assert backlog < driver_module.HIGH_WATER_BYTES + 100_000
    assert told[-1]["method"] == "events.lost"
    assert told[-1]["params"]["lost"] == 6_000 - (len(told) - 1)
    numbers = [one["params"]["number"] for one in told[:-1]]
    assert numbers == list(range(1, len(numbers) + 1))
