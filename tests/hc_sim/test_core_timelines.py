"""Agents acting out timelines: what shows when, what happens to files, and terminals that vanish or come back."""

from typing import Any

import pytest

from hc_sim.core import Answer, Core, FileEffect, timeline
from hc_sim.core.timeline import ScriptError
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, FileWrite, Finish, Reborn, Step
from hc_sim.script.load import POLITE


def ok(core: Core, method: str, now: int = 0, /, **params: Any) -> Any:
    answer = core.call(method, params, now)
    assert isinstance(answer, Answer)
    assert answer.error is None, answer.error
    return answer.result


def kind(core: Core, method: str, now: int = 0, /, **params: Any) -> str:
    answer = core.call(method, params, now)
    assert isinstance(answer, Answer)
    return "" if answer.error is None else answer.error.kind


def started(*steps: Step, profile: WireProfile | None = None, argv: tuple[str, ...] = ("pi",), **manners: Any) -> Core:
    core = Core(profile, agents=[Agent(step=list(steps), **manners)])
    ok(core, "terminal.run", argv=list(argv), name="a")
    return core


def look(core: Core, now: int) -> tuple[int, str]:
    found = ok(core, "terminal.get", now, terminal="a")
    return found["turn"], "none" if found["status"] is None else found["status"]["state"]


# time


def test_steps_show_at_their_time() -> None:
    core = started(
        Step(at_ms=300, status="idle"), Step(after_ms=100, turn=1, status="working"), Step(at_ms=900, status="done")
    )
    seen = [look(core, now) for now in (0, 299, 300, 399, 400, 899, 900)]
    assert seen == [(0, "none"), (0, "none"), (0, "idle"), (0, "idle"), (1, "working"), (1, "working"), (1, "done")]


def test_next_due_names_the_moment_of_the_next_step() -> None:
    core = started(Step(at_ms=300, status="idle"), Step(after_ms=100, status="done"))
    assert core.next_due() == 300
    core.advance(300)
    assert core.next_due() == 400
    core.advance(5_000)
    assert core.next_due() is None


def test_a_late_advance_carries_steps_out_at_their_own_time_and_in_order() -> None:
    core = Core(agents=[Agent(step=[Step(at_ms=100, status="idle"), Step(after_ms=200, status="done")])])
    ok(core, "terminal.run", 0, argv=["pi"], name="a")
    ok(core, "terminal.run", 50, argv=["pi"], name="b")
    core.advance(10_000)
    assert [(event.t, event.name, event.status) for event in core.trace.of("state")] == [
        (100, "a", "idle"), (150, "b", "idle"), (300, "a", "done"), (350, "b", "done"),
    ]  # fmt: skip


def test_time_that_goes_back_is_held() -> None:
    core = started(Step(at_ms=300, status="idle"))
    assert look(core, 300) == (0, "idle")
    assert ok(core, "terminal.run", 10, argv=["pi"])["created_ms"] == 1_300


# calls and observations


def test_a_step_on_a_call_is_visible_in_that_call_s_own_reply() -> None:
    core = started(Step(on_call="terminal.get", nth=2, turn=1, status="done"))
    assert [look(core, 0) for _ in range(3)] == [(0, "none"), (1, "done"), (1, "done")]


def test_a_step_after_observations_is_visible_to_the_next_one() -> None:
    core = started(Step(after_observations=2, turn=1, status="done"))
    assert [look(core, 0) for _ in range(3)] == [(0, "none"), (0, "none"), (1, "done")]


def test_get_list_and_wait_are_observations_and_other_calls_are_not() -> None:
    core = started(Step(after_observations=3, status="done"), status="idle")
    ok(core, "terminal.keep", terminal="a")
    ok(core, "terminal.read", terminal="a")
    ok(core, "terminal.list")
    ok(core, "terminal.wait", terminal="a")
    assert look(core, 0) == (0, "idle")
    assert look(core, 0) == (0, "done")


def test_a_list_that_does_not_show_the_terminal_observes_nothing() -> None:
    core = started(Step(after_observations=1, status="done"))
    ok(core, "terminal.list", labels={"x": "y"})
    assert look(core, 0) == (0, "none")


def test_the_run_itself_can_fire_a_step() -> None:
    core = Core(agents=[Agent(step=[Step(on_call="terminal.run", finish=Finish(code=127))])])
    found = ok(core, "terminal.run", argv=["nope"])
    assert (found["state"], found["exit_code"]) == ("finished", 127)


