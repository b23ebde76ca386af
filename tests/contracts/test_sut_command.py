"""The command of a driver: words as a shell would split them, and the program that a user means."""

import sys
from pathlib import Path

import pytest

from contracts.sut.command import CommandError, read_command


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "driver.mjs").write_text("")
    (tmp_path / "bin").mkdir()
    for name in ("bin/node", "my-driver"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def argv(text: str, here: Path) -> tuple[str, ...]:
    return read_command(text, cwd=here, path=str(here / "bin")).argv


def test_a_name_is_looked_for_on_path(here: Path) -> None:
    assert argv("node driver.mjs --deep", here) == (f"{here}/bin/node", "driver.mjs", "--deep")


def test_a_path_is_looked_for_from_where_the_user_stands(here: Path) -> None:
    assert argv("./my-driver", here) == (f"{here}/my-driver",)
    assert argv(f"{here}/my-driver x", here) == (f"{here}/my-driver", "x")


def test_words_are_split_as_a_shell_would_and_nothing_is_expanded(here: Path) -> None:
    assert argv("node 'my driver.mjs' \"$HOME\" *.toml ''", here)[1:] == ("my driver.mjs", "$HOME", "*.toml", "")


def test_it_remembers_where_it_was_told_and_how(here: Path) -> None:
    command = read_command("./my-driver", cwd=here)
    assert (command.cwd, command.text) == (str(here), "./my-driver")


def test_python_is_this_python_where_path_has_none(here: Path) -> None:
    assert argv("python driver.py", here) == (sys.executable, "driver.py")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no program"),
        ("''", "names no program"),
        ("node 'x", "no closing quotation"),
        ("nodee driver.mjs", "there is no program nodee on PATH"),
        ("driver.mjs", "write ./driver.mjs, or its interpreter before it"),
        ("./driver.mjs", "is not executable: name its interpreter"),
        ("./nothing", "there is no program nothing (looked in"),
        ("./bin", "is a folder"),
    ],
)
def test_a_command_that_cannot_be_started_says_why(text: str, words: str, here: Path) -> None:
    with pytest.raises(CommandError) as error:
        argv(text, here)
    assert words in str(error.value)
