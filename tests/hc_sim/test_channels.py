"""A channel lets out what its credit allows, to the byte and in order, and holds no more than its limit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.hub.channels import Channel, Piece
from hc_sim.wire.frames import MAX_CREDIT


def channel(credit: int | None = 1_000, **options: Any) -> Channel:
    return Channel(
        **{"number": 1, "terminal": "t1", "size": 100, "limit": 50, "corked": False, **options}, credit=credit
    )


def data(pieces: list[Piece]) -> bytes:
    return b"".join(payload for kind, payload in pieces if kind == "data")


@given(st.lists(st.binary(max_size=9), max_size=8), st.lists(st.integers(0, 12), max_size=12))
def test_what_comes_out_is_what_went_in_as_far_as_credit_reaches(puts: list[bytes], grants: list[int]) -> None:
    one = channel(0, limit=10_000)
    for piece in puts:
        assert one.put("data", piece)
    whole, out, allowed = b"".join(puts), b"", 0
    for amount in grants:
        assert one.grant(amount)
        allowed += amount
        out += data(one.take())
        assert out == whole[:allowed]
    assert one.queued == len(whole) - len(out)


def test_nothing_comes_out_while_it_is_corked() -> None:
    one = channel(corked=True)
    one.put("data", b"x")
    assert one.take() == []
    one.corked = False
    assert one.take() == [("data", b"x")]


def test_what_is_no_data_waits_its_turn_and_costs_nothing() -> None:
    one = channel(1)
    for kind, payload in (("facts", b"long facts"), ("data", b"ab"), ("credit", b"1234")):
        one.put(kind, payload)  # type: ignore[arg-type]
    assert one.take() == [("facts", b"long facts"), ("data", b"a")]
    one.grant(1)
    assert one.take() == [("data", b"b"), ("credit", b"1234")]


def test_too_much_data_is_refused_and_changes_nothing_but_one_piece_of_any_size_is_taken() -> None:
    one = channel(0)
    assert one.put("data", b"x" * 80)
    assert not one.put("data", b"y")
    assert one.put("facts", b"z" * 80)
    one.grant(80)
    assert data(one.take()) == b"x" * 80
    assert one.put("data", b"y")


def test_without_credit_everything_may_go() -> None:
    one = channel(None)
    one.put("data", b"x" * 40)
    assert one.grant(5)
    assert data(one.take()) == b"x" * 40


def test_after_its_end_nothing_more_waits() -> None:
    one = channel()
    one.close(b"why")
    assert one.put("data", b"late")
    one.put_newest("facts", b"late")
    assert one.take() == [("close", b"why")]


def test_only_the_newest_of_what_replaces_itself_is_kept() -> None:
    one = channel(0)
    one.put_newest("facts", b"1")
    one.put("data", b"x")
    one.put_newest("facts", b"2")
    one.grant(1)
    assert one.take() == [("data", b"x"), ("facts", b"2")]


def test_more_credit_than_can_be_said_is_refused() -> None:
    one = channel(MAX_CREDIT - 1)
    assert one.grant(1)
    assert not one.grant(1)


@given(st.lists(st.integers(0, 100), max_size=20))
def test_a_peer_that_keeps_to_its_window_never_runs_dry(sizes: list[int]) -> None:
    one, allowed = channel(window=100), 100
    for size in sizes:
        size = min(size, allowed)
        anew = one.receive(size)
        assert anew is not None
        allowed += anew - size
        assert 50 < allowed <= 100
        assert one.window == allowed


@pytest.mark.parametrize("size", [101, 10**9])
def test_a_peer_that_sends_more_than_its_window_is_found_out(size: int) -> None:
    assert channel(window=100).receive(size) is None
