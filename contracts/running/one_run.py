"""Run one scenario on one host, in this process, and put everything that the judge needs into a record.

Time is chosen by the host and by nothing else: the memory host runs on virtual time, the socket host in real time.
"""

import asyncio
import os
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec

from contracts.hosts import Built, Folder, MemoryHost, MemoryLoop, SocketHost, WorldError, build, world_folder
from contracts.hosts.aftermath import end_leftovers, open_pipes, set_timers, take_stock, what_is_left
from contracts.hosts.environment import decoys, hermetic_process
from contracts.hosts.headless import started
from contracts.hosts.starts import counting_git, is_git
from contracts.hosts.witness import GitMissingError, git_calls
from contracts.records import Aftermath, PiRecord, RunRecord
from contracts.running.drive import Drive, DriveError
from contracts.running.processes import descendants, left_over
from contracts.scenario import HostName, Scenario
from contracts.sut.base import OwnProcess, SutFactory, SutSetup
from contracts.sut.python import PythonSut
from hc_sim.clock import VirtualDeadlock, VirtualTimeError

CLOSE_LIMIT_S = 10.0
"""How long a system under test may take to close (loop time)."""

NO_VIRTUAL_SOCKET = (
    "virtual time cannot be used on the socket host: a virtual clock jumps whenever its own event loop has nothing to "
    "do, cannot see that another process is still working, and would report timeouts that never happened"
)
NO_VIRTUAL_PROCESS = "a process cannot run on virtual time, which does not see it at work; the socket host can have it"
NO_REAL_MEMORY = "the memory host runs on virtual time and on no other; real time belongs to the socket host"
_OTHER_TIME = {"memory": "real", "socket": "virtual"}


@dataclass(slots=True)
class _Run:
    """What is known of a run at any moment, so that a run that is cut short still tells how far it came."""

    built: Built | None = None
    drive: Drive | None = None
    aftermath: Aftermath | None = None
    virtual_ms: int = 0
    own_process: bool = False
    """Whether the system under test is a process of its own, which answers for the time that it takes."""
    pi: list[PiRecord] = field(default_factory=list)
    refused: list[list[str]] = field(default_factory=list)
    """The processes that virtual time refused to start, each as the programs that it named."""


def run_scenario(scenario: Scenario, host: HostName, sut_factory: SutFactory | None = None) -> RunRecord:
    """Run one scenario on one host, in this process, in an event loop of its own.

    Never raises for what the run does: what goes wrong with world, host or system under test is in `errored`. Within,
    this process's environment is free of surrounding markers and its PATH begins with the git that counts.
    """
    begun = time.monotonic()
    run = _Run()
    errored: str | None = None
    if scenario.time == _OTHER_TIME[host]:
        errored = NO_VIRTUAL_SOCKET if host == "socket" else NO_REAL_MEMORY
    else:
        with world_folder() as folder, hermetic_process(folder.witness, _decoys(scenario, folder)):
            errored = _attempt(scenario, host, sut_factory or PythonSut, folder, run)
            if run.refused:
                errored = _weigh_refusals(run, folder, errored)
    return RunRecord(
        scenario=scenario.id,
        host=host,
        steps=run.drive.records if run.drive else [],
        trace=run.built.events() if run.built else [],
        pi=run.pi,
        aftermath=run.aftermath or Aftermath(),
        children=dict(run.drive.children) if run.drive else {},
        fills=dict(run.built.fills) if run.built else {},
        refused=[" ".join(named) for named in run.refused] if errored is None else [],
        errored=errored,
        real_ms=round((time.monotonic() - begun) * 1_000),
        virtual_ms=run.virtual_ms,
    )


def _decoys(scenario: Scenario, folder: Folder) -> dict[str, str]:
    return decoys(folder.path) if scenario.world.decoys else {}


