"""Lines and messages of the client's side: framing at every boundary, replies in every odd shape (BC-001 to BC-026)."""

import itertools
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.lines import BYTE_ORDER_MARK, LineReader
from legion_terminal.messages import Noise, Notice, Reply, decode, encode, read_error


def _cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted({cut % (len(stream) + 1) for cut in cuts}), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(edges)]


@given(
    st.lists(st.text().map(lambda text: text.replace("\n", "")), max_size=6),
    st.lists(st.integers(min_value=0), max_size=12),
)
def test_any_cutting_of_a_stream_gives_the_same_lines(texts: list[str], cuts: list[int]) -> None:
    lines = [text.encode() for text in texts]
    stream = b"".join(line + b"\n" for line in lines)
    if stream.startswith(BYTE_ORDER_MARK):
        lines[0] = lines[0][3:]
    reader = LineReader()
    got = [line for part in _cut(stream, cuts) for line in reader.feed(part)]
    assert got == lines
    assert reader.end() == b""


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_unicode_line_separators_do_not_end_a_line(mark: str) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": "1", "result": {"title": f"a{mark}b"}}, ensure_ascii=False).encode()
    (got,) = LineReader().feed(line + b"\n")
    assert decode(got) == Reply(id="1", result={"title": f"a{mark}b"})


def test_a_frame_may_come_one_byte_at_a_time() -> None:
    frame = '{"jsonrpc":"2.0","id":"2","result":{"title":"😀\\u263a"}}\n'.encode()
    reader = LineReader()
    got = [line for byte in frame for line in reader.feed(bytes([byte]))]
    assert [decode(line) for line in got] == [Reply(id="2", result={"title": "😀☺"})]


def test_nothing_comes_out_before_its_own_line_feed() -> None:
    reader = LineReader()
    assert reader.feed(b"one\ntwo\nthr") == [b"one", b"two"]
    assert reader.feed(b"ee") == []
    assert reader.pending == 5
    assert reader.feed(b"\n") == [b"three"]


def test_a_byte_order_mark_is_dropped_at_the_start_only() -> None:
    reader = LineReader()
    assert reader.feed(BYTE_ORDER_MARK[:1]) == []
    assert reader.feed(BYTE_ORDER_MARK[1:] + b"a\n" + BYTE_ORDER_MARK + b"b\n") == [b"a", BYTE_ORDER_MARK + b"b"]


def test_the_ceiling_is_exact() -> None:
    exact = LineReader(limit=10)
    assert exact.feed(b"0123456789\n") == [b"0123456789"]
    assert not exact.overflowed
    over = LineReader(limit=10)
    assert over.feed(b"ok\n01234567890\nlater\n") == [b"ok"]
    assert over.overflowed
    assert over.feed(b"more\n") == []


def test_an_endless_line_is_given_up_at_the_ceiling_and_not_kept() -> None:
    tracemalloc.start()
    reader = LineReader(limit=256 * 1024)
    for _ in range(512):
        reader.feed(b"x" * 64 * 1024)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reader.overflowed
    assert peak < 2 * 1024 * 1024


def test_a_long_line_in_small_reads_is_searched_only_once() -> None:
    class Counting(bytearray):
        searched = 0

        def find(self, sub: object, start: int = 0, end: int = 0) -> int:  # type: ignore[override]
            Counting.searched += len(self) - start
            return super().find(b"\n", start)

    reader = LineReader()
    reader._buffer = Counting()
    for _ in range(900):
        assert reader.feed(b"x" * 1024) == []
    assert reader.feed(b"\n") == [b"x" * 900 * 1024]
    assert Counting.searched <= 1024 * 1024


@pytest.mark.parametrize(
    ("line", "reply_id"),
    [
        (b'{"jsonrpc":"2.0","id":3,"result":{}}', "3"),
        (b'{"jsonrpc":"2.0","id":3.0,"result":{}}', "3"),
        (b'{"jsonrpc":"2.0","id":"3x","result":{}}', "3x"),
        (b'{"jsonrpc":"2.0","id":true,"result":{}}', ""),
        (b'{"jsonrpc":"2.0","id":1e999,"result":{}}', "inf"),
        (b'{"result":{"id":5,"name":"x"},"jsonrpc":"2.0","id":12}', "12"),
    ],
)
def test_the_id_is_the_envelopes_own_in_decimal_text(line: bytes, reply_id: str) -> None:
    message = decode(line)
    assert isinstance(message, Reply)
    assert message.id == reply_id


