"""Processes as values: who is below whom, and an end for exactly one."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import contracts.running.processes
from contracts.running.processes import descendants, end, left_over, processes

SET_CHILD_SUBREAPER = 36


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["/bin/sleep", "600"]) as started:
        yield started
        started.kill()


@pytest.fixture(params=["proc", "no children files", "ps"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> str:
    """Each way in which processes can be listed."""
    if request.param == "no children files":
        monkeypatch.setattr(contracts.running.processes, "_has_children_files", lambda: False)
    elif request.param == "ps":
        monkeypatch.setattr(contracts.running.processes, "PROC", tmp_path)
    return str(request.param)


def test_this_process_is_listed_with_its_parent(source: str) -> None:
    (me,) = [process for process in processes() if process.pid == os.getpid()]

    assert me.parent == os.getppid()
    assert "python" in me.command


def test_a_child_is_found_below_its_parent(source: str, sleeper: "subprocess.Popen[bytes]") -> None:
    (found,) = [process for process in descendants(os.getpid()) if process.pid == sleeper.pid]

    assert found.command == "/bin/sleep 600"


def test_a_grandchild_is_found_too(source: str) -> None:
    with subprocess.Popen(["/bin/sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        found = descendants(os.getpid())
        for process in descendants(child.pid):
            end(process)

    assert pid in {process.pid for process in found}


def test_what_was_there_before_is_not_left_over(sleeper: "subprocess.Popen[bytes]") -> None:
    assert sleeper.pid in {process.pid for process in left_over(os.getpid())}
    assert sleeper.pid not in {process.pid for process in left_over(os.getpid(), "", frozenset({sleeper.pid}))}


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_process_without_its_parent_is_found_by_its_mark() -> None:
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 0)  # a test of a driver may have made this process adopt orphans
    orphaned = "sh -c 'sleep 600; : mark-3141' >/dev/null & echo $!"
    told = subprocess.run(["/bin/sh", "-c", orphaned], stdout=subprocess.PIPE, text=True, check=True, timeout=30)
    pid = int(told.stdout)

    assert pid not in {process.pid for process in left_over(os.getpid())}
    (orphan,) = [process for process in left_over(os.getpid(), "mark-3141") if process.pid == pid]
    for process in [*descendants(pid), orphan]:
        end(process)
    assert pid not in {process.pid for process in processes()}


def test_an_ended_process_is_gone_and_ending_it_again_is_no_mistake(sleeper: "subprocess.Popen[bytes]") -> None:
    (found,) = [process for process in descendants(os.getpid()) if process.pid == sleeper.pid]

    end(found)
    end(found)

    assert sleeper.pid not in {process.pid for process in processes()}
