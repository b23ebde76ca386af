"""Faults of the core's own life, of names, documents and clocks, on the bytes of the wire and a virtual clock."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hc_sim.clock import VirtualClock, VirtualDeadlock, run_virtual
from hc_sim.core import Core
from hc_sim.driver import Driver
from hc_sim.faults import ClockJump, DocumentFault, Fault, FaultError, FaultPlan, Restart, Rival
from hc_sim.hub.connection import Hub
from hc_sim.playing.fake import AsyncFakeCore, CallError, FakeCore, FakeLink
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Match, Reborn, Step

knob = pytest.mark.knob


def run(link: FakeLink, name: str, **more: Any) -> Any:
    return link.call("terminal.run", {"argv": ["pi", "task"], "name": name, **more})


def get(link: FakeLink, target: str) -> Any:
    return link.call("terminal.get", {"terminal": target})


def refused(act: Callable[[], Any]) -> CallError:
    with pytest.raises(CallError) as caught:
        act()
    return caught.value


# ------------------------------------------------------------------- restarts


def restarted(how: Restart, **more: Any) -> tuple[FakeCore, Any, Any]:
    """A core with terminals `kept` (keep) and `plain` that restarts at 1 s: the core, and how they looked before."""
    core = FakeCore(faults=FaultPlan(restart=[how]), agents=[Agent(status="working", turn=2)], **more)
    link = core.connect()
    before = run(link, "kept", keep=True), run(link, "plain")
    link.call("doc.set", {"name": "d", "value": 1})
    assert link.read() == b""
    assert core.clock.now() == 1_000
    return core, *before


@knob("restart.terminals")
def test_a_restarted_core_has_its_terminals_still() -> None:
    core, kept, _ = restarted(Restart(at_ms=1_000))
    assert get(core.connect(), "kept") == kept


@knob("restart.terminals")
def test_terminals_come_back_as_bare_shells_under_the_same_address_and_name() -> None:
    core, _, plain = restarted(Restart(at_ms=1_000, terminals="shells"))
    now = get(core.connect(), "plain")
    assert (now["address"], now["state"], now["turn"], now["status"]) == (plain["address"], "running", 0, None)
    assert now["argv"] == [WireProfile().shell]
    assert now["created_ms"] > plain["created_ms"]


@knob("restart.terminals")
def test_those_with_keep_come_back_as_shells_and_the_others_have_finished() -> None:
    core, *_ = restarted(Restart(at_ms=1_000, terminals="by-keep"))
    link = core.connect()
    kept, plain = get(link, "kept"), get(link, "plain")
    assert (kept["argv"], kept["state"]) == ([WireProfile().shell], "running")
    assert (plain["argv"], plain["state"], plain["signal"]) == (["pi", "task"], "finished", "SIGHUP")


@knob("restart.terminals")
def test_all_have_finished_or_are_unknown() -> None:
    core, *_ = restarted(Restart(at_ms=1_000, terminals="finished"))
    assert {one.state for one in core.terminals()} == {"finished"}
    core, *_ = restarted(Restart(at_ms=1_000, terminals="lost"))
    assert refused(lambda: get(core.connect(), "kept")).kind == "no_such_terminal"


@knob("restart.new_core_id")
def test_the_core_comes_back_under_another_id() -> None:
    core, *_ = restarted(Restart(at_ms=1_000))
    assert core.connect().call("hello")["core_id"] == "core-1"
    core, *_ = restarted(Restart(at_ms=1_000, new_core_id=True))
    assert core.connect().call("hello")["core_id"] != "core-1"


@knob("restart.reuse_addresses")
def test_an_address_is_given_out_again_and_is_another_incarnation() -> None:
    core, kept, _ = restarted(Restart(at_ms=1_000, terminals="lost", reuse_addresses=True))
    again = run(core.connect(), "kept")
    assert again["address"] == kept["address"]
    assert again["created_ms"] > kept["created_ms"]
    core, kept, _ = restarted(Restart(at_ms=1_000, terminals="lost"))
    assert run(core.connect(), "kept")["address"] != kept["address"]


@knob("restart.documents")
def test_documents_outlive_a_restart_or_not() -> None:
    core, *_ = restarted(Restart(at_ms=1_000))
    assert core.connect().call("doc.get", {"name": "d"})["version"] == 1
    core, *_ = restarted(Restart(at_ms=1_000, documents="lost"))
    assert refused(lambda: core.connect().call("doc.get", {"name": "d"})).kind == "no_such_document"


@knob("restart.env")
@knob("profile.core_path")
def test_the_core_has_another_environment_after_it() -> None:
    core, *_ = restarted(Restart(at_ms=1_000, env={"NEW": "1"}), env={"OLD": "1"})
    run(core.connect(), "later")
    first, _, last = (event.env for event in core.trace.of("run"))
    assert (first.get("OLD"), first.get("NEW")) == ("1", None)
    assert (last.get("OLD"), last.get("NEW")) == (None, "1")
    core = FakeCore(profile=WireProfile(core_path="/only/here"))
    run(core.connect(), "alpha")
    assert core.trace.of("run")[0].env["PATH"] == "/only/here"


@knob("fault.restart")
def test_a_core_restarts_on_a_call_that_has_taken_effect() -> None:
    core = FakeCore(faults=[Fault(method="terminal.send", restart=Restart())], agents=[Agent()])
    link = core.connect()
    run(link, "alpha")
    with pytest.raises(EOFError):
        link.call("terminal.send", {"terminal": "alpha", "text": "go"})
    assert core.trace.texts("alpha") == ["go"]
    assert core.trace.of("restart")[0].note == "terminals kept"
    assert get(core.connect(), "alpha")["state"] == "running"


@knob("restart.down_ms")
def test_connections_while_the_core_is_down_end_without_a_byte() -> None:
    core = FakeCore(faults=FaultPlan(restart=[Restart(at_ms=100, down_ms=400)]))
    core.advance(200)
    assert core.connect().read() == b""
    core.advance(300)
    assert core.connect().call("server.status")["uptime_ms"] == 400


def test_waits_that_were_owed_are_never_answered_after_a_restart() -> None:
    core = FakeCore(faults=FaultPlan(restart=[Restart(at_ms=100)]), agents=[Agent(status="working")])
    link = core.connect()
    run(link, "alpha")
    with pytest.raises(EOFError):
        link.call("terminal.wait", {"terminal": "alpha", "timeout_ms": 500})
    again = core.connect()
    core.advance(1_000)
    assert again.call("terminal.wait", {"terminal": "alpha", "timeout_ms": 10})["ended"] is False


@knob("step.reborn")
@knob("reborn.argv")
@knob("reborn.parent")
@knob("reborn.new_core_id")
def test_a_single_terminal_is_another_incarnation_from_a_step_on() -> None:
    step = Step(at_ms=50, reborn=Reborn(argv=["zsh"], parent="t9", new_core_id=True))
    core = FakeCore(agents=[Agent(turn=4, step=[step])])
    link = core.connect()
    before = run(link, "alpha")
    core.advance(50)
    after = get(link, "alpha")
    assert (after["argv"], after["parent"], after["turn"]) == (["zsh"], "t9", 0)
    assert after["created_ms"] > before["created_ms"]
    assert link.call("hello")["core_id"] == "core-1-1"


@knob("profile.reuse_addresses")
def test_a_removed_terminals_address_is_given_out_again() -> None:
    core = FakeCore(profile=WireProfile(reuse_addresses=True))
    link = core.connect()
    first = run(link, "alpha")
    core.advance(10)
    for method in ("terminal.kill", "terminal.rm"):
        link.call(method, {"terminal": "alpha"})
    again = run(link, "beta")
    assert again["address"] == first["address"]
    assert again["created_ms"] == first["created_ms"] + 10


# ------------------------------------------------------------------- names


@knob("fault.rival")
def test_another_client_takes_the_name_just_before() -> None:
    core = FakeCore(faults=[Fault(method="terminal.run", rival=Rival(argv=["theirs"], status="working", turn=3))])
    link = core.connect()
    assert refused(lambda: run(link, "alpha")).kind == "NAME_TAKEN"
    assert [one.argv for one in core.terminals()] == [["theirs"]]
    assert core.agent("alpha").turn == 3


@knob("rival.finished")
def test_a_failed_start_leaves_a_finished_holder_of_the_name() -> None:
    fault = Fault(method="terminal.run", rival=Rival(finished=127), error=FaultError(kind="spawn_failed"))
    core = FakeCore(faults=[fault], profile=WireProfile(finished_names_block=True))
    link = core.connect()
    assert refused(lambda: run(link, "alpha")).kind == "spawn_failed"
    assert get(link, "alpha")["exit_code"] == 127
    assert refused(lambda: run(link, "alpha")).kind == "NAME_TAKEN"
    link.call("terminal.rm", {"terminal": "alpha"})
    assert run(link, "alpha")["state"] == "running"


@knob("rival.dies_ms")
def test_the_holder_of_a_name_is_still_dying() -> None:
    core = FakeCore(faults=[Fault(method="terminal.run", rival=Rival(dies_ms=1_500))])
    link = core.connect()
    assert refused(lambda: run(link, "alpha")).kind == "NAME_TAKEN"
    core.advance(1_500)
    assert get(link, "alpha")["signal"] == "SIGHUP"
    assert run(link, "alpha")["state"] == "running"


@knob("rival.unknown")
def test_a_name_is_taken_and_nobody_has_it() -> None:
    core = FakeCore(faults=[Fault(method="terminal.run", rival=Rival(unknown=True))])
    link = core.connect()
    assert refused(lambda: run(link, "alpha")).kind == "NAME_TAKEN"
    assert refused(lambda: get(link, "alpha")).kind == "no_such_terminal"


@knob("step.rename")
@knob("step.labels")
def test_a_person_renames_and_labels_a_terminal() -> None:
    core = FakeCore(agents=[Agent(step=[Step(at_ms=5, rename="mine", labels={"a": "b"}), Step(after_ms=5, rename="")])])
    link = core.connect()
    address = run(link, "alpha")["address"]
    core.advance(5)
    assert refused(lambda: get(link, "alpha")).kind == "no_such_terminal"
    assert get(link, "mine")["labels"] == {"a": "b"}
    core.advance(5)
    assert get(link, address)["name"] is None


# ------------------------------------------------------------------- documents


def documents(*planned: DocumentFault, **more: Any) -> tuple[FakeCore, FakeLink]:
    core = FakeCore(faults=FaultPlan(document=list(planned), **more))
    return core, core.connect()


def look(link: FakeLink) -> tuple[Any, Any]:
    found = link.call("doc.get", {"name": "d"})
    return found["version"], found["value"]


def put(link: FakeLink, value: Any, version: Any) -> Any:
    return link.call("doc.set", {"name": "d", "value": value, "version": version})


@knob("document.value")
@knob("document.version")
def test_a_document_is_there_with_any_version_and_another_client_writes_it_later() -> None:
    core, link = documents(
        DocumentFault(name="d", value={"tabs": 5}, version=7), DocumentFault(name="d", at_ms=100, value={"tabs": 6})
    )
    assert look(link) == (7, {"tabs": 5})
    core.advance(100)
    assert look(link) == (8, {"tabs": 6})
    assert refused(lambda: put(link, {"tabs": 5}, 7)).data["version"] == 8


@knob("document.version")
@pytest.mark.parametrize(("version", "later"), [(0, 1), ("7", "8"), (2**53 + 1, 2**53 + 2), ("v", "v'")])
def test_a_version_has_any_type_and_is_never_rounded(version: Any, later: Any) -> None:
    _, link = documents(DocumentFault(name="d", value=1, version=version))
    assert look(link) == (version, 1)
    wrong = int(version) if version == "7" else str(version) if isinstance(version, int) else 1
    assert refused(lambda: put(link, 2, wrong)).kind == "version_conflict"
    assert put(link, 2, version)["version"] == later


@knob("document.null_version")
def test_a_document_without_a_version_cannot_be_written() -> None:
    _, link = documents(DocumentFault(name="d", value=1, null_version=True))
    assert look(link) == (None, 1)
    assert refused(lambda: put(link, 2, None)).kind == "version_conflict"
    assert look(link) == (None, 1)


@knob("document.mirror")
@knob("document.mirror_ms")
def test_readers_of_a_copy_see_a_write_late_once_or_never() -> None:
    core, link = documents(DocumentFault(name="d", value="old", version=7, mirror="late", mirror_ms=1_200))
    put(link, "new", 7)
    seen = [look(link)]
    core.advance(1_199)
    seen.append(look(link))
    core.advance(1)
    assert [*seen, look(link)] == [(7, "old"), (7, "old"), (8, "new")]

    _, link = documents(DocumentFault(name="d", value="old", version=7, mirror="flaps"))
    put(link, "new", 7)
    assert [look(link)[0] for _ in range(4)] == [8, 7, 8, 8]

    core, link = documents(DocumentFault(name="d", value="old", version=7, mirror="never"))
    put(link, "new", 7)
    put(link, "newer", 8)
    core.advance(1_000_000)
    assert look(link) == (7, "old")


@knob("rival.value")
def test_another_client_writes_the_document_just_before() -> None:
    core = FakeCore(
        faults=FaultPlan(
            document=[DocumentFault(name="d", value={"a": 1}, version=7)],
            fault=[Fault(method="doc.set", rival=Rival(value={"a": 2}))],
        )
    )
    link = core.connect()
    assert refused(lambda: put(link, {"a": 3}, 7)).data["version"] == 8
    assert look(link) == (8, {"a": 2})
    assert core.trace.count("doc.set") == 1


@pytest.mark.parametrize("applied", [True, False])
def test_the_acknowledgement_of_a_write_is_lost_with_or_without_its_effect(applied: bool) -> None:
    fault = Fault(method="doc.set", close="instead", apply=applied)
    core, link = documents(DocumentFault(name="d", value="old", version=7), fault=[fault])
    with pytest.raises(EOFError):
        put(link, "new", 7)
    assert look(core.connect()) == ((8, "new") if applied else (7, "old"))
    core.trace.one("doc.set")


def test_a_write_lands_after_the_client_has_given_up_and_seen_the_old_version() -> None:
    core, link = documents(
        DocumentFault(name="d", value="old", version=7), fault=[Fault(method="doc.set", apply_ms=12_000)]
    )
    with pytest.raises(TimeoutError):
        link.call("doc.set", {"name": "d", "value": "new", "version": 7}, timeout_ms=10_000)
    core.advance(1_000)
    other = core.connect()
    assert look(other) == (7, "old")
    core.advance(2_000)
    assert look(other) == (8, "new")


def test_a_document_is_larger_than_a_clients_ceiling_to_the_byte() -> None:
    _, link = documents(DocumentFault(name="d", value="", version=1))
    link.write(b'{"jsonrpc":"2.0","id":1,"method":"doc.get","params":{"name":"d"}}\n')
    room = 1024 * 1024 + 1 - len(link.read_line())
    _, link = documents(DocumentFault(name="d", value="x" * room, version=1))
    link.write(b'{"jsonrpc":"2.0","id":1,"method":"doc.get","params":{"name":"d"}}\n')
    assert len(link.read_line()) == 1024 * 1024 + 1


def test_a_value_comes_back_with_all_its_members_at_every_level() -> None:
    value = {"": 0, "z": [{"unknown": {"deeper": [1.0, 1e2, None]}}], "a": {"id": 7, "jsonrpc": "2.0"}}
    _, link = documents(DocumentFault(name="d", value=value, version=1))
    found = look(link)[1]
    assert found == value
    assert isinstance(found["z"][0]["unknown"]["deeper"][0], float)


# ------------------------------------------------------------------- clocks


@knob("clock.jump_ms")
@pytest.mark.parametrize("jump", [3_600_000, -500])
def test_the_wall_clock_jumps_and_no_timer_notices(jump: int) -> None:
    agents = [Agent(step=[Step(at_ms=200, status="done")])]
    core = FakeCore(faults=FaultPlan(clock=[ClockJump(at_ms=100, jump_ms=jump)]), agents=agents)
    link = core.connect()
    first = run(link, "alpha")
    core.advance(100)
    second = run(link, "beta")
    assert second["created_ms"] - first["created_ms"] == 100 + jump
    core.advance(100)
    assert [core.agent(name).status for name in ("alpha", "beta")] == ["done", "none"]
    assert link.call("server.status")["uptime_ms"] == 200


@knob("FakeCore.advance")
@knob("VirtualClock")
def test_a_day_passes_at_once_and_everything_in_it_happens_in_order() -> None:
    clock = VirtualClock()
    step = Step(after_ms=3_600_000, turn_add=1, status="working")
    core = FakeCore(agents=[Agent(step=[step], repeat_from=0)], clock=clock)
    run(core.connect(), "alpha")
    core.advance(86_400_000)
    assert clock.now() == 86_400_000
    assert core.agent("alpha").turn == 24
    assert [event.t for event in core.trace.of("state")] == [hour * 3_600_000 for hour in range(1, 25)]


@knob("run_virtual")
def test_an_event_loop_runs_on_virtual_time_and_never_waits_for_nothing() -> None:
    async def hour() -> int:
        async with AsyncFakeCore() as core:
            await asyncio.sleep(3_600)
            return core.driver.now()

    assert run_virtual(hour()) == 3_600_000
    with pytest.raises(VirtualDeadlock):
        run_virtual(asyncio.Event().wait())


@knob("Driver.scheduled")
def test_a_driver_says_whether_anything_of_it_is_left() -> None:
    async def life() -> list[bool]:
        core = Core(agents=[Agent(match=Match(name="a*"), step=[Step(at_ms=60_000, status="done")])])
        core.add_terminal(name="alpha", played=True)
        driver = Driver(Hub(core))
        driver.kick()
        await asyncio.sleep(0.01)
        seen = [driver.scheduled]
        driver.close()
        return [*seen, driver.scheduled]

    assert run_virtual(life()) == [True, False]