def test_what_follows_at_once_shows_in_the_same_reply() -> None:
    core = started(Step(on_call="terminal.get", status="working"), Step(after_ms=0, status="done"))
    assert look(core, 0) == (0, "done")


def test_a_step_that_removes_the_terminal_on_a_call_answers_that_call_with_absence() -> None:
    core = started(Step(on_call="terminal.get", vanish=True))
    assert kind(core, "terminal.get", terminal="a") == "no_such_terminal"


# by hand


def test_fire_moves_the_terminals_whose_armed_step_has_the_name() -> None:
    core = Core(agents=[Agent(step=[Step(by_hand="go", status="working"), Step(by_hand="stop", status="done")])])
    for name in ("a", "b"):
        ok(core, "terminal.run", argv=["pi"], name=name)
    assert core.fire("stop", 0) == 0
    assert core.fire("go", 1) == 2
    assert look(core, 1) == (0, "working")
    assert core.fire("go", 2) == 0
    assert core.fire("stop", 3) == 2


# effects


def test_a_status_carries_what_the_step_reports() -> None:
    core = started(
        Step(at_ms=0, status="blocked", kind="permission", msg="Allow?", app="other"),
        Step(after_ms=10, status="working", kind="question"),
        Step(after_ms=10, msg="still at it"),
        Step(after_ms=10, status="none"),
    )
    seen = [ok(core, "terminal.get", now, terminal="a")["status"] for now in (0, 10, 20, 30)]
    assert seen == [
        {"state": "blocked", "app": "other", "kind": "permission", "msg": "Allow?"},
        {"state": "working", "app": "other"},
        {"state": "working", "app": "other", "msg": "still at it"},
        None,
    ]


def test_turns_are_set_and_added_to() -> None:
    core = started(
        Step(at_ms=0, turn=5), Step(at_ms=1, turn_add=2), Step(at_ms=2, turn=1, turn_add=1), Step(at_ms=3, turn=0)
    )
    assert [look(core, now)[0] for now in range(4)] == [5, 7, 2, 0]


@pytest.mark.parametrize(
    ("finish", "code", "signal"),
    [(Finish(code=3), 3, None), (Finish(signal="SIGKILL"), None, "SIGKILL"), (Finish(), 0, None)],
)
def test_a_program_ends_by_code_or_signal_with_its_last_turn_and_status(finish: Finish, code: int, signal: str) -> None:
    core = started(Step(at_ms=0, turn=1, status="working"), Step(at_ms=10, finish=finish))
    found = ok(core, "terminal.get", 10, terminal="a")
    assert (found["state"], found["exit_code"], found["signal"]) == ("finished", code, signal)
    assert (found["turn"], found["status"]["state"], found["pid"], found["foreground"]) == (1, "working", None, None)


def test_labels_are_merged_and_names_change() -> None:
    core = started(Step(at_ms=1, labels={"a": "b"}), Step(at_ms=2, rename="my review"), Step(at_ms=3, rename=""))
    assert ok(core, "terminal.get", 1, terminal="a")["labels"] == {"a": "b"}
    assert ok(core, "terminal.get", 2, terminal="my review")["address"] == "t1"
    assert kind(core, "terminal.get", 2, terminal="a") == "no_such_terminal"
    assert ok(core, "terminal.get", 3, terminal="t1")["name"] is None


def test_a_rename_to_a_live_name_is_left_out() -> None:
    core = started(Step(at_ms=1, rename="b"))
    core.add_terminal(name="b")
    core.advance(1)
    assert [terminal.name for terminal in core.terminals()] == ["a", "b"]


def test_steps_are_traced_with_index_and_note() -> None:
    core = started(Step(at_ms=1, status="done", note="work ends"), Step(at_ms=2, note="tail"))
    core.advance(2)
    assert [(event.t, event.step, event.note) for event in core.trace.of("step")] == [
        (1, 0, "work ends"),
        (2, 1, "tail"),
    ]


# files


def test_writes_to_the_session_file_come_out_once_and_in_order() -> None:
    steps = [
        Step(at_ms=0, file=FileWrite(append='{"a":1}')),
        Step(at_ms=0, file=FileWrite(append="torn", newline=False)),
        Step(at_ms=0, file=FileWrite(append_hex="ff0a")),
        Step(at_ms=0, file=FileWrite(replace="new")),
        Step(at_ms=0, file=FileWrite(remove=True)),
    ]
    core = started(*steps, argv=("pi", "--session", "/s.jsonl", "go"))
    assert core.drain_files() == [
        FileEffect("/s.jsonl", "append", b'{"a":1}\n'),
        FileEffect("/s.jsonl", "append", b"torn"),
        FileEffect("/s.jsonl", "append", b"\xff\n"),
        FileEffect("/s.jsonl", "replace", b"new\n"),
        FileEffect("/s.jsonl", "remove"),
    ]
    assert core.drain_files() == []


