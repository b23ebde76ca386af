"""The line splitter gives the same lines however the bytes arrive, and never holds more than its limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.wire import LineSplitter, TooLong

AWKWARD = '{"title":"a\u2028b\u2029c\x85d\U0001f600"}'.encode() + b"\r\x0b\x0c\x1c\n" + b"\x00\xff\n\n" + b"tail"
AWKWARD_LINES = ['{"title":"a\u2028b\u2029c\x85d\U0001f600"}'.encode() + b"\r\x0b\x0c\x1c", b"\x00\xff", b""]

streams = st.lists(st.binary(max_size=12) | st.just(b"\n") | st.just("é\u2028".encode()), max_size=12).map(b"".join)


def feed_all(splitter: LineSplitter, chunks: list[bytes]) -> list[bytes | TooLong]:
    return [line for chunk in chunks for line in splitter.feed(chunk)]


def by_the_book(stream: bytes, limit: int) -> list[bytes | TooLong]:
    """Lines of a whole stream, told apart after the fact."""
    *ended, rest = stream.split(b"\n")
    lines: list[bytes | TooLong] = [line if len(line) <= limit else TooLong(limit) for line in ended]
    return [*lines, TooLong(limit)] if len(rest) > limit else lines


@pytest.mark.parametrize("cut", range(len(AWKWARD) + 1))
def test_only_0a_ends_a_line_wherever_the_stream_is_cut(cut: int) -> None:
    splitter = LineSplitter(1000)
    assert feed_all(splitter, [AWKWARD[:cut], AWKWARD[cut:]]) == AWKWARD_LINES
    assert splitter.rest() == b"tail"


def test_one_byte_a_read_gives_the_same_lines() -> None:
    splitter = LineSplitter(1000)
    assert feed_all(splitter, [bytes([byte]) for byte in AWKWARD]) == AWKWARD_LINES


def test_nothing_comes_out_before_its_own_newline() -> None:
    splitter = LineSplitter(100)
    assert splitter.feed(b"one\ntwo\nthr") == [b"one", b"two"]
    assert splitter.feed(b"ee") == []
    assert splitter.rest() == b"three"
    assert splitter.feed(b"\n") == [b"three"]
    assert splitter.rest() == b""


@given(streams, st.integers(1, 20), st.data())
def test_chunking_never_matters(stream: bytes, limit: int, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert feed_all(LineSplitter(limit), chunks) == by_the_book(stream, limit)


def test_the_limit_counts_bytes_without_the_newline_and_is_exact() -> None:
    splitter = LineSplitter(4)
    assert splitter.feed(b"1234\n12345\n1\n") == [b"1234", TooLong(4), b"1"]


def test_too_long_is_told_once_and_before_the_line_ends() -> None:
    splitter = LineSplitter(4)
    assert splitter.feed(b"12345") == [TooLong(4)]
    assert splitter.feed(b"67890" * 1000) == []
    assert splitter.rest() == b""
    assert splitter.feed(b"\nok\n") == [b"ok"]


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        LineSplitter(0)
