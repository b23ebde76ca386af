"""The parser of OSC 7501 and what stands around it, by the rules of the program status protocol."""

import base64
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.hosting.hearing import Heard, Hearing, Printed, Replied, Reported
from hc_sim.hosting.lines import MAX_LINE, Lines
from hc_sim.hosting.records import MAX_RECORDS, Records
from hc_sim.hosting.reports import Query, Report, read_command
from hc_sim.hosting.sequences import MAX_SEQUENCE, Command, Piece, Sequence, Splitter, Text
from hc_sim.model import Status


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def report(body: str) -> Report | Query | None:
    return read_command(b"7501;" + body.encode())


def joined(pieces: list[Piece]) -> list[Piece]:
    """Texts that follow each other as one: where a text was cut says nothing."""
    found: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Text) and found and isinstance(found[-1], Text):
            found[-1] = Text(found[-1].data + piece.data)
        else:
            found.append(piece)
    return found


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = [0, *sorted(min(place, len(data)) for place in at), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


# ------------------------------------------------------------------ sequences


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        (b"a\x1b]7501;x\x07b", [Text(b"a"), Command(b"7501;x", bell=True), Text(b"b")]),
        (b"\x1b]7501;x\x1b\\b", [Command(b"7501;x"), Text(b"b")]),
        (b"\x1b]7501;x\x18b", [Text(b"b")]),
        (b"\x1b]7501;x\x1ab", [Text(b"b")]),
        (b"\x1b]7501;x\x1b]7501;y\x07", [Command(b"7501;y", bell=True)]),
        (b"\x1b]7501;x\x1b[0mb", [Sequence(b"[0m"), Text(b"b")]),
        (b"\x1bPq\x07\x1b]7501;x\x07\x1b\\b", [Command(b"7501;x", bell=True), Text(b"b")]),
        (b"\x1b_long\x07er\x1b\\b", [Text(b"b")]),
        (b"\x1b[?2004h\x1bc\x1b(B\x1b=", [Sequence(b"[?2004h"), Sequence(b"c"), Sequence(b"(B"), Sequence(b"=")]),
        (b"\x1b[3\x18b", [Text(b"\x18b")]),
        (b"\x1b\x1bc", [Sequence(b"c")]),
        (b"\x1b\xffb", [Text(b"\xffb")]),
        (b"\x1b]" + b"x" * (MAX_SEQUENCE - 3) + b"\x07", [Command(b"x" * (MAX_SEQUENCE - 3), bell=True)]),
        (b"\x1b]" + b"x" * (MAX_SEQUENCE - 2) + b"\x07b", [Text(b"b")]),
        (b"\x1b]" + b"x" * (MAX_SEQUENCE - 4) + b"\x1b\\b", [Command(b"x" * (MAX_SEQUENCE - 4)), Text(b"b")]),
        (b"\x1b]" + b"x" * (MAX_SEQUENCE - 3) + b"\x1b\\b", [Text(b"b")]),
        (b"\x1b]" + b"x" * 9_000 + b"\x1b]7501;y\x07", [Command(b"7501;y", bell=True)]),
        (b"\x1b[" + b"1" * 9_000 + b"mb", [Text(b"b")]),
    ],
)  # fmt: skip
def test_a_stream_is_cut_the_same_whole_and_byte_by_byte(data: bytes, pieces: list[Piece]) -> None:
    assert joined(Splitter().feed(data)) == pieces
    splitter = Splitter()
    found = [piece for byte in data for piece in splitter.feed(bytes([byte]))]
    assert joined(found) == pieces


SCRAPS = st.sampled_from(
    [b"\x1b", b"]", b"7501;", b"state=done", b":", b"\x07", b"\\", b"[", b"?2004h", b"c", b"\x18", b"P", b"x" * 3_000]
)


@given(st.lists(SCRAPS | st.binary(max_size=5), max_size=12), st.lists(st.integers(0, 9_000), max_size=6))
def test_where_the_bytes_were_cut_changes_nothing(scraps: list[bytes], at: list[int]) -> None:
    data, splitter = b"".join(scraps), Splitter()
    assert joined([piece for part in cut(data, at) for piece in splitter.feed(part)]) == joined(Splitter().feed(data))


@given(st.binary(max_size=200))
def test_whatever_comes_a_report_after_it_is_heard(garbage: bytes) -> None:
    hearing = Hearing()
    hearing.feed(garbage + b"\x18\x1b\\")
    assert Reported(Status(state="done", app=None)) in hearing.feed(b"\x1b]7501;state=done\x07")


