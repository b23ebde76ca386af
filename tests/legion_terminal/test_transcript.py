import json
import os
import stat
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.session_lines import MAX_LINE_BYTES, MAX_SALVAGE_BYTES
from legion_terminal.transcript import Transcript, parse, read_transcript, verdict
from legion_terminal.types import Verdict

RECORDINGS = Path(__file__).parents[2] / "contracts" / "recordings"


def dump(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode()


def head(session: str = "s1", **more: Any) -> bytes:
    return dump({"type": "session", "version": 3, "id": session, "timestamp": "t", "cwd": "/w", **more})


def message(own: str | None, parent: str | None, **body: Any) -> bytes:
    return dump({"type": "message", "id": own, "parentId": parent, "timestamp": "t", "message": body})


def user(own: str | None, parent: str | None, text: str = "go on") -> bytes:
    return message(own, parent, role="user", content=[{"type": "text", "text": text}], timestamp=1)


def said(own: str | None, parent: str | None, text: str, stop: str | None = "stop", **more: Any) -> bytes:
    content = [{"type": "text", "text": text}]
    return message(own, parent, role="assistant", content=content, **({"stopReason": stop} if stop else {}), **more)


def tool_call(own: str, parent: str, text: str = "", stop: str = "toolUse") -> bytes:
    content = [{"type": "text", "text": text}, {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {}}]
    return message(own, parent, role="assistant", content=content, stopReason=stop)


def tool_result(own: str, parent: str, text: str) -> bytes:
    return message(own, parent, role="toolResult", toolCallId="c1", content=[{"type": "text", "text": text}])


def entry(kind: str, own: str, parent: str | None, **more: Any) -> bytes:
    return dump({"type": kind, "id": own, "parentId": parent, "timestamp": "t", **more})


def edit(own: str, parent: str, target: str, replacement: Any = None) -> bytes:
    return entry("context_edit", own, parent, targetId=target, replacement=replacement)


def file(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def outcome(data: bytes) -> str:
    return verdict(parse(data)).outcome


ACCEPT, REJECT = "Looked at it.\nVERDICT: accept", "VERDICT: reject"
H, U1, A1 = head(), user("u1", None), said("a1", "u1", ACCEPT)
U2, A2 = user("u2", "a1"), said("a2", "u2", REJECT)

# -- the plain way ---------------------------------------------------------------------------------------------------


def test_the_answer_to_the_newest_prompt_is_the_output() -> None:
    transcript = parse(file(H, U1, A1))
    assert transcript == Transcript(
        last_turn_output=ACCEPT, stop_reason="stop", newest_role="assistant", prompts=1, prompt_id="u1", answer_id="a1"
    )
    assert verdict(transcript) == Verdict(outcome="accept", text=ACCEPT, stop_reason="stop")


def test_a_later_prompt_has_its_own_answer() -> None:
    assert outcome(file(H, U1, A1, U2, A2)) == "reject"


def test_an_answer_after_tools_counts_and_the_one_before_them_does_not() -> None:
    run = (H, U1, tool_call("a1", "u1", ACCEPT), tool_result("r1", "a1", "3 failed"))
    assert outcome(file(*run, said("a2", "r1", REJECT))) == "reject"
    assert outcome(file(*run, said("a2", "r1", "I stop here."))) == "unknown"


def test_a_second_answer_to_the_same_prompt_replaces_the_first() -> None:
    assert outcome(file(H, U1, said("a1", "u1", "Started the checks."), said("a2", "a1", REJECT))) == "reject"
    assert outcome(file(H, U1, A1, said("a2", "a1", "And cleaned up."))) == "unknown"


def test_the_parts_of_an_answer_are_joined_as_they_stand() -> None:
    parts = [{"type": "thinking", "thinking": ACCEPT}, {"type": "text", "text": "VERDICT: "}, 7, {"type": "text"}]
    content = [*parts, {"type": "text", "text": "reject"}]
    whole = message("a1", "u1", role="assistant", content=content, stopReason="stop")
    assert parse(file(H, U1, whole)).last_turn_output == "VERDICT: reject"


def test_content_may_be_plain_text() -> None:
    whole = message("a1", "u1", role="assistant", content=REJECT, stopReason="stop")
    assert outcome(file(H, message("u1", None, role="user", content="go"), whole)) == "reject"


@pytest.mark.parametrize("content", [None, 7, {"type": "text", "text": ACCEPT}, [ACCEPT]], ids=repr)
def test_content_of_another_shape_says_nothing(content: Any) -> None:
    whole = message("a1", "u1", role="assistant", content=content, stopReason="stop")
    assert verdict(parse(file(H, U1, whole))).reason == "the answer has no verdict line"


# -- recorded files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "output", "stop", "reason"),
    [
        ("precreated-one-turn", "Hello from fake.", "stop", None),
        ("two-prompts-with-tool", "tool said ok.", "stop", None),
        ("tui-full-argv", "Hello from fake.", "stop", None),
        ("http500-then-ok", "Hello from fake.", "stop", None),
        ("aborted", "w0 w1 w2 ", "aborted", "the newest answer ended with aborted"),
        ("sigkill-midtool", "", "toolUse", "the run ends in a tool call"),
    ],
)
def test_a_recorded_session(name: str, output: str, stop: str, reason: str | None) -> None:
    transcript = read_transcript(str(RECORDINGS / f"session-{name}.jsonl"))
    assert (transcript.last_turn_output, transcript.stop_reason, transcript.reason) == (output, stop, reason)
    assert transcript.bad_lines == 0
    assert verdict(transcript).outcome == "unknown"


def test_in_a_recorded_retry_the_withdrawn_failures_are_no_answer() -> None:
    lines = (RECORDINGS / "session-http500-then-ok.jsonl").read_bytes().splitlines()
    reasons = [parse(file(*lines[:count])).reason for count in range(4, len(lines) + 1)]
    assert reasons == [
        "there is no prompt in the session file",
        "the newest prompt has no answer",
        *["the newest answer ended with error", "the newest answer was withdrawn"] * 3,
        "the newest answer ended with error",
        "the newest prompt has no answer",
        None,
    ]


# -- what is no answer -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["error", "aborted", "length", "pending", "toolUse", "refusal", None], ids=str)
@pytest.mark.parametrize("text", ["", ACCEPT, "VERDICT: acc"])
def test_an_answer_that_did_not_end_of_its_own_accord_is_no_verdict(stop: str | None, text: str) -> None:
    transcript = parse(file(H, U1, A1, U2, said("a2", "u2", text, stop)))
    assert verdict(transcript).outcome == "unknown"
    assert transcript.stop_reason == stop
    assert transcript.last_turn_output == ("" if stop == "toolUse" else text)


@pytest.mark.parametrize("stop", ["toolUse", "stop"])
def test_who_asks_for_a_tool_has_not_concluded(stop: str) -> None:
    transcript = parse(file(H, U1, tool_call("a1", "u1", ACCEPT, stop)))
    assert (transcript.last_turn_output, transcript.reason) == ("", "the run ends in a tool call")


def test_a_run_cut_after_a_tool_result_has_no_verdict() -> None:
    transcript = parse(file(H, U1, tool_call("a1", "u1", ACCEPT), tool_result("r1", "a1", ACCEPT)))
    assert (transcript.newest_role, transcript.last_turn_output) == ("toolResult", "")
    assert verdict(transcript).outcome == "unknown"


def test_a_prompt_without_an_answer_has_no_verdict_whatever_stood_before() -> None:
    transcript = parse(file(H, U1, A1, U2))
    assert (transcript.newest_role, transcript.last_turn_output, transcript.prompts) == ("user", "", 2)
    assert verdict(transcript) == Verdict(outcome="unknown", reason="the newest prompt has no answer")


def test_only_the_agents_own_words_count() -> None:
    notices = (
        entry("compaction", "x1", "a1", summary=ACCEPT, firstKeptEntryId="u1"),
        entry("custom_message", "x2", "x1", content=ACCEPT, display=True),
        entry("custom", "x3", "x2", data={"message": {"role": "assistant", "content": ACCEPT}}),
        entry("branch_summary", "x4", "x3", summary=ACCEPT),
        message("x5", "x4", role="custom", content=ACCEPT),
        message("x6", "x5", role="system", content=ACCEPT),
        entry("a_type_of_tomorrow", "x7", "x6", text=ACCEPT),
    )
    answer = said("a1", "u1", REJECT)
    for count in range(len(notices) + 1):
        assert outcome(file(H, user("u1", None, ACCEPT), answer, *notices[:count])) == "reject"
    assert outcome(file(H, user("u1", None, ACCEPT))) == "unknown"


def test_an_answer_that_a_later_edit_takes_out_is_gone_and_uncovers_none_before_it() -> None:
    assert outcome(file(H, U1, A1, edit("e1", "a1", "a1"))) == "unknown"
    second = said("a2", "a1", "", "error")
    assert outcome(file(H, U1, A1, second, edit("e1", "a2", "a2"))) == "unknown"
    assert outcome(file(H, U1, A1, second, edit("e1", "a2", "a2"), said("a3", "e1", REJECT))) == "reject"


def test_an_edit_that_replaces_or_names_another_entry_takes_nothing_out() -> None:
    assert outcome(file(H, U1, A1, edit("e1", "a1", "u1"))) == "accept"
    assert outcome(file(H, U1, A1, edit("e1", "a1", "a1", {"text": "short"}))) == "accept"
    assert outcome(file(H, U1, A1, entry("context_edit", "e1", "a1", targetId="a1"))) == "accept"


# -- the branch ------------------------------------------------------------------------------------------------------

FORKED = (H, U1, A1, U2, A2, user("u3", "a1"), said("a3", "u3", "Not sure yet."))


def test_after_a_rewind_the_new_branch_speaks() -> None:
    transcript = parse(file(*FORKED))
    assert (transcript.last_turn_output, transcript.prompt_id, transcript.reason) == ("Not sure yet.", "u3", None)


def test_a_late_record_of_a_branch_that_was_left_never_decides() -> None:
    transcript = parse(file(*FORKED, said("a2b", "a2", ACCEPT)))
    assert transcript.last_turn_output == "Not sure yet."
    assert transcript.reason == "the last record is not on the branch of the newest prompt"
    assert verdict(transcript).outcome == "unknown"


def test_an_old_writer_that_comes_late_makes_nothing_true() -> None:
    begin, late, answer = (H, U1, said("a1", "u1", "Hm.")), said("a1b", "a1", ACCEPT), said("a2", "u2", REJECT)
    assert outcome(file(*begin, user("u2", "a1"), late, answer)) == "reject"
    last = parse(file(*begin, user("u2", "a1"), answer, late))
    assert (last.last_turn_output, verdict(last).outcome) == (REJECT, "unknown")


def test_an_answer_that_belongs_to_no_known_prompt_is_not_taken() -> None:
    assert outcome(file(H, U1, said("a9", "u9", ACCEPT))) == "unknown"
    assert outcome(file(H, U1, said("a9", None, ACCEPT))) == "unknown"
    assert outcome(file(H, said("a1", None, ACCEPT))) == "unknown"


def test_a_jump_away_from_the_answer_takes_its_word_back() -> None:
    for parent in ("u1", "elsewhere", None):
        assert outcome(file(H, U1, A1, entry("branch_summary", "b1", parent, summary="left"))) == "unknown"


def test_two_answers_side_by_side_are_no_answer() -> None:
    assert outcome(file(H, U1, said("a1", "u1", REJECT), said("a2", "u1", ACCEPT))) == "unknown"


def test_records_without_an_id_take_no_part() -> None:
    assert outcome(file(H, U1, said(None, "u1", ACCEPT))) == "unknown"
    assert outcome(file(H, U1, A1, dump({"type": "label", "text": "x"}))) == "accept"
    assert outcome(file(H, U1, A1, user(None, "a1"))) == "unknown"


def test_links_that_go_in_circles_end_the_walk() -> None:
    assert outcome(file(H, entry("custom", "x", "y"), entry("custom", "y", "x"), U1, A1)) == "accept"
    assert outcome(file(H, user("u1", "a1"), said("a1", "u1", REJECT), entry("custom", "a1", "a1"))) == "reject"


def test_a_record_that_was_written_twice_is_one_record() -> None:
    assert outcome(file(H, U1, U1, said("a1", "u1", REJECT))) == "reject"


# -- headers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((U1, A1), "accept"),
        ((H, U1, A1), "accept"),
        ((entry("custom", "x0", None), H, U1, A1), "accept"),
        ((U1, A1, H), "accept"),
        ((H, H, U1, A1), "accept"),
        ((H, U1, A1, head("s2", parentSession="s1"), U2, A2), "reject"),
        ((H, U1, A1, head("s2", parentSession="s1")), "unknown"),
        ((H, U1, A1, head("s2", parentSession="s1"), U2), "unknown"),
        ((H, U1, A1, head("s2"), said("a2", "a1", ACCEPT)), "unknown"),
        ((H, U1, A1, head("s2"), H), "unknown"),
    ],
    ids=["none", "first", "second", "last", "twice", "fork", "fork last", "fork asked", "answer across", "back again"],
)
def test_a_header_begins_a_session_wherever_it_stands(lines: tuple[bytes, ...], expected: str) -> None:
    assert outcome(file(*lines)) == expected


