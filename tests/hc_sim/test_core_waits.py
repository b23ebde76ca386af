"""terminal.wait: it ends when the program does not work or has ended; its timeout is a check-in."""

from typing import Any

import pytest

from hc_sim.core import Answer, Core, Pending
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, Step


def started(*steps: Step, profile: WireProfile | None = None, **manners: Any) -> Core:
    core = Core(profile, agents=[Agent(step=list(steps), **manners)])
    core.call("terminal.run", {"argv": ["pi"], "name": "a"}, 0)
    return core


def wait(core: Core, now: int = 0, **params: Any) -> Answer | Pending:
    return core.call("terminal.wait", {"terminal": "a", **params}, now)


def owed(core: Core, now: int = 0, **params: Any) -> int:
    found = wait(core, now, **params)
    assert isinstance(found, Pending)
    return found.ticket


@pytest.mark.parametrize("word", ["idle", "done", "blocked", "error"])
def test_a_program_that_does_not_work_is_not_waited_for(word: Any) -> None:
    found = wait(started(status=word))
    assert isinstance(found, Answer)
    assert (found.result["ended"], found.result["terminal"]["status"]["state"]) == (True, word)


@pytest.mark.parametrize("word", ["idle", "done", "blocked", "error"])
def test_a_wait_ends_at_the_moment_the_work_does(word: Any) -> None:
    core = started(Step(at_ms=700, turn=1, status=word), status="working")
    ticket = owed(core)
    assert core.advance(699) == []
    (answered,) = core.advance(700)
    assert (answered.ticket, answered.answer.result["ended"]) == (ticket, True)
    assert answered.answer.result["terminal"]["status"]["state"] == word


def test_a_wait_ends_with_the_program() -> None:
    core = started(Step(at_ms=5, finish=Finish(code=2)), status="working")
    owed(core)
    (answered,) = core.advance(5)
    assert answered.answer.result["ended"] is True
    assert answered.answer.result["terminal"]["exit_code"] == 2


def test_a_timeout_is_a_check_in_and_the_program_goes_on() -> None:
    core = started(Step(at_ms=900, status="done"), status="working")
    owed(core, 100, timeout_ms=300)
    assert core.next_due() == 400
    (answered,) = core.advance(400)
    assert answered.answer.error is None
    assert answered.answer.result["ended"] is False
    assert answered.answer.result["terminal"]["status"]["state"] == "working"
    assert core.advance(900) == []


def test_without_a_timeout_the_core_checks_in_after_three_minutes() -> None:
    core = started(status="working")
    owed(core)
    assert core.advance(179_999) == []
    assert len(core.advance(180_000)) == 1


def test_a_program_that_reports_nothing_is_waited_for_to_its_end() -> None:
    core = started(Step(at_ms=50, finish=Finish(code=0)))
    owed(core)
    assert len(core.advance(50)) == 1


def test_several_waits_end_together_in_the_order_they_came() -> None:
    core = started(Step(at_ms=10, status="done"), status="working")
    tickets = [owed(core), owed(core, 5), owed(core, 5)]
    assert [answered.ticket for answered in core.advance(10)] == tickets


def test_a_wait_for_a_terminal_that_vanishes_is_an_error() -> None:
    core = started(Step(at_ms=10, vanish=True), status="working")
    owed(core)
    (answered,) = core.advance(10)
    assert answered.answer.error is not None
    assert answered.answer.error.kind == "no_such_terminal"


def test_the_answer_to_a_wait_is_an_observation() -> None:
    core = started(Step(at_ms=10, status="idle"), Step(after_observations=1, status="done"), status="working")
    owed(core)
    (answered,) = core.advance(10)
    assert answered.answer.result["terminal"]["status"]["state"] == "idle"
    status = core.terminals()[0].status
    assert status is not None
    assert status.state == "done"


def test_a_call_that_ends_a_wait_makes_the_answer_due_now() -> None:
    core = started(status="working")
    ticket = owed(core)
    core.call("terminal.interrupt", {"terminal": "a"}, 30)
    assert core.next_due() == 30
    assert [answered.ticket for answered in core.advance(30)] == [ticket]
    assert core.next_due() is None


def test_a_negative_timeout_is_refused_and_zero_checks_in_at_once() -> None:
    core = started(status="working")
    found = wait(core, timeout_ms=-1)
    assert isinstance(found, Answer)
    assert found.error is not None
    owed(core, timeout_ms=0)
    assert [answered.answer.result["ended"] for answered in core.advance(0)] == [False]


def test_the_number_of_answers_owed_is_limited() -> None:
    core = started(status="working", profile=WireProfile(max_waiting=2))
    owed(core)
    owed(core)
    found = wait(core)
    assert isinstance(found, Answer)
    assert found.error is not None
    assert found.error.kind == "limit_reached"
    core.advance(180_000)
    owed(core, 180_000)


@pytest.mark.parametrize("params", [{}, {"children": "all"}])
def test_the_waits_of_a_connection_that_is_gone_are_owed_no_more(params: dict[str, Any]) -> None:
    core = started(status="working", profile=WireProfile(max_waiting=2))
    core.call("terminal.run", {"argv": ["pi"], "name": "b", "caller": "a"}, 0)
    for _ in range(2):
        assert isinstance(core.call("terminal.wait", {"terminal": "a", **params}, 0, conn=7), Pending)

    core.hang_up(7)

    assert isinstance(core.call("terminal.wait", {"terminal": "a", "timeout_ms": 50}, 0, conn=8), Pending)
    assert len(core.advance(10_000_000)) == 1