# ------------------------------------------------------------------ reports


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("state=idle:app=pi", Report("idle", app="pi")),
        (" state = working : app = pi ", Report("working", app="pi")),
        ("state=done:state=error", Report("error")),
        ("state=blocked:kind=permission", Report("blocked", kind="permission")),
        ("state=blocked:kind=other", Report("blocked")),
        ("state=working:kind=auth", Report("working")),
        ("state=working:progress=100", Report("working", progress=100)),
        ("state=working:progress=101", Report("working")),
        ("state=working:progress=-1", Report("working")),
        ("state=idle:progress=5", Report("idle")),
        ("state=idle:junk:Bad=1:long=x;y:color=red", Report("idle")),
        ("state=idle:" + "k" * 17 + "=1", Report("idle")),
        ("state=idle:id=a/b-c/d.e", Report("idle", id="a/b-c/d.e")),
        ("state=idle:app=a/b", Report("idle")),
        ("state=idle:app=" + "a" * 32, Report("idle", app="a" * 32)),
        ("state=done:msg=" + b64("grün"), Report("done", msg="grün")),
        ("state=done:msg=" + b64("a").rstrip("="), Report("done", msg="a")),
        ("state=done:title=" + b64("t" * 192), Report("done", title="t" * 192)),
        ("state=done:msg=" + b64("m" * 2_048), Report("done", msg="m" * 2_048)),
        ("state=clear:id=a:msg=!!:app=" + "a" * 40, Report("clear", id="a")),
        ("?", Query()),
    ],
)
def test_a_report_is_read(body: str, expected: Report | Query) -> None:
    assert report(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "",
        "app=pi",
        "state=busy",
        "state=Idle",
        "?:x",
        "state=idle:id=",
        "state=idle:id=a//b",
        "state=idle:id=" + "/".join("abcdefghi"),
        "state=idle:id=" + "a" * 33,
        "state=idle:id=" + "/".join(["a" * 31] * 5),
        "state=idle:id=a,b",
        "state=idle:app=" + "a" * 33,
        "state=idle:app=" + "a" * 33 + ":app=pi",
        "state=done:msg=A",
        "state=done:msg=YQ=",
        "state=done:msg=" + b64(b"\xff"),
        "state=done:msg=" + b64("two\nlines"),
        "state=done:msg=" + b64("\x7f"),
        "state=done:msg=" + b64("\x9b"),
        "state=done:title=" + b64("t" * 193),
        "state=done:msg=" + b64("m" * 2_049),
        "state=done:msg=" + b64("m" * 2_049) + ":msg=" + b64("short"),
    ],
)
def test_a_report_that_breaks_a_rule_is_none_at_all(body: str) -> None:
    assert report(body) is None


def test_other_commands_are_no_reports() -> None:
    assert read_command(b"0;state=idle") is None
    assert read_command(b"75011;state=idle") is None
    assert read_command("7501;state=idle:app=\xe9".encode("latin-1")) == Report("idle")


# ------------------------------------------------------------------ records


def records(*bodies: str) -> Records:
    found = Records()
    for body in bodies:
        one = report(body)
        assert isinstance(one, Report)
        found.apply(one)
    return found


def test_a_report_replaces_its_record_completely() -> None:
    found = records("state=working:app=pi:msg=" + b64("m") + ":progress=3", "state=done")
    assert found.status() == Status(state="done")


def test_the_status_is_the_programs_own_or_the_most_urgent_of_all() -> None:
    found = records("state=working:app=pi", "state=done:id=a", "state=blocked:id=a/b:kind=auth", "state=error:id=c")
    assert found.status() == Status(state="working", app="pi")
    assert found.status("most-urgent") == Status(state="blocked", app="pi", kind="auth")
    assert records("state=done:id=a").status() is None
    assert Records().status("most-urgent") is None


def test_of_equal_records_the_programs_own_stands_for_all_and_then_the_newest() -> None:
    own = records("state=done:app=root", "state=done:id=a:app=a")
    assert own.status("most-urgent") == Status(state="done", app="root")
    newest = records("state=done:id=a:app=a", "state=done:id=b:app=b", "state=done:id=a:app=c")
    assert newest.status("most-urgent") == Status(state="done", app="c")


def test_an_app_is_inherited_from_the_nearest_record_above() -> None:
    found = records("state=idle:app=root", "state=idle:id=a:app=near", "state=idle:id=x/y", "state=error:id=a/b/c")
    assert found.status("most-urgent") == Status(state="error", app="near")


@pytest.mark.parametrize(("body", "left"), [("state=clear", 0), ("state=clear:id=a", 2), ("state=clear:id=zz", 4)])
def test_a_clear_removes_a_record_and_all_below_it(body: str, left: int) -> None:
    assert len(records("state=idle", "state=done:id=a", "state=done:id=a/b", "state=done:id=ab", body)) == left


