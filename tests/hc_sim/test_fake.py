import json
from pathlib import Path

import msgspec
import pytest

from hc_sim.clock import VirtualClock, VirtualDeadlock, run_virtual
from hc_sim.faults import Fault, FaultPlan, LinkFault, Restart
from hc_sim.playing.fake import AsyncFakeCore, CallError, FakeCore
from hc_sim.playing.stage import PlayedAgent
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Match, Step
from hc_sim.script.load import POLITE, Script

TURN = Agent(status="idle", step=[Step(at_ms=60_000, status="working", turn_add=1), Step(after_ms=500, status="done")])


def with_alpha(core: FakeCore) -> PlayedAgent:
    core.connect().call("terminal.run", {"argv": ["pi"], "name": "alpha"})
    return core.agent("alpha")


# ---------------------------------------------------------------- played by hand


def test_an_agent_played_by_hand_is_seen_by_a_client() -> None:
    core = FakeCore()
    link = core.connect()
    link.call("terminal.run", {"argv": ["pi"], "name": "alpha"})

    core.agent("alpha").working()

    shown = link.call("terminal.get", {"terminal": "alpha"})
    assert (shown["turn"], shown["status"]) == (1, {"state": "working", "app": "pi"})


def test_work_begins_a_turn_unless_it_goes_on_or_was_only_blocked() -> None:
    agent = with_alpha(FakeCore())
    turns = []
    for move in (agent.working, agent.working, agent.blocked, agent.working, agent.done, agent.working):
        move()
        turns.append(agent.turn)
    assert turns == [1, 1, 1, 1, 1, 2]


def test_a_test_can_say_itself_whether_a_turn_begins() -> None:
    agent = with_alpha(FakeCore())
    agent.working(new_turn=False)
    assert agent.turn == 0
    agent.working(new_turn=True)
    assert agent.turn == 1


def test_a_core_that_counts_turns_itself_counts_each_of_them_once() -> None:
    agent = with_alpha(FakeCore(profile=WireProfile(turn_rule="work-starts")))
    agent.working()
    agent.done()
    agent.working()
    assert agent.turn == 2


def test_every_word_of_the_status_can_be_played() -> None:
    agent = with_alpha(FakeCore())
    seen = []
    for move in (agent.idle, agent.working, agent.blocked, agent.done, agent.error, agent.silent):
        move()
        seen.append(agent.status)
    assert seen == ["idle", "working", "blocked", "done", "error", "none"]


def test_what_an_agent_says_beside_its_status_is_reported() -> None:
    agent = with_alpha(FakeCore())
    agent.blocked("question", "which file?")
    status = agent.terminal.status
    assert status is not None
    assert (status.kind, status.msg) == ("question", "which file?")
    agent.error("no quota")
    status = agent.terminal.status
    assert status is not None
    assert (status.kind, status.msg) == (None, "no quota")


@pytest.mark.parametrize(
    ("code", "signal", "end"), [(None, None, (0, None)), (3, None, (3, None)), (None, "SIGKILL", (None, "SIGKILL"))]
)
def test_a_program_ends_as_the_test_says(
    code: int | None, signal: str | None, end: tuple[int | None, str | None]
) -> None:
    agent = with_alpha(FakeCore())
    agent.finish(code, signal=signal)
    assert (agent.terminal.state, agent.terminal.exit_code, agent.terminal.signal) == ("finished", *end)


def test_a_terminal_that_vanished_is_no_more() -> None:
    core = FakeCore()
    agent = with_alpha(core)
    agent.vanish()
    assert core.terminals() == []
    with pytest.raises(LookupError, match="none at all"):
        agent.done()


def test_a_misspelt_terminal_is_named_beside_those_that_are_there() -> None:
    core = FakeCore()
    with_alpha(core)
    with pytest.raises(LookupError, match=r"no terminal 'alhpa'.*t1 alpha"):
        core.agent("alhpa").done()


def test_prompts_and_keys_that_reached_an_agent_can_be_asked_for() -> None:
    core = FakeCore()
    agent = with_alpha(core)
    link = core.connect()
    agent.idle()
    link.call("terminal.send", {"terminal": "t1", "text": "go on"})
    agent.working()
    link.call("terminal.interrupt", {"terminal": "alpha"})
    assert (agent.texts, agent.keys, agent.status) == (["go on"], ["Esc"], "idle")


def test_what_an_agent_writes_is_in_its_session_file_at_once(tmp_path: Path) -> None:
    core = FakeCore()
    session = tmp_path / "s.jsonl"
    core.connect().call("terminal.run", {"argv": ["pi", "--session", str(session)], "name": "alpha"})
    core.agent("alpha").writes("one")
    core.agent("alpha").writes("tw", newline=False)
    assert session.read_text() == "one\ntw"


# ------------------------------------------------------------------------- time


def test_time_moves_only_when_it_is_told_to_and_a_minute_takes_none() -> None:
    core = FakeCore(agents=[TURN])
    agent = with_alpha(core)
    core.advance(59_999)
    assert (agent.status, core.now()) == ("idle", 59_999)
    core.advance(1)
    assert agent.status == "working"
    core.advance(500)
    assert (agent.status, core.clock.now()) == ("done", 60_500)