def _attempt(scenario: Scenario, host: HostName, factory: SutFactory, folder: Folder, run: _Run) -> str | None:
    """Run it; returns None, or in words why the run proves nothing."""
    known = frozenset(process.pid for process in descendants(os.getpid()))
    loop = MemoryLoop() if host == "memory" else asyncio.new_event_loop()
    run.refused = loop.refused if isinstance(loop, MemoryLoop) else []
    limit_s = scenario.limit_ms / 1_000 if host == "socket" else None
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_within(limit_s, _stay(scenario, host, factory, folder, run, known)))
    except (WorldError, DriveError, GitMissingError, VirtualTimeError) as error:
        return str(error)
    except VirtualDeadlock as error:
        return f"{error}; {_waiting(run)} had not come back"
    except TimeoutError:
        if run.own_process:
            _cut_short(run, scenario.limit_ms)
            return None  # the steps that never came back are judged: what they waited for is the system's business
        return f"the run was over its limit of {scenario.limit_ms} ms: {_waiting(run)} had not come back"
    except Exception as error:
        return f"the run broke with {type(error).__name__}: {error}"
    finally:
        end_leftovers(left_over(os.getpid(), str(folder.path) if host == "socket" else "", known))
    return "; ".join(run.built.driver.problems) or None if run.built else None


def _cut_short(run: _Run, limit_ms: int) -> None:
    """Take stock of a run that its limit ended: an end of the system under test that nobody saw is no tidy one."""
    if run.built is not None and run.aftermath is None:
        run.aftermath = take_stock(run.built, [f"it had not ended when the run was over its limit of {limit_ms} ms"])


def _weigh_refusals(run: _Run, folder: Folder, errored: str | None) -> str | None:
    """What a run is worth in which processes were refused: a git is on record and counts, any other breaks the run."""
    others = [named for named in run.refused if not any(map(is_git, named))]
    if others:
        return errored or f"{' '.join(others[0]) or 'a process'} was started: {NO_VIRTUAL_PROCESS}"
    seen = run.aftermath or Aftermath(git_calls=git_calls(folder.witness))
    run.aftermath = msgspec.structs.replace(seen, git_calls=seen.git_calls + len(run.refused))
    return None


async def _within(limit_s: float | None, work: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(limit_s):
        await work


async def _stay(
    scenario: Scenario, name: HostName, factory: SutFactory, folder: Folder, run: _Run, known: frozenset[int]
) -> None:
    """The whole life of one world: built, driven, looked at, torn down."""
    built = run.built = build(scenario, folder, asyncio.get_running_loop())
    host = MemoryHost(built) if name == "memory" else SocketHost(built)
    built.restarter = host.restart
    try:
        await host.start()
        with counting_git(folder.witness):
            left = await _act(scenario, name, factory, host, run, built, known)
    finally:
        await host.stop()
        built.driver.close()
        run.pi = started(folder)
    run.aftermath = take_stock(built, left)


async def _act(
    scenario: Scenario,
    name: HostName,
    factory: SutFactory,
    host: MemoryHost | SocketHost,
    run: _Run,
    built: Built,
    known: frozenset[int],
) -> list[str]:
    """The drive, from the making of the system under test to its close; what it left behind, in words."""
    timers, pipes = set_timers(), open_pipes()
    sut = factory(
        SutSetup(
            env=built.env,
            connect=host.connect,
            poll_ms=scenario.poll_ms,
            memory_env=built.world.memory_env,
            limit_ms=scenario.limit_ms,
        )
    )
    run.drive = Drive(scenario, built, sut)
    try:
        if isinstance(sut, OwnProcess):
            run.own_process = True
            await sut.prepare()
        built.start()
        await run.drive.run()
    finally:
        run.virtual_ms = built.now() if name == "memory" else 0
        await _within(CLOSE_LIMIT_S, sut.close())
        if isinstance(sut, OwnProcess) and sut.misspoke:
            run.drive.blame(sut.misspoke)
    left = await what_is_left(built, known, timers, pipes, deep=name == "socket")
    return [*sut.left, *left] if isinstance(sut, OwnProcess) else left


def _waiting(run: _Run) -> str:
    return run.drive.waiting() if run.drive else "the building of the world"
