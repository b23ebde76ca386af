"""What hosts are made of: the folder of a run, the git that counts, the environment built from nothing."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from contracts.hosts.environment import decoys, hermetic_process, is_foreign, scrub, supervisor_env
from contracts.hosts.folder import SOCKET_PATH_BYTES, private_folder, world_folder
from contracts.hosts.witness import (
    GitMissingError,
    git_calls,
    install_witness,
    make_repository,
    real_git,
    repository_changes,
    repository_state,
)
from contracts.hosts.world import occupy, up_after_ms
from contracts.scenario import World

# ------------------------------------------------------------------------ folder


def test_a_folder_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with world_folder(str(tmp_path)) as folder:
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.socket.parent.stat().st_mode) == 0o700
        (folder.home / "deep" / "er").mkdir(parents=True)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_gone_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(KeyError), world_folder(str(tmp_path)):
        raise KeyError

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", range(70, 90))
def test_a_socket_fits_below_any_root(length: int, tmp_path: Path) -> None:
    root = tmp_path / ("r" * max(1, length - len(str(tmp_path)) - 1))
    root.mkdir()

    with world_folder(str(root)) as folder:
        assert len(os.fsencode(folder.socket)) <= SOCKET_PATH_BYTES


def test_more_room_can_be_asked_for(tmp_path: Path) -> None:
    folder = private_folder(str(tmp_path), room=SOCKET_PATH_BYTES)

    assert folder.parent == Path("/tmp")
    folder.rmdir()


@pytest.mark.parametrize(
    ("handle", "name"),
    [
        ("alpha", "session-alpha.jsonl"),
        ("Größe_1", "session-Größe_1.jsonl"),
        ("../../etc/passwd", "session-------etc-passwd.jsonl"),
        ("", "session-unnamed.jsonl"),
        ("x" * 200, f"session-{'x' * 64}.jsonl"),
    ],
)
def test_a_session_file_stays_in_the_folder_whatever_the_handle(handle: str, name: str, tmp_path: Path) -> None:
    with world_folder(str(tmp_path)) as folder:
        assert folder.session(handle) == folder.path / name


def test_a_listing_has_files_and_empty_folders(tmp_path: Path) -> None:
    with world_folder(str(tmp_path)) as folder:
        (folder.work / "a").write_text("x")
        (folder.work / "link").symlink_to("nowhere")

        assert folder.listing() == {"home", "bin", "witness", "s", "work/a", "work/link"}


# ----------------------------------------------------------------------- witness


def test_the_witness_counts_each_start_and_git_still_works(tmp_path: Path) -> None:
    program = install_witness(tmp_path)
    assert git_calls(tmp_path) == 0

    told = [subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout for _ in range(3)]

    assert git_calls(tmp_path) == 3
    assert all(text.startswith("git version") for text in told)


def test_arguments_with_line_feeds_count_once(tmp_path: Path) -> None:
    subprocess.run([install_witness(tmp_path), "version\n\n\n"], capture_output=True, check=False)

    assert git_calls(tmp_path) == 1


def test_a_witness_in_an_odd_folder_counts_too(tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s $(odd) "here"'
    odd.mkdir()

    subprocess.run([install_witness(odd), "--version"], capture_output=True, check=True)

    assert git_calls(odd) == 1


def test_a_witness_is_never_taken_for_the_real_git(tmp_path: Path) -> None:
    install_witness(tmp_path)

    assert real_git(f"{tmp_path}:/usr/local/bin:/usr/bin:/bin") not in (None, str(tmp_path / "git"))
    assert real_git(str(tmp_path)) is None


def test_without_a_git_a_repository_cannot_be_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contracts.hosts.witness.real_git", lambda: None)

    with pytest.raises(GitMissingError, match="there is none on this machine"):
        make_repository(tmp_path)


def test_a_repository_is_the_same_when_only_looked_at(tmp_path: Path) -> None:
    make_repository(tmp_path)
    before = repository_state(tmp_path)
    (tmp_path / "README").read_text()

    assert repository_changes(before, repository_state(tmp_path)) == []
    assert set(before) == {"tree", "worktrees", "refs", "head", "config", "inside"}


def test_a_changed_file_is_a_change_of_the_tree(tmp_path: Path) -> None:
    make_repository(tmp_path)
    before = repository_state(tmp_path)
    (tmp_path / "README").write_text("changed\n")

    assert repository_changes(before, repository_state(tmp_path)) == ["tree was '', is 'M README'"]


def test_the_configuration_of_this_account_does_not_reach_the_watched_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[commit]\n\tgpgsign = true\n[core]\n\thooksPath = /nowhere\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    work = tmp_path / "work"
    work.mkdir()

    make_repository(work)

    assert repository_state(work)["tree"] == ""


# ------------------------------------------------------------------- environment


@pytest.mark.parametrize("name", ["HC_BIN", "HC_TERMINAL_ID", "PI_SUBAGENT_DEPTH", "GIT_DIR"])
def test_variables_of_a_surrounding_session_are_foreign(name: str) -> None:
    assert is_foreign(name)


@pytest.mark.parametrize("name", ["PATH", "HOME", "HCX", "MY_HC_BIN", "PI", "LEGION_RUN"])
def test_other_variables_are_not(name: str) -> None:
    assert not is_foreign(name)


def test_scrubbing_takes_only_what_is_foreign() -> None:
    environ = {"HC_BIN": "x", "PATH": "/bin", "PI_SUBAGENT_X": "1"}

    scrub(environ)

    assert environ == {"PATH": "/bin"}


def test_the_process_is_hermetic_within_and_as_before_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HC_SOCKET", "/theirs")
    before = dict(os.environ)

    with hermetic_process(tmp_path):
        within = dict(os.environ)
        os.environ["ADDED"] = "x"
        del os.environ["PATH"]

    assert "HC_SOCKET" not in within
    assert within["PATH"] == f"{tmp_path}:{before['PATH']}"
    assert dict(os.environ) == before


def test_decoys_lie_in_the_process_within_and_nothing_else_foreign_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HC_SOCKET", "/theirs")
    monkeypatch.setenv("HC_OTHER", "theirs")
    laid = decoys(tmp_path)
    before = dict(os.environ)

    with hermetic_process(tmp_path, laid):
        within = {name: value for name, value in os.environ.items() if is_foreign(name)}

    assert within == {name: value for name, value in laid.items() if is_foreign(name)}
    assert {"HC_TERMINAL_SOCKET", "HC_TERMINAL_ID", "HC_BIN", "PI_SUBAGENT_DEPTH"} <= set(within)
    assert dict(os.environ) == before


def test_decoys_lead_nowhere(tmp_path: Path) -> None:
    named = {Path(value) for value in decoys(tmp_path).values() if value.startswith("/")}

    assert named
    assert not any(path.exists() for path in named)
    assert all(path.is_relative_to(tmp_path) for path in named)


def test_the_environment_of_a_supervisor_follows_the_world(tmp_path: Path) -> None:
    world = World(env={"HC_BIN": "/other/hc", "TERM": ""}, unset=["HOME"])

    with world_folder(str(tmp_path)) as folder:
        env = supervisor_env(world, folder, parent="t3", hc=folder.programs / "hc")

    assert env == {
        "PATH": f"{folder.witness}:/usr/local/bin:/usr/bin:/bin",
        "HC_BIN": "/other/hc",
        "HC_TERMINAL_SOCKET": str(folder.socket),
        "HC_TERMINAL_ID": "t3",
        "TERM": "",
    }


# ------------------------------------------------------------------ a core's place


@pytest.mark.parametrize(
    ("core", "ms"), [("up", 0), ("down-until:250", 250), ("down", None), ("absent", None), ("directory", None)]
)
def test_when_a_core_is_up(core: str, ms: int | None) -> None:
    assert up_after_ms(core) == ms


@pytest.mark.parametrize(
    ("core", "kind"), [("down", stat.S_ISSOCK), ("directory", stat.S_ISDIR), ("regular-file", stat.S_ISREG)]
)
def test_what_stands_where_a_core_should_listen(core: str, kind: object, tmp_path: Path) -> None:
    with world_folder(str(tmp_path)) as folder:
        occupy(folder.socket, core)

        assert callable(kind)
        assert kind(folder.socket.lstat().st_mode)


@pytest.mark.parametrize("core", ["up", "absent", "down-until:9"])
def test_nothing_stands_there_otherwise(core: str, tmp_path: Path) -> None:
    with world_folder(str(tmp_path)) as folder:
        occupy(folder.socket, core)

        assert not folder.socket.exists()