# -- broken files ----------------------------------------------------------------------------------------------------

TORN = b'{"type":"message","id":"a2","par'
CUT_IN_A_CHARACTER = said("a2", "a1", "VERDICT: reject \U0001f98a")[:-30].split(b"\xf0")[0] + b"\xf0\x9f"
TORN_PROMPT = user("u2", "a1")[:-20]


@pytest.mark.parametrize(
    "tail", [TORN, CUT_IN_A_CHARACTER, b"{", b'{"type":"mess'], ids=["key", "char", "brace", "type"]
)
@pytest.mark.parametrize("end", [b"", b"\n"], ids=["no newline", "newline"])
def test_a_torn_tail_is_passed_over(tail: bytes, end: bytes) -> None:
    for before, expected in (((H, U1, A1), "accept"), ((H, U1, A1, U2), "unknown")):
        transcript = parse(file(*before) + tail + end)
        assert verdict(transcript).outcome == expected
        assert transcript.bad_lines == 1


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["no newline", "newline"])
def test_a_torn_prompt_is_a_prompt_without_an_answer(end: bytes) -> None:
    transcript = parse(file(H, U1, A1) + TORN_PROMPT + end)
    assert (transcript.newest_role, transcript.reason) == ("user", "the newest prompt cannot be read")


def test_a_record_that_only_lacks_its_newline_is_whole() -> None:
    assert outcome(file(H, U1) + A1) == "accept"


