import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.cards import AgentCard, load_card
from legion_terminal.errors import SupervisorError

CARD = """---
name: centurion
description: holds a worktree
tools: [read, bash]
limits:
  turns: 40
---
You build.
---
Not front matter.
"""


def refusal(text: str) -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        load_card(text, "cards/x.md")
    assert caught.value.code == "card-refused"
    assert caught.value.message.startswith("cards/x.md")
    return caught.value


def test_a_card_has_fields_and_a_body() -> None:
    card = load_card(CARD, "x.md")
    assert card.name == "centurion"
    assert card.fields["limits"] == {"turns": 40}
    assert card.body == "You build.\n---\nNot front matter.\n"


def test_byte_order_mark_and_carriage_returns_do_no_harm() -> None:
    card = load_card("\ufeff" + CARD.replace("\n", "\r\n"), "x.md")
    assert card.name == "centurion"
    assert card.body.startswith("You build.\r\n")


@pytest.mark.parametrize("text", ["", "Only text, with spawnMode: rpc in it.", "\n---\nname: x\n---\n"])
def test_without_front_matter_all_of_it_is_text(text: str) -> None:
    assert load_card(text, "x.md") == AgentCard(source="x.md", body=text)


@pytest.mark.parametrize("front", ["", "# only a comment\n"])
def test_empty_front_matter_has_no_fields(front: str) -> None:
    assert load_card(f"---\n{front}---\nbody", "x.md") == AgentCard(source="x.md", body="body")


def test_a_name_that_is_no_text_is_no_name() -> None:
    assert load_card("---\nname: [a]\n---\n", "x.md").name == ""


@pytest.mark.parametrize(
    "front",
    [
        "spawnMode: terminal",
        "spawnMode:",
        "name: x\nspawnMode: inprocess",
        '"spawnMode": rpc',
        "'spawnMode': rpc",
        '"spawn\\x4dode": rpc',
        "!!str spawnMode: rpc",
        "? spawnMode\n: rpc",
        "{name: x, spawnMode: rpc}",
        "deep: {er: [1, {spawnMode: rpc}]}",
        "list:\n  - a: 1\n    spawnMode: rpc",
        "base: &b {spawnMode: rpc}\nuse: *b",
        "base: &b {x: {spawnMode: rpc}}\n<<: *b",
        "a: {spawnMode: rpc}\na: 1",
        "? {spawnMode: rpc}\n: 1",
        "o: !!omap [spawnMode: rpc]",
        "s: !!set {spawnMode}",
        "- spawnMode: rpc",
        "&loop [*loop, {spawnMode: rpc}]",
    ],
)
def test_spawn_mode_is_refused_on_every_level_and_in_every_spelling_of_yaml(front: str) -> None:
    error = refusal(f"---\n{front}\n---\nbody")
    assert "spawnMode" in error.message
    assert "spawnMode" in error.hint


def test_the_refusal_names_the_line_in_the_file() -> None:
    assert "line 4" in refusal("---\nname: x\nlimits:\n  spawnMode: rpc\n---\n").message


@pytest.mark.parametrize(
    "front", ["mode: spawnMode", "description: no spawnMode here", "list: [spawnMode]", "# spawnMode: rpc\nname: x"]
)
def test_the_word_may_be_said(front: str) -> None:
    assert load_card(f"---\n{front}\n---\nspawnMode: rpc", "x.md").body == "spawnMode: rpc"


@pytest.mark.parametrize(
    ("text", "say"),
    [
        ("---\nname: x\n", "no closing"),
        ("---\nname: [x\n---\n", "line"),
        ("---\na: 1\n\tb: 2\n---\n", "line 3"),
        ("---\n- one\n---\n", "not a mapping"),
        ("---\njust text\n---\n", "not a mapping"),
        ("---\nname: *nowhere\n---\n", "undefined alias"),
        ("---\nwhen: 2026-13-45\n---\n", "cannot be read"),
        ("---\nname: !!python/object/apply:os.getcwd []\n---\n", "constructor"),
        ("---\na: 1\n--- \nb: [\n---\n", None),
        ("---\n" + "[" * 100_000 + "\n---\n", "cannot be read"),
        ("---\nname: a\x00b\n---\n", "special characters"),
        ("x" * 300_000, "300000 characters"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_broken_card_is_refused_with_one_clear_error(text: str, say: str | None) -> None:
    if say is None:
        assert load_card(text, "x.md").fields == {"a": 1}
    else:
        assert say in refusal(text).message


def test_a_bomb_of_aliases_is_walked_once() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    assert len(load_card("---\n" + "\n".join(lines) + "\n---\n", "x.md").fields) == 40


@given(st.text(max_size=200))
def test_any_text_gives_a_card_or_a_refusal(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\n"):
        try:
            assert load_card(whole, "x.md").source == "x.md"
        except SupervisorError as error:
            assert error.code == "card-refused"  # noqa: PT017 - both ends are allowed
