"""Partial match: tables, lists, operators, and the mistakes that would make a pattern mean nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.judging.match import (
    MAX_DEPTH,
    MISSING,
    OPERATORS,
    Difference,
    differences,
    equal,
    is_operators,
    pattern_faults,
)
from contracts.sut.base import ERROR_KEYS, RESULTS

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
KEYS = st.text(min_size=1).filter(lambda key: key not in OPERATORS)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@given(VALUES)
def test_every_value_matches_itself(value: Any) -> None:
    assert differences(value, value) == []


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4))
def test_a_table_matches_every_table_that_has_more_keys(pattern: dict[str, Any], more: dict[str, Any]) -> None:
    assert equal(pattern, {**more, **pattern})


@given(VALUES, VALUES)
def test_not_is_the_opposite(pattern: Any, got: Any) -> None:
    assert equal({"not": pattern}, got) is not equal(pattern, got)


def test_each_field_that_differs_is_named() -> None:
    pattern = {"settled": True, "inner": {"turn": 2, "names": ["a", "b"]}}
    got = {"settled": False, "inner": {"turn": 1, "names": ["a", "c"]}, "more": 1}

    assert differences(pattern, got) == [
        Difference("settled", True, False),
        Difference("inner.turn", 2, 1),
        Difference("inner.names[1]", "b", "c"),
    ]


def test_a_missing_key_differs_from_every_value_and_from_null() -> None:
    assert differences({"turn": 1}, {}) == [Difference("turn", 1, MISSING)]
    assert differences({"turn": None}, {}) == [Difference("turn", None, MISSING)]


def test_a_list_of_another_length_differs_as_a_whole() -> None:
    assert differences({"argv": ["pi"]}, {"argv": ["pi", "-x"]}) == [Difference("argv", ["pi"], ["pi", "-x"])]


def test_true_is_not_one() -> None:
    assert not equal(True, 1)
    assert not equal(1, True)
    assert not equal({"min": 0}, True)


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ({"min": 2}, 2, 1),
        ({"max": 2}, 2, 3),
        ({"min": 1, "max": 3}, 2, 4),
        ({"min": 1}, 1.5, "2"),
        ({"matches": "^lgl-[a-z0-9]+$"}, "lgl-abc", "lgl-ABC"),
        ({"matches": "a.b"}, "xa\nbx", "ab"),
        ({"starts": "Task"}, "Task: x", "A task"),
        ({"starts": ["pi", "--session"]}, ["pi", "--session", "x"], ["pi"]),
        ({"contains": "core"}, "no core here", "nothing"),
        ({"contains": "-e"}, ["pi", "-e"], ["pi"]),
        ({"contains": {"a": 1}}, [{"a": 1, "b": 2}], [{"a": 2}]),
        ({"contains": "PATH"}, {"PATH": "x"}, {"HOME": "x"}),
        ({"not": "x"}, "y", "x"),
        ({"one_of": ["a", {"min": 5}]}, 6, 4),
        ({"len": 2}, "ab", "abc"),
        ({"len": {"max": 32}}, "x" * 32, "x" * 33),
        ({"any": True}, "", None),
        ({"any": True}, 0, MISSING),
        ({"absent": True}, MISSING, ""),
        ({"absent": True}, None, 0),
        ({"absent": False}, 1, None),
    ],
)
def test_an_operator_fits_and_fails(pattern: dict[str, Any], fits: Any, fails: Any) -> None:
    assert equal(pattern, fits)
    assert not equal(pattern, fails)


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_no_operator_breaks_on_a_value_of_another_type(operator: str) -> None:
    argument: Any = {"len": 1, "one_of": [1], "absent": True, "any": True, "matches": "x"}.get(operator, 1)

    for got in (None, MISSING, True, 1, 1.5, "x", [], {}, [None], {"a": None}):
        assert equal({operator: argument}, got) in (True, False)


def test_only_the_operator_that_failed_is_named() -> None:
    assert differences({"at": {"min": 1, "max": 3}}, {"at": 9}) == [Difference("at", {"max": 3}, 9)]


def test_a_table_with_one_key_that_is_no_operator_is_a_plain_table() -> None:
    assert not is_operators({"min": 1, "turn": 2})
    assert not is_operators({})
    assert equal({"min": 1, "turn": 2}, {"min": 1, "turn": 2})


def test_a_pattern_that_is_too_deep_never_matches() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 2):
        deep = {"in": deep}

    assert not equal(deep, deep)


@pytest.mark.parametrize(
    ("pattern", "field"),
    [
        ({"at": {"min": "x"}}, "at.min"),
        ({"at": {"min": True}}, "at.min"),
        ({"name": {"matches": "["}}, "name.matches"),
        ({"name": {"one_of": "abc"}}, "name.one_of"),
        ({"reason": {"absent": "yes"}}, "reason.absent"),
        ({"name": {"len": {"min": "2"}}}, "name.len.min"),
        ({"names": [{"not": {"max": "1"}}]}, "names[0].not.max"),
        ({"reason": {"mathces": "x"}}, "reason.mathces"),
        ({"reason": {"not": {"contain": "x"}}}, "reason.not.contain"),
        ({"reason": {"min": 1, "other": 2}}, "reason.min"),
    ],
)
def test_a_pattern_that_could_never_hold_or_fail_as_meant_is_reported(pattern: dict[str, Any], field: str) -> None:
    assert [where for where, _ in pattern_faults(pattern)] == [field]


def test_a_good_pattern_has_no_faults() -> None:
    assert pattern_faults({"a": {"min": 1}, "b": [{"len": {"max": 3}}], "c": {"not": {"one_of": ["x"]}}}) == []


def test_no_key_of_a_result_is_taken_for_a_slip() -> None:
    keys = {*ERROR_KEYS, *(key for told in RESULTS.values() for key in told), "argv", "env", "labels", "cwd", "parent"}

    assert pattern_faults(dict.fromkeys(keys, 1)) == []
