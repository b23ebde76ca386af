"""Texts and keys: what each manner of an agent does to a send, and what Esc does."""

from typing import Any

import pytest

from hc_sim.core import Answer, Answered, Core, Pending
from hc_sim.model import WireError
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, Step


def ok(core: Core, method: str, now: int = 0, /, **params: Any) -> Any:
    answer = core.call(method, params, now)
    assert isinstance(answer, Answer)
    assert answer.error is None, answer.error
    return answer.result


def refused(core: Core, method: str, now: int = 0, /, **params: Any) -> WireError:
    answer = core.call(method, params, now)
    assert isinstance(answer, Answer)
    assert answer.error is not None, answer.result
    return answer.error


def started(*steps: Step, profile: WireProfile | None = None, **manners: Any) -> Core:
    core = Core(profile, agents=[Agent(step=list(steps), **manners)])
    ok(core, "terminal.run", argv=["pi"], name="a")
    return core


def texts(core: Core) -> list[str]:
    return [event.text for event in core.trace.of("text", terminal="a")]


def pressed(core: Core) -> list[str]:
    return [event.text for event in core.trace.of("key", terminal="a")]


def status(core: Core, now: int = 0) -> str | None:
    found = ok(core, "terminal.get", now, terminal="a")["status"]
    return None if found is None else str(found["state"])


# send


def test_an_accepted_text_reaches_the_agent_exactly_and_once() -> None:
    core = started(status="idle")
    text = '  - "x"\n\u2028 --y\t'
    assert ok(core, "terminal.send", terminal="a", text=text) == {"started": True}
    assert texts(core) == [text]


def test_a_send_moves_neither_turn_nor_status_by_itself() -> None:
    core = started(status="idle", turn=3)
    before = ok(core, "terminal.get", terminal="a")
    ok(core, "terminal.send", terminal="a", text="x")
    assert ok(core, "terminal.get", 10**6, terminal="a") == before


def test_an_unconfirmed_text_is_taken_all_the_same() -> None:
    core = started(send="unconfirmed")
    assert ok(core, "terminal.send", terminal="a", text="x") == {"started": False}
    assert texts(core) == ["x"]


@pytest.mark.parametrize(
    ("manners", "kind"),
    [
        ({"status": "idle"}, "send_refused"),
        ({"status": "blocked"}, "blocked"),
        ({"status": "idle", "composer": "half a thought"}, "draft_present"),
    ],
)
def test_a_refused_text_reaches_nobody_and_the_error_says_why(manners: dict[str, Any], kind: str) -> None:
    core = started(send="refuse", **manners)
    assert refused(core, "terminal.send", terminal="a", text="x").kind == kind
    assert texts(core) == []


def test_a_held_text_is_answered_and_delivered_only_after_its_time() -> None:
    core = started(send="hold", hold_ms=60_000)
    ticket = core.call("terminal.send", {"terminal": "a", "text": "x"}, 100)
    assert isinstance(ticket, Pending)
    assert core.advance(60_099) == []
    assert texts(core) == []
    assert core.next_due() == 60_100
    assert core.advance(60_100) == [Answered(ticket.ticket, Answer({"started": True}))]
    assert texts(core) == ["x"]


def test_a_held_text_of_a_program_that_ends_is_never_typed() -> None:
    core = started(Step(at_ms=500, finish=Finish(code=0)), send="hold")
    ticket = core.call("terminal.send", {"terminal": "a", "text": "x"}, 0)
    assert isinstance(ticket, Pending)
    (answered,) = core.advance(500)
    assert answered.ticket == ticket.ticket
    assert answered.answer.error is not None
    assert answered.answer.error.kind == "not_live"
    assert core.advance(100_000) == []
    assert texts(core) == []


def test_a_swallowed_text_is_answered_as_taken_but_only_its_enter_arrives() -> None:
    core = started(send="swallow", status="blocked")
    assert ok(core, "terminal.send", terminal="a", text="x") == {"started": True}
    assert (texts(core), pressed(core)) == ([], ["Enter"])


def test_a_fused_text_goes_behind_the_unsent_one_and_takes_it_along() -> None:
    core = started(send="fuse", composer="merge it only after")
    ok(core, "terminal.send", terminal="a", text="run tests")
    ok(core, "terminal.send", terminal="a", text="again")
    assert texts(core) == ["merge it only afterrun tests", "again"]


def test_an_accepted_text_leaves_somebody_s_draft_alone() -> None:
    core = started(composer="draft")
    ok(core, "terminal.send", terminal="a", text="x")
    assert texts(core) == ["x"]


def test_a_step_changes_the_manner_even_for_the_send_that_fires_it() -> None:
    core = started(Step(on_call="terminal.send", nth=2, send="refuse"), Step(on_call="terminal.send", send="accept"))
    ok(core, "terminal.send", terminal="a", text="1")
    assert refused(core, "terminal.send", terminal="a", text="2").kind == "send_refused"
    ok(core, "terminal.send", terminal="a", text="3")
    assert texts(core) == ["1", "3"]


