"""Faults of an agent: turn and status, composer, interrupt, end of life, session file, on the bytes of the wire."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from hc_sim.playing.fake import CallError, FakeCore, FakeLink
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, FileWrite, Finish, Match, Step

knob = pytest.mark.knob


def started(agent: Agent, *, argv: list[str] | None = None, **more: Any) -> tuple[FakeCore, FakeLink]:
    """A core whose terminal `alpha` is played by this agent."""
    core = FakeCore(agents=[agent], **more)
    link = core.connect()
    link.call("terminal.run", {"argv": argv or ["pi", "task"], "name": "alpha"})
    return core, link


def get(link: FakeLink, target: str = "alpha") -> Any:
    return link.call("terminal.get", {"terminal": target})


def send(link: FakeLink, text: str) -> Any:
    return link.call("terminal.send", {"terminal": "alpha", "text": text})


def interrupt(link: FakeLink) -> Any:
    return link.call("terminal.interrupt", {"terminal": "alpha"})


def kill(link: FakeLink, target: str = "alpha") -> Any:
    return link.call("terminal.kill", {"terminal": target})


def refused(act: Callable[[], Any]) -> Any:
    with pytest.raises(CallError) as caught:
        act()
    return caught.value.kind


# ------------------------------------------------------------------- turn and status


@knob("step.turn")
@knob("step.turn_add")
@knob("step.status")
@knob("profile.first_turn")
def test_turn_and_status_follow_any_track_faster_than_any_poll() -> None:
    track = [
        Step(at_ms=10, turn=5, status="working"),
        Step(at_ms=12, status="done"),
        Step(at_ms=13, status="idle"),
        Step(at_ms=14, turn=1, status="none"),
        Step(at_ms=15, turn_add=2, status="error"),
    ]
    core, link = started(Agent(step=track), profile=WireProfile(first_turn=3))
    assert get(link)["turn"] == 3
    core.advance(20)
    states = [(event.t, event.turn, event.status) for event in core.trace.of("state")]
    assert states == [(10, 5, "working"), (12, 5, "done"), (13, 5, "idle"), (14, 1, "none"), (15, 3, "error")]


@knob("step.kind")
@knob("step.msg")
@knob("step.app")
def test_a_status_says_what_it_waits_for_and_who_reports() -> None:
    step = Step(at_ms=1, status="blocked", kind="permission", msg="run it?", app="other")
    core, link = started(Agent(step=[step]))
    core.advance(1)
    assert get(link)["status"] == {"state": "blocked", "kind": "permission", "msg": "run it?", "app": "other"}


@knob("profile.torn")
@knob("profile.torn_ms")
@pytest.mark.parametrize(
    ("torn", "half"), [("no", (2, "working")), ("turn-first", (2, "done")), ("status-first", (1, "working"))]
)
def test_turn_and_status_can_be_torn_in_either_order(
    torn: Literal["no", "turn-first", "status-first"], half: tuple[int, str]
) -> None:
    agent = Agent(turn=1, status="done", step=[Step(at_ms=300, turn=2, status="working")])
    core, link = started(agent, profile=WireProfile(torn=torn, torn_ms=50))
    core.advance(320)
    seen = get(link)
    assert (seen["turn"], seen["status"]["state"]) == half
    core.advance(30)
    assert (get(link)["turn"], get(link)["status"]["state"]) == (2, "working")


@knob("profile.turn_rule")
@knob("profile.blocked_to_working_counts")
@pytest.mark.parametrize(
    ("profile", "turn"),
    [
        (WireProfile(), 0),
        (WireProfile(turn_rule="work-starts"), 1),
        (WireProfile(turn_rule="work-starts", blocked_to_working_counts=True), 2),
    ],
)
def test_who_moves_the_turn(profile: WireProfile, turn: int) -> None:
    track = [Step(after_ms=1, status=word) for word in ("working", "blocked", "working")]
    core, link = started(Agent(step=track), profile=profile)
    core.advance(5)
    assert get(link)["turn"] == turn


@knob("profile.derive_done")
@knob("profile.read_sees")
def test_idle_after_work_shows_as_done_until_somebody_looks() -> None:
    agent = Agent(status="working", step=[Step(at_ms=1, status="idle")])
    core, link = started(agent, profile=WireProfile(derive_done=True, read_sees=True))
    core.advance(1)
    assert get(link)["status"]["state"] == "done"
    link.call("terminal.read", {"terminal": "alpha"})
    assert get(link)["status"]["state"] == "idle"


# ------------------------------------------------------------------- composer


@knob("agent.send")
@knob("agent.hold_ms")
@pytest.mark.parametrize(
    ("mode", "started_", "texts"),
    [("accept", True, ["go"]), ("unconfirmed", False, ["go"]), ("swallow", True, []), ("hold", True, ["go"])],
)
def test_what_a_text_meets(mode: Any, started_: bool, texts: list[str]) -> None:
    core, link = started(Agent(send=mode, hold_ms=2_000))
    assert send(link, "go")["started"] is started_
    assert core.trace.texts("alpha") == texts
    assert core.clock.now() == (2_000 if mode == "hold" else 0)


@knob("agent.send")
@knob("agent.composer")
@knob("step.composer")
@knob("step.send")
def test_unsent_text_is_protected_or_fused() -> None:
    core, link = started(Agent(composer="draft ", send="refuse", step=[Step(at_ms=5, send="fuse", composer="mine ")]))
    assert refused(lambda: send(link, "go")) == "draft_present"
    core.advance(5)
    send(link, "go")
    assert core.trace.texts("alpha") == ["mine go"]


@knob("agent.boot_ms")
def test_early_input_is_dropped_and_answered_as_taken() -> None:
    core, link = started(Agent(boot_ms=500))
    assert send(link, "early") == {"started": True}
    core.advance(500)
    send(link, "late")
    assert core.trace.texts("alpha") == ["late"]
    assert core.trace.of("dialog")[0].text == "early"


@knob("agent.input")
@pytest.mark.parametrize(("how", "texts"), [("paste", ["one\ntwo\n"]), ("lines", ["one", "two"])])
def test_a_text_of_lines_is_one_prompt_or_many(how: Literal["paste", "lines"], texts: list[str]) -> None:
    core, link = started(Agent(input=how))
    send(link, "one\ntwo\n")
    assert core.trace.texts("alpha") == texts


@knob("agent.queued")
def test_text_that_waits_reaches_the_agent_at_the_boundary_or_goes_back_to_the_composer() -> None:
    agent = Agent(status="working", queued=True, step=[Step(at_ms=100, status="done")])
    core, link = started(agent)
    send(link, "later")
    assert core.trace.texts("alpha") == []
    core.advance(100)
    assert core.trace.texts("alpha") == ["later"]
    core, link = started(agent)
    send(link, "first ")
    interrupt(link)
    send(link, "second")
    assert core.trace.texts("alpha") == ["first second"]


@knob("profile.send_started")
@knob("profile.send_blocked")
def test_a_profile_says_whether_sends_start_a_turn_and_answer_dialogs() -> None:
    _, link = started(Agent(), profile=WireProfile(send_started=False))
    assert send(link, "go") == {"started": False}
    _, link = started(Agent(status="blocked"))
    assert refused(lambda: send(link, "go")) == "blocked"
    core, link = started(Agent(status="blocked"), profile=WireProfile(send_blocked="accept"))
    send(link, "go")
    assert core.trace.of("dialog")[0].note == "dialog answered by Enter"
    assert core.trace.texts("alpha") == []


# ------------------------------------------------------------------- interrupt


@knob("agent.interrupt")
@knob("profile.interrupt_idles")
def test_an_interrupt_stops_work_or_does_nothing() -> None:
    _, link = started(Agent(status="working"))
    assert interrupt(link) == {"key": "Esc", "effect": True}
    assert get(link)["status"]["state"] == "idle"
    _, link = started(Agent(status="working", interrupt="no-effect"))
    assert interrupt(link) == {"key": "Esc", "effect": False}
    _, link = started(Agent(status="working"), profile=WireProfile(interrupt_idles=False))
    assert interrupt(link) == {"key": "Esc", "effect": False}
    assert get(link)["status"]["state"] == "working"


@knob("agent.interrupt")
def test_a_second_esc_opens_an_overlay_that_eats_the_next_text() -> None:
    core, link = started(Agent(status="working", interrupt="overlay"))
    interrupt(link)
    assert get(link)["status"]["state"] == "idle"
    interrupt(link)
    send(link, "eaten")
    send(link, "taken")
    assert core.trace.texts("alpha") == ["taken"]
    assert core.trace.keys("alpha") == ["Esc", "Esc"]


@knob("agent.esc_ms")
@knob("profile.interrupt_watch_ms")
def test_the_reply_to_an_interrupt_comes_before_its_effect_or_waits_for_it() -> None:
    core, link = started(Agent(status="working", esc_ms=200))
    assert interrupt(link)["effect"] is False
    assert get(link)["status"]["state"] == "working"
    core.advance(200)
    assert get(link)["status"]["state"] == "idle"
    core, link = started(Agent(status="working", esc_ms=200), profile=WireProfile(interrupt_watch_ms=10_000))
    assert interrupt(link)["effect"] is True
    assert core.clock.now() == 200


@knob("agent.esc_alt")
def test_a_text_right_after_esc_makes_alt_of_it() -> None:
    core, link = started(Agent(status="working", esc_ms=50, esc_alt=True))
    interrupt(link)
    send(link, "stop it")
    core.advance(100)
    assert core.trace.texts("alpha") == ["top it"]
    assert get(link)["status"]["state"] == "working"
    interrupt(link)
    core.advance(50)
    assert get(link)["status"]["state"] == "idle"


# ------------------------------------------------------------------- end of life


@knob("agent.kill_ms")
@knob("agent.kill_signal")
@knob("agent.kill_code")
@pytest.mark.parametrize(
    ("agent", "after_10_s"),
    [
        (Agent(), ("finished", None, "SIGHUP")),
        (Agent(kill_ms=9_999, kill_signal="SIGKILL"), ("finished", None, "SIGKILL")),
        (Agent(kill_code=0), ("finished", 0, None)),
        (Agent(kill_ms=None), ("running", None, None)),
    ],
)
def test_how_a_killed_program_ends(agent: Agent, after_10_s: tuple[str, int | None, str | None]) -> None:
    core, link = started(agent)
    assert kill(link) == {"killed": True}
    core.advance(10_000)
    seen = get(link)
    assert (seen["state"], seen["exit_code"], seen["signal"]) == after_10_s


@knob("profile.rm_live")
@knob("profile.kill_finished")
def test_rm_of_a_live_one_and_kill_of_a_finished_one() -> None:
    core, link = started(Agent(kill_ms=800))
    kill(link)
    assert refused(lambda: link.call("terminal.rm", {"terminal": "alpha"})) == "not_finished"
    core.advance(800)
    assert refused(lambda: kill(link)) == "not_live"
    link.call("terminal.rm", {"terminal": "alpha"})
    core, link = started(Agent(), profile=WireProfile(rm_live="kill", kill_finished="accept"))
    assert link.call("terminal.rm", {"terminal": "alpha"}) == {"removed": True}
    assert core.terminals() == []
    _, link = started(Agent(step=[Step(at_ms=0, finish=Finish(code=0))]), profile=WireProfile(kill_finished="accept"))
    assert kill(link) == {"killed": True}


@knob("step.finish")
@knob("step.vanish")
def test_a_program_ends_by_itself_and_a_terminal_vanishes() -> None:
    core, link = started(Agent(step=[Step(at_ms=1, finish=Finish(code=127)), Step(after_ms=1, vanish=True)]))
    core.advance(1)
    assert (get(link)["state"], get(link)["exit_code"]) == ("finished", 127)
    core.advance(1)
    assert refused(lambda: get(link)) == "no_such_terminal"


@knob("agent.survivors")
@knob("Trace.left")
def test_programs_that_outlive_an_agent_are_named() -> None:
    core, link = started(Agent(survivors=["dev server", "watcher"]))
    assert core.trace.left() == []
    kill(link)
    assert get(link)["state"] == "finished"
    assert core.trace.left() == ["dev server", "watcher"]


@knob("agent.eof_ms")
def test_a_program_has_finished_only_when_its_terminal_is_let_go() -> None:
    core, link = started(Agent(eof_ms=700, step=[Step(at_ms=100, finish=Finish(code=3))]))
    core.advance(100)
    assert get(link)["state"] == "running"
    assert [event.note for event in core.trace.of("process")] == ["exited"]
    core.advance(700)
    assert (get(link)["state"], get(link)["exit_code"]) == ("finished", 3)


@knob("agent.zombie_ms")
def test_a_zombie_has_finished_and_its_process_is_still_there() -> None:
    core, link = started(Agent(zombie_ms=60_000))
    kill(link)
    dead = get(link)
    assert dead["state"] == "finished"
    assert dead["pid"] is not None
    assert core.trace.left() == ["pi"]
    core.advance(60_000)
    assert get(link)["pid"] is None
    assert core.trace.left() == []


def family(agent: Agent, profile: WireProfile | None = None) -> tuple[FakeCore, FakeLink]:
    """A parent, its child `alpha` with this agent, and a grandchild."""
    core = FakeCore(agents=[agent], profile=profile)
    link = core.connect()
    core.add_terminal("parent", argv=("bash",))
    link.call("terminal.run", {"argv": ["pi"], "name": "alpha", "caller": "parent"})
    link.call("terminal.run", {"argv": ["make"], "name": "grandchild", "caller": "alpha"})
    return core, link


def states(core: FakeCore) -> dict[str | None, str]:
    return {one.name: one.state for one in core.terminals()}


ALPHA = Match(name="alpha")


@knob("agent.parent_end")
@knob("agent.parent_ms")
def test_a_child_ends_with_its_parent_late_not_at_all_or_too_early() -> None:
    core, link = family(Agent(match=ALPHA, parent_ms=3_000))
    kill(link, "parent")
    assert states(core) == {"parent": "finished", "alpha": "running", "grandchild": "running"}
    core.advance(3_000)
    assert set(states(core).values()) == {"finished"}

    core, link = family(Agent(match=ALPHA, parent_end="outlives"))
    kill(link, "parent")
    core.advance(10_000)
    assert states(core) == {"parent": "finished", "alpha": "running", "grandchild": "running"}

    core, link = family(Agent(match=ALPHA, parent_end="early", parent_ms=500))
    core.advance(500)
    assert states(core) == {"parent": "running", "alpha": "finished", "grandchild": "finished"}
    assert get(link)["signal"] == "SIGHUP"


@knob("profile.cascade")
@knob("profile.cascade_ms")
@knob("profile.hangup_signal")
@knob("profile.die_with_parent")
@pytest.mark.parametrize(
    ("profile", "alive"),
    [
        (WireProfile(cascade_ms=100, hangup_signal="SIGTERM"), set()),
        (WireProfile(cascade="children"), {"grandchild"}),
        (WireProfile(cascade="none"), {"alpha", "grandchild"}),
        (WireProfile(die_with_parent=False), {"alpha", "grandchild"}),
    ],
)
def test_how_far_the_end_of_a_parent_reaches(profile: WireProfile, alive: set[str]) -> None:
    core, link = family(Agent(match=Match(name="nobody")), profile)
    kill(link, "parent")
    core.advance(profile.cascade_ms * 2)
    assert {name for name, state in states(core).items() if state == "running"} == alive
    if not alive:
        assert get(link)["signal"] == "SIGTERM"


@knob("profile.finished_names_block")
@pytest.mark.parametrize(("blocks", "kind"), [(True, "NAME_TAKEN"), (False, None)])
def test_a_finished_terminal_keeps_its_name_from_others_or_not(blocks: bool, kind: str | None) -> None:
    _, link = started(Agent(), profile=WireProfile(finished_names_block=blocks))
    kill(link)

    def again() -> Any:
        return link.call("terminal.run", {"argv": ["pi"], "name": "alpha"})["state"]

    assert (again() if kind is None else refused(again)) == (kind or "running")


# ------------------------------------------------------------------- session file


def written(tmp_path: Path, *writes: FileWrite) -> bytes | None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"H\n")
    steps = [Step(after_ms=1, file=write) for write in writes]
    core, _ = started(Agent(step=steps), argv=["pi", "--session", str(path), "task"])
    core.advance(len(writes))
    return path.read_bytes() if path.exists() else None


@knob("file.append")
@knob("file.newline")
@knob("file.append_hex")
@knob("file.times")
def test_a_writer_leaves_any_bytes(tmp_path: Path) -> None:
    torn = FileWrite(append='{"type":"mess', newline=False)
    glued = FileWrite(append='{"a":1}{"b":2}')
    assert written(tmp_path, torn, glued) == b'H\n{"type":"mess{"a":1}{"b":2}\n'
    assert written(tmp_path, FileWrite(append_hex="efbbbff09f0d0a00")) == b"H\n\xef\xbb\xbf\xf0\x9f\r\n\x00"
    assert written(tmp_path, FileWrite(append="x", times=100_000)) == b"H\n" + b"x\n" * 100_000


@knob("file.replace")
@knob("file.remove")
def test_a_writer_replaces_the_file_under_its_reader_or_removes_it(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"old\n")
    with path.open("rb") as reader:
        core, _ = started(
            Agent(step=[Step(at_ms=1, file=FileWrite(replace="new")), Step(at_ms=2, file=FileWrite(remove=True))]),
            argv=["pi", "--session", str(path), "task"],
        )
        core.advance(1)
        assert (reader.read(), path.read_bytes()) == (b"old\n", b"new\n")
    core.advance(1)
    assert not path.exists()


def test_a_record_follows_done_late(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.touch()
    steps = [Step(at_ms=1, turn=1, status="done"), Step(after_ms=400, file=FileWrite(append="A1"))]
    core, link = started(Agent(step=steps), argv=["pi", "--session", str(path), "task"])
    core.advance(1)
    assert (get(link)["status"]["state"], path.read_bytes()) == ("done", b"")
    core.advance(400)
    assert path.read_bytes() == b"A1\n"


# ------------------------------------------------------------------- recorder


@knob("Trace.calls")
@knob("Trace.count")
@knob("Trace.one")
@knob("Trace.none")
@knob("Trace.none_after")
@knob("Trace.texts")
@knob("Trace.keys")
def test_a_trace_answers_what_was_done_how_often_and_what_was_not() -> None:
    core, link = started(Agent(status="working"))
    get(link)
    core.advance(500)
    send(link, "go")
    interrupt(link)
    trace = core.trace
    assert trace.count("terminal.send") == 1
    assert trace.one("terminal.send", "alpha").params == {"terminal": "alpha", "text": "go"}
    assert trace.none("terminal.kill")
    assert trace.none_after("terminal.get", 0)
    assert not trace.none_after("terminal.send", 499)
    assert [event.method for event in trace.calls(after_ms=1, before_ms=501)] == ["terminal.send", "terminal.interrupt"]
    assert trace.texts("alpha") == ["go"]
    assert trace.keys("alpha") == ["Esc"]
    with pytest.raises(AssertionError, match=r"terminal\.kill was called 0 times, not once: never"):
        trace.one("terminal.kill")


@knob("profile.max_line_bytes")
@knob("profile.oversize")
def test_a_line_that_is_too_long_is_answered_and_ends_the_connection() -> None:
    core = FakeCore(profile=WireProfile(max_line_bytes=100))
    link = core.connect()
    link.write(b"x" * 101)
    assert b"line_too_long" in link.read_line()
    assert link.read() == b""
    core = FakeCore(profile=WireProfile(max_line_bytes=100, oversize="close"))
    link = core.connect()
    link.write(b"x" * 101)
    assert link.read() == b""


@knob("profile.batches")
def test_a_batch_is_refused_or_ends_the_connection() -> None:
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"server.status"}]\n'
    link = FakeCore().connect()
    link.write(batch)
    assert b"batch" in link.read_line()
    assert link.call("server.status")
    link = FakeCore(profile=WireProfile(batches="close")).connect()
    link.write(batch)
    link.read_line()
    assert link.read() == b""


@knob("profile.doc_version")
@knob("profile.doc_first")
@knob("profile.doc_create")
@knob("profile.max_document_bytes")
def test_what_a_profile_says_of_documents() -> None:
    link = FakeCore(profile=WireProfile(doc_version="string", doc_first=0, max_document_bytes=10)).connect()
    assert link.call("doc.set", {"name": "d", "value": 1})["version"] == "0"
    assert refused(lambda: link.call("doc.set", {"name": "d", "value": "x" * 10, "version": "0"})) == "limit_reached"
    link = FakeCore(profile=WireProfile(doc_create=False)).connect()
    assert refused(lambda: link.call("doc.set", {"name": "d", "value": 1})) == "no_such_document"
