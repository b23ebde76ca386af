"""The socket host: real socket, real `hc connect`, real time; and what a bad system leaves is seen and ended."""

import asyncio
import gc
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.records import RunRecord
from contracts.running.one_run import run_scenario
from contracts.scenario import Bridge, Expect, Parent, Scenario, Step, World
from contracts.sut.base import Sut, SutSetup
from contracts.sut.python import PythonSut

SPAWN = Step(do="spawn", as_="a")
CONNECT_MS = 400
"""Bridges that cannot work are tried again for a while; these runs need no more than that."""


def ran(world: World, *drive: Step, sut: Callable[[SutSetup], Sut] | None = None, **more: Any) -> RunRecord:
    scenario = Scenario(
        id="x", why="x", clauses=["D3"], hosts=["socket"], poll_ms=20, world=world, drive=list(drive), **more
    )
    return run_scenario(scenario, "socket", sut)


class Looking(PythonSut):
    """The Python supervisor, and what it found around it."""

    def __init__(self, setup: SutSetup) -> None:
        super().__init__(setup)
        self.env = dict(setup.env)
        folder = Path(setup.env["HOME"]).parent
        socket = folder / "s" / "core.sock"
        self.modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (folder, socket.parent, socket)}
        self.process_path = os.environ["PATH"]
        self.foreign = sorted(name for name in os.environ if name.startswith(("HC_", "PI_SUBAGENT_")))
        LOOKS.append(self)


LOOKS: list[Looking] = []


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], Looking]:
    monkeypatch.setenv("HC_TERMINAL_ID", "t-surrounding")
    monkeypatch.setenv("HC_BIN", "/surrounding/hc")
    monkeypatch.setenv("TERM", "xterm-surrounding")

    def looked(world: World) -> Looking:
        record = ran(world, Step(do="host.available"), sut=Looking)
        assert record.errored is None
        return LOOKS.pop()

    return looked


def test_the_socket_is_private_in_a_private_folder(look: Callable[[World], Looking]) -> None:
    modes = look(World()).modes

    assert list(modes.values()) == [0o700, 0o700, 0o600]
    assert all(len(os.fsencode(path)) <= 107 for path in modes)


def test_the_environment_is_built_from_nothing(look: Callable[[World], Looking]) -> None:
    env = look(World(env={"TERM": "dumb", "EMPTY": ""})).env
    folder = Path(env["HOME"]).parent

    assert sorted(env) == ["EMPTY", "HC_BIN", "HC_TERMINAL_ID", "HC_TERMINAL_SOCKET", "HOME", "PATH", "TERM"]
    assert env["PATH"] == f"{folder}/witness:/usr/local/bin:/usr/bin:/bin"
    assert (env["TERM"], env["EMPTY"], env["HC_TERMINAL_SOCKET"]) == ("dumb", "", f"{folder}/s/core.sock")
    assert env["HC_TERMINAL_ID"] != "t-surrounding"


def test_outside_both_markers_are_absent(look: Callable[[World], Looking]) -> None:
    assert not {"HC_TERMINAL_SOCKET", "HC_TERMINAL_ID"} & set(look(World(inside=False)).env)


def test_a_variable_can_be_unset(look: Callable[[World], Looking]) -> None:
    assert "HC_BIN" not in look(World(unset=["HC_BIN"])).env


def test_the_process_itself_knows_nothing_foreign_and_finds_the_counting_git_first(
    look: Callable[[World], Looking],
) -> None:
    seen = look(World())

    assert seen.foreign == []
    assert seen.process_path.startswith(seen.env["HOME"].replace("/home", "/witness"))


def test_decoys_lie_around_the_supervisor_where_the_world_has_them(look: Callable[[World], Looking]) -> None:
    seen = look(World(decoys=True))

    assert {"HC_BIN", "HC_TERMINAL_ID", "HC_TERMINAL_SOCKET", "PI_SUBAGENT_DEPTH"} <= set(seen.foreign)
    assert "PI_SUBAGENT_DEPTH" not in seen.env


def test_the_environment_is_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HC_TERMINAL_ID", "t-surrounding")
    before = dict(os.environ)

    ran(World(), Step(do="host.available"))

    assert dict(os.environ) == before


def test_a_child_is_started_through_a_real_bridge_and_nothing_is_left() -> None:
    record = ran(World(), SPAWN, Step(do="retire", child="a"))

    assert record.errored is None
    assert record.steps[0].returned == {
        "mode": "terminal",
        "name": "lgl-run00001-alpha",
        "child": "child-1",
        "promptTurn": 0,
    }
    assert [event.method for event in record.trace if event.kind == "call"][:3] == [
        "hello",
        "terminal.get",
        "terminal.run",
    ]
    assert record.aftermath.left == []
    assert not Path(record.fills["dir"]).exists()


def test_the_parent_of_the_world_is_the_terminal_of_the_supervisor() -> None:
    record = ran(World(parent=Parent(labels={"herdr.space": "s9"})), SPAWN)

    assert next(event for event in record.trace if event.kind == "run").labels["herdr.space"] == "s9"


