"""Temporary folders: who owns one, and what happens to those whose owner was killed."""

import fcntl
import os
import stat
import tempfile
from pathlib import Path

import pytest

from hc_sim.folder import MAX_FOLDER, OWNER, owned_folder, private_folder, remove_ownerless


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("hc_sim.folder.MAX_FOLDER", 4_096)


def dead(parent: Path, name: str) -> Path:
    """A folder as a killed owner leaves it."""
    folder = parent / name
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "hc").write_text("x")
    (folder / OWNER).write_text("")
    return folder


def test_a_folder_is_private_and_lives_as_long_as_its_owner_wants_it() -> None:
    assert MAX_FOLDER < 107
    with owned_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "file").write_text("x")
    assert not folder.exists()


def test_folders_of_dead_owners_are_removed_by_the_next_one(tmp_path: Path) -> None:
    left = dead(tmp_path, "hc-sim-dead")
    with owned_folder() as mine, owned_folder() as other:
        assert not left.exists()
        assert mine.exists()
        assert other.exists()


def test_what_is_not_a_folder_of_a_dead_owner_stays(tmp_path: Path) -> None:
    lives = dead(tmp_path, "hc-sim-lives")
    with (lives / OWNER).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        young = private_folder()
        foreign = dead(tmp_path, "other-dead")
        target = dead(tmp_path, "target")
        (tmp_path / "hc-sim-link").symlink_to(target)
        (tmp_path / "hc-sim-file").write_text("")
        fakes = tmp_path / "hc-sim-fakes"
        fakes.mkdir()
        (fakes / OWNER).symlink_to(lives / "bin" / "hc")
        remove_ownerless(tmp_path)
        assert all(path.exists() for path in (lives, young, foreign, target, fakes, tmp_path / "hc-sim-file"))
    remove_ownerless(tmp_path)
    assert not lives.exists()
    remove_ownerless(tmp_path / "none")


def test_a_folder_that_somebody_else_owns_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = dead(tmp_path, "hc-sim-dead")
    monkeypatch.setattr(os, "geteuid", lambda: 1 + os.getuid())
    remove_ownerless(tmp_path)
    assert left.exists()
