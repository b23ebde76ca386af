import json
from typing import Any

import pytest

from hc_sim.control.commands import HELP, RECENT_EVENTS, Control, ControlError, Feed, is_command, split
from hc_sim.playing.fake import CallError, FakeCore, FakeLink
from hc_sim.script.format import Agent, Step
from hc_sim.trace import Event


@pytest.fixture
def core() -> FakeCore:
    core = FakeCore(agents=[Agent(status="idle", step=[Step(by_hand="allow", status="done")])])
    core.add_terminal("alpha", argv=("pi", "--key", "hunter2"), played=True)
    return core


@pytest.fixture
def control(core: FakeCore) -> Control:
    return Control(core, Feed())


def do(control: Control, line: str) -> list[str]:
    return control.do(split(line))


def test_the_list_shows_each_terminal_in_a_line_without_its_arguments(core: FakeCore, control: Control) -> None:
    core.add_terminal("beta", status="blocked", turn=12)
    core.agent("beta").finish(3)
    assert do(control, "ls") == [
        "t1  alpha  running          turn 0   idle     pi",
        "t2  beta   finished exit 3  turn 12  blocked  pi",
    ]


def test_what_looks_like_a_secret_is_hidden_unless_it_is_asked_for(core: FakeCore, control: Control) -> None:
    core.agent("alpha").error("API_KEY=hunter2 was refused")
    assert "hunter2" not in do(control, "ls")[0] + do(control, "move alpha idle")[0]
    core.agent("alpha").error("API_KEY=hunter2 was refused")
    assert "hunter2" in do(Control(core, Feed(), secrets=True), "ls")[0]


def test_the_newest_events_are_kept_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hc_sim.control.commands.RECENT_BYTES", 5_000)
    feed = Feed()
    for t in range(5):
        feed.add(Event(t=t, kind="call", params={"text": "x" * 2_000}))
    assert [event.t for event in feed.recent] == [3, 4]
    feed.add(Event(t=5, kind="reply", result={"text": "x" * 50_000}))
    assert list(feed.recent) == []


@pytest.mark.parametrize("line", ["fault hello before_hex=zz", "link greeting_hex=zz", "restart down_ms=-5"])
def test_a_fault_that_cannot_be_carried_out_is_refused_and_the_core_goes_on(
    core: FakeCore, control: Control, line: str
) -> None:
    with pytest.raises(ControlError, match=r"hex|negative"):
        do(control, line)
    assert core.connect().call("hello")["core_id"] == "core-1"


def test_an_empty_core_has_an_empty_list() -> None:
    assert Control(FakeCore(), Feed()).do(["ls"]) == []


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("working", ("working", None, None)),
        ("working 'on it'", ("working", None, "on it")),
        ("done", ("done", None, None)),
        ("idle", ("idle", None, None)),
        ("error no quota", ("error", None, "no quota")),
        ("blocked", ("blocked", "permission", None)),
        ("blocked question", ("blocked", "question", None)),
        ("blocked auth 'log in'", ("blocked", "auth", "log in")),
        ("blocked which one", ("blocked", "permission", "which one")),
    ],
)
def test_a_terminal_is_moved_by_a_word(
    core: FakeCore, control: Control, words: str, status: tuple[str, str | None, str | None]
) -> None:
    (line,) = do(control, f"move alpha {words}")
    found = core.terminal("alpha").status
    assert found is not None
    assert (found.state, found.kind, found.msg) == status
    assert line.startswith("t1  alpha  running")


def test_none_takes_the_status_away(core: FakeCore, control: Control) -> None:
    do(control, "move t1 none")
    assert core.terminal("alpha").status is None


@pytest.mark.parametrize(("words", "end"), [("", (0, None)), (" 7", (7, None)), (" SIGKILL", (None, "SIGKILL"))])
def test_a_program_is_ended_by_a_word(
    core: FakeCore, control: Control, words: str, end: tuple[int | None, str | None]
) -> None:
    do(control, f"move alpha finish{words}")
    found = core.terminal("alpha")
    assert (found.state, found.exit_code, found.signal) == ("finished", *end)


def test_a_terminal_can_be_made_to_vanish(core: FakeCore, control: Control) -> None:
    assert do(control, "move alpha vanish") == ["alpha is gone"]
    assert core.terminals() == []


def test_a_session_file_is_written_by_a_word(core: FakeCore, control: Control) -> None:
    do(control, "move alpha write VERDICT: accept")
    assert core.trace.of("file")[-1].text == "VERDICT: accept\n"


def test_steps_are_fired_by_name(core: FakeCore, control: Control) -> None:
    assert do(control, "fire allow") == ["1 step by hand: allow"]
    assert do(control, "fire allow") == ["0 steps by hand: allow"]
    assert core.agent("alpha").status == "done"


def test_a_fault_meets_the_next_such_call_only(core: FakeCore, control: Control) -> None:
    link = core.connect()
    link.call("terminal.list")
    do(control, "fault terminal.list error.kind=busy error.message='not now'")
    link.call("terminal.get", {"terminal": "alpha"})
    with pytest.raises(CallError, match="not now"):
        link.call("terminal.list")
    link.call("terminal.list")


