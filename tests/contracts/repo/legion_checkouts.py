"""Small checkouts built with real git: a base, and the contract landed on it as the work tree."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SKELETON = Path(__file__).with_name("pi_legion")
GIT = shutil.which("git") or "git"
ENV = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


def run_git(top: Path, *words: str) -> str:
    done = subprocess.run([GIT, *words], cwd=top, env=ENV, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def git() -> Callable[..., str]:
    """git with no configuration but the repository's own: `git(top, "commit", ...)`."""
    return run_git


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose one commit, tagged `base`, is the skeleton, and whose work tree is the contract landed."""
    top = tmp_path_factory.mktemp("template") / "legion"
    shutil.copytree(SKELETON / "base", top)
    run_git(top, "init", "-q", "-b", "main", "--template=")
    run_git(top, "add", "-A")
    run_git(top, "commit", "-q", "-m", "base")
    run_git(top, "tag", "base")
    run_git(top, "gc", "-q")  # few files are quick to copy
    shutil.copytree(SKELETON / "landed", top, dirs_exist_ok=True)
    return top


@pytest.fixture
def checkout(template: Path, tmp_path: Path) -> Path:
    """A copy of the template for one test."""
    return Path(shutil.copytree(template, tmp_path / "legion", symlinks=True))


@pytest.fixture
def base_only(template: Path, tmp_path: Path) -> Path:
    """A copy whose work tree is as in the base."""
    top = Path(shutil.copytree(template, tmp_path / "base-only", symlinks=True))
    run_git(top, "reset", "-q", "--hard", "base")
    run_git(top, "clean", "-qfd")
    return top