def test_a_write_comes_before_the_status_of_its_own_step() -> None:
    core = started(Step(at_ms=1, status="done", file=FileWrite(append="x")), argv=("pi", "--session", "/s"))
    core.advance(1)
    assert [event.kind for event in core.trace][-3:] == ["step", "file", "state"]


def test_without_a_session_file_nothing_is_written_and_the_trace_says_so() -> None:
    core = started(Step(at_ms=0, file=FileWrite(append="x")))
    assert core.drain_files() == []
    assert "no --session" in core.trace.of("file")[0].note


# vanish and reborn


def test_a_terminal_can_vanish_live_and_its_name_is_free() -> None:
    core = started(Step(at_ms=1, vanish=True))
    assert kind(core, "terminal.get", 1, terminal="a") == "no_such_terminal"
    assert core.trace.of("gone")[0].state == "running"
    assert ok(core, "terminal.run", 1, argv=["pi"], name="a")["address"] == "t2"


def test_a_reborn_terminal_is_another_incarnation_at_the_same_address() -> None:
    core = started(
        Step(at_ms=0, turn=2, status="done"),
        Step(at_ms=500, reborn=Reborn(argv=["/bin/zsh"], parent="t7", new_core_id=True)),
        Step(after_ms=10, turn=1, status="working"),
        argv=("pi", "--session", "/s", "go"),
    )
    before = ok(core, "terminal.get", terminal="a")
    after = ok(core, "terminal.get", 500, terminal="a")
    assert (after["address"], after["name"], after["state"]) == (before["address"], before["name"], "running")
    assert (after["argv"], after["turn"], after["status"], after["parent"]) == (["/bin/zsh"], 0, None, "t7")
    assert after["created_ms"] > before["created_ms"]
    assert ok(core, "hello", 500)["core_id"] == "core-1-1" == core.core_id
    assert look(core, 510) == (1, "working")


def test_a_finished_terminal_can_be_reborn_and_created_ms_always_moves() -> None:
    core = started(Step(at_ms=0, finish=Finish(code=1)), Step(at_ms=0, reborn=Reborn()))
    found = ok(core, "terminal.get", terminal="a")
    assert (found["state"], found["exit_code"], found["created_ms"]) == ("running", None, 1_001)
    assert core.core_id == "core-1"


def test_a_vanished_terminal_can_be_reborn() -> None:
    core = started(Step(at_ms=1, vanish=True), Step(at_ms=5, reborn=Reborn()))
    assert kind(core, "terminal.get", 1, terminal="a") == "no_such_terminal"
    assert ok(core, "terminal.get", 5, terminal="a")["argv"] == ["/bin/bash"]


def test_a_vanished_terminal_can_be_brought_back_by_hand() -> None:
    core = started(Step(at_ms=1, vanish=True), Step(by_hand="back", reborn=Reborn()))
    core.advance(1)
    assert core.fire("back", 2) == 1
    assert ok(core, "terminal.get", 2, terminal="a")["address"] == "t1"


def test_who_comes_back_too_late_comes_back_without_the_name() -> None:
    core = started(Step(at_ms=1, vanish=True), Step(at_ms=5, reborn=Reborn()))
    core.advance(1)
    core.add_terminal(name="a", now=2)
    core.advance(5)
    assert [(terminal.address, terminal.name) for terminal in core.terminals()] == [("t2", "a"), ("t1", None)]


def test_a_removed_terminal_plays_no_more() -> None:
    core = started(Step(at_ms=0, finish=Finish()), Step(at_ms=10, reborn=Reborn()))
    ok(core, "terminal.rm", terminal="a")
    core.advance(20)
    assert core.terminals() == []


# repetition


def test_a_timeline_repeats_and_waits_each_time() -> None:
    core = started(
        Step(on_call="terminal.send", turn_add=1, status="working"), Step(after_ms=100, status="done"),
        status="idle", repeat_from=0,
    )  # fmt: skip
    for number in range(1, 4):
        ok(core, "terminal.send", number * 1_000, terminal="a", text="x")
        assert look(core, number * 1_000) == (number, "working")
        assert look(core, number * 1_000 + 100) == (number, "done")