@pytest.mark.parametrize(
    "bad",
    [
        b"12:30 started",
        b"null",
        b"42",
        b"[]",
        b'"x"',
        b"{}",
        b'{"type":7}',
        b'{"type":"message"}',
        b"\xff\xfe",
        b"}{",
        b"\x00",
    ],
    ids=repr,
)
def test_a_line_that_is_no_record_is_counted_and_hides_nothing(bad: bytes) -> None:
    transcript = parse(file(H, U1, A1, bad, U2, A2))
    assert verdict(transcript).outcome == "reject"
    assert transcript.bad_lines == 1


@pytest.mark.parametrize(
    "lost",
    [
        b'{"type":"message"}',
        b'{"type":"message","id":"u2","message":null}',
        b'{"type":"message","id":"u2","message":{"content":"x"}}',
        b'{"type":"message","id":"u2"',
        b'{"type" "message","id":"u2"}',
        b'log line {"role" : "user"} and more',
        b"{" + b'"a":[' * 60_000,
    ],
    ids=["no message", "null message", "no role", "torn", "mangled", "a user in noise", "too deep"],
)
def test_what_may_have_been_a_prompt_is_no_ground_to_believe_the_answer_before_it(lost: bytes) -> None:
    expected = "accept" if lost == b'{"type":"message","id":"u2"' else "unknown"
    assert outcome(file(H, U1, A1, lost)) == expected


