from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.spawn.labels import child_labels

ROLE = {"legion.role": "centurion"}
keys = st.sampled_from(["herdr.space", "herdr.tab", "legion.run", "legion.role", "pane.title"]) | st.text(max_size=20)


def test_the_child_appears_in_the_space_of_its_parent() -> None:
    assert child_labels({"herdr.space": "space-1"}) == {**ROLE, "herdr.space": "space-1"}


def test_tab_role_and_all_else_of_the_parent_stay_with_the_parent() -> None:
    parent = {"herdr.space": "s", "herdr.tab": "t", "legion.role": "consul", "legion.run": "r", "other": "o"}
    assert child_labels(parent) == {**ROLE, "herdr.space": "s"}


@pytest.mark.parametrize(
    "parent",
    [None, {}, {"herdr.tab": "t"}, {"herdr.space": ""}, {"herdr.space": None}, {"herdr.space": 7}],
    ids=["unread", "none", "no space", "empty", "null", "number"],
)
def test_a_space_that_is_not_known_is_not_invented(parent: dict[str, Any] | None) -> None:
    assert child_labels(parent) == ROLE


@given(st.dictionaries(keys, st.text(max_size=20)))
def test_no_parent_gives_more_than_a_space(parent: dict[str, str]) -> None:
    labels = child_labels(parent)
    assert labels.pop("legion.role") == "centurion"
    assert labels in ({}, {"herdr.space": parent.get("herdr.space")})


@given(st.dictionaries(keys, st.text(max_size=20)))
def test_the_parents_labels_are_left_alone(parent: dict[str, str]) -> None:
    before = dict(parent)
    child_labels(parent)["herdr.space"] = "changed"
    assert parent == before
