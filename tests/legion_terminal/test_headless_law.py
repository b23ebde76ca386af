"""The pure parts of the headless backend: the exit table, what settles a prompt, dialogs by policy, lines, messages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.errors import SupervisorError
from legion_terminal.rpc.dialogs import CANCEL, POLICIES, DialogAnswer, reply, treat
from legion_terminal.rpc.exit_table import EXIT_ROWS, Ending, Exit, exit_ending, settle_result
from legion_terminal.rpc.framing import LineSplitter
from legion_terminal.rpc.launch import child_env, failed_start, rpc_argv
from legion_terminal.rpc.life import Life
from legion_terminal.rpc.memory import available_mb, check_memory_gate
from legion_terminal.rpc.messages import (
    AnswerEnded,
    Dialog,
    Noise,
    Other,
    Response,
    RunSettled,
    RunStarted,
    UserText,
    decode,
    encode,
    sendable,
)
from legion_terminal.spawn import build_pi_args
from legion_terminal.types import OnBlocked, SpawnRequest

REQUEST = SpawnRequest(
    agent="centurion", run_id="r", handle="h", task="t", cwd="/w", session_file="/w/s.jsonl", worktree=True
)
OLD_NODE = "SyntaxError: The requested module 'node:module' does not provide an export named 'a'"
EXITS = [Exit(0), Exit(1), Exit(137), Exit(143), Exit(signal="SIGKILL"), Exit(signal="SIGTERM"), Exit()]


# -- the exit table ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exit_", EXITS, ids=str)
def test_an_exit_after_a_retire_is_retired_and_keeps_code_or_signal(exit_: Exit) -> None:
    result = settle_result(exit_ending(exit_, retiring=True), exit_=exit_)

    assert (result.settled, result.abnormal, result.reason, result.node) == (False, False, "retired", "retired")
    assert (result.exit_code, result.signal) == (exit_.code, exit_.signal)


@pytest.mark.parametrize("exit_", EXITS, ids=str)
def test_an_unexpected_exit_is_abnormal_whatever_its_code_or_signal(exit_: Exit) -> None:
    result = settle_result(exit_ending(exit_, retiring=False), exit_=exit_)

    assert (result.settled, result.abnormal, result.reason, result.node) == (False, True, "gone", "failed")
    assert (result.exit_code, result.signal) == (exit_.code, exit_.signal)


@pytest.mark.parametrize(
    ("exit_", "ending"),
    [(Exit(0), "exit-zero"), (Exit(143), "exit-other"), (Exit(), "exit-other"), (Exit(signal="SIGINT"), "exit-signal")],
)
def test_each_unexpected_exit_has_its_row(exit_: Exit, ending: Ending) -> None:
    assert exit_ending(exit_, retiring=False) == ending


@pytest.mark.parametrize("ending", ["agent-settled", "timeout", "called-off"])
def test_only_the_rows_of_an_exit_carry_a_code(ending: Ending) -> None:
    result = settle_result(ending, exit_=Exit(1), aborted=True)

    assert result.exit_code is None
    assert result.abnormal is False
    assert result.aborted is (True if ending == "agent-settled" else None)


def test_only_one_row_settles_and_only_unexpected_exits_are_abnormal() -> None:
    assert [name for name, row in EXIT_ROWS.items() if row.settled] == ["agent-settled"]
    assert {name for name, row in EXIT_ROWS.items() if row.abnormal} == {"exit-zero", "exit-other", "exit-signal"}
    assert all((row.node == "failed") == row.abnormal for row in EXIT_ROWS.values())


# -- what settles ------------------------------------------------------------------------------------------------------

START, END, ABORTED = RunStarted(), RunSettled(aborted=False), RunSettled(aborted=True)


def lived(*events: Any) -> Life:
    life = Life()
    for event in events:
        life.take(event)
    return life


def test_the_end_of_an_agent_loop_settles_nothing() -> None:
    life = Life()
    prompt = life.asked()
    for event in (START, Other("agent_end"), Other("auto_retry_start"), START, Other("agent_end")):
        life.take(event)
        assert life.ending(prompt, 0) is None
    life.take(END)

    assert life.ending(prompt, 0) == "agent-settled"
    assert life.turn == 1


def test_events_that_overtake_the_answer_settle_the_prompt() -> None:
    life = Life()
    prompt = life.asked()
    for event in (START, END):
        life.take(event)
    life.accepted(prompt, "started", "x")

    assert life.ending(prompt, 0) == "agent-settled"


def test_the_late_end_of_an_older_run_does_not_settle_a_newer_prompt() -> None:
    life = Life()
    first = life.asked()
    life.accepted(first, "started", "x")
    life.take(START)
    second = life.asked()
    life.accepted(second, "started", "y")
    life.take(ABORTED)

    assert life.ending(first, 0) == "agent-settled"
    assert life.result("agent-settled").aborted is True
    assert life.ending(second, 0) is None
    life.take(START)
    life.take(END)
    assert life.ending(second, 0) == "agent-settled"


def test_a_queued_text_belongs_to_the_run_under_way() -> None:
    life = Life()
    life.accepted(life.asked(), "started", "x")
    life.take(START)
    steer = life.asked()
    life.accepted(steer, "queued", "S")
    life.take(UserText("S"))
    life.take(END)

    assert life.ending(steer, 0) == "agent-settled"
    assert life.result("agent-settled").unconfirmed is None


@pytest.mark.parametrize("heard_first", [False, True])
def test_a_queued_text_that_was_not_taken_up_is_counted(heard_first: bool) -> None:
    life = Life()
    life.accepted(life.asked(), "started", "x")
    life.take(START)
    steer = life.asked()
    if heard_first:
        life.take(UserText("S"))
    life.accepted(steer, "queued", "S")
    life.take(END)

    assert life.result("agent-settled").unconfirmed == (None if heard_first else 1)


def test_a_later_run_that_is_at_work_is_waited_for_by_a_new_wait_alone() -> None:
    life = Life()
    prompt = life.asked()
    for event in (START, END, START):
        life.take(event)

    assert life.ending(prompt, since=0) == "agent-settled"  # it was waiting when the first run ended
    assert life.ending(prompt, since=1) is None
    life.take(END)
    assert life.ending(prompt, since=1) == "agent-settled"


def test_a_refused_prompt_is_as_if_it_had_never_been() -> None:
    life = Life()
    first = life.asked()
    life.accepted(first, "started", "x")
    life.take(START)
    refused = life.asked()
    life.refused(refused)
    life.take(END)

    assert life.prompt is first
    assert life.ending(refused, 0) == "agent-settled"


def test_an_accepted_prompt_without_a_run_settles_nothing() -> None:
    life = Life()
    prompt = life.asked()
    life.accepted(prompt, "handled", "/x")

    assert life.ending(prompt, 0) is None


def test_what_has_settled_is_not_rewritten_by_the_exit() -> None:
    life = lived()
    prompt = life.asked()
    for event in (START, END):
        life.take(event)
    life.ended(Exit(1), "bad")

    assert life.ending(prompt, 1) == "agent-settled"
    assert life.result("agent-settled").exit_code is None
    assert life.observation().exit_code == 1


@pytest.mark.parametrize("retire_first", [False, True])
def test_the_order_of_retire_and_exit_decides(retire_first: bool) -> None:
    life = Life()
    prompt = life.asked()
    life.retiring = retire_first
    life.ended(Exit(143), None)
    life.retiring = True

    assert life.ending(prompt, 0) == ("exit-retiring" if retire_first else "exit-other")


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ((), "idle"),
        ((START,), "working"),
        ((START, END), "done"),
        ((START, ABORTED), "idle"),
        ((START, AnswerEnded("error"), END), "error"),
        ((START, AnswerEnded("error"), END, START, AnswerEnded("stop"), END), "done"),
    ],
)
def test_the_status_follows_the_runs(events: tuple[Any, ...], status: str) -> None:
    life = Life()
    life.asked()
    for event in events:
        life.take(event)

    assert life.observation().status == status


def test_an_open_question_blocks() -> None:
    life = lived(START)
    life.dialogs["u"] = Dialog(id="u", method="confirm")

    assert life.observation().status == "blocked"


def test_a_stray_second_settle_settles_no_later_prompt() -> None:
    life = Life()
    life.accepted(life.asked(), "started", "x")
    for event in (START, END, END):
        life.take(event)
    later = life.asked()

    assert life.ending(later, 0) is None
    assert life.turn == 1


# -- dialogs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "moves"),
    [
        ("confirm", ("forward", "approve", "tell-and-cancel")),
        ("select", ("forward", "cancel", "tell-and-cancel")),
        ("input", ("forward", "cancel", "tell-and-cancel")),
        ("notify", ("nothing", "nothing", "nothing")),
        ("setStatus", ("nothing", "nothing", "nothing")),
        ("hologram", ("cancel", "cancel", "cancel")),
    ],
)
def test_a_dialog_is_treated_by_the_policy(method: str, moves: tuple[str, ...]) -> None:
    assert tuple(treat(policy, Dialog(id="u", method=method)) for policy in POLICIES) == moves


@pytest.mark.parametrize(
    ("method", "answer", "told"),
    [
        ("confirm", DialogAnswer(confirmed=True), {"confirmed": True}),
        ("confirm", DialogAnswer(confirmed=False), {"confirmed": False}),
        ("confirm", DialogAnswer(value="yes"), {"cancelled": True}),
        ("select", DialogAnswer(value="b"), {"value": "b"}),
        ("select", DialogAnswer(confirmed=True), {"cancelled": True}),
        ("editor", CANCEL, {"cancelled": True}),
    ],
)
def test_an_answer_of_the_wrong_kind_is_a_cancel(method: str, answer: DialogAnswer, told: dict[str, Any]) -> None:
    line = reply(Dialog(id="u", method=method), answer)

    assert line == {"type": "extension_ui_response", "id": "u", **told}


# -- lines and messages ------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=8).filter(lambda line: b"\n" not in line), max_size=6), st.data())
def test_lines_are_the_same_however_the_stream_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter, found, at = LineSplitter(), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        found += splitter.feed(stream[at : at + size])
        at += size

    assert found == lines
    assert splitter.end() == b""


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\r"])
def test_no_other_mark_ends_a_line(mark: str) -> None:
    assert LineSplitter().feed(f"a{mark}b\n".encode()) == [f"a{mark}b".encode()]


def test_a_line_above_the_limit_is_passed_over_and_the_next_one_counts() -> None:
    splitter = LineSplitter(limit=4)

    assert splitter.feed(b"12345") == []
    assert splitter.feed(b"6789\n1234\nab") == [b"1234"]
    assert (splitter.dropped, splitter.end()) == (1, b"ab")


@pytest.mark.parametrize("value", [None, [], "null", 5, {}])
def test_nothing_but_an_object_is_ever_written(value: Any) -> None:
    with pytest.raises(ValueError, match="is a JSON object"):
        encode(value)


@given(st.text(max_size=40))
def test_every_written_line_is_one_line_of_ascii(text: str) -> None:
    line = encode({"type": "prompt", "message": sendable(text)})

    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line)["message"] == sendable(text)


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert sendable("a\ud800b\U0001f600") == "a\ufffdb\U0001f600"


@given(st.binary(max_size=60))
def test_any_line_is_read_without_an_error(line: bytes) -> None:
    decode(line)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b'{"type":"agent_start"}\r', RunStarted()),
        (b'{"type":"agent_settled","aborted":true}', RunSettled(aborted=True)),
        (b'{"type":"agent_settled"}', RunSettled(aborted=None)),
        (b'{"type":"agent_settled","aborted":"yes"}', RunSettled(aborted=None)),
        (b'{"type":"agent_end","willRetry":true}', Other("agent_end")),
        (b'\x1b]0;title\x07{"type":"agent_start"}', RunStarted()),
        (b"null", Noise("null")),
        (b"[1]", Noise("[1]")),
        (b"{}", Noise("{}")),
        (b"hello", Noise("hello")),
        (b"  ", None),
        (
            '{"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"a\u2028b"}]}}'.encode(),
            UserText("a\u2028b"),
        ),
        (b'{"type":"message_start","message":{"role":"user","content":"plain"}}', UserText("plain")),
        (b'{"type":"message_end","message":{"role":"user","content":"plain"}}', Other("message_end")),
        (b'{"type":"message_end","message":{"role":"assistant","stopReason":"error"}}', AnswerEnded("error")),
        (b'{"type":"message_start","message":"odd"}', Other("message_start")),
        (
            b'{"type":"response","id":7.0,"command":"prompt","success":true,"data":{"disposition":"queued"}}',
            Response(id="7", command="prompt", success=True, disposition="queued"),
        ),
        (
            b'{"type":"response","command":"parse","success":false,"error":"no"}',
            Response(id="", command="parse", success=False, error="no"),
        ),
        (
            b'{"type":"extension_ui_request","id":"u","method":"select","title":"T","options":["a",1],"timeout":5}',
            Dialog(id="u", method="select", title="T", options=("a",), timeout_ms=5.0),
        ),
        (b'{"type":"extension_ui_request","method":"confirm"}', Other("extension_ui_request")),
    ],
)
def test_a_line_is_read_for_what_matters(line: bytes, event: Any) -> None:
    assert decode(line) == event


# -- the start ---------------------------------------------------------------------------------------------------------


def test_the_argv_is_rpc_mode_and_the_options_of_every_backend() -> None:
    argv = rpc_argv(("pi",), REQUEST, approve=False)

    assert argv == ["pi", "--mode", "rpc", *build_pi_args(REQUEST, include_task=False)]
    assert not {"--approve", "-a", "--no-approve", "-p", "--print"} & set(argv)
    assert rpc_argv(("pi",), REQUEST, approve=True) == [*argv, "--approve"]


@pytest.mark.parametrize("value", ["--no-approve", "-a", "-p", "--print", "--mode", "--mode=json"])
def test_no_value_of_an_option_can_bring_another_mode_or_trust(value: str) -> None:
    request = SpawnRequest(
        agent="centurion", run_id="r", handle="h", task="t", cwd="/w", session_file="/s", extensions=(value,)
    )
    with pytest.raises(SupervisorError, match="cannot stand on the command line"):
        rpc_argv(("pi",), request, approve=False)


def test_the_environment_is_inherited_and_none_takes_away() -> None:
    own = {"PATH": "/p", "HOME": "/h", "SECRET": "s"}

    assert child_env(own, {"M": "1", "PATH": "/m"}, {"PATH": "/r", "SECRET": None, "X": None}) == {
        "PATH": "/r",
        "HOME": "/h",
        "M": "1",
    }


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("A=B", "x"), ("A", "x\0"), ("A", 5)])
def test_a_variable_that_no_environment_can_hold_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SupervisorError, match="environment variable"):
        child_env({}, {}, {name: value})


@pytest.mark.parametrize(
    ("exit_", "spoke", "noise", "stderr", "code"),
    [
        (Exit(1), True, [], "Error: late", None),
        (Exit(0), False, [], "bye", None),
        (Exit(1), False, [], "", None),
        (Exit(signal="SIGTERM"), False, [], "bye", None),
        (Exit(1), False, [], "Warning\nError: unknown model", "start-failed"),
        (Exit(0), False, ["usage: x"], "", "protocol"),
        (None, False, ["usage: x"], "", "protocol"),
    ],
)
def test_a_start_failed_when_the_program_says_so(
    exit_: Exit | None, spoke: bool, noise: list[str], stderr: str, code: str | None
) -> None:
    failure = failed_start(exit_, spoke=spoke, noise=noise, stderr=stderr)

    assert (failure.code if failure else None) == code


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        (
            f"file:///x.js:3\n{OLD_NODE}\n    at x\nNode.js v20.20.2",
            "the node that it ran on is too old for it",
        ),
        ("/usr/bin/env: 'node': No such file or directory", "there is no node to run it"),
    ],
)
def test_a_node_that_is_too_old_or_missing_is_named(stderr: str, words: str) -> None:
    failure = failed_start(Exit(1), spoke=False, noise=[], stderr=stderr)

    assert failure is not None
    assert words in failure.message
    assert "22.19" in failure.hint


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "available", "refused"), [(100, 99, True), (100, 100, False), (0, 0, False), (100, None, False)]
)
def test_the_memory_gate_compares_with_the_limit(limit: int, available: int | None, refused: bool) -> None:
    assert (check_memory_gate(limit, available) is not None) == refused


@pytest.mark.parametrize(
    ("text", "expected"),
    [("MemTotal: 9 kB\nMemAvailable:   204800 kB\n", 200), ("MemAvailable: lots", None), ("MemFree: 5 kB", None)],
)
def test_the_available_memory_is_read_where_the_system_tells_it(text: str, expected: int | None) -> None:
    assert available_mb(lambda: text) == expected


def test_a_system_that_tells_nothing_of_its_memory_refuses_nothing() -> None:
    def missing() -> str:
        raise FileNotFoundError

    assert available_mb(missing) is None


def test_every_policy_is_known() -> None:
    policies: tuple[OnBlocked, ...] = ("forward", "auto-approve", "notify")

    assert policies == POLICIES


@pytest.mark.parametrize(
    "program",
    [(), ("",), ("pi", "-p"), ("pi", "--no-approve"), ("pi", "--approve"), ("pi", "--mode=json"), ("pi", "--print=1")],
)
def test_no_program_can_bring_a_mode_or_an_approval_of_its_own(program: tuple[str, ...]) -> None:
    request = SpawnRequest(agent="worker", run_id="r", handle="a", task="t", cwd="/", session_file="/s")
    with pytest.raises(SupervisorError) as caught:
        rpc_argv(program, request, approve=False)
    assert caught.value.code == "bad-request"