def test_an_answer_to_a_lost_prompt_is_not_taken_either() -> None:
    assert outcome(file(H, U1, A1, U2[:-9], said("a2", "u2", ACCEPT))) == "unknown"


def test_a_record_glued_behind_a_torn_one_is_found() -> None:
    torn = said("a1", "u1", ACCEPT)[:60]
    transcript = parse(file(H, U1, torn + user("u2", "u1"), said("a2", "u2", REJECT)))
    assert (verdict(transcript).outcome, transcript.prompt_id, transcript.bad_lines) == ("reject", "u2", 1)


@pytest.mark.parametrize("gap", [b"", b" ", b"\r"], ids=repr)
def test_records_on_one_line_are_all_read(gap: bytes) -> None:
    data = H + b"\n" + gap.join([U1, said("a1", "u1", "Hm."), U2, A2]) + b"\n\n\n"
    assert (outcome(data), parse(data).bad_lines) == ("reject", 0)


def test_records_woven_into_each_other_are_lost_without_a_word_of_them_believed() -> None:
    woven = b"".join(bytes(pair) for pair in zip(U2, A1.ljust(len(U2)), strict=False))
    assert outcome(file(H, woven)) == "unknown"
    assert outcome(file(H, U1, A1, woven)) == "unknown"


def test_a_record_inside_of_a_torn_one_is_not_taken_for_one_of_the_file() -> None:
    inner = said("a9", "u1", ACCEPT)
    torn = b'{"type":"custom","id":"x","parentId":"u1","data":{"copy":' + inner + b',"more":"'
    assert outcome(file(H, U1, torn)) == "unknown"
    assert outcome(file(H, U1, torn, said("a1", "u1", REJECT))) == "reject"


