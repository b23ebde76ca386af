"""Typed bytes become texts and keys, however they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.core.keys import MAX_UNREAD, Key, read_keys


def typed(*pieces: bytes) -> list[str | Key]:
    found: list[str | Key] = []
    unread = b""
    for piece in pieces:
        parts, unread = read_keys(unread + piece)
        found += parts
    return found


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"hello", ["hello"]),
        (b"hello\r", ["hello", Key("Enter")]),
        (b"a\r\nb\n", ["a", Key("Enter"), "b", Key("Enter")]),
        (b"\x1b", [Key("Esc")]),
        (b"\x1b\x1b", [Key("Esc"), Key("Esc")]),
        (b"\x1b[A", [Key("Esc[A")]),
        (b"\x1b[1;5Cx", [Key("Esc[1;5C"), "x"]),
        (b"\x1bOP", [Key("EscOP")]),
        (b"\x03", [Key("Ctrl+C")]),
        (b"\x7f\b", [Key("Backspace"), Key("Backspace")]),
        (b"\t", [Key("Tab")]),
        ("grün 🎉".encode(), ["grün 🎉"]),
        (b"", []),
    ],
)
def test_keys_and_texts_are_told_apart(data: bytes, parts: list[str | Key]) -> None:
    assert typed(data) == parts


@pytest.mark.parametrize("text", ["é", "🎉", "\x1b[A", "\x1b[1;5C"])
def test_what_is_cut_in_the_middle_waits_for_its_other_half(text: str) -> None:
    data = text.encode()
    whole = typed(data)
    for at in range(2 if data.startswith(b"\x1b") else 1, len(data)):
        assert typed(data[:at]) == []
        assert typed(data[:at], data[at:]) == whole


def test_a_sequence_that_never_ends_is_not_kept_for_ever() -> None:
    data = b"\x1b[" + b"1" * MAX_UNREAD
    assert typed(data) == [Key("Esc"), "[" + "1" * MAX_UNREAD]


@given(st.text(st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"]), max_size=40))
def test_a_text_comes_out_as_it_was_wherever_it_is_cut(text: str) -> None:
    data = text.encode()
    for at in range(len(data) + 1):
        assert "".join(str(part) for part in typed(data[:at], data[at:])) == text


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_no_bytes_whatever_make_it_fail_or_pile_up(pieces: list[bytes]) -> None:
    unread = b""
    for piece in pieces:
        _, unread = read_keys(unread + piece)
        assert len(unread) <= MAX_UNREAD
