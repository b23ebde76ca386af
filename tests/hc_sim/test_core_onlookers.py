"""Timelines that count looks go on for those who are told instead of asking: by events, or by a wait that is held."""

from typing import Any

from hc_sim.core import Answer, Core, Pending
from hc_sim.core.onlookers import EVENT_LOOK_MS, LOOK_ON_MS
from hc_sim.script.format import Agent, Step

LONG_MS = 10_000


def started(*steps: Step, subscribed: bool = False, **manners: Any) -> Core:
    core = Core(agents=[Agent(step=list(steps), **manners)])
    if subscribed:
        core.call("events.subscribe", {}, 0)
    core.call("terminal.run", {"argv": ["pi"], "name": "a"}, 0)
    return core


def word(core: Core) -> str:
    status = core.terminals()[0].status
    return status.state if status else "none"


WORKS = (
    Step(after_observations=1, turn=1, status="working"),
    Step(after_observations=1, status="done"),
)


def test_each_event_that_shows_a_terminal_is_a_look_at_it() -> None:
    core = started(*WORKS, subscribed=True, status="idle")
    assert word(core) == "idle"
    core.advance(EVENT_LOOK_MS)
    assert word(core) == "working"
    core.advance(2 * EVENT_LOOK_MS)
    assert word(core) == "done"
    core.advance(LONG_MS)
    assert core.next_due() is None


def test_events_that_nobody_hears_are_no_looks() -> None:
    core = started(*WORKS, status="idle")
    core.advance(LONG_MS)
    assert word(core) == "idle"


def test_a_timeline_that_goes_round_never_runs_through_in_one_instant() -> None:
    steps = [Step(after_observations=1, status=word) for word in ("working", "idle")]
    core = Core(agents=[Agent(step=steps, repeat_from=0, status="idle")])
    core.call("events.subscribe", {}, 0)
    core.call("terminal.run", {"argv": ["pi"]}, 0)
    core.advance(LONG_MS)
    assert core.next_due() == LONG_MS + EVENT_LOOK_MS


def test_subscribers_look_on_while_nothing_comes() -> None:
    core = started(Step(after_observations=3, turn=1, status="done"), subscribed=True, status="working")
    core.advance(EVENT_LOOK_MS + 2 * LOOK_ON_MS - 1)
    assert word(core) == "working"
    core.advance(EVENT_LOOK_MS + 2 * LOOK_ON_MS)
    assert word(core) == "done"


def test_a_subscriber_that_is_gone_looks_no_more() -> None:
    core = started(Step(after_observations=3, status="done"), subscribed=True, status="working")
    core.advance(EVENT_LOOK_MS)
    core.hang_up(0)
    core.advance(LONG_MS)
    assert (word(core), core.next_due()) == ("working", None)


def test_a_wait_that_is_held_looks_again_and_again() -> None:
    core = started(Step(after_observations=3, turn=1, status="done"), status="working")
    assert isinstance(core.call("terminal.wait", {"terminal": "a"}, 0), Pending)
    assert core.advance(3 * LOOK_ON_MS - 1) == []
    (answered,) = core.advance(3 * LOOK_ON_MS)
    assert answered.answer.result["terminal"]["status"]["state"] == "done"


def test_looks_end_with_the_wait() -> None:
    core = started(Step(after_observations=100, status="done"), status="working")
    core.call("terminal.wait", {"terminal": "a", "timeout_ms": 2 * LOOK_ON_MS}, 0)
    core.advance(LONG_MS)
    assert core.next_due() is None
    assert word(core) == "working"


def test_a_wait_for_children_looks_at_the_children() -> None:
    core = Core(agents=[Agent(step=[Step(after_observations=2, status="done")], status="working")])
    parent = core.add_terminal(argv=("/bin/bash",), name="parent")
    core.call("terminal.run", {"argv": ["pi"], "name": "a", "caller": parent}, 0)
    assert isinstance(core.call("terminal.wait", {"terminal": "parent", "children": "all"}, 0), Pending)
    (answered,) = core.advance(2 * LOOK_ON_MS)
    assert answered.answer.result["ended"] is True


def test_without_a_timeline_that_counts_looks_a_wait_sets_no_timer_but_its_own() -> None:
    core = started(Step(at_ms=400, status="done"), status="working")
    core.call("terminal.wait", {"terminal": "a", "timeout_ms": LONG_MS}, 0)
    assert core.next_due() == 400


def test_looks_at_one_terminal_move_no_other() -> None:
    core = started(*WORKS, status="idle")
    core.call("terminal.run", {"argv": ["pi"], "name": "b"}, 0)
    found = core.call("terminal.get", {"terminal": "b"}, 0)
    assert isinstance(found, Answer)
    assert [entry.status.state for entry in core.terminals() if entry.status] == ["idle", "working"]