def test_a_whole_record_with_noise_behind_it_counts() -> None:
    assert outcome(file(H, U1, A1 + b" warning: disk is full")) == "accept"


def test_byte_order_mark_and_carriage_returns_leave_no_trace() -> None:
    transcript = parse(b"\xef\xbb\xbf" + b"".join(line + b"\r\n" for line in (H, U1, A1)))
    assert (transcript.last_turn_output, transcript.bad_lines) == (ACCEPT, 0)


def test_blank_lines_are_no_fault() -> None:
    assert parse(b"\n\n" + file(H, b"", U1, b"  ", A1) + b"\n") == parse(file(H, U1, A1))


def test_half_a_surrogate_pair_in_an_answer_can_be_printed() -> None:
    answer = said("a1", "u1", "odd: HALF\nVERDICT: reject").replace(b"HALF", b"\\ud83d")
    transcript = parse(file(H, U1, answer))
    assert verdict(transcript).outcome == "reject"
    assert transcript.last_turn_output.encode().decode() == "odd: \ufffd\nVERDICT: reject"


def test_bytes_that_are_no_utf8_become_the_replacement_character() -> None:
    answer = said("a1", "u1", "odd: BYTE\nVERDICT: reject").replace(b"BYTE", b"\xff")
    assert parse(file(H, U1, answer)).last_turn_output == "odd: \ufffd\nVERDICT: reject"


def test_a_line_of_endless_beginnings_is_given_up() -> None:
    line = b'{"type":"message",' * 1_000
    assert parse(file(H, U1, A1, line)).newest_role == "user"


@given(st.binary(max_size=300))
def test_any_bytes_give_a_transcript(data: bytes) -> None:
    for whole in (data, file(H, U1, A1) + data, file(H, U1) + data + b"\n" + A1):
        assert verdict(parse(whole)).outcome in ("accept", "unknown")


# -- any truncation of a valid file ----------------------------------------------------------------------------------

TEXTS = st.sampled_from([ACCEPT, REJECT, "Hm.", "", "\U0001f98a VERDICT: accept", 'say "VERDICT: accept"'])
answers = st.tuples(st.sampled_from(["answer", "cut", "tool"]), TEXTS)
turns = st.lists(st.lists(answers, max_size=3), min_size=1, max_size=3)


