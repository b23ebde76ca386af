import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.errors import SupervisorError
from legion_terminal.spawn.names import terminal_name

texts = st.text(min_size=1, max_size=60)
friendly = st.text("abcxyz019_-", min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("run_id", "handle", "name"),
    [
        ("run00001", "alpha", "lgl-run00001-alpha"),
        ("run00001xyz", "alpha", "lgl-run00001-alpha"),
        ("run00001", "api.v2", "lgl-run00001-api-v2"),
        ("run00001", "a/b\\c", "lgl-run00001-a-b-c"),
        ("run00001", "UPPER", "lgl-run00001------"),
        ("RUN-0001", "a", "lgl-----0001-a"),
        ("abc", "alpha", "lgl-abc-alpha"),
        ("run00001", "---", "lgl-run00001----"),
        ("run00001", "ÄÖ", "lgl-run00001---"),
        ("run00001", "🦊", "lgl-run00001--"),
        ("run00001", "a_b", "lgl-run00001-a_b"),
        ("run00001", "x" * 200, "lgl-run00001-" + "x" * 19),
        ("abc", "x" * 200, "lgl-abc-" + "x" * 24),
        ("run 0001.9", "a\nb", "lgl-run-0001-a-b"),
    ],
)
def test_the_name_of(run_id: str, handle: str, name: str) -> None:
    assert terminal_name(run_id, handle) == name


@given(texts, texts)
def test_every_name_is_one_that_a_core_takes(run_id: str, handle: str) -> None:
    assert re.fullmatch(r"[a-z0-9_-]{1,32}", terminal_name(run_id, handle), re.ASCII)


@given(texts, texts)
def test_run_id_and_handle_keep_their_places(run_id: str, handle: str) -> None:
    name = terminal_name(run_id, handle)
    head = min(len(run_id), 8)
    room = 32 - 5 - head
    assert name.startswith("lgl-")
    assert name[4 + head] == "-"
    assert len(name) == 5 + head + min(len(handle), room)


@given(friendly, friendly)
def test_what_needs_no_replacing_stays_as_it_is(run_id: str, handle: str) -> None:
    assert f"lgl-{run_id[:8]}-{handle}".startswith(terminal_name(run_id, handle))


@given(texts, texts, st.integers(0, 59))
def test_one_odd_character_becomes_one_dash(run_id: str, handle: str, at: int) -> None:
    at %= len(handle)
    odd = handle[:at] + "é" + handle[at + 1 :]
    dash = handle[:at] + "-" + handle[at + 1 :]
    assert terminal_name(run_id, odd) == terminal_name(run_id, dash)


@given(texts, texts)
def test_the_mapping_gives_the_same_name_each_time(run_id: str, handle: str) -> None:
    assert terminal_name(run_id, handle) == terminal_name(run_id, handle)


def test_handles_that_look_alike_share_a_name_rather_than_get_an_invented_suffix() -> None:
    assert terminal_name("r0000001", "api.v2") == terminal_name("r0000001", "api v2")
    assert terminal_name("r0000001", "x" * 19 + "one") == terminal_name("r0000001", "x" * 19 + "two")


@pytest.mark.parametrize(("run_id", "handle", "what"), [("", "alpha", "run id"), ("run00001", "", "handle")])
def test_an_empty_part_is_refused_by_name(run_id: str, handle: str, what: str) -> None:
    with pytest.raises(SupervisorError, match=what) as caught:
        terminal_name(run_id, handle)
    assert (caught.value.code, caught.value.known, caught.value.child) == ("bad-request", "not-sent", handle)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(SupervisorError, match="handle is 7"):
        terminal_name("run00001", 7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("run_id", "handle", "what", "child"),
    [
        ("", "alpha", "run id", "alpha"),
        ("run00001", "", "handle", ""),
        (7, "alpha", "run id", "alpha"),
        ("r", 7, "handle", ""),
    ],
)
def test_a_name_that_cannot_be_made_says_of_which_child_and_what_to_give(
    run_id: object, handle: object, what: str, child: str
) -> None:
    with pytest.raises(SupervisorError) as caught:
        terminal_name(run_id, handle)  # type: ignore[arg-type]
    assert caught.value.message.startswith(f"the {what} is ")
    assert (caught.value.child, caught.value.hint) == (child, f"give the child a {what}")
