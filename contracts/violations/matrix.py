"""The whole matrix: every violation planted and looked at, side by side, and then the controls, one after the other."""

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from contracts.checks import CHECKS
from contracts.clauses import load_clauses
from contracts.hosts.folder import private_folder
from contracts.loading import load_all
from contracts.running.pool import Job, leaving_on_signals, run_jobs
from contracts.violations.copies import check_edits, installed, snapshot
from contracts.violations.entries import FOLDER, Known, Violation, gating, load_violations
from contracts.violations.judgement import Control, Judged, Matrix, judged, judged_control, judged_suite
from contracts.violations.looking import GRACE_S, Look, look, lost
from contracts.violations.plans import Depth, Looked, Plan, plan_of
from contracts.violations.probes import PROBES

WORKER_COUNTS: Final = (2, 3, 4, 6, 1, 8)
"""How many workers the controls have, in turn."""
POLLS: Final = (1.0, 0.9, 1.1, 0.95, 1.05, 0.98, 1.02)
"""By what the controls stretch every poll interval, in turn, so that the polls meet the worlds in other phases."""

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - what is made there is private and has a random name
ROOM_BYTES: Final = 256 * 1024 * 1024
"""What the copies and the runs in them may need."""

OnDone = Callable[[str, bool], None]
"""Hears of each look as it comes in: the violation or control, and whether there was a result."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One look and what it is for: a violation, and for one of the suite which of its `breaks`."""

    about: str
    part: str
    look: Look


def known_names() -> Known:
    """What entries may refer to. Raises `ScenarioError` when the scenarios cannot be read."""
    over_the_socket = [one.id for one in load_all().scenarios if "socket" in one.hosts]
    return Known(clauses=gating(load_clauses()), looks=[*CHECKS, *over_the_socket], probes=list(PROBES))


def load_checked(folder: Path = FOLDER) -> list[Violation]:
    """Every violation of a folder, each of its edits tried. Raises `ViolationsError`."""
    found = load_violations(known_names(), folder)
    check_edits(found, installed())
    return found


def look_count(chosen: Sequence[Violation], controls: int) -> int:
    """How many looks a matrix takes."""
    planted = sum(len(one.breaks) if one.target == "suite" else 1 for one in chosen)
    return planted + controls + any(one.target == "core" for one in chosen)


def run_matrix(
    chosen: Sequence[Violation],
    every: Sequence[Violation],
    *,
    workers: int | None = None,
    controls: int = 0,
    sut: str = "",
    depth: Depth = "usual",
    on_done: OnDone | None = None,
) -> Matrix:
    """Plant each of `chosen` and judge what is seen of it, then run the controls.

    `every`: all violations there are, for those of the suite that refer to others. `workers`: looks side by side, None
    = one a processor. `controls`: whole runs on the correct supervisor, and as many on the one that the command `sut`
    starts. Controls run one at a time, for they wait in real time.
    """
    begun = time.monotonic()
    tell = on_done or _nobody
    with leaving_on_signals():
        root = private_folder(_quick_place())
        try:
            snapshot(root / "all", installed())
            base = str(root / "all")
            planted = _planted(chosen, {one.id: one for one in every}, base, workers, tell, depth)
            told = _controls(controls, sut, base, tell, live=any(one.target == "core" for one in chosen))
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return Matrix(tuple(planted), tuple(told), time.monotonic() - begun)


def _planted(
    chosen: Sequence[Violation],
    every: Mapping[str, Violation],
    base: str,
    workers: int | None,
    tell: OnDone,
    depth: Depth,
) -> list[Judged]:
    tasks = [task for one in chosen for task in _tasks(one, every, base, depth)]
    results = _looked([task.look for task in tasks], workers, lambda index, ok: tell(tasks[index].about, ok))
    seen: dict[str, dict[str, Looked]] = {}
    for task, result in zip(tasks, results, strict=True):
        seen.setdefault(task.about, {})[task.part] = result
    return [
        judged_suite(one, every, seen[one.id])
        if one.target == "suite"
        else judged(one, seen[one.id]["it"], quick=depth == "quick")
        for one in chosen
    ]


def _tasks(one: Violation, every: Mapping[str, Violation], base: str, depth: Depth) -> list[_Task]:
    """A look at a violation; for one of the suite, a look through the broken suite at each thing that it names."""
    edits = list(one.edits)
    if one.target == "core":
        return [_Task(one.id, "it", Look(snapshot=base, plan=Plan(root="", part="live"), edits=edits))]
    if one.target == "supervisor":
        return [_Task(one.id, "it", Look(snapshot=base, plan=plan_of(one, depth), edits=edits))]
    return [
        _Task(
            one.id,
            name,
            Look(snapshot=base, plan=plan_of(every[name], "quick"), edits=[*edits, *every[name].edits])
            if name in every
            else Look(snapshot=base, plan=Plan(root="", part="probes"), edits=edits),
        )
        for name in one.breaks
    ]


def _controls(count: int, sut: str, base: str, tell: OnDone, *, live: bool) -> list[Control]:
    named = [plan for number in range(count) for plan in _whole(number, sut)]
    if live:
        named.append(("live run of the core as it is", Plan(root="", part="live")))
    told = []
    for name, plan in named:
        [result] = _looked([Look(snapshot=base, plan=plan)], 1, partial(_tell_of, tell, name))
        told.append(judged_control(name, result))
    return told


def _whole(number: int, sut: str) -> list[tuple[str, Plan]]:
    """The control of this number, on our own supervisor and, where there is one, on the other correct one."""
    workers, poll = WORKER_COUNTS[number % len(WORKER_COUNTS)], POLLS[number % len(POLLS)]
    words = f"seed {number}, {workers} worker{'s' * (workers > 1)}, polls x {poll}"
    plan = Plan(root="", part="whole", seed=number, workers=workers, poll=poll)
    both = [(f"whole run: {words}", plan)]
    if sut:
        other = msgspec.structs.replace(plan, sut=sut, sut_cwd=str(Path.cwd()))
        both.append((f"whole run of {sut}: {words}", other))
    return both


def _looked(looks: Sequence[Look], workers: int | None, tell: Callable[[int, bool], None]) -> list[Looked]:
    jobs = [Job(one, (one.limit_s + GRACE_S) * 1_000) for one in looks]
    count = workers if workers is not None else _processors()
    return run_jobs(
        look, jobs, failed=lost, workers=count, on_result=lambda index, result: tell(index, result.why == "")
    )


def _quick_place() -> str | None:
    """Memory that is a file system, where there is one and nobody has said otherwise by TMPDIR.

    A look makes and removes some 3,000 folders, which costs more than half of its time on a disk.
    """
    if any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")):
        return None
    try:
        about = os.statvfs(SHARED_MEMORY)
    except OSError:
        return None
    roomy = about.f_bavail * about.f_frsize >= ROOM_BYTES
    fit = roomy and os.access(SHARED_MEMORY, os.W_OK | os.X_OK) and not about.f_flag & os.ST_NOEXEC
    return SHARED_MEMORY if fit else None


def _processors() -> int:
    return os.cpu_count() or 1


def _tell_of(tell: OnDone, name: str, _: int, ok: bool) -> None:
    tell(name, ok)


def _nobody(_: str, __: bool) -> None:
    """Nobody listens."""
