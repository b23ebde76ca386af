"""Names, environments, sizes and matches, as the core judges them."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.core.rules import effective_env, env_fault, matches, session_file, size_fault, task_in, valid_name
from hc_sim.profile import WireProfile
from hc_sim.script.format import Match

ALPHABET = string.ascii_lowercase + string.digits + "-_"


@given(st.text(alphabet=ALPHABET, min_size=1, max_size=32))
def test_every_name_of_the_alphabet_up_to_32_is_valid(name: str) -> None:
    assert valid_name(name)


@given(st.text(max_size=40))
def test_a_name_is_valid_exactly_when_length_and_characters_are(name: str) -> None:
    assert valid_name(name) == (1 <= len(name) <= 32 and all(character in ALPHABET for character in name))


@given(st.text(alphabet=ALPHABET, max_size=31), st.characters(exclude_characters=ALPHABET), st.integers(0, 31))
def test_one_wrong_character_anywhere_spoils_a_name(name: str, wrong: str, place: int) -> None:
    assert not valid_name(name[:place] + wrong + name[place:])


@pytest.mark.parametrize("name", ["", "a" * 33, "a\n", "Alpha", "a.b", "a b", "é", "\u0661"])
def test_names_that_look_nearly_right_are_not_valid(name: str) -> None:
    assert not valid_name(name)


variables = st.dictionaries(st.sampled_from(["PATH", "HOME", "A", "HC_TERMINAL_ID", "HC_TERMINAL_SOCKET"]), st.text())


@given(variables, variables)
def test_an_overlay_adds_and_replaces_but_never_deletes(core: dict[str, str], overlay: dict[str, str]) -> None:
    env = effective_env(WireProfile(core_path="/bin"), core, overlay, "t9", "/s")
    assert env.keys() == {"PATH", "HC_TERMINAL_ID", "HC_TERMINAL_SOCKET"} | core.keys() | overlay.keys()
    for name in env.keys() - {"HC_TERMINAL_ID", "HC_TERMINAL_SOCKET"}:
        assert env[name] == overlay.get(name, core.get(name, "/bin"))
    assert (env["HC_TERMINAL_ID"], env["HC_TERMINAL_SOCKET"]) == ("t9", "/s")


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"A": "x\0"}])
def test_what_no_environment_can_hold_is_a_fault(env: dict[str, str]) -> None:
    assert env_fault(env) is not None


def test_odd_but_possible_variables_are_fine() -> None:
    assert env_fault({"A": "", "b.c": "x\ny", "1": "é"}) is None


@pytest.mark.parametrize(
    ("text", "fits"), [("x" * 131071, True), ("x" * 131072, False), ("€" * 43690, True), ("€" * 43691, False)]
)
def test_one_argument_is_measured_in_bytes(text: str, fits: bool) -> None:
    fault = size_fault(WireProfile(), ["pi", text], {})
    assert (fault is None) == fits
    if fault is not None:
        assert f"argv[1] has {len(text.encode())} bytes" in fault


def test_a_variable_counts_with_its_name_and_equals_sign() -> None:
    profile = WireProfile(max_arg_bytes=6)
    assert size_fault(profile, [], {"ABC": "de"}) is None
    assert "variable ABC has 7 bytes" in str(size_fault(profile, [], {"ABC": "def"}))


def test_all_arguments_and_variables_together_are_measured_too() -> None:
    profile = WireProfile(max_args_bytes=10)
    assert size_fault(profile, ["abcd", "efgh"], {}) is None
    assert "11 bytes in all" in str(size_fault(profile, ["abcd", "efghi"], {}))


@pytest.mark.parametrize(
    ("match", "plays"),
    [
        (Match(), True),
        (Match(name="lgl-*-alpha"), True),
        (Match(name="lgl-*-beta"), False),
        (Match(argv_has=["--session", "pi"]), True),
        (Match(argv_has=["--sess"]), False),
        (Match(last_arg_starts=["Nope", "Do "]), True),
        (Match(last_arg_starts=["it"]), False),
        (Match(env={"ROLE": "cent*"}), True),
        (Match(env={"ROLE": "!"}), False),
        (Match(env={"GONE": "!"}), True),
        (Match(env={"GONE": "*"}), False),
        (Match(name="lgl-*", argv_has=["pi"], env={"ROLE": "other"}), False),
    ],
)
def test_a_match_holds_when_all_that_it_says_holds(match: Match, plays: bool) -> None:
    argv = ["pi", "--session", "/s", "Do it"]
    assert matches(match, "lgl-run00001-alpha", argv, {"ROLE": "centurion"}) == plays


def test_a_name_glob_matches_no_terminal_without_a_name() -> None:
    assert not matches(Match(name="*"), None, ["pi"], {})


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        (["pi", "--session", "/a/s.jsonl", "task"], "/a/s.jsonl"),
        (["pi", "--session", "s.jsonl"], "/cwd/s.jsonl"),
        (["pi", "--session", "/a", "--session", "/b"], "/b"),
        (["pi", "--session"], None),
        (["pi"], None),
    ],
)
def test_the_session_file_is_the_value_after_its_option(argv: list[str], path: str | None) -> None:
    assert session_file(argv, "/cwd") == path


@pytest.mark.parametrize(
    ("argv", "task"),
    [
        (["pi", "do it"], "do it"),
        (["pi", "--session", "/s", "do it"], "do it"),
        (["pi", "--no-skills", "do it"], "do it"),
        (["pi", "--session", "/s"], None),
        (["pi", "-e", "ext"], None),
        (["pi", "--no-skills"], None),
        (["pi", ""], None),
        (["pi"], None),
        ([], None),
    ],
)
def test_a_task_is_a_last_element_that_is_neither_option_nor_value(argv: list[str], task: str | None) -> None:
    assert task_in(argv) == task