def test_terminals_that_are_left_are_told_by_name_without_the_supervisors_own() -> None:
    assert ran(World(), SPAWN).aftermath.terminals == {"lgl-run00001-alpha": "running"}


@pytest.mark.parametrize("hc", ["missing", "not-executable", "exits"])
def test_an_executable_that_cannot_work_is_one_clear_failure_and_nothing_is_left(hc: Any) -> None:
    record = ran(World(hc=hc), SPAWN)

    raised = record.steps[0].raised or {}
    assert record.errored is None
    assert raised["code"] == "host-unreachable"
    assert ("this installation is broken" if hc == "exits" else "HC_BIN") in raised["message"] + raised["hint"]
    assert record.aftermath.left == []


@pytest.mark.parametrize("core", ["down", "absent", "directory", "regular-file"])
def test_a_core_that_is_not_there_is_one_clear_failure_and_nothing_is_left(core: str) -> None:
    record = ran(World(core=core), SPAWN)

    assert record.errored is None
    assert (record.steps[0].raised or {})["code"] == "host-unreachable"
    assert "cannot reach a core" in (record.steps[0].raised or {})["message"]
    assert record.aftermath.left == []


def test_a_bridge_that_dies_takes_its_link_and_the_next_call_opens_another() -> None:
    world = World(bridge=[Bridge(nth=1, signal="SIGKILL", after_requests=4, stderr="last words\n")])
    record = ran(world, SPAWN, Step(do="status", child="a"), Step(do="status", child="a"))

    assert record.errored is None
    assert "signal SIGKILL" in (record.steps[1].raised or {}).get("message", "")
    assert "last words" in (record.steps[1].raised or {}).get("message", "")
    assert (record.steps[2].returned or {}).get("state") == "running"
    assert record.aftermath.left == []


def test_a_restarted_listener_is_reached_again() -> None:
    record = ran(World(), SPAWN, Step(do="restart"), Step(do="status", child="a"), Step(do="status", child="a"))

    assert record.errored is None
    assert (record.steps[3].returned or {}).get("state") == "running"
    assert len([event for event in record.trace if event.kind == "link"]) == 2


def test_a_run_over_its_limit_is_errored_and_says_what_was_waited_for() -> None:
    record = ran(World(), SPAWN, Step(do="wait", child="a", args={"timeoutMs": 60_000}), limit_ms=400)

    assert record.errored == "the run was over its limit of 400 ms: step 1 (wait) had not come back"
    assert [step.do for step in record.steps] == ["spawn", "wait"]
    assert record.trace != []


class Littering(PythonSut):
    """Leaves something of each kind behind when it is asked whether it is inside hc."""

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = await super().call(method, params)
        if method == "host.available":
            folder = Path(self._env["HOME"])
            (folder / "litter.txt").write_text("x")
            subprocess.Popen(["/bin/sleep", "600"])  # noqa: ASYNC220
            self.task = asyncio.create_task(asyncio.sleep(600), name="litter")
            self.timer = asyncio.get_running_loop().call_later(600, print)
        return answer


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_everything_that_a_system_leaves_is_named_and_its_process_ended() -> None:
    record = ran(World(), Step(do="host.available"), sut=Littering)
    gc.collect()

    left = "\n".join(record.aftermath.left)
    assert "process still runs: /bin/sleep 600" in left
    assert "file left: home/litter.txt" in left
    assert "task still runs: sleep" in left
    assert "timer is still set" in left
    assert len(record.aftermath.left) == 5, "the task and the timer that it waits for, the other timer, process, file"


class NeverClosing(PythonSut):
    """Keeps its bridge."""

    async def close(self) -> None:
        return None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_bridge_that_outlives_its_supervisor_is_named_and_ended() -> None:
    record = ran(World(), SPAWN, sut=NeverClosing)
    gc.collect()  # its transports complain when they are collected: here, where that is expected

    left = "\n".join(record.aftermath.left)
    assert "connection 1 is still open" in left
    assert "/bin/hc connect" in left


def test_the_mode_and_text_of_a_file_are_kept_when_asked_for() -> None:
    expect = [Expect(file="{session}", mode="0600"), Expect(file="nothing.txt", mode="0600")]
    record = ran(World(files={"session-alpha.jsonl": "hello\n"}), SPAWN, expect=expect)

    assert list(record.aftermath.files.values()) == [("0600", "hello\n")]


def test_a_changed_repository_is_told_part_by_part(tmp_path: Path) -> None:
    class Branching(PythonSut):
        async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
            if method == "host.available":
                work = Path(self._env["HOME"]).parent / "work"
                (work / "new.txt").write_text("x")
                subprocess.run(["git", "branch", "side"], cwd=work, check=True, timeout=30)  # noqa: ASYNC221, S607
            return await super().call(method, params)

    record = ran(World(repo=True), Step(do="host.available"), sut=Branching)

    assert record.errored is None
    assert [change.split()[0] for change in record.aftermath.repo_changed] == ["tree", "refs", "inside"]
    assert record.aftermath.git_calls == 1
    assert "file left: work/new.txt" in record.aftermath.left
