"""Frames come out of a byte stream whole and in order, wherever it is cut; what is too big is never held."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.wire import Frame, FrameSplitter, TooBig, encode_frame
from hc_sim.wire.frames import (
    HEADER_BYTES,
    MAX_CHANNEL,
    decode_credit,
    decode_size,
    encode_credit,
    encode_size,
)

LIMIT = 40

frames = st.builds(Frame, st.integers(0, MAX_CHANNEL), st.integers(0, 255), st.binary(max_size=LIMIT))
either = frames | st.builds(Frame, st.integers(0, 9), st.integers(0, 9), st.binary(min_size=LIMIT + 1, max_size=90))


def encoded(*some: Frame) -> bytes:
    return b"".join(encode_frame(frame.channel, frame.kind, frame.payload) for frame in some)


def expected(frame: Frame) -> Frame | TooBig:
    if len(frame.payload) <= LIMIT:
        return frame
    return TooBig(frame.channel, frame.kind, len(frame.payload))


def test_the_header_is_nine_bytes_little_endian_channel_kind_and_length() -> None:
    data = encode_frame(0x01020304, 5, b"abc")
    assert data == b"\x04\x03\x02\x01\x05\x03\x00\x00\x00abc"
    assert HEADER_BYTES == 9
    assert struct.unpack("<IBI", data[:9]) == (0x01020304, 5, 3)


@given(st.lists(either, max_size=4))
def test_one_cut_at_every_byte_boundary_changes_nothing(some: list[Frame]) -> None:
    data = encoded(*some)
    wanted = [expected(frame) for frame in some]
    for at in range(len(data) + 1):
        splitter = FrameSplitter(LIMIT)
        assert splitter.feed(data[:at]) + splitter.feed(data[at:]) == wanted
        assert splitter.rest() == 0


@given(st.lists(either, max_size=4))
def test_byte_by_byte_each_frame_comes_with_its_last_byte_and_each_too_big_one_with_its_header(
    some: list[Frame],
) -> None:
    splitter, at, due = FrameSplitter(LIMIT), 0, []
    for frame in some:
        size = HEADER_BYTES + len(frame.payload)
        due.append(at + (size if len(frame.payload) <= LIMIT else HEADER_BYTES))
        at += size
    came = []
    for number, byte in enumerate(encoded(*some), start=1):
        came += [(number, got) for got in splitter.feed(bytes([byte]))]
    assert came == list(zip(due, map(expected, some), strict=True))


@given(st.lists(either, max_size=5), st.lists(st.integers(0, 600), max_size=12))
def test_any_cuts_give_the_same_frames(some: list[Frame], cuts: list[int]) -> None:
    data, splitter, begin, came = encoded(*some), FrameSplitter(LIMIT), 0, []
    for cut in [*sorted({cut for cut in cuts if cut < len(data)}), len(data)]:
        came += splitter.feed(data[begin:cut])
        begin = cut
    assert came == [expected(frame) for frame in some]


@given(st.binary(max_size=300))
def test_no_bytes_whatever_make_it_fail_or_hold_more_than_a_header_and_the_limit(data: bytes) -> None:
    splitter = FrameSplitter(LIMIT)
    for byte in data:
        splitter.feed(bytes([byte]))
        assert splitter.rest() < HEADER_BYTES + LIMIT


def test_a_payload_of_exactly_the_limit_passes_and_one_more_byte_does_not() -> None:
    splitter = FrameSplitter(LIMIT)
    fits, too_big = Frame(1, 0, b"x" * LIMIT), Frame(1, 0, b"x" * (LIMIT + 1))
    assert splitter.feed(encoded(fits, too_big, fits)) == [fits, TooBig(1, 0, LIMIT + 1), fits]


def test_four_gigabytes_are_announced_and_none_of_it_is_held() -> None:
    splitter = FrameSplitter(LIMIT)
    assert splitter.feed(struct.pack("<IBI", 1, 0, 0xFFFF_FFFF)) == [TooBig(1, 0, 0xFFFF_FFFF)]
    for _ in range(64):
        assert splitter.feed(b"x" * 65_536) == []
    assert splitter.rest() == 0


def test_an_end_within_a_frame_can_be_told_from_one_between_two() -> None:
    splitter = FrameSplitter(LIMIT)
    data = encoded(Frame(1, 0, b"abc"))
    splitter.feed(data[:-1])
    assert splitter.rest() == len(data) - 1
    splitter.feed(data[-1:])
    assert splitter.rest() == 0


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        FrameSplitter(0)


@pytest.mark.parametrize(("channel", "kind"), [(-1, 0), (MAX_CHANNEL + 1, 0), (0, 256), (0, -1)])
def test_what_a_header_cannot_say_is_an_error(channel: int, kind: int) -> None:
    with pytest.raises(ValueError, match="no frame has"):
        encode_frame(channel, kind)


@given(st.integers(0, 0xFFFF_FFFF))
def test_credit_is_four_bytes_little_endian_and_comes_back(amount: int) -> None:
    assert encode_credit(amount) == amount.to_bytes(4, "little")
    assert decode_credit(encode_credit(amount)) == amount


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x01\x02\x03", b"\x01\x02\x03\x04\x05"])
def test_anything_else_is_no_credit(payload: bytes) -> None:
    assert decode_credit(payload) is None


def test_a_size_is_columns_and_rows_and_neither_is_zero() -> None:
    assert encode_size(80, 24) == b"\x50\x00\x18\x00"
    assert decode_size(encode_size(80, 24)) == (80, 24)
    assert [decode_size(payload) for payload in (encode_size(0, 1), encode_size(1, 0), b"", b"\0" * 5)] == [None] * 4