def build(plan: list[list[tuple[str, str]]]) -> list[bytes]:
    lines, last, count = [H], "root", 0
    for answers_ in plan:
        for kind, text in [("user", "go: VERDICT: accept"), *answers_]:
            count += 1
            own, before, last = f"e{count}", last, f"e{count}"
            if kind == "user":
                lines.append(user(own, before, text))
            elif kind == "tool":
                lines += [tool_call(own, before, text), tool_result(f"r{count}", own, text)]
                last = f"r{count}"
            else:
                lines.append(said(own, before, text, "stop" if kind == "answer" else "length"))
    return lines


def believable(lines: list[bytes]) -> str:
    """What a linear, whole file says, told from its last message alone."""
    last = json.loads(lines[-1]).get("message", {})
    if last.get("role") != "assistant" or last["stopReason"] != "stop":
        return "unknown"
    text = last["content"][0]["text"]
    return {ACCEPT: "accept", REJECT: "reject"}.get(text, "unknown")


@given(turns)
def test_a_whole_file_says_what_its_last_message_says(plan: list[list[tuple[str, str]]]) -> None:
    lines = build(plan)
    assert outcome(file(*lines)) == believable(lines)


@given(turns, st.floats(0, 1))
def test_a_cut_file_says_no_more_than_the_records_that_are_whole_in_it(
    plan: list[list[tuple[str, str]]], place: float
) -> None:
    lines = build(plan)
    data = file(*lines)
    cut = data[: int(place * len(data))]
    whole = cut.count(b"\n")
    if cut and not cut.endswith(b"\n") and cut.split(b"\n")[-1] == lines[whole]:
        whole += 1
    said_ = outcome(cut)
    assert said_ in ("unknown", believable(lines[:whole]) if whole else "unknown")


@given(turns, st.floats(0, 1))
def test_no_cut_behind_a_prompt_that_was_never_accepted_makes_an_accept(
    plan: list[list[tuple[str, str]]], place: float
) -> None:
    plan = [*plan, [(kind, text) for kind, text in plan[-1] if text != ACCEPT]]
    data = file(*build(plan))
    newest = data.rindex(b'"role":"user"') + len(b'"role":"user"')
    assert outcome(data[: newest + int(place * (len(data) - newest))]) != "accept"


# -- size ------------------------------------------------------------------------------------------------------------


def test_a_line_of_fifty_mebibytes_is_read_over(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        file(H, U1, tool_call("a0", "u1"), tool_result("r0", "a0", "A" * (50 * 2**20)), said("a1", "r0", ACCEPT))
    )
    assert verdict(read_transcript(str(path))) == Verdict(outcome="accept", text=ACCEPT, stop_reason="stop")


