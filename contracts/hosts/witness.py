"""Git as evidence: a `git` on PATH that counts each start (I3), and a repository seen from outside (I2)."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

GIT_TIMEOUT_S = 20
"""Bound for one git process of the harness itself."""

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
"""What follows the witness on the PATH of a supervisor."""

_COUNTED = "git-calls"

_WITNESS = """#!/bin/sh
printf 'git\\n' >> {counted}
exec {git} "$@"
"""

_QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("tree", ("status", "--porcelain=v1", "--untracked-files=all", "--ignored")),
    ("worktrees", ("worktree", "list", "--porcelain")),
    ("refs", ("for-each-ref",)),
    ("head", ("rev-parse", "HEAD")),
    ("config", ("config", "--local", "--list")),
)


class GitMissingError(Exception):
    """There is no git on this machine, and the evidence needs one."""


def real_git(path: str | None = None) -> str | None:
    """The machine's own git, or None. `path` defaults to this process's PATH plus the usual places.

    A witness among the entries is passed over, so that one run inside another still finds the real program.
    """
    entries = (path if path is not None else f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}").split(":")
    kept = [entry for entry in entries if entry and not (Path(entry) / _COUNTED).exists()]
    return shutil.which("git", path=":".join(kept))


def install_witness(directory: Path) -> Path:
    """Write the counting `git` into a folder and return it. The real git, where there is one, still does the work."""
    counted = directory / _COUNTED
    counted.write_bytes(b"")
    program = directory / "git"
    git = real_git()
    program.write_text(_WITNESS.format(counted=shlex.quote(str(counted)), git=shlex.quote(git or "/bin/false")))
    program.chmod(0o700)
    return program


def git_calls(directory: Path) -> int:
    """How many git processes the witness in this folder counted."""
    return (directory / _COUNTED).read_bytes().count(b"\n")


def count_git(directory: Path) -> None:
    """Count one git more, that was started past the witness in this folder."""
    with (directory / _COUNTED).open("ab", buffering=0) as counted:
        counted.write(b"git\n")


def make_repository(path: Path) -> None:
    """Make a folder a git repository with one commit. Raises `GitMissingError` without a git."""
    (path / "README").write_text("a repository under watch\n")
    for args in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "README"),
        ("commit", "--quiet", "--no-verify", "-m", "first"),
    ):
        _git(path, *args)


def repository_state(path: Path) -> dict[str, str]:
    """What a supervisor must leave as it is: tree, worktrees, refs, head, local configuration, git's own files."""
    return {what: _git(path, *args) for what, args in _QUESTIONS} | {"inside": _inside_git(path / ".git")}


def _inside_git(folder: Path) -> str:
    """Each of git's own files and its size, but for the index, which a mere look may write anew."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "index")
    return "".join(f"{path.relative_to(folder)} {path.stat().st_size}\n" for path in files)


def repository_changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """In words, each part of the state that is not the same any more."""
    return [
        f"{what} was {_lines_of(before[what], but=now)!r}, is {_lines_of(now, but=before[what])!r}"
        for what, now in ((what, after.get(what, "")) for what in before)
        if before[what] != now
    ]


def _lines_of(text: str, *, but: str) -> str:
    """The lines that the other text does not have."""
    others = set(but.splitlines())
    return "\n".join(line for line in text.strip().splitlines() if line not in others)


def _git(cwd: Path, *args: str) -> str:
    program = real_git()
    if program is None:
        raise GitMissingError("git is needed to watch a repository, and there is none on this machine")
    identity = ("-c", "user.name=witness", "-c", "user.email=witness@example.invalid", "-c", "commit.gpgsign=false")
    env = {"HOME": str(cwd), "PATH": SYSTEM_PATH, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [program, *identity, *args],
        cwd=cwd,
        env=env,
        check=False,
        capture_output=True,
        text=True,
        timeout=GIT_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise GitMissingError(f"git {args[0]} failed with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
