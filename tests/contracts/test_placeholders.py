"""Placeholders: filled everywhere in a value, by child where a child has its own, and left alone where unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.running.placeholders import PLACEHOLDERS, fill

FILLS = {"dir": "/d", "session": "/d/a", "session:b": "/d/b", "name": "n-a", "name:b": "n-b"}


@pytest.mark.parametrize(
    ("text", "child", "filled"),
    [
        ("{dir}/x", "", "/d/x"),
        ("{session}{session}", "", "/d/a/d/a"),
        ("{session}", "b", "/d/b"),
        ("{session}", "unknown", "/d/a"),
        ("{session:b}", "", "/d/b"),
        ("{name:b} {name}", "b", "n-b n-b"),
        ("{cwd}", "", "{cwd}"),
        ("{name:c}", "b", "{name:c}"),
        ('{"id": {id}, "dir": "{dir}"}', "", '{"id": {id}, "dir": "/d"}'),
    ],
)
def test_a_text_is_filled(text: str, child: str, filled: str) -> None:
    assert fill(text, FILLS, child) == filled


def test_tables_and_lists_are_filled_keys_too() -> None:
    value: dict[str, Any] = {"{name}": [{"path": "{dir}"}, 1, None, True]}

    assert fill(value, FILLS) == {"n-a": [{"path": "/d"}, 1, None, True]}


@given(st.text(alphabet="ab{}:\"'\n", max_size=40))
def test_a_text_without_placeholders_stays_as_it_is(text: str) -> None:
    assert fill(text, FILLS) == text


@given(st.sampled_from(PLACEHOLDERS), st.text(max_size=20))
def test_what_is_put_in_is_not_filled_again(name: str, before: str) -> None:
    assert fill("{" + name + "}", {name: "{" + name + "}" + before, "dir": "{dir}x"}).startswith("{")
