"""Processes of this machine as plain values, to see what a run left alive; and an end for exactly those."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PS_TIMEOUT_S = 10
END_TIMEOUT_S = 2.0
"""How long an ended process may take to disappear."""
POLL_S = 0.01
_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37
"""A number of Linux's prctl."""


@dataclass(frozen=True, slots=True)
class Process:
    """One live process: id, parent's id, and its command line as text."""

    pid: int
    parent: int
    command: str


def processes() -> list[Process]:
    """Every process of this machine that is not a zombie; those that end meanwhile are left out."""
    return _from_proc() if (PROC / "self" / "stat").exists() else _from_ps()


def descendants(pid: int) -> list[Process]:
    """Live processes below one process; cheap where the kernel lists children."""
    if not _has_children_files():
        return _below(pid, processes())
    found: list[Process] = []
    waiting = [pid]
    while waiting:
        for child in _children(waiting.pop()):
            waiting.append(child)
            with contextlib.suppress(OSError, ValueError):
                process = _read(PROC / str(child))
                found += [process] if process is not None else []
    return found


def left_over(started_by: int, mark: str = "", known: frozenset[int] = frozenset()) -> list[Process]:
    """Processes below `started_by`, except `known`; with a `mark` (the run's own folder) also every other process whose
    command line names it, for one that lost its parent.
    """
    found = {process.pid: process for process in descendants(started_by)}
    if mark:
        found |= {process.pid: process for process in processes() if mark in process.command}
    return [process for pid, process in found.items() if pid not in known and pid not in (started_by, os.getpid())]


def adopt_orphans(*, adopt: bool = True) -> bool:
    """From now on (or, without `adopt`, no longer) a process below this one that loses its parent becomes this one's,
    where the kernel can do that. Returns whether it was so before.

    So it is still seen among the descendants, however it was detached.
    """
    before = ctypes.c_int(0)
    with contextlib.suppress(OSError, AttributeError):
        system = ctypes.CDLL(None)
        system.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
        system.prctl(_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)
    return bool(before.value)


def still_there(known: Iterable[Process]) -> list[Process]:
    """Those of some processes that are alive, each still the same program."""
    alive = {process.pid: process for process in processes()}
    return [one for one in known if one.pid in alive and alive[one.pid].command == one.command]


def group(leader: int) -> list[Process]:
    """Live processes of the group that this process leads, or led until it ended."""
    return [process for process in processes() if process.pid != leader and _group_of(process.pid) == leader]


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def end(*found: Process) -> None:
    """End processes that the run started, and wait until all are gone (bounded)."""
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    numbers = {process.pid for process in found}
    limit = time.monotonic() + END_TIMEOUT_S
    while numbers and time.monotonic() < limit:
        for number in numbers:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(number, os.WNOHANG)
        numbers &= {other.pid for other in processes()}
        if numbers:
            time.sleep(POLL_S)


def _has_children_files() -> bool:
    return (PROC / "self" / "task" / str(os.getpid()) / "children").exists()


def _below(pid: int, alive: list[Process]) -> list[Process]:
    below = {pid}
    for _ in alive:
        more = {process.pid for process in alive if process.parent in below} - below
        if not more:
            break
        below |= more
    return [process for process in alive if process.pid in below - {pid}]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in (PROC / str(pid) / "task").iterdir():
            found += [int(word) for word in (thread / "children").read_text().split()]
    return found


def _from_proc() -> list[Process]:
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                found.append(_read(entry))
    return [process for process in found if process is not None]


def _read(entry: Path) -> Process | None:
    after_name = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
    if after_name[0] in ("Z", "X"):
        return None
    words = (entry / "cmdline").read_bytes().split(b"\0")
    command = b" ".join(word for word in words if word).decode(errors="replace")
    return Process(int(entry.name), int(after_name[1]), command)


def _from_ps() -> list[Process]:
    listed = subprocess.run(
        ["/bin/ps", "-axo", "pid=,ppid=,stat=,command="],
        check=False,
        capture_output=True,
        text=True,
        timeout=PS_TIMEOUT_S,
    )
    found = []
    for line in listed.stdout.splitlines():
        pid, parent, state, *command = line.split(maxsplit=3)
        if not state.startswith("Z") and "/bin/ps" not in "".join(command):
            found.append(Process(int(pid), int(parent), "".join(command)))
    return found
