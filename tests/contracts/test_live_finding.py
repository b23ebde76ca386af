import os
import socket
import tempfile
from pathlib import Path

import pytest

from contracts.live.finding import find_core, where_looked
from contracts.live.problem import LiveError, UsageError


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_what_the_user_names_comes_before_everything_else(tmp_path: Path) -> None:
    named, other = program(tmp_path / "a" / "hc"), program(tmp_path / "b" / "hc")

    found = find_core({"HC_BIN": str(other)}, hc=named)

    assert found is not None
    assert found.hc == str(named)


def test_hc_bin_comes_before_path_and_path_before_the_installers_place(tmp_path: Path) -> None:
    own, path, local = (program(tmp_path / place / "hc") for place in ("own", "path", "home/.local/bin"))
    env = {"HC_BIN": str(own), "PATH": str(path.parent), "HOME": str(tmp_path / "home")}

    hows = []
    for gone in ("", "HC_BIN", "PATH"):
        env.pop(gone, None)
        found = find_core(env)
        assert found is not None
        hows.append((found.hc, found.how))

    assert hows == [(str(own), "named by HC_BIN"), (str(path), "on PATH"), (str(local), "in ~/.local/bin")]


def test_without_any_hc_there_is_no_core_and_it_is_said_where_was_looked(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}

    assert find_core(env) is None
    assert str(tmp_path) in where_looked(env)


@pytest.mark.parametrize(
    ("make", "words"), [("missing", "is not there"), ("file", "not executable"), ("folder", "a folder")]
)
def test_a_named_hc_that_cannot_be_started_is_a_mistake_of_the_user(tmp_path: Path, make: str, words: str) -> None:
    path = tmp_path / "hc"
    if make == "file":
        path.write_text("no program")
    elif make == "folder":
        path.mkdir()

    with pytest.raises(UsageError, match=words):
        find_core({}, hc=path)


def test_an_hc_bin_that_leads_nowhere_is_an_error_and_nothing_else_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "hc")

    with pytest.raises(LiveError, match="HC_BIN names /nowhere/hc"):
        find_core({"HC_BIN": "/nowhere/hc", "PATH": str(tmp_path)})


def test_a_socket_alone_is_a_way_to_a_core() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "s"
        listener.bind(str(path))

        found = find_core({"PATH": ""}, socket=path)

    assert found is not None
    assert (found.hc, found.socket) == (None, str(path))


def test_a_named_socket_is_handed_to_hc(tmp_path: Path) -> None:
    hc = program(tmp_path / "hc")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "s"
        listener.bind(str(path))

        found = find_core({}, hc=hc, socket=path)

    assert found is not None
    assert found.environment({"A": "1"}) == {"A": "1", "HC_SOCKET": str(path)}


def test_a_socket_that_is_not_there_or_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(LiveError, match="is the core running"):
        find_core({}, socket=tmp_path / "missing")
    with pytest.raises(LiveError, match="is not a socket"):
        find_core({}, socket=tmp_path / "file")
    with pytest.raises(UsageError, match="limit is 107"):
        find_core({}, socket=tmp_path / ("x" * 120))


def test_the_folder_of_the_user_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "hc")
    monkeypatch.chdir(tmp_path)

    assert find_core({"PATH": f"{os.pathsep}{os.pathsep}", "HOME": "/nonexistent"}) is None