def test_a_hole_of_six_hundred_mebibytes_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as stream:
        stream.write(file(H, U1, A1))
        stream.seek(600 * 2**20)
        stream.write(b"\n" + file(user("u9", "a1"), said("a9", "u9", REJECT)))
    tracemalloc.start()
    transcript = read_transcript(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (verdict(transcript).outcome, transcript.bad_lines) == ("reject", 1)
    assert peak < 16 * 2**20


def test_nul_before_a_record_is_passed_over_and_nul_inside_of_one_breaks_it() -> None:
    assert outcome(file(H, b"\0" * 5_000 + U1, A1)) == "accept"
    assert outcome(file(H, U1) + b"\0" * 3_000_000 + A1) == "accept"
    assert outcome(file(H, U1, A1.replace(b"VERDICT", b"VER\0DICT"))) == "unknown"
    assert outcome(file(H, U1, A1) + b"\0" * 3_000_000) == "accept"


def test_a_line_over_the_limit_is_lost_and_may_have_been_a_prompt() -> None:
    over = b"x" * (MAX_LINE_BYTES + 2**20)
    assert parse(file(H, U1, A1, over)).newest_role == "user"
    assert outcome(file(H, U1, A1, over, U2, A2)) == "reject"
    assert outcome(file(H, U1, A1) + over) == "unknown"


def test_a_broken_line_too_long_to_search_is_lost() -> None:
    broken = b'{"x"' + b" " * MAX_SALVAGE_BYTES + U2
    assert outcome(file(H, U1, A1, broken, A2)) == "unknown"


def test_a_chain_of_twenty_thousand_entries_is_followed() -> None:
    links = [entry("custom", f"n{at}", f"n{at - 1}" if at else "u1") for at in range(20_000)]
    assert outcome(file(H, U1, *links, said("a1", "n19999", REJECT))) == "reject"


# -- the file itself -------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "none" / "s.jsonl"
    assert verdict(read_transcript(str(path))) == Verdict(outcome="unknown", reason="there is no session file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o644])
def test_a_file_keeps_its_mode_and_its_bytes(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "s.jsonl"
    data = file(H, U1) + TORN
    path.write_bytes(data)
    path.chmod(mode)
    before = path.stat().st_mtime_ns
    read_transcript(str(path))
    after = path.stat()
    assert (path.read_bytes(), stat.S_IMODE(after.st_mode), after.st_mtime_ns) == (data, mode, before)


@pytest.mark.parametrize("data", [b"", file(H), b"\n", b"\0" * 100], ids=["empty", "header", "newline", "nul"])
def test_a_file_without_a_prompt_has_no_output(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    transcript = read_transcript(str(path))
    assert (transcript.last_turn_output, transcript.newest_role) == ("", None)
    assert transcript.reason == "there is no prompt in the session file"


def test_a_folder_a_pipe_and_an_impossible_path_are_no_session_files(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(tmp_path), str(pipe), "/dev/null"):
        assert read_transcript(path) == Transcript(reason="the session file is not a regular file")
    for path in ("a\0b", str(tmp_path / ("s" * 300)), str(pipe / "below"), ""):
        transcript = read_transcript(path)
        assert transcript.reason is not None
        assert transcript.reason.startswith(("the session file cannot be opened: ", "there is no session file"))


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # a test that runs as root cannot lock itself out by a mode
    assert read_transcript(str(tmp_path)).reason == "the session file cannot be opened: Permission denied"


def test_each_read_sees_the_file_that_has_the_name_now(tmp_path: Path) -> None:
    path, other = tmp_path / "s.jsonl", tmp_path / "new"
    path.write_bytes(file(H, U1, A1) + b" " * 10_000)
    assert verdict(read_transcript(str(path))).outcome == "accept"
    other.write_bytes(file(H, entry("compaction", "x", None, summary=ACCEPT), user("u2", "x"), A2))
    other.rename(path)
    assert verdict(read_transcript(str(path))).outcome == "reject"


def test_no_other_file_in_the_folder_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "s1.jsonl").write_bytes(file(H, U1, A1))
    (tmp_path / "s2.jsonl").write_bytes(file(head("s2"), user("u2", None), A2))
    assert verdict(read_transcript(str(tmp_path / "s1.jsonl"))).outcome == "accept"


# -- the verdict -----------------------------------------------------------------------------------------------------


def judged(text: str) -> Verdict:
    return verdict(parse(file(H, U1, said("a1", "u1", text))))


@pytest.mark.parametrize(
    "line",
    [
        "VERDICT: accept",
        "verdict: accept",
        "Verdict : ACCEPT",
        "verdict:accept",
        "**VERDICT:** Accept.",
        "**VERDICT: accept**",
        "**VERDICT: accept.**",
        "*Verdict:* _accept_",
        "__VERDICT__: ***accept***!",
        "VERDICT: **accept**",
        "   VERDICT:\taccept  ",
        "VERDICT: accept\r",
    ],
)
def test_a_verdict_line(line: str) -> None:
    assert judged(line).outcome == "accept"
    assert judged(f"Before.\n\n{line}\n\nAfter.").outcome == "accept"


@pytest.mark.parametrize(
    "line",
    [
        "I cannot say VERDICT: accept yet.",
        "VERDICT: accept | reject | unknown",
        "VERDICT: accept or reject",
        "VERDICT: acceptable",
        "VERDICT: accept, after the tests",
        "VERDICT accept",
        "VERDICT:",
        "VERDICT: yes",
        "`VERDICT: accept`",
        '"VERDICT: accept"',
        "> VERDICT: accept",
        "- VERDICT: accept",
        "# VERDICT: accept",
        "    VERDICT: accept",
        "\tVERDICT: accept",
        "NO VERDICT: accept",
        "VERDICT: accept?",
        "VERDICT: accept VERDICT: accept",
        "VERD\u0130CT: accept",
        "VERDICT: accept\u2028",
        "VERDICT:\u00a0accept",
        "****VERDICT: accept****",
        "",
    ],
)
def test_no_verdict_line(line: str) -> None:
    assert judged(line) == Verdict(
        outcome="unknown", text=line, stop_reason="stop", reason="the answer has no verdict line"
    )


def test_the_list_of_allowed_words_is_no_choice_among_them() -> None:
    text = "You asked for `VERDICT: accept | reject | unknown`. Two tests fail.\nVERDICT: reject"
    assert judged(text).outcome == "reject"


def test_two_verdict_lines_that_differ_are_none() -> None:
    both = judged("VERDICT: accept\nOn reflection:\n**VERDICT:** reject")
    assert (both.outcome, both.reason) == ("unknown", "the verdict lines contradict each other: accept, reject")
    assert judged("VERDICT: accept\nVERDICT: unknown").outcome == "unknown"


def test_saying_it_twice_is_saying_it() -> None:
    assert judged("VERDICT: reject\n\n**Verdict: Reject**").outcome == "reject"


def test_an_agent_may_say_unknown() -> None:
    assert judged("VERDICT: unknown").reason == "the answer itself says unknown"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The form is:\n```\nVERDICT: accept\n```\nI am not done.", "unknown"),
        ("```text\nVERDICT: accept\n```\nVERDICT: reject", "reject"),
        ("~~~\nVERDICT: accept\n```\nVERDICT: accept\n~~~\nVERDICT: reject", "reject"),
        ("````\n```\nVERDICT: accept\n````\nVERDICT: reject", "reject"),
        ("```\nVERDICT: accept", "unknown"),
        ("```\nx\n``` not closed\nVERDICT: accept\n```\n", "unknown"),
        ("```one line``` of code\nVERDICT: reject", "reject"),
    ],
)
def test_what_stands_in_a_code_block_is_quoted(text: str, expected: str) -> None:
    assert judged(text).outcome == expected


def test_a_prompt_that_has_not_reached_the_file_has_no_answer_there() -> None:
    before = parse(file(H, U1, A1))
    assert verdict(before, since=None).outcome == "accept"
    assert verdict(before, since="u1") == Verdict(
        outcome="unknown", text=ACCEPT, stop_reason="stop", reason="the prompt that was sent is not in the session file"
    )
    assert verdict(parse(file(H, U1, A1, U2, A2)), since="u1").outcome == "reject"


def test_the_count_of_bad_lines_comes_with_the_verdict() -> None:
    assert verdict(parse(file(H, b"x", U1, b"y", A1))).bad_lines == 2


@given(st.text(st.sampled_from("VERDICTverdict: accptjunow*_.!`>\n"), max_size=60))
def test_no_text_is_accepted_and_rejected_at_once(text: str) -> None:
    one = judged(text)
    assert (one.outcome == "unknown") == (one.reason is not None)


def test_a_file_at_the_limit_is_read_and_one_byte_more_is_told_with_both_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"{}\n")
    monkeypatch.setattr("legion_terminal.transcript.MAX_FILE_BYTES", 3)
    assert read_transcript(str(path)).reason == "there is no prompt in the session file"
    monkeypatch.setattr("legion_terminal.transcript.MAX_FILE_BYTES", 2)
    assert read_transcript(str(path)).reason == "the session file has 3 bytes, more than 2"


def test_a_file_that_cannot_be_read_to_its_end_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "s.jsonl"
    path.write_bytes(b"{}\n")
    monkeypatch.setattr("legion_terminal.transcript.read_lines", broken)
    assert read_transcript(str(path)).reason == "the session file cannot be read: Input/output error"


def test_a_path_that_no_system_takes_says_why() -> None:
    assert read_transcript("a\0b").reason == "the session file cannot be opened: embedded null byte"
