from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.errors import SupervisorError
from legion_terminal.spawn.env import overlay

COPIED = ("PATH", "HOME", "TERM", "TERM_PROGRAM", "COLORTERM")
names = st.sampled_from([*COPIED, "NODE_OPTIONS", "PARENT", "LEGION_RUN"])
blocks = st.dictionaries(names, st.none() | st.sampled_from(["", "a", "b\nc", "ü"]))


def refusal(*args: Any) -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        overlay(*args)
    assert caught.value.code == "bad-request"
    return caught.value


def test_path_home_and_what_the_parent_says_of_its_terminal_travel() -> None:
    own = {"PATH": "/p", "HOME": "/h", "TERM": "xterm", "TERM_PROGRAM": "app", "COLORTERM": "truecolor"}
    assert overlay({**own, "SECRET": "s", "HC_TERMINAL_ID": "t1", "LANG": "C"}, {}, {}) == own


def test_nothing_is_made_up() -> None:
    assert overlay({}, {}, {}) == {}
    assert overlay({"PATH": "/p"}, {}, {}) == {"PATH": "/p"}


@pytest.mark.parametrize(
    ("memory", "request_env", "expected"),
    [
        (
            {"NODE_OPTIONS": "m", "PATH": "pm"},
            {"NODE_OPTIONS": "i", "PATH": "pi", "PARENT": "run7"},
            {"NODE_OPTIONS": "i", "PATH": "pi", "PARENT": "run7"},
        ),
        ({"NODE_OPTIONS": "m", "PATH": "pm"}, {}, {"NODE_OPTIONS": "m", "PATH": "pm"}),
        ({}, {}, {"PATH": "p0"}),
    ],
    ids=["request last", "memory before it", "own first"],
)
def test_each_block_writes_over_the_one_before(
    memory: dict[str, str], request_env: dict[str, str], expected: dict[str, str]
) -> None:
    assert overlay({"PATH": "p0"}, memory, request_env) == expected


def test_unset_values_do_not_travel_and_empty_ones_do() -> None:
    assert overlay({}, {"M": None}, {"A": None, "C": "", "D": "x\ny"}) == {"C": "", "D": "x\ny"}


def test_an_unset_value_takes_nothing_away() -> None:
    assert overlay({"PATH": "p0"}, {"PATH": None, "M": "m"}, {"PATH": None, "M": None}) == {"PATH": "p0", "M": "m"}


def test_present_and_empty_is_present() -> None:
    assert overlay({"TERM": "", "PATH": "/p"}, {}, {}) == {"TERM": "", "PATH": "/p"}


@given(blocks, blocks, blocks)
def test_the_last_block_that_sets_a_variable_decides(own: Any, memory: Any, request_env: Any) -> None:
    expected = {}
    for name in {*own, *memory, *request_env}:
        chain = [request_env.get(name), memory.get(name), own.get(name) if name in COPIED else None]
        for value in chain:
            if value is not None:
                expected[name] = value
                break
    assert overlay(own, memory, request_env) == expected


@given(blocks, blocks, blocks)
def test_no_value_is_ever_the_word_for_nothing(own: Any, memory: Any, request_env: Any) -> None:
    assert not {"None", "null", "undefined"} & set(overlay(own, memory, request_env).values())


@given(blocks, blocks, blocks)
def test_the_blocks_are_left_alone(own: Any, memory: Any, request_env: Any) -> None:
    before = [dict(own), dict(memory), dict(request_env)]
    overlay(own, memory, request_env).clear()
    assert [own, memory, request_env] == before


@pytest.mark.parametrize(("value", "kind"), [(7, "int"), (True, "bool"), (["a"], "list"), (b"x", "bytes")])
def test_a_value_that_is_no_text_is_refused_by_the_name_of_its_variable(value: object, kind: str) -> None:
    assert f"E is of type {kind}" in refusal({}, {}, {"E": value}).message


@pytest.mark.parametrize("name", ["", "A=B", "A\0B", "\ud800", 7], ids=repr)
def test_a_name_that_no_environment_holds_is_refused(name: object) -> None:
    assert repr(name) in refusal({}, {}, {name: "x"}).message


@pytest.mark.parametrize(
    ("value", "say"), [("a\0b", "NUL"), ("\udce9", "not valid Unicode")], ids=["nul", "undecodable byte"]
)
def test_a_value_that_cannot_travel_is_refused(value: str, say: str) -> None:
    assert say in refusal({"PATH": value}, {}, {}).message


def test_a_value_longer_than_the_system_takes_is_refused_with_its_size_in_bytes() -> None:
    fits = "é" * 65_534 + "x"  # 131,069 bytes, and two for "A="
    assert overlay({}, {}, {"A": fits}) == {"A": fits}
    assert "131072 bytes" in refusal({}, {}, {"A": fits + "x"}).message


def test_a_variable_that_is_no_text_says_what_to_do() -> None:
    with pytest.raises(SupervisorError) as caught:
        overlay({}, {}, {"DEPTH": 1})  # type: ignore[dict-item]
    assert caught.value.message == "the environment variable DEPTH is of type int, not text"
    assert caught.value.hint == "turn it into text, or leave it out with None"