def test_a_clock_can_be_shared() -> None:
    clock = VirtualClock()
    core = FakeCore(clock=clock)
    clock.jump(5_000_000)
    assert core.now() == 5_000


def test_a_read_lets_time_pass_until_the_answer_comes() -> None:
    core = FakeCore(faults=[Fault(method="terminal.list", delay_ms=90_000)])
    assert core.connect().call("terminal.list") == {"terminals": []}
    assert core.now() == 90_000


def test_a_read_gives_up_after_its_timeout_in_virtual_time() -> None:
    core = FakeCore(faults=[Fault(method="terminal.list", reply=False)], agents=[TURN])
    link = core.connect()
    with pytest.raises(TimeoutError):
        link.call("terminal.list", timeout_ms=700)
    assert core.now() == 700


def test_a_read_that_could_wait_for_ever_says_so_instead() -> None:
    with pytest.raises(VirtualDeadlock):
        FakeCore().connect().read()


def test_waiting_for_an_event_lets_time_pass_until_it_happens() -> None:
    core = FakeCore(agents=[TURN])
    with_alpha(core)
    assert core.wait_for("state", terminal="alpha").t == 60_000
    assert core.wait_for("state", terminal="alpha", nth=2).status == "done"
    with pytest.raises(TimeoutError, match="number 3"):
        core.wait_for("state", terminal="alpha", nth=3, timeout_ms=1_000)
    assert core.now() == 61_500


def test_an_agent_that_repeats_for_ever_does_not_keep_time_from_passing() -> None:
    core = FakeCore(agents=[Agent(repeat_from=0, step=[Step(after_ms=1_000, turn_add=1, status="working")])])
    agent = with_alpha(core)
    core.advance(3_600_000)
    assert agent.turn == 3_600


def test_two_runs_leave_the_same_trace() -> None:
    def run() -> list[str]:
        core = FakeCore(agents=[POLITE])
        link = core.connect()
        link.call("terminal.run", {"argv": ["pi", "task"], "name": "alpha"})
        core.advance(5_000)
        link.call("terminal.send", {"terminal": "alpha", "text": "more"})
        core.advance(5_000)
        return [repr(event) for event in core.trace]

    assert run() == run()


# ------------------------------------------------------------------------- wire


def test_a_link_carries_the_bytes_of_the_real_wire_in_the_pieces_they_were_sent_in() -> None:
    core = FakeCore(faults=[Fault(method="hello", cut=[3])])
    link = core.connect()
    link.write(b'{"jsonrpc":"2.0","id":"x",')
    link.write(b'"method":"hello","params":{}}\n')
    first, second = link.read(0), link.read(0)
    assert len(first) == 3
    assert json.loads(first + second)["id"] == "x"


def test_an_error_reply_raises_with_code_and_kind() -> None:
    with pytest.raises(CallError, match="no terminal") as caught:
        FakeCore().connect().call("terminal.get", {"terminal": "nobody"})
    assert (caught.value.code, caught.value.kind) == (-32000, "no_such_terminal")


def test_a_connection_that_ends_in_a_call_is_told_apart_from_one_that_is_silent() -> None:
    core = FakeCore(faults=[Fault(method="terminal.list", close="instead")])
    link = core.connect()
    with pytest.raises(EOFError, match=r"terminal\.list"):
        link.call("terminal.list")
    assert link.read() == b""
    with pytest.raises(BrokenPipeError):
        link.write(b"\n")


def test_replies_still_come_after_the_client_has_said_its_last() -> None:
    link = FakeCore().connect()
    link.write(b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{}}')
    link.write_eof()
    assert json.loads(link.read_line())["result"] == {"terminals": []}
    assert link.read_line() == b""


def test_a_link_that_left_is_no_connection_any_more() -> None:
    core = FakeCore()
    link = core.connect()
    link.close()
    assert [event.kind for event in core.trace] == ["link", "unlink"]
    with pytest.raises(BrokenPipeError):
        link.write(b"x")


# ----------------------------------------------------------------------- script


def test_a_fault_that_is_injected_counts_from_now_on() -> None:
    core = FakeCore()
    link = core.connect()
    for _ in range(3):
        link.call("terminal.list")
    core.inject(Fault(method="terminal.list", nth=2, reply=False))
    link.call("terminal.list")
    with pytest.raises(TimeoutError):
        link.call("terminal.list", timeout_ms=10)
    link.call("terminal.list")


