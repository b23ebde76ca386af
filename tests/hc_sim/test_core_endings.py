"""Kill, and what ends with it: at once, later or never; children with their parents."""

from typing import Any

import pytest

from hc_sim.core import Answer, Core
from hc_sim.model import WireError
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, Match, Step


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


def started(*steps: Step, **manners: Any) -> Core:
    core = Core(agents=[Agent(step=list(steps), **manners)])
    ok(core, "terminal.run", argv=["pi"], name="a")
    return core


def living(core: Core) -> set[str]:
    return {terminal.name or terminal.address for terminal in core.terminals() if terminal.state == "running"}


def end_of(core: Core, name: str, now: int) -> tuple[str, int | None, str | None]:
    found = ok(core, "terminal.get", now, terminal=name)
    return found["state"], found["exit_code"], found["signal"]


# kill


def test_a_terminal_that_vanishes_while_its_program_dies_stays_gone() -> None:
    core = started(Step(after_ms=50, vanish=True), kill_ms=2_000)
    ok(core, "terminal.kill", terminal="a")

    assert core.advance(3_000) == []
    assert refused(core, "terminal.get", 3_000, terminal="a").kind == "no_such_terminal"


def test_a_program_that_ends_after_its_terminal_has_vanished_is_no_news() -> None:
    core = started(Step(after_ms=50, vanish=True), Step(after_ms=20, finish=Finish(signal="SIGKILL")))

    assert core.advance(3_000) == []
    assert refused(core, "terminal.get", 3_000, terminal="a").kind == "no_such_terminal"


def test_kill_ends_a_program_by_hangup_at_once() -> None:
    core = started()
    assert ok(core, "terminal.kill", terminal="a") == {"killed": True}
    assert end_of(core, "a", 0) == ("finished", None, "SIGHUP")


def test_a_program_can_take_its_time_to_end() -> None:
    core = started(kill_ms=800, kill_signal="SIGTERM")
    ok(core, "terminal.kill", terminal="a")
    assert refused(core, "terminal.rm", terminal="a").kind == "not_finished"
    assert end_of(core, "a", 799)[0] == "running"
    assert end_of(core, "a", 800) == ("finished", None, "SIGTERM")
    assert ok(core, "terminal.rm", 900, terminal="a") == {"removed": True}


def test_a_second_kill_does_not_put_off_the_end() -> None:
    core = started(kill_ms=800)
    ok(core, "terminal.kill", 0, terminal="a")
    ok(core, "terminal.kill", 700, terminal="a")
    assert end_of(core, "a", 800)[0] == "finished"


def test_a_program_can_catch_the_signal_and_exit_by_code() -> None:
    core = started(kill_code=0)
    ok(core, "terminal.kill", terminal="a")
    assert end_of(core, "a", 0) == ("finished", 0, None)


def test_a_program_can_survive_every_kill() -> None:
    core = started(kill_ms=None)
    assert ok(core, "terminal.kill", terminal="a") == {"killed": True}
    assert end_of(core, "a", 10**9)[0] == "running"


def test_a_program_that_ends_by_itself_before_the_kill_does_has_its_own_end() -> None:
    core = started(Step(at_ms=100, finish=Finish(code=7)), kill_ms=500)
    ok(core, "terminal.kill", terminal="a")
    assert end_of(core, "a", 10_000) == ("finished", 7, None)


def test_kill_of_a_finished_terminal_is_refused() -> None:
    core = started()
    ok(core, "terminal.kill", terminal="a")
    assert refused(core, "terminal.kill", terminal="a").kind == "not_live"


def test_the_end_is_traced_with_how() -> None:
    core = started(kill_ms=5)
    ok(core, "terminal.kill", terminal="a")
    core.advance(5)
    event = core.trace.of("state")[-1]
    assert (event.t, event.state, event.signal, event.exit_code) == (5, "finished", "SIGHUP", None)


# parents


def family(core: Core) -> None:
    """A grandparent, its two children (one outlives it), and a grandchild."""
    core.add_terminal(name="top")
    ok(core, "terminal.run", argv=["pi"], name="bound", caller="top")
    ok(core, "terminal.run", argv=["pi"], name="free", caller="top", die_with_parent=False)
    ok(core, "terminal.run", argv=["pi"], name="grand", caller="bound")
    core.add_terminal(name="stranger")


