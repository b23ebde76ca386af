"""Look at the world after a drive: what should be gone, and what became of terminals, files and git."""

import asyncio
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from contracts.hosts.folder import Folder
from contracts.hosts.witness import git_calls, repository_changes, repository_state
from contracts.hosts.world import Built
from contracts.records import Aftermath
from contracts.running.placeholders import fill
from contracts.running.processes import Process, end, left_over
from contracts.scenario import Expect
from hc_sim.core import Core

GRACE_S = 1.0
"""How long links, tasks and processes may take to disappear once the system under test was closed (loop time)."""
POLL_S = 0.01
MAX_FILE_BYTES = 1024 * 1024
"""Of a longer file only this much goes into the record."""
HOST_TASK = "host:"
"""Begins the names of the host's own tasks."""
OPEN = Path("/proc/self/fd")
OF_CHILDREN = ("pipe:", "anon_inode:[pidfd]")
"""What a supervisor holds of its children; the core at the other end has sockets."""
NOT_LOOKED_AT = ("bin/", "agents/", "witness/", "work/.git/")
"""Folders of the harness itself, and the inside of a repository, which is compared by git's own words."""


async def what_is_left(
    built: Built,
    known: frozenset[int],
    timers: list[asyncio.TimerHandle],
    pipes: frozenset[str],
    *,
    deep: bool,
) -> list[str]:
    """In words, everything that outlived the system under test; processes that it left are ended here.

    `known`, `timers` and `pipes`: processes, timers and descriptors that were there before. `deep`: look for processes
    that lost their parent as well; one of them may have been killed a moment ago, and is given the same grace.
    """
    mine = asyncio.current_task()
    mark = ""
    for _ in range(round(GRACE_S / POLL_S)):
        if not (_tasks(mine) or built.hub.connections or open_pipes() - pipes or left_over(os.getpid(), mark, known)):
            if mark or not deep:
                break
            mark = str(built.folder.path)
            continue
        await asyncio.sleep(POLL_S)
    mark = str(built.folder.path) if deep else ""
    return [
        *(f"task still runs: {_what(task)}" for task in _tasks(mine)),
        *(f"connection {conn} is still open" for conn in built.hub.connections),
        *(f"timer is still set: {what}" for what in _timers(timers)),
        *(f"descriptor is still open: {what}" for what in sorted(open_pipes() - pipes)),
        *end_leftovers(left_over(os.getpid(), mark, known)),
        *_files(built),
    ]


def end_leftovers(found: Iterable[Process]) -> list[str]:
    """End each process that the run left alive, and say so."""
    alive = list(found)
    end(*alive)
    return [f"process still runs: {process.command or process.pid}" for process in alive]


def take_stock(built: Built, left: list[str]) -> Aftermath:
    """Everything that the judge may want to know about the world afterwards."""
    before = built.repository
    return Aftermath(
        terminals=terminals(built.core, built.parent),
        left=left,
        git_calls=git_calls(built.folder.witness),
        repo_changed=repository_changes(before, repository_state(built.folder.work)) if before is not None else [],
        files=asked_files(built.folder, built.scenario.expect, built.fills),
    )


def terminals(core: Core, parent: str) -> dict[str, str]:
    """State of each terminal of the core by name, else address; the supervisor's own is left out."""
    return {
        terminal.name or terminal.address: str(terminal.state)
        for terminal in core.terminals()
        if terminal.address != parent
    }


def asked_files(folder: Folder, expectations: Iterable[Expect], fills: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Mode and text of each file that an expectation asks about, by the path as it is asked for."""
    found = {}
    for expectation in expectations:
        if expectation.file is None:
            continue
        asked = str(fill(expectation.file, fills, expectation.child))
        path = folder.path / asked
        if path.is_file():
            with path.open("rb") as stream:
                text = stream.read(MAX_FILE_BYTES).decode(errors="replace")
            found[asked] = (f"{path.stat().st_mode & 0o7777:04o}", text)
    return found


def _files(built: Built) -> list[str]:
    expected = {_relative(built.folder, path) for path in built.expected_files()} | {"s/core.sock"}
    new = built.folder.listing() - built.files - expected
    return [f"file left: {name}" for name in sorted(new) if not name.startswith(NOT_LOOKED_AT)]


def _tasks(mine: "asyncio.Task[object] | None") -> list["asyncio.Task[object]"]:
    return [
        task
        for task in asyncio.all_tasks()
        if task is not mine and not task.done() and not task.get_name().startswith(HOST_TASK)
    ]


def open_pipes() -> frozenset[str]:
    """The pipes and process descriptors that this process has open, where the system tells."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in OPEN.iterdir():
            with contextlib.suppress(OSError):
                what = str(entry.readlink())
                found |= {f"{entry.name} {what}"} if what.startswith(OF_CHILDREN) else set()
    return frozenset(found)


def set_timers() -> list[asyncio.TimerHandle]:
    """Timers of the running loop that are still set. The loop's own list is the only place where they stand."""
    scheduled: list[asyncio.TimerHandle] = getattr(asyncio.get_running_loop(), "_scheduled", [])
    return [handle for handle in scheduled if not handle.cancelled()]


def _timers(before: list[asyncio.TimerHandle]) -> list[str]:
    """New timers with more than the grace to run, except those of the fake core."""
    soon = asyncio.get_running_loop().time() + GRACE_S
    late = [handle for handle in set_timers() if handle.when() > soon and handle not in before]
    return [repr(handle) for handle in late if "hc_sim" not in repr(handle)]


def _relative(folder: Folder, path: str) -> str:
    whole = folder.path / path
    return str(whole.relative_to(folder.path)) if whole.is_relative_to(folder.path) else path


def _what(task: "asyncio.Task[object]") -> str:
    frames = task.get_stack(limit=1)
    place = f"{Path(frames[-1].f_code.co_filename).name}:{frames[-1].f_lineno}" if frames else "no frame"
    return f"{getattr(task.get_coro(), '__qualname__', task.get_coro())} at {place}"
