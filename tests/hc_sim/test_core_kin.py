"""Waiting for children: all of them, or the next news of any; and keep over a restart."""

from typing import Any, Literal

import pytest

from hc_sim.faults import Restart
from hc_sim.playing.fake import CallError, FakeCore, FakeLink
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, Match, Step


def family(*agents: Agent, profile: WireProfile | None = None) -> tuple[FakeCore, FakeLink]:
    """A terminal `parent` with one child for each agent: `a`, `b` ..."""
    names = "abc"[: len(agents)]
    scripts = [
        Agent(match=Match(name=name), status=one.status, step=one.step) for name, one in zip(names, agents, strict=True)
    ]
    core = FakeCore(agents=scripts, profile=profile)
    core.add_terminal("parent", argv=("bash",))
    link = core.connect()
    for name in names:
        link.call("terminal.run", {"argv": ["pi"], "name": name, "caller": "parent"})
    return core, link


def wait(link: FakeLink, children: Literal["all", "any"], timeout_ms: int = 60_000) -> Any:
    return link.call("terminal.wait", {"terminal": "parent", "children": children, "timeout_ms": timeout_ms})


def working(*then: Step) -> Agent:
    return Agent(status="working", step=list(then))


def words(answer: Any) -> list[str | None]:
    return [one["status"] and one["status"]["state"] for one in answer["children"]]


def test_all_is_over_when_no_child_works_any_more() -> None:
    core, link = family(working(Step(at_ms=100, status="done")), working(Step(at_ms=300, status="blocked")))
    answer = wait(link, "all")
    assert (answer["ended"], answer["terminal"]["name"], core.clock.now()) == (True, "parent", 300)
    assert words(answer) == ["done", "blocked"]


def test_any_is_over_with_the_next_news() -> None:
    core, link = family(working(Step(at_ms=100, status="done")), working(Step(at_ms=300, finish=Finish(code=1))))
    assert words(wait(link, "any")) == ["done", "working"]
    assert core.clock.now() == 100
    assert [one["state"] for one in wait(link, "any")["children"]] == ["running", "finished"]
    assert core.clock.now() == 300


def test_a_child_that_ends_or_vanishes_is_news_and_works_no_more() -> None:
    core, link = family(working(Step(at_ms=100, vanish=True)))
    assert wait(link, "any") == {**wait(link, "any"), "ended": True, "children": []}
    core, link = family(working(Step(at_ms=100, finish=Finish(signal="SIGKILL"))))
    assert wait(link, "all")["children"][0]["signal"] == "SIGKILL"
    assert core.clock.now() == 100


@pytest.mark.parametrize("children", ["all", "any"])
def test_without_live_children_there_is_nothing_to_wait_for(children: Literal["all", "any"]) -> None:
    core, link = family()
    assert wait(link, children)["ended"] is True
    assert core.clock.now() == 0


def test_all_is_over_at_once_when_nobody_works_and_any_waits_for_news() -> None:
    core, link = family(Agent(status="idle", step=[Step(at_ms=200, status="done")]))
    assert wait(link, "all")["ended"] is True
    assert core.clock.now() == 0
    assert wait(link, "any")["ended"] is True
    assert core.clock.now() == 200


def test_the_time_is_over_and_that_is_no_error() -> None:
    core, link = family(working())
    answer = wait(link, "all", 500)
    assert (answer["ended"], words(answer), core.clock.now()) == (False, ["working"], 500)


def test_a_parent_that_is_removed_ends_the_wait_with_an_error() -> None:
    core, link = family(working(), profile=WireProfile(rm_live="kill", cascade="none"))
    other = core.connect()
    link.write(b'{"jsonrpc":"2.0","id":"w","method":"terminal.wait","params":{"terminal":"parent","children":"all"}}\n')
    other.call("terminal.rm", {"terminal": "parent"})
    assert b"no_such_terminal" in link.read_line()


def test_only_the_children_of_that_terminal_count() -> None:
    core, link = family(working())
    core.add_terminal("other", argv=("bash",))
    stranger = Agent(match=Match(name="x"), status="working", step=[Step(at_ms=100, status="done")])
    core.script(stranger)
    link.call("terminal.run", {"argv": ["pi"], "name": "x", "caller": "other"})
    assert wait(link, "any", 1_000)["ended"] is False


def test_another_word_for_whose_children_is_refused() -> None:
    _, link = family()
    with pytest.raises(CallError, match="children"):
        link.call("terminal.wait", {"terminal": "parent", "children": "some"})


def test_keep_decides_live_what_a_restart_leaves() -> None:
    core, link = family(working(), working())
    link.call("terminal.keep", {"terminal": "a"})
    core._do(lambda hub, now: hub.restart(Restart(terminals="by-keep"), now))
    left = {one.name: (one.state, one.argv) for one in core.terminals()}
    assert left["a"] == ("running", ["/bin/bash"])
    assert left["b"] == ("finished", ["pi"])


def test_a_restart_closes_every_connection_and_says_so_in_the_trace() -> None:
    core, link = family(working())
    core._do(lambda hub, now: hub.restart(Restart(terminals="lost", new_core_id=True), now))
    assert link.read() == b""
    assert core.trace.of("restart")[0].note == "terminals lost, another core id"
    assert len(core.trace.of("gone")) == 2