def test_children_end_with_their_parent_and_theirs_with_them() -> None:
    core = Core()
    family(core)
    ok(core, "terminal.kill", terminal="top")
    assert living(core) == {"free", "stranger"}
    assert end_of(core, "grand", 0) == ("finished", None, "SIGHUP")


def test_a_child_that_ends_leaves_its_parent_alone() -> None:
    core = Core()
    family(core)
    ok(core, "terminal.kill", terminal="bound")
    assert living(core) == {"top", "free", "stranger"}


def test_a_parent_that_vanishes_takes_its_children_along() -> None:
    core = Core(agents=[Agent(match=Match(name="top"), step=[Step(at_ms=5, vanish=True)])])
    core.add_terminal(name="top", played=True)
    ok(core, "terminal.run", argv=["pi"], name="child", caller="top")
    assert end_of(core, "child", 5)[0] == "finished"


def test_a_child_dies_in_its_own_manner() -> None:
    core = Core(
        agents=[
            Agent(match=Match(name="slow"), kill_ms=1_500, kill_code=0),
            Agent(match=Match(name="deaf"), kill_ms=None),
        ]
    )
    core.add_terminal(name="top")
    for name in ("slow", "deaf"):
        ok(core, "terminal.run", argv=["pi"], name=name, caller="top")
    ok(core, "terminal.kill", 500, terminal="top")
    assert end_of(core, "slow", 1_999)[0] == "running"
    assert end_of(core, "slow", 2_000) == ("finished", 0, None)
    assert end_of(core, "deaf", 10**6)[0] == "running"


def test_without_a_caller_there_is_no_parent_to_die_with() -> None:
    found = ok(Core(), "terminal.run", argv=["pi"], die_with_parent=True)
    assert (found["parent"], found["die_with_parent"]) == (None, False)


def test_a_caller_can_be_given_by_name() -> None:
    core = Core()
    core.add_terminal(name="top")
    assert ok(core, "terminal.run", argv=["pi"], caller="top")["parent"] == "t1"


def test_a_long_line_of_descendants_ends_without_recursion() -> None:
    core = Core(WireProfile(max_terminals=3_000))
    parent = core.add_terminal()
    for _ in range(2_500):
        parent = ok(core, "terminal.run", argv=["pi"], caller=parent)["address"]
    ok(core, "terminal.kill", terminal="t1")
    assert living(core) == set()


@pytest.mark.parametrize("delay", [1, 3_000])
def test_the_cascade_can_be_late(delay: int) -> None:
    core = Core(WireProfile(cascade_ms=delay))
    family(core)
    ok(core, "terminal.kill", terminal="top")
    core.advance(delay - 1)
    assert living(core) == {"bound", "free", "grand", "stranger"}
    core.advance(delay)
    assert living(core) == {"free", "grand", "stranger"}
    core.advance(2 * delay)
    assert living(core) == {"free", "stranger"}


def test_a_kill_that_comes_after_the_end_changes_nothing_where_it_is_accepted() -> None:
    core = Core(WireProfile(kill_finished="accept"))
    core.add_terminal(name="a", finished=3)
    before = len(core.trace.events)
    assert ok(core, "terminal.kill", terminal="a") == {"killed": True}
    assert end_of(core, "a", 0) == ("finished", 3, None)
    assert len(core.trace.events) == before


def test_removing_a_finished_parent_leaves_those_alone_who_came_after_its_end() -> None:
    core = Core()
    core.add_terminal(name="top", finished=0)
    ok(core, "terminal.run", argv=["pi"], name="late", caller="top")
    ok(core, "terminal.rm", terminal="top")
    assert living(core) == {"late"}


def test_a_parent_that_vanishes_leaves_those_alone_who_outlive_it() -> None:
    core = Core(agents=[Agent(match=Match(name="top"), step=[Step(at_ms=5, vanish=True)])])
    core.add_terminal(name="top", played=True)
    ok(core, "terminal.run", argv=["pi"], name="free", caller="top", die_with_parent=False)
    core.advance(5)
    assert living(core) == {"free"}
