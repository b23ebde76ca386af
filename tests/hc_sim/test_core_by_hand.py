import pytest

from hc_sim.core import Core
from hc_sim.script.format import Agent, FileWrite, Finish, Step

WORKS = Agent(status="idle", step=[Step(at_ms=100, status="working", turn_add=1), Step(after_ms=100, status="done")])


def started(*agents: Agent) -> Core:
    core = Core(agents=agents)
    core.call("terminal.run", {"argv": ["pi", "--session", "/s"], "name": "a"}, 0)
    return core


def word(core: Core) -> str | None:
    found = core.find("a")
    assert found is not None
    return found.status.state if found.status is not None else None


def test_a_move_by_hand_takes_effect_at_once_and_reports_as_an_agent_does() -> None:
    core = started()

    core.act("a", Step(status="blocked", kind="question", msg="which?", turn=4), 7)

    found = core.find("a")
    assert found is not None
    assert found.status is not None
    assert (found.turn, found.status.state, found.status.kind, found.status.msg, found.status.app) == (
        4,
        "blocked",
        "question",
        "which?",
        "pi",
    )
    assert core.trace.of("state")[-1].t == 7


def test_the_timeline_of_a_terminal_that_is_moved_by_hand_stands_still() -> None:
    core = started(WORKS)
    core.advance(100)

    core.act("a", Step(status="blocked"), 150)
    core.advance(10_000)

    assert word(core) == "blocked"
    assert core.next_due() is None


def test_another_terminal_of_the_same_agent_plays_on() -> None:
    core = started(WORKS)
    core.call("terminal.run", {"argv": ["pi"], "name": "b"}, 0)

    core.act("a", Step(status="blocked"), 50)
    core.advance(500)

    other = core.find("b")
    assert other is not None
    assert other.status is not None
    assert other.status.state == "done"


def test_manners_of_an_agent_stay_after_a_move_by_hand() -> None:
    core = started(Agent(kill_ms=None))

    core.act("a", Step(status="working"), 1)
    core.call("terminal.kill", {"terminal": "a"}, 2)
    core.advance(100_000)

    assert word(core) == "working"


def test_by_hand_a_program_ends_and_writes_its_session_file() -> None:
    core = started()

    core.act("a", Step(file=FileWrite(append="line"), finish=Finish(code=3)), 1)

    assert [(effect.path, effect.data) for effect in core.drain_files()] == [("/s", b"line\n")]
    found = core.find("a")
    assert found is not None
    assert (found.state, found.exit_code) == ("finished", 3)


def test_a_move_of_a_terminal_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        started().act("nobody", Step(status="done"), 1)


def test_added_agents_play_what_starts_later_and_are_asked_first() -> None:
    core = started(WORKS)

    core.add_agents([Agent(status="error", uses=1)])
    for name in "bcd":
        core.call("terminal.run", {"argv": ["pi"], "name": name}, 0)

    words = [one.status.state for one in core.terminals() if one.status is not None]
    assert words == ["idle", "error", "idle", "idle"]


def test_added_agents_leave_the_count_of_those_before_them_as_it_was() -> None:
    core = started(Agent(status="idle", uses=2))

    core.add_agents([Agent(status="error", uses=1)])
    for name in "bcd":
        core.call("terminal.run", {"argv": ["pi"], "name": name}, 0)

    words = [one.status.state if one.status else "none" for one in core.terminals()]
    assert words == ["idle", "error", "idle", "none"]


def test_an_added_timeline_that_cannot_be_played_is_refused_and_changes_nothing() -> None:
    core = started()

    with pytest.raises(ValueError, match="trigger"):
        core.add_agents([Agent(status="error", step=[Step(status="done")])])

    core.call("terminal.run", {"argv": ["pi"], "name": "b"}, 0)
    assert core.terminals()[-1].status is None
