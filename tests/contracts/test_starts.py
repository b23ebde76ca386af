"""Starts of programs: what an event names, and every git of this process counted once, however it is called."""
# ruff: noqa: S605, S606, S607 - these are the ways to start a program, a shell and a bare name among them

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.hosts.environment import hermetic_process
from contracts.hosts.folder import world_folder
from contracts.hosts.starts import counting_git, in_shell_text, is_git, programs
from contracts.hosts.witness import SYSTEM_PATH, git_calls, install_witness, real_git

GIT = real_git() or ""
needs_git = pytest.mark.skipif(not GIT, reason="there is no git on this machine")

# ----------------------------------------------------------- what an event names


@pytest.mark.parametrize(
    ("event", "args", "named"),
    [
        ("subprocess.Popen", ("git", ["git", "status"], None, None), ["git"]),
        ("subprocess.Popen", (b"/usr/bin/git", [b"anything", b"status"], None, None), ["/usr/bin/git"]),
        (
            "subprocess.Popen",
            ("/bin/sh", ["/bin/sh", "-c", "git status | wc -l"], None, None),
            ["/bin/sh", "git", "wc"],
        ),
        ("subprocess.Popen", ("bash", ["bash", "-lc", "exec git status"], None, None), ["bash", "git"]),
        ("subprocess.Popen", ("sh", ["sh", "git"], None, None), ["sh"]),
        ("subprocess.Popen", ("sh", ["sh", "-c"], None, None), ["sh"]),
        ("subprocess.Popen", ("grep", ["grep", "-c", "git log"], None, None), ["grep"]),
        ("os.posix_spawn", ("/usr/bin/git", ["git"], {}), ["/usr/bin/git"]),
        ("os.exec", (Path("/usr/bin/git"), ["git"], None), ["/usr/bin/git"]),
        ("os.system", (b"cd /x && git status",), ["cd", "git"]),
    ],
)
def test_an_event_names_the_programs_that_it_starts(event: str, args: tuple[object, ...], named: list[str]) -> None:
    assert programs(event, args) == named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("git status", ["git"]),
        ("A=1 B='x y' git status", ["git"]),
        ("echo git; (git log) & true", ["echo", "git", "true"]),
        ("true\ngit log", ["true", "git"]),
        ("> out git log", ["git"]),
        ("git log > git", ["git"]),
        ("if ! git diff; then exec git add; fi", ["git", "git", "fi"]),
        ("echo 'git log", ["echo"]),
        ("", []),
    ],
)
def test_a_shell_text_names_what_stands_where_a_command_stands(text: str, named: list[str]) -> None:
    assert in_shell_text(text) == named


@pytest.mark.parametrize(
    ("program", "is_one"),
    [("git", True), ("/opt/x/git", True), ("git-lfs", False), ("/x/git/y", False)],
)
def test_git_is_known_by_its_name(program: str, is_one: bool) -> None:
    assert is_git(program) is is_one


# ------------------------------------------------------------------ what is counted


@pytest.fixture
def witness() -> Iterator[Path]:
    with world_folder() as folder, hermetic_process(folder.witness):
        install_witness(folder.witness)
        with counting_git(folder.witness):
            yield folder.witness


def _forked() -> None:
    child = os.fork()
    if child == 0:
        os.execv(GIT, ["git", "--version"])
    os.waitpid(child, 0)


def _quiet(*command: str, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env, timeout=30)


WAYS: dict[str, Callable[[], object]] = {
    "by name": lambda: _quiet("git", "--version"),
    "by path": lambda: _quiet(GIT, "--version"),
    "by name, past the witness": lambda: _quiet("git", "--version", env={"PATH": SYSTEM_PATH}),
    "under another name": lambda: subprocess.run(["x", "--version"], executable=GIT, check=True, timeout=30),
    "through posix_spawn": lambda: os.waitpid(os.posix_spawn(GIT, ["git", "--version"], dict(os.environ)), 0),
    "by a Popen that uses posix_spawn": lambda: subprocess.run(
        [GIT, "--version"], check=True, close_fds=False, timeout=30
    ),
    "in a shell, by name": lambda: os.system("git --version"),
    "in a shell, by path": lambda: os.system(f"{GIT} --version"),
    "in a shell of its own": lambda: _quiet("sh", "-c", f"true && {GIT} --version"),
    "after a fork": _forked,
    "by a search along PATH": lambda: os.spawnlp(os.P_WAIT, "git", "git", "--version"),
    "by a search past the witness": lambda: os.spawnvpe(os.P_WAIT, "git", ["git", "--version"], {"PATH": SYSTEM_PATH}),
    "by another program": lambda: _quiet("env", "git", "--version"),
}


@needs_git
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_git_is_counted_once_however_it_is_started(way: str, witness: Path) -> None:
    WAYS[way]()

    assert git_calls(witness) == 1


def test_a_git_that_cannot_be_started_is_an_attempt_and_counts(witness: Path) -> None:
    with pytest.raises(FileNotFoundError):
        subprocess.run(["/nowhere/git"], check=False, timeout=30)

    assert git_calls(witness) == 1


def test_other_programs_are_not_counted(witness: Path) -> None:
    _quiet(sys.executable, "-c", "print('git')", "/usr/bin/git")
    os.system("true git")

    assert git_calls(witness) == 0


def test_what_the_hook_cannot_read_is_left_to_the_start_itself(witness: Path) -> None:
    sys.audit("subprocess.Popen", None, object())

    assert git_calls(witness) == 0


@needs_git
def test_only_the_innermost_run_counts_and_only_while_it_lasts(witness: Path) -> None:
    with world_folder() as inner:
        install_witness(inner.witness)
        with counting_git(inner.witness):
            _quiet(GIT, "--version")
        assert (git_calls(inner.witness), git_calls(witness)) == (1, 0)

    _quiet(GIT, "--version")
    assert git_calls(witness) == 1


@needs_git
def test_nothing_is_counted_outside() -> None:
    with world_folder() as folder:
        install_witness(folder.witness)
        with counting_git(folder.witness):
            pass
        _quiet(GIT, "--version")
        assert git_calls(folder.witness) == 0