def test_a_timeline_that_never_waits_is_stopped_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MAX_STEPS_AT_ONCE", 100)
    core = started(*[Step(at_ms=1, turn_add=1)] * 101)
    with pytest.raises(ScriptError, match="100 steps at 1 ms"):
        core.advance(1)


# the polite agent


def test_the_polite_agent_boots_to_idle_and_takes_a_turn_for_its_task() -> None:
    core = Core(agents=[POLITE])
    ok(core, "terminal.run", argv=["pi", "do it"], name="a")
    assert [look(core, now) for now in (0, 300, 1_299, 1_300)] == [
        (0, "none"), (1, "working"), (1, "working"), (1, "done"),
    ]  # fmt: skip
    assert [event.status for event in core.trace.of("state")] == ["idle", "working", "done"]


def test_the_polite_agent_stays_idle_without_a_task() -> None:
    core = Core(agents=[POLITE])
    ok(core, "terminal.run", argv=["pi", "--session", "/s"], name="a")
    assert look(core, 60_000) == (0, "idle")


def test_the_polite_agent_takes_a_turn_for_every_send_one_after_the_other() -> None:
    core = Core(agents=[POLITE])
    ok(core, "terminal.run", argv=["pi"], name="a")
    core.advance(300)
    ok(core, "terminal.send", 1_000, terminal="a", text="one")
    assert look(core, 1_000) == (1, "working")
    ok(core, "terminal.send", 1_500, terminal="a", text="two")
    assert look(core, 2_000) == (2, "working")
    assert look(core, 3_000) == (2, "done")
    assert [event.text for event in core.trace.of("text")] == ["one", "two"]


def test_the_polite_agent_ends_in_idle_on_esc_and_takes_the_next_prompt() -> None:
    core = Core(agents=[POLITE])
    ok(core, "terminal.run", argv=["pi", "go"], name="a")
    assert look(core, 400) == (1, "working")
    assert ok(core, "terminal.interrupt", 400, terminal="a") == {"key": "Esc", "effect": True}
    assert look(core, 5_000) == (1, "idle")
    ok(core, "terminal.send", 6_000, terminal="a", text="again")
    assert look(core, 7_000) == (2, "done")


def test_a_list_is_a_call_on_every_terminal_it_could_show() -> None:
    core = Core(
        agents=[Agent(step=[Step(on_call="terminal.list", nth=2, status="done"), Step(at_ms=0, finish=Finish())])]
    )
    ok(core, "terminal.run", argv=["pi"], name="a")
    core.add_terminal(name="plain")
    assert [row["status"] for row in ok(core, "terminal.list")["terminals"]] == [None, None]
    assert [row["name"] for row in ok(core, "terminal.list")["terminals"]] == ["plain"]
    assert [row["name"] for row in ok(core, "terminal.list", all=True)["terminals"]] == ["a", "plain"]


def test_a_step_fills_and_clears_the_composer() -> None:
    core = started(Step(at_ms=1, composer="draft"), Step(at_ms=3, composer=""), send="fuse")
    for now in (0, 1, 2, 3):
        if now in (0, 1, 3):
            ok(core, "terminal.send", now, terminal="a", text=f"t{now}")
        if now == 1:
            core.advance(2)
    assert [event.text for event in core.trace.of("text")] == ["t0", "draftt1", "t3"]


def test_a_draft_that_a_step_sets_is_not_what_esc_gave_back() -> None:
    core = started(Step(by_hand="type", composer="human"), status="working", queued=True)
    ok(core, "terminal.send", terminal="a", text="S")
    ok(core, "terminal.interrupt", terminal="a")
    core.fire("type", 0)
    ok(core, "terminal.send", terminal="a", text="P")
    assert [event.text for event in core.trace.of("text")] == ["P"]


def test_a_reborn_terminal_writes_to_the_session_file_it_has_now() -> None:
    steps = [
        Step(at_ms=0, reborn=Reborn()),
        Step(at_ms=0, file=FileWrite(append="1")),
        Step(at_ms=0, reborn=Reborn(argv=["pi", "--session", "/new"])),
        Step(at_ms=0, file=FileWrite(append="2")),
    ]
    core = started(*steps, argv=("pi", "--session", "/old"))
    assert [effect.path for effect in core.drain_files()] == ["/old", "/new"]
    assert {event.name for event in core.trace.of("file")} == {"a"}