@pytest.mark.parametrize(
    ("setting", "seen"),
    [
        ("reply=false", None),
        ("id=null", {"id": None}),
        ("delay_ms=5", {"id": 1}),
        ("cut=[1,2]", {"id": 1}),
        ("before=noise", None),
        ("nth=2", {"id": 1}),
    ],
)
def test_values_of_a_fault_are_read_as_toml_or_as_words(
    core: FakeCore, control: Control, setting: str, seen: dict[str, Any] | None
) -> None:
    do(control, f"fault terminal.list {setting}")
    assert first_reply(core.connect()) == seen


def test_a_fault_meets_the_next_connection_only(core: FakeCore, control: Control) -> None:
    do(control, "link close_after=1")
    link = core.connect()
    link.call("terminal.list")
    assert link.read() == b""
    other = core.connect()
    other.call("terminal.list")
    other.call("terminal.list")


def test_the_core_is_restarted_by_a_word(core: FakeCore, control: Control) -> None:
    link = core.connect()
    assert do(control, "restart terminals=lost new_core_id=true") == ["restarted; 0 terminals are there"]
    assert link.read() == b""
    assert core.connect().call("hello")["core_id"] != "core-1"


def first_reply(link: FakeLink) -> dict[str, Any] | None:
    link.write(b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{}}\n')
    try:
        reply = json.loads(link.read_line(1_000))
    except (TimeoutError, ValueError):
        return None
    return {"id": reply["id"]}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("mvoe alpha done", r"no command 'mvoe'; did you mean 'move'\?"),
        ("move alpha", "move TERMINAL STATE"),
        ("move alpha workng", "did you mean 'working'"),
        ("move alhpa done", "there is no terminal 'alhpa'; there are: t1 alpha"),
        ("move alpha finish 1000", "exit code or a signal"),
        ("move alpha finish sigkill", "exit code or a signal"),
        ("move alpha finish 1 2", "nothing is to follow"),
        ("move alpha vanish now", "nothing is to follow"),
        ("move alpha write", "the text that goes into"),
        ("ls all", "nothing is to follow"),
        ("fire", "fire NAME"),
        ("fire alow", "no step by hand has the name 'alow'; did you mean 'allow'?"),
        ("fire zzz", "no step by hand has the name 'zzz'; known: allow"),
        ("fault terminal.list", "fault METHOD KEY=VALUE"),
        ("fault terminal.lst reply=false", r"did you mean 'terminal\.list'"),
        ("fault terminal.list repyl=false", "did you mean 'reply'"),
        ("fault terminal.list reply", "is not KEY=VALUE"),
        ("fault terminal.list reply=3", "that is no fault"),
        ("link", "link KEY=VALUE"),
        ("link close_aftr=1", "did you mean 'close_after'"),
        ("link close_after=soon", "that is no fault"),
        ("restart now", "is not KEY=VALUE"),
        ("restart terminals=some", "that is no fault"),
        ("fault terminal.list error.knd=busy", "that is no fault"),
        ("fault terminal.list close=sometimes", "that is no fault"),
        ("trace none", "no number"),
        ("trace 0", "no number"),
        ("trace 99999999999999999999", "no number"),
        ("ls " + "x " * 100, "1 to 64 words"),
        ("ls 'x", "No closing quotation"),
        ("", "1 to 64 words"),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_why(core: FakeCore, control: Control, line: str, why: str) -> None:
    before = core.terminals()
    with pytest.raises(ControlError, match=why) as caught:
        do(control, line)
    assert "\n" not in str(caught.value)
    assert core.terminals() == before


@pytest.mark.parametrize("words", ["{}", "move {} done", "move alpha {}", "fault * {}=1", "fault * id={}", "trace {}"])
def test_no_message_can_move_a_cursor(control: Control, words: str) -> None:
    with pytest.raises(ControlError) as caught:
        control.do([word.replace("{}", "\x1b[2J\n") for word in words.split()])
    assert str(caught.value).isprintable()


def test_trace_and_picture_show_what_happened_lately(core: FakeCore) -> None:
    control = Control(core, Feed())
    core.connect().call("terminal.get", {"terminal": "alpha"})
    for event in core.trace:
        control.feed.add(event)
    assert do(control, "trace 2") == [
        "    0.000   #1  -> terminal.get terminal=alpha",
        "    0.000   #1  <- terminal.get t1 turn 0 idle running",
    ]
    assert do(control, "picture")[-1] == " 0 | starts, turn 0 idle | get alpha"


def test_the_feed_keeps_the_newest_events_and_shows_each_to_those_who_watch() -> None:
    feed, seen = Feed(), list[int]()
    stop = feed.watch(lambda event: seen.append(event.t))
    for t in range(RECENT_EVENTS + 5):
        feed.add(Event(t=t, kind="link"))
    stop()
    stop()
    feed.add(Event(t=-1, kind="link"))
    assert (len(feed.recent), feed.recent[-1].t, len(seen)) == (RECENT_EVENTS, -1, RECENT_EVENTS + 5)


def test_help_names_every_command(control: Control) -> None:
    assert do(control, "help") == HELP.splitlines()
    assert all(is_command(line.split()[0]) for line in HELP.splitlines())
    assert not is_command("allow")
