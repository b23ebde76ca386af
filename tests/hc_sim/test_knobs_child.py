"""The exit matrix of headless children: a real process, real pipes, real signals."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hc_sim.faults import ChildExit
from hc_sim.programs.ending import install_ending

knob = pytest.mark.knob
COMMAND = b'{"id":"1","type":"prompt"}\n'
RESPONSE, EVENT = "response", "agent_settled"


class Child:
    """A headless child that was started with this plan."""

    def __init__(self, folder: Path, *exits: ChildExit) -> None:
        program = install_ending(folder, exits)
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})

    def prompt(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(COMMAND)
        self.process.stdin.flush()

    def line(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())["type"]

    def ended(self, *, eof: bool = False) -> tuple[int, list[str]]:
        """Exit code (minus the signal) and the types of the messages that were still to be read."""
        if eof:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.stdin = None
        out, _ = self.process.communicate(timeout=20)
        return self.process.returncode, [json.loads(line)["type"] for line in out.splitlines()]


@knob("child.code")
@knob("child.signal")
@knob("child.after")
@pytest.mark.parametrize(
    ("how", "returned", "said"),
    [
        (ChildExit(code=0, after="start"), 0, []),
        (ChildExit(code=7, after="request"), 7, []),
        (ChildExit(signal="SIGSEGV", after="reply"), -signal.SIGSEGV, [RESPONSE]),
        (ChildExit(code=143, after="event"), 143, [RESPONSE, EVENT]),
        (ChildExit(signal="SIGKILL", after="event"), -signal.SIGKILL, [RESPONSE, EVENT]),
    ],
)
def test_a_child_comes_to_its_own_end(tmp_path: Path, how: ChildExit, returned: int, said: list[str]) -> None:
    child = Child(tmp_path, how)
    if how.after != "start":
        child.prompt()
    assert child.ended() == (returned, said)


@knob("child.retiring")
@pytest.mark.parametrize("eof", [True, False])
def test_a_child_meets_another_end_when_it_is_told_to_stop(tmp_path: Path, eof: bool) -> None:
    child = Child(tmp_path, ChildExit(retiring=True, code=5))
    child.prompt()
    assert [child.line(), child.line()] == [RESPONSE, EVENT]
    if not eof:
        child.process.terminate()
    assert child.ended(eof=eof) == (5, [])


@knob("child.ignores")
def test_a_child_ignores_what_should_stop_it(tmp_path: Path) -> None:
    child = Child(tmp_path, ChildExit(retiring=True, ignores=["SIGTERM", "EOF"]))
    child.prompt()
    assert [child.line(), child.line()] == [RESPONSE, EVENT]
    child.process.terminate()
    assert child.process.stdin is not None
    child.process.stdin.close()
    child.process.stdin = None
    with pytest.raises(subprocess.TimeoutExpired):
        child.process.wait(0.3)
    child.process.kill()
    assert child.ended() == (-signal.SIGKILL, [])


@knob("child.order")
@pytest.mark.parametrize(
    ("order", "said"),
    [("reply-first", [RESPONSE, EVENT]), ("event-first", [EVENT, RESPONSE]), ("event-only", [EVENT])],
)
def test_the_last_event_comes_in_any_order(tmp_path: Path, order: Any, said: list[str]) -> None:
    child = Child(tmp_path, ChildExit(code=0, after="event", order=order))
    child.prompt()
    assert child.ended() == (0, said)


@knob("child.holds_pipe_ms")
def test_a_grandchild_holds_the_pipe_open_after_the_end(tmp_path: Path) -> None:
    child = Child(tmp_path, ChildExit(code=0, after="start", holds_pipe_ms=700))
    child.process.wait(20)
    died = time.monotonic()
    assert child.ended() == (0, [])
    assert time.monotonic() - died > 0.1
