"""What the core makes of programs that are really started, with a starter that starts nothing."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from hc_sim.core import Answer, Core, Pending
from hc_sim.core.programs import Launch, StartError, as_typed
from hc_sim.core.watches import Output
from hc_sim.faults import Restart
from hc_sim.model import Status
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, Match


@dataclass(eq=False)
class Kept:
    """A program that only remembers what is done to it."""

    pid: int
    launch: Launch
    pastes: bool = False
    reads: bool = True
    unfinished: str = ""
    typed: bytes = b""
    done: list[Any] = field(default_factory=list)

    def type(self, data: bytes) -> bool:
        if self.reads:
            self.typed += data
        return self.reads

    def resize(self, cols: int, rows: int) -> None:
        self.done.append((cols, rows))

    def hang_up(self, grace_ms: int) -> None:
        self.done.append(grace_ms)

    def abandon(self, grace_ms: int) -> None:
        self.done.append("abandoned")


class World:
    """A core whose programs are kept here, by address."""

    def __init__(self, profile: WireProfile | None = None, **more: Any) -> None:
        self.started: dict[str, Kept] = {}
        self.core = Core(profile, start_program=self.start, **more)

    def start(self, launch: Launch) -> Kept:
        if launch.argv[0] == "nonesuch":
            raise StartError("it is not there", "look for it")
        self.started[launch.address] = Kept(7_000 + len(self.started), launch)
        return self.started[launch.address]

    def call(self, method: str, now: int = 0, /, **params: Any) -> Any:
        found = self.core.call(f"terminal.{method}", params, now)
        if isinstance(found, Pending):
            return "pending"
        assert isinstance(found, Answer)
        return found.result if found.error is None else found.error.kind

    def run(self, *argv: str, **more: Any) -> Kept:
        return self.started[self.call("run", argv=list(argv or ("pi",)), **more)["address"]]

    def report(self, program: Kept, word: str, now: int = 0, **more: Any) -> None:
        status = Status(state=word, app="pi", **more)  # type: ignore[arg-type]
        self.core.reported(program.launch.address, program, status, now)

    def look(self, target: str = "t1") -> dict[str, Any]:
        found: dict[str, Any] = self.call("get", terminal=target)
        return found


def test_what_no_agent_plays_is_started_with_its_whole_environment_and_shows_its_own_pid() -> None:
    world = World(env={"HOME": "/h"}, socket="/s", agents=[Agent(match=Match(name="acted"), status="idle")])
    acted = world.call("run", argv=["pi"], name="acted")
    program = world.run("pi", "-x", cwd="/tmp", env={"A": "b"})
    assert acted["status"]["state"] == "idle"
    assert list(world.started) == ["t2"]
    assert program.launch == Launch(
        "t2", ["pi", "-x"], "/tmp",
        {"PATH": "/usr/local/bin:/usr/bin", "HOME": "/h", "A": "b", "HC_TERMINAL_ID": "t2", "HC_TERMINAL_SOCKET": "/s"},
    )  # fmt: skip
    shown = world.look("t2")
    assert (shown["pid"], shown["foreground"]) == (7_000, {"pid": 7_000, "name": "pi"})


def test_a_program_that_cannot_be_started_is_an_error_and_leaves_no_terminal() -> None:
    world = World()
    found = world.core.call("terminal.run", {"argv": ["nonesuch"], "name": "a"}, 0)
    assert isinstance(found, Answer)
    assert found.error is not None
    assert (found.error.kind, found.error.message, found.error.hint) == (
        "spawn_failed", "it is not there", "look for it",
    )  # fmt: skip
    assert world.core.terminals() == []
    assert world.call("run", argv=["pi"], name="a")["state"] == "running"
    with pytest.raises(ValueError, match="it is not there"):
        world.core.add_terminal(argv=["nonesuch"], played=True)


def test_terminals_that_nobody_asked_to_start_are_not_started() -> None:
    world = World()
    world.core.add_terminal(name="you")
    assert world.started == {}


def test_reports_become_the_status_whole_and_the_turn_counts_beginnings_of_work() -> None:
    world = World()
    program = world.run()
    turns = []
    for word in ("idle", "working", "blocked", "working", "done", "working", "idle"):
        world.report(program, word)
        turns.append(world.look()["turn"])
    world.report(program, "blocked", kind="question", title="T", msg="m", progress=3)
    assert turns == [0, 1, 1, 1, 1, 2, 2]
    assert world.look()["status"] == {
        "state": "blocked", "app": "pi", "kind": "question", "title": "T", "msg": "m", "progress": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "turns"),
    [
        ({"program_turn": "work-ends"}, [0, 0, 0, 1, 1]),
        ({"blocked_to_working_counts": True}, [1, 1, 2, 2, 3]),
        ({"turn_rule": "work-starts"}, [1, 1, 1, 1, 2]),
    ],
)
def test_what_moves_the_turn_is_a_choice(choice: dict[str, Any], turns: list[int]) -> None:
    world = World(WireProfile(**choice))
    program, seen = world.run(), []
    for word in ("working", "blocked", "working", "error", "working"):
        world.report(program, word)
        seen.append(world.look()["turn"])
    assert seen == turns


def test_a_text_is_typed_with_enter_and_in_brackets_for_those_who_asked() -> None:
    world = World()
    program = world.run()
    assert world.call("send", terminal="t1", text="a\nb") == {"started": True}
    program.pastes = True
    world.call("send", terminal="t1", text="c\x1b[201~\rd")
    assert program.typed == b"a\nb\r" + b"\x1b[200~c\rd\x1b[201~\r"
    assert world.core.trace.texts("t1") == ["a\nb", "c\x1b[201~\rd"]
    assert as_typed("\ud800", bracketed=False) == b"?\r"


def test_a_text_for_a_blocked_program_is_refused_or_with_force_typed_as_it_is() -> None:
    world = World()
    program = world.run()
    world.report(program, "blocked")
    assert world.call("send", terminal="t1", text="yes") == "blocked"
    assert program.typed == b""
    assert world.call("send", terminal="t1", text="yes", force=True) == {"started": True}
    assert program.typed == b"yes\r"


def test_a_text_that_the_program_leaves_unread_is_refused() -> None:
    world = World()
    world.run().reads = False
    assert world.call("send", terminal="t1", text="x") == "send_refused"
    assert world.core.trace.texts("t1") == []


def test_the_stop_key_is_esc_for_those_who_report_and_the_answer_waits_for_its_effect() -> None:
    world = World()
    program = world.run()
    assert world.call("interrupt", terminal="t1") == "pending"
    world.report(program, "working")
    assert [one.answer.result for one in world.core.advance(0)] == [{"effect": True, "key": "Esc"}]
    assert world.call("interrupt", 5, terminal="t1") == "pending"
    assert program.typed == b"\x03\x1b"
    assert world.core.advance(2_004) == []
    assert [one.answer.result for one in world.core.advance(2_005)] == [{"effect": False, "key": "Esc"}]
    assert world.look()["status"]["state"] == "working"


def test_a_kill_hangs_up_and_the_terminal_has_finished_when_the_program_has() -> None:
    world = World(WireProfile(program_grace_ms=30))
    program = world.run(name="a")
    assert world.call("kill", terminal="a") == {"killed": True}
    assert (program.done, world.look()["state"]) == ([30], "running")
    world.core.exited("t1", program, None, "SIGHUP", 3)
    assert (world.look()["state"], world.look()["signal"], world.look()["pid"]) == ("finished", "SIGHUP", None)
    assert world.call("kill", terminal="a") == "not_live"
    assert world.call("rm", terminal="a") == {"removed": True}
    assert program.done == [30]


def test_an_exit_ends_waits_and_hangs_up_on_the_children() -> None:
    world = World()
    parent = world.run(name="p")
    child = world.run(name="c", caller="p")
    free = world.run(name="f", caller="p", die_with_parent=False)
    assert world.call("wait", terminal="p") == "pending"
    world.core.exited("t1", parent, 3, None, 9)
    (answered,) = world.core.advance(9)
    assert answered.answer.result["ended"] is True
    assert answered.answer.result["terminal"]["exit_code"] == 3
    assert (child.done, free.done, world.look("c")["state"]) == ([1_000], [], "running")


def test_the_end_of_a_parent_may_reach_its_children_later() -> None:
    world = World(WireProfile(cascade_ms=50))
    parent, child = world.run(name="p"), None
    child = world.run(name="c", caller="p")
    world.core.exited("t1", parent, 0, None, 0)
    world.core.advance(49)
    assert child.done == []
    world.core.advance(50)
    assert child.done == [1_000]


@pytest.mark.parametrize("way", ["vanish", "finish", "restart", "rm"])
def test_a_terminal_that_ends_otherwise_takes_its_program_with_it_and_hears_no_more_of_it(way: str) -> None:
    world = World(WireProfile(rm_live="kill"))
    program = world.run(name="a")
    if way == "finish":
        world.core.set_state("a", finish=Finish(code=1), now=0)
    elif way == "restart":
        world.core.happen(Restart(terminals="lost"), 0)
    else:
        world.call("rm", terminal="a")
    world.report(program, "working", 1)
    world.core.exited("t1", program, 0, None, 2)
    assert program.done == ["abandoned"]
    assert [event.status for event in world.core.trace.of("state")].count("working") == 0


def test_reports_of_an_earlier_program_at_an_address_do_not_count_for_the_next_one() -> None:
    world = World(WireProfile(reuse_addresses=True, rm_live="kill"))
    first = world.run()
    world.call("rm", terminal="t1")
    world.run()
    world.report(first, "error")
    world.core.printed("t1", first, b"x", ["x"], 0)
    assert (world.look()["status"], world.call("read", terminal="t1")["text"]) == (None, "")


def test_what_it_prints_is_read_as_lines_and_shown_to_viewers_as_bytes() -> None:
    world = World()
    program = world.run()
    world.core.call("terminal.attach", {"terminal": "t1", "cols": 100, "rows": 30}, 0)
    world.core.printed("t1", program, b"\x1b[1mone\r\ntwo", ["one"], 0)
    program.unfinished = "two"
    assert world.call("read", terminal="t1") == {"text": "one\ntwo"}
    assert world.call("read", terminal="t1", lines=1) == {"text": "two"}
    assert world.call("read", terminal="t1", lines=0) == {"text": ""}
    assert [news.data for news in world.core.drain_news() if isinstance(news, Output)] == [b"\x1b[1mone\r\ntwo"]
    assert program.done == [(100, 30)]


def test_words_of_a_status_are_not_printed_on_a_screen_that_is_real() -> None:
    world = World()
    world.report(world.run(), "done", msg="words")
    assert world.call("read", terminal="t1") == {"text": ""}
