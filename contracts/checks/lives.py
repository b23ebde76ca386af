"""A whole life of a child, watched from outside: what it does to a repository, to git, and to other cores."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contracts.checks.base import Check, SkippedError, Subject, check, found
from contracts.hosts.environment import is_foreign
from contracts.hosts.witness import real_git
from contracts.records import Finding, RunRecord
from contracts.running.one_run import run_scenario
from contracts.scenario import HostName, Scenario, Step, World
from hc_sim.script.format import Agent
from hc_sim.script.format import Step as AgentStep

TRAPS = ("HC_TERMINAL_SOCKET", "HC_SOCKET")
"""Variables that would lead a program to another core."""
DECOY_BACKLOG = 16
LIVED = ("terminal", True)
"""The outline of a life as it should be: a child in a terminal, whose wait ended settled."""


def life(*, repo: bool, decoys: bool = False) -> Scenario:
    """Spawned, waited for, collected and retired: the ordinary life of a child."""
    agent = Agent(
        status="idle",
        step=[
            AgentStep(after_observations=1, turn=1, status="working"),
            AgentStep(after_observations=1, status="done"),
        ],
    )
    return Scenario(
        id="a-whole-life",
        why="the ordinary life of a child, watched from outside",
        clauses=["I2"],
        poll_ms=20,
        world=World(agent=[agent], repo=repo, decoys=decoys),
        drive=[
            Step(do="spawn", as_="a"),
            Step(do="wait", child="a", args={"timeoutMs": 2_000}),
            Step(do="collect", child="a"),
            Step(do="retire", child="a"),
            Step(do="shutdown"),
        ],
    )


@check("i2-repository", "I2", "a real repository is the same before and after a child's whole life")
def repository(_: Subject) -> list[Finding]:
    """Tree, refs, worktree list, head and configuration around one life."""
    if real_git() is None:
        raise SkippedError("there is no git on this machine")
    record = _ran("memory", repo=True)
    if record.refused:
        raise SkippedError(f"a process was started under virtual time: {', '.join(record.refused)}")
    return [
        found("I2", "the life of a child", expected=LIVED, got=_outline(record)),
        found("I2", "repository", expected=[], got=record.aftermath.repo_changed),
    ]


@check("i3-git-witness", "I3", "every git is counted, by name on PATH or by its path: none during a child's whole life")
def no_git(_: Subject) -> list[Finding]:
    """The same life beside a counting git."""
    record = _ran("memory", repo=False)
    life_of = [] if record.refused else [found("I3", "the life of a child", expected=LIVED, got=_outline(record))]
    return [*life_of, found("I3", "git processes", expected=0, got=record.aftermath.git_calls)]


@check(
    "a1-hermetic", "A1", "a run among traps gives the same result; neither they nor decoys in its process are touched"
)
def hermetic(_: Subject) -> list[Finding]:
    """One life over the real socket: plain; in a session whose variables lead to somebody else's core; and with such
    variables in the very process of the supervisor, where it must not look.
    """
    plain = _ran("socket", repo=False)
    with _trapped() as visits:
        trapped = _ran("socket", repo=False)
        touched = visits()
    decoyed = _ran("socket", repo=False, decoys=True)
    return [
        found("A1", "the life of a child", expected=LIVED, got=_outline(plain)),
        found("A1", "its life among traps", expected=_outline(plain), got=_outline(trapped)),
        found("A1", "foreign variables in the child's environment", expected=[], got=_foreign(trapped)),
        found("A1", "visits to the other core", expected=0, got=touched),
        found("A1", "its life among decoys", expected=_outline(plain), got=_outline(decoyed)),
        found("A1", "decoys in the child's environment", expected=[], got=_foreign(decoyed)),
        found("A1", "its parent among decoys", expected=_parents(plain), got=_parents(decoyed)),
    ]


CHECKS: tuple[Check, ...] = (repository, no_git, hermetic)


def _ran(host: HostName, *, repo: bool, decoys: bool = False) -> RunRecord:
    record = run_scenario(life(repo=repo, decoys=decoys), host)
    if record.errored is not None:
        raise RuntimeError(record.errored)
    return record


def _outline(record: RunRecord) -> tuple[object, object]:
    """In which mode the child was started, and whether its wait ended settled."""
    spawned, waited = record.steps[0].returned or record.steps[0].raised or {}, record.steps[1].returned or {}
    return spawned.get("mode", spawned.get("message")), waited.get("settled")


def _parents(record: RunRecord) -> list[object]:
    return [event.params.get("caller") for event in record.trace if event.method == "terminal.run" and event.params]


def _foreign(record: RunRecord) -> list[str]:
    given = {"HC_TERMINAL_ID", "HC_TERMINAL_SOCKET"}
    return sorted({name for event in record.trace for name in event.env if is_foreign(name) and name not in given})


@contextmanager
def _trapped() -> Iterator["_Visits"]:
    """Within: variables of another hc terminal and another agent are set, and their core counts its visitors."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="hc-") as folder, socket.socket(socket.AF_UNIX) as decoy:
        path = Path(folder) / "decoy.sock"
        decoy.bind(str(path))
        decoy.listen(DECOY_BACKLOG)
        decoy.setblocking(False)
        os.environ.update({name: str(path) for name in TRAPS})
        os.environ.update({"HC_TERMINAL_ID": "t99", "HC_BIN": "/bin/false", "HC_SESSION": "decoy"})
        os.environ.update({"PI_SUBAGENT_DEPTH": "3", "PI_SUBAGENT_RUN": "decoy"})
        try:
            yield _Visits(decoy)
        finally:
            for name in set(os.environ) - set(before):
                del os.environ[name]
            os.environ.update(before)


class _Visits:
    """Counts the connections that wait at a listening socket."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener

    def __call__(self) -> int:
        count = 0
        while True:
            try:
                visitor, _ = self._listener.accept()
            except BlockingIOError:
                return count
            visitor.close()
            count += 1