def test_records_are_bounded_and_the_one_that_was_updated_least_recently_goes() -> None:
    bodies = [f"state=done:id=r{number}" for number in range(MAX_RECORDS)]
    found = records("state=idle", *bodies[:-1], "state=idle", bodies[-1])
    assert len(found) == MAX_RECORDS
    assert found.status() == Status(state="idle")


@pytest.mark.parametrize(("word", "stays"), [("idle", True), ("working", False), ("done", True), ("blocked", False)])
def test_the_end_of_the_program_ends_work_and_keeps_what_was_reached(word: str, stays: bool) -> None:
    hearing = Hearing()
    hearing.feed(f"\x1b]7501;state={word}\x07rest".encode())
    status = Status(state=word) if stays else None  # type: ignore[arg-type]
    assert hearing.end() == [Printed(b"", ("rest",)), Reported(status)]


# ------------------------------------------------------------------ what it means


def heard(data: bytes) -> list[Heard]:
    return Hearing().feed(data)[1:]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (b"\x1b]7501;?\x1b\\", [b"\x1b]7501;?\x1b\\"]),
        (b"\x1b]7501;?\x07", [b"\x1b]7501;?\x07"]),
        (b"\x1b[?u\x1b]7501;?\x1b\\\x1b[c", [b"\x1b]7501;?\x1b\\", b"\x1b[?62c"]),
        (b"\x1b[>c\x1b[6n", []),
    ],
)
def test_questions_are_answered_in_their_order_and_a_report_never_is(asked: bytes, answer: list[bytes]) -> None:
    assert heard(asked) == [Replied(data) for data in answer]
    assert not [one for one in heard(b"\x1b]7501;state=idle\x07") if isinstance(one, Replied)]


def test_each_report_of_a_burst_is_told_in_order() -> None:
    data = b"\x1b]7501;state=working\x07\x1b]7501;state=done\x07\x1b]7501;state=working\x07\x1b]7501;state=clear\x07"
    words = [one.status.state if one.status else None for one in heard(data) if isinstance(one, Reported)]
    assert words == ["working", "done", "working", None]


@pytest.mark.parametrize(
    ("sequence", "word"),
    [
        (b"\x1bc", None),
        (b"\x1b[!p", "done"),
        (b"\x1b[?1049h", "done"),
        (b"\x1b]133;A\x07", "done"),
        (b"\x1b]0;t\x07", "done"),
    ],
)
def test_a_full_reset_removes_what_was_reported_and_nothing_else_does(sequence: bytes, word: str | None) -> None:
    hearing = Hearing("most-urgent")
    hearing.feed(b"\x1b]7501;state=done\x07\x1b]7501;state=working:id=a\x07" + sequence)
    last = [one for one in hearing.end() if isinstance(one, Reported)][-1].status
    assert (None if last is None else last.state) == word


def test_a_new_prompt_of_a_shell_ends_work() -> None:
    assert heard(b"\x1b]7501;state=working\x07\x1b]133;A\x07")[-1] == Reported(None)
    assert heard(b"\x1b]133;B\x07") == []


def test_bracketed_paste_is_on_while_the_program_wants_it() -> None:
    hearing, seen = Hearing(), []
    for data in (b"", b"\x1b[?2004h", b"\x1b[?25l", b"\x1b[?1;2004l", b"\x1b[?2004;1h", b"\x1bc"):
        hearing.feed(data)
        seen.append(hearing.pastes)
    assert seen == [False, True, True, False, True, False]


# ------------------------------------------------------------------ lines


@pytest.mark.parametrize(
    ("data", "lines", "rest"),
    [
        (b"one\r\ntwo", ["one"], "two"),
        (b"10%\r20%\rdone\r\n", ["done"], ""),
        (b"a\r\r\nb\n", ["a", "b"], ""),
        (b"abc\b\bx\n", ["ax"], ""),
        (b"a\x00\x0e\tb\n", ["a\tb"], ""),
        ("grün\n".encode(), ["grün"], ""),
        (b"\xff\n", ["�"], ""),
    ],
)
def test_what_is_printed_becomes_lines(data: bytes, lines: list[str], rest: str) -> None:
    whole, pieces = Lines(), Lines()
    assert (whole.feed(data), whole.unfinished) == (lines, rest)
    assert [line for byte in data for line in pieces.feed(bytes([byte]))] == lines
    assert pieces.unfinished == rest


def test_a_line_without_end_is_cut() -> None:
    lines = Lines()
    assert lines.feed(b"x" * (2 * MAX_LINE + 5)) == ["x" * MAX_LINE] * 2
    assert (lines.unfinished, lines.finish(), lines.finish()) == ("xxxxx", ["xxxxx"], [])