@pytest.mark.parametrize("member", ['"id":null,', '"id":"",', ""])
def test_an_error_without_an_id_names_no_call(member: str) -> None:
    message = decode(f'{{"jsonrpc":"2.0",{member}"error":{{"code":-32700,"message":"bad"}}}}'.encode())
    assert isinstance(message, Reply)
    assert message.id == ""
    assert message.error is not None
    assert message.error.message == "bad"


def test_error_null_is_no_error_and_result_null_is_a_result() -> None:
    assert decode(b'{"jsonrpc":"2.0","id":1,"result":{"ok":1},"error":null}') == Reply(id="1", result={"ok": 1})
    assert decode(b'{"jsonrpc":"2.0","id":2,"result":null}') == Reply(id="2", result=None)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"jsonrpc":"2.0","id":3}', "neither"),
        (b'{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":"x"}}', "both"),
        (b'{"jsonrpc":"2.0","id":3,"result":{"title":"\xff"}}', "UTF-8"),
    ],
)
def test_a_reply_that_says_nothing_certain_is_broken_but_still_addressed(line: bytes, why: str) -> None:
    message = decode(line)
    assert isinstance(message, Reply)
    assert message.id == "3"
    assert why in message.broken


def test_notifications_and_requests_of_the_core_are_notices() -> None:
    assert decode(b'{"jsonrpc":"2.0","method":"terminal.changed","params":{"id":"1"}}') == Notice()
    assert decode(b'{"jsonrpc":"2.0","id":1,"method":"ping"}') == Notice()


@pytest.mark.parametrize(
    "glue",
    [
        b"\x1b]0;ready\x07",
        b"\x1b]0;a {odd} title\x1b\\",
        b"\x1b[?25l\x1b[2J",
        b"\x00\x08",
        b"Welcome back ",
        b"{not json} ",
        b"\x85",
    ],
)
def test_what_is_glued_to_the_front_of_a_frame_is_skipped(glue: bytes) -> None:
    assert decode(glue + b'{"jsonrpc":"2.0","id":"1","result":{}}') == Reply(id="1", result={})


@pytest.mark.parametrize(
    "line", [b"Welcome back", b"[1,2]", b"5", b"null", b"{", b'{"a":1}', b"x" + b"[" * 100_000, b"{" * 99]
)
def test_everything_else_is_noise_fit_to_print(line: bytes) -> None:
    message = decode(line)
    assert isinstance(message, Noise)
    assert len(message.text) <= 200
    assert message.text.isprintable()


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32000, "message": "x", "data": {"kind": "NAME_TAKEN", "hint": "h"}},
        {"code": -32000, "message": "x", "data": {"kind": "name-taken"}},
        {"code": "NAME_TAKEN", "message": "x"},
        {"code": -32000, "message": "NAME_TAKEN: the holder runs"},
        {"code": -32000, "message": "x", "data": "name_taken"},
        {"code": -32000, "message": "x", "data": {"code": "Name_Taken"}},
    ],
)
def test_a_kind_is_found_wherever_the_core_put_it(error: dict[str, object]) -> None:
    assert read_error(error).kind == "name_taken"


def test_a_standard_code_stands_for_its_kind() -> None:
    assert read_error({"code": -32601, "message": 'unknown method "terminal.rm"'}).kind == "unknown_method"
    assert read_error({"code": -32000, "message": "Argument list too long"}).kind == ""
    assert read_error("just text").message == "just text"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text())
def test_a_request_is_one_line_and_says_exactly_its_text(text: str, name: str) -> None:
    frame = encode("7", "terminal.send", {"terminal": name, "text": text})
    assert frame.count(b"\n") == 1
    assert frame.endswith(b"\n")
    assert json.loads(frame)["params"] == {"terminal": name, "text": text}


@pytest.mark.parametrize("value", ["a\ud800b", float("nan"), object(), b"bytes"])
def test_what_json_cannot_say_is_refused_before_it_leaves(value: object) -> None:
    with pytest.raises(ValueError):
        encode("7", "terminal.send", {"text": value})