def test_a_blocked_agent_takes_no_text_unless_forced_and_then_the_dialog_eats_it() -> None:
    core = started(status="blocked")
    assert refused(core, "terminal.send", terminal="a", text="x").kind == "blocked"
    assert ok(core, "terminal.send", terminal="a", text="x", force=True) == {"started": True}
    assert (texts(core), pressed(core)) == ([], ["Enter"])


def test_a_finished_terminal_takes_no_text() -> None:
    core = Core()
    core.add_terminal(name="a", finished=0)
    assert refused(core, "terminal.send", terminal="a", text="x").kind == "not_live"


def test_text_must_be_there_and_be_a_string() -> None:
    core = started()
    assert refused(core, "terminal.send", terminal="a").kind == "invalid_params"
    assert refused(core, "terminal.send", terminal="a", text=5).kind == "invalid_params"


# queueing agents


def test_a_queueing_agent_takes_a_text_at_its_turn_boundary() -> None:
    core = started(Step(at_ms=1_000, turn=1, status="done"), status="working", queued=True)
    ok(core, "terminal.send", 10, terminal="a", text="S")
    assert texts(core) == []
    core.advance(1_000)
    assert texts(core) == ["S"]


def test_a_queueing_agent_takes_the_text_that_starts_its_work_at_once() -> None:
    core = started(Step(on_call="terminal.send", turn_add=1, status="working"), status="idle", queued=True)
    ok(core, "terminal.send", terminal="a", text="go")
    assert texts(core) == ["go"]


def test_esc_gives_a_queued_text_back_to_the_composer_and_the_next_one_is_glued_to_it() -> None:
    core = started(status="working", queued=True)
    ok(core, "terminal.send", terminal="a", text="S")
    ok(core, "terminal.interrupt", terminal="a")
    assert texts(core) == []
    ok(core, "terminal.send", terminal="a", text="P2")
    ok(core, "terminal.send", terminal="a", text="P3")
    assert texts(core) == ["SP2", "P3"]


def test_esc_gives_back_even_when_the_script_ends_the_work_on_that_call() -> None:
    core = started(Step(on_call="terminal.interrupt", status="idle"), status="working", queued=True)
    ok(core, "terminal.send", terminal="a", text="S")
    ok(core, "terminal.interrupt", terminal="a")
    assert texts(core) == []


def test_a_queued_text_of_a_program_that_ends_is_lost() -> None:
    core = started(Step(at_ms=10, finish=Finish()), status="working", queued=True)
    ok(core, "terminal.send", terminal="a", text="S")
    core.advance(10)
    assert texts(core) == []


# interrupt


def test_interrupt_is_the_key_esc_and_ends_work_in_idle_with_the_turn_kept() -> None:
    core = started(status="working", turn=4)
    assert ok(core, "terminal.interrupt", terminal="a") == {"key": "Esc", "effect": True}
    found = ok(core, "terminal.get", terminal="a")
    assert (found["state"], found["turn"], found["status"]["state"]) == ("running", 4, "idle")
    assert pressed(core) == ["Esc"]


@pytest.mark.parametrize("word", ["idle", "done", "error", "none"])
def test_interrupt_of_an_agent_that_does_not_work_changes_nothing(word: Any) -> None:
    core = started(status=word)
    assert ok(core, "terminal.interrupt", terminal="a") == {"key": "Esc", "effect": False}


def test_interrupt_denies_a_dialog_and_the_run_goes_on() -> None:
    core = started(status="blocked", turn=1)
    ok(core, "terminal.interrupt", terminal="a")
    found = ok(core, "terminal.get", terminal="a")
    assert (found["turn"], found["status"]["state"]) == (1, "working")


def test_an_agent_can_ignore_esc() -> None:
    core = started(status="working", interrupt="no-effect")
    assert ok(core, "terminal.interrupt", terminal="a") == {"key": "Esc", "effect": False}
    assert status(core) == "working"
    assert pressed(core) == ["Esc"]


def test_a_timeline_goes_on_after_esc_unless_it_says_where_to_go() -> None:
    steps = [Step(at_ms=100, status="done"), Step(on_call="terminal.send", status="working")]
    stubborn = started(*steps, status="working")
    ok(stubborn, "terminal.interrupt", terminal="a")
    assert status(stubborn, 200) == "done"
    obedient = started(*steps, status="working", after_esc=1)
    ok(obedient, "terminal.interrupt", terminal="a")
    assert status(obedient, 200) == "idle"
    ok(obedient, "terminal.send", 300, terminal="a", text="x")
    assert status(obedient, 300) == "working"


def test_a_plain_program_gets_ctrl_c() -> None:
    core = Core()
    core.add_terminal(name="a")
    assert ok(core, "terminal.interrupt", terminal="a") == {"key": "Ctrl+C", "effect": False}
    assert pressed(core) == ["Ctrl+C"]


def test_a_finished_terminal_gets_no_key() -> None:
    core = Core()
    core.add_terminal(name="a", finished=0)
    assert refused(core, "terminal.interrupt", terminal="a").kind == "not_live"
    assert pressed(core) == []