@pytest.mark.parametrize(
    ("plan", "where"),
    [
        (Fault(method="terminal.get", before_hex="zz"), r"fault\[0\]\.before_hex: is not hexadecimal"),
        (Fault(method="nope"), r"fault\[0\]\.method: there is no method 'nope'"),
        (LinkFault(greeting_hex="q"), r"link\[0\]\.greeting_hex"),
        (Restart(down_ms=-1), r"restart\[0\]\.down_ms: must not be negative"),
    ],
)
def test_a_fault_that_cannot_be_carried_out_is_refused_however_it_comes(
    plan: Fault | LinkFault | Restart, where: str
) -> None:
    core = FakeCore()
    table = "fault" if isinstance(plan, Fault) else "link" if isinstance(plan, LinkFault) else "restart"
    with pytest.raises(ValueError, match=where):
        FakeCore(faults=msgspec.convert({table: [plan]}, FaultPlan))
    with pytest.raises(ValueError, match=where):
        core.restart(plan) if isinstance(plan, Restart) else core.inject(plan)
    assert core.connect().call("hello")["core_id"] == "core-1"


def test_a_fault_for_every_call_stays_one_for_every_call() -> None:
    core = FakeCore()
    link = core.connect()
    core.inject(Fault(method="*", nth=0, reply=False))
    for _ in range(2):
        with pytest.raises(TimeoutError):
            link.call("terminal.list", timeout_ms=10)


def test_a_script_can_be_given_while_the_core_runs(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[[agent]]\nstatus = "blocked"\n')
    core = FakeCore(agents=[TURN])
    link = core.connect()
    core.script(
        Agent(match=Match(name="a"), status="error"),
        Fault(method="terminal.rm", reply=False),
        Script(agent=[Agent(match=Match(name="b"), status="done")]),
        tmp_path / "s.toml",
    )
    for name in "abc":
        link.call("terminal.run", {"argv": ["pi"], "name": name})
    assert [core.agent(name).status for name in "abc"] == ["error", "done", "blocked"]
    with pytest.raises(TimeoutError):
        link.call("terminal.rm", {"terminal": "a"}, timeout_ms=10)


def test_a_fault_of_a_whole_connection_can_be_injected_too() -> None:
    core = FakeCore()
    core.inject(LinkFault(refuse=True))
    assert core.connect().read() == b""
    core.connect().call("terminal.list")


def test_a_core_that_shuts_its_side_still_takes_calls() -> None:
    core = FakeCore()
    core.inject(LinkFault(half_close_after=1))
    link = core.connect()
    link.call("terminal.list")
    assert link.read() == b""
    link.write(b'{"jsonrpc":"2.0","id":2,"method":"terminal.run","params":{"argv":["pi"],"name":"late"}}\n')
    assert core.terminal("late").turn == 0


def test_what_a_core_has_to_know_from_its_start_cannot_be_added_later() -> None:
    plan = FaultPlan(restart=[Restart(at_ms=500, terminals="lost")])
    with pytest.raises(ValueError, match=r"from its start.*: restart"):
        FakeCore().script(plan)
    core = FakeCore(faults=plan)
    core.add_terminal("alpha")
    core.advance(500)
    assert core.terminals() == []


def test_a_core_can_be_restarted_by_hand() -> None:
    core = FakeCore()
    agent = with_alpha(core)
    agent.working()
    link = core.connect()
    core.restart(Restart(terminals="shells"))
    assert link.read() == b""
    assert (agent.turn, agent.status, agent.terminal.argv) == (0, "none", ["/bin/bash"])


def test_steps_by_hand_are_fired_by_name() -> None:
    core = FakeCore(agents=[Agent(step=[Step(by_hand="allow", status="done")])])
    agent = with_alpha(core)
    assert (core.fire("deny"), core.fire("allow"), agent.status) == (0, 1, "done")


def test_a_terminal_can_stand_there_from_the_beginning() -> None:
    core = FakeCore()
    parent = core.add_terminal("you", labels={"herdr.space": "s"})
    child = core.add_terminal("kid", parent=parent, status="working", turn=3)
    assert (child, core.terminal("kid").parent, core.agent("kid").turn) == ("t2", "t1", 3)
    with pytest.raises(ValueError, match="taken"):
        core.add_terminal("kid")


# ------------------------------------------------------------- in an event loop


def test_in_an_event_loop_agents_are_played_the_same_way() -> None:
    async def main() -> tuple[str, int]:
        async with AsyncFakeCore(agents=[TURN]) as core:
            link = core.open_link()
            link.write(b'{"jsonrpc":"2.0","id":1,"method":"terminal.run","params":{"argv":["pi"],"name":"alpha"}}\n')
            await link.read()
            event = await core.wait_for("state", terminal="alpha", nth=2)
            core.agent("alpha").blocked("auth")
            return core.agent("alpha").status, event.t

    assert run_virtual(main()) == ("blocked", 60_500)


def test_in_an_event_loop_a_wait_is_bounded_too() -> None:
    async def main() -> None:
        async with AsyncFakeCore() as core:
            await core.wait_for("call", timeout_ms=1_000)

    with pytest.raises(TimeoutError):
        run_virtual(main())


def test_in_an_event_loop_nothing_is_left_after_the_end() -> None:
    async def main() -> bool:
        async with AsyncFakeCore(agents=[TURN]) as core:
            core.add_terminal("alpha", played=True)
            link = core.open_link()
        assert await link.read() == b""
        return core.driver.scheduled

    assert run_virtual(main()) is False
