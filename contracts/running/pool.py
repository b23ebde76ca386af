"""A pool of worker processes that outlives its workers: one job each at a time, a hard limit a job, dead ones replaced.

What a worker does to itself (exit, hang, crash the interpreter) costs the job it had, never the others, and never the
pool. Each worker leads a process group of its own, so that a Ctrl-C reaches the parent alone, and works in a temporary
folder that the parent removes.
"""

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, TypeVar

from contracts.hosts.environment import scrub
from contracts.hosts.folder import ROOM_BYTES, SOCKET_PATH_BYTES, private_folder
from contracts.running.processes import end, left_over

Payload = TypeVar("Payload")
Result = TypeVar("Result")

MAX_WORKERS = 64
MAX_DEAD_STARTS = 8
"""How many workers may be lost before any has answered; then what is left is given up instead of tried one by one."""
MAX_SWEEPS = 5
"""How often what a worker has started is looked for before the worker itself is ended."""
STOP_S = 2.0
"""How long a worker may take to leave when it is asked to."""
AGAIN_S = 1.0
"""How often a job in this process is told to stop."""
TAIL_BYTES = 2_000
"""How much of a dead worker's error output is shown."""
LISTENER_BYTES = 12
"""What `pymp-XXXXXXXX/listener-XXXXXXXX` needs more than a run does."""
PRELOADED = ("contracts.running.runner", "contracts.checks", "contracts.judging.judge", "click")
"""Imported once, before workers are forked from it."""


MODULE_VARIABLES = ("PYTHONSAFEPATH", "PYTHONPATH")
"""What tells a new interpreter where to import from."""


@dataclass(frozen=True, slots=True)
class Job(Generic[Payload]):
    """One piece of work and how long it may take, in ms."""

    payload: Payload
    limit_ms: int


@dataclass(slots=True)
class _Worker(Generic[Payload]):
    process: BaseProcess
    link: Connection
    folder: Path
    index: int | None = None
    deadline: float = field(default=float("inf"))


class WorkFailedError(Exception):
    """The work function raised; the message carries the worker's own words."""


class OverLimit(SystemExit):
    """A job in this process was over its limit. An exit, because event loops and programs let nothing else through."""


def default_workers() -> int:
    """Two a processor and two more: runs over a real socket spend most of their time waiting."""
    return min(MAX_WORKERS, 2 * (os.cpu_count() or 1) + 2)


def run_jobs(
    work: Callable[[Payload], Result],
    jobs: Sequence[Job[Payload]],
    *,
    failed: Callable[[Payload, str], Result],
    workers: int | None = None,
    on_result: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Carry out every job in a worker process; results in the order of the jobs.

    `work` and the payloads must be picklable. `failed` makes the result of a job whose worker died, raised or took too
    long, from words that say which. `on_result` is called in this process, with the job's index, as results come in.
    `workers` = 0 runs everything here, one after the other; the limits hold there too, as far as a signal can reach.
    """
    tell = on_result or _nobody
    if workers == 0:
        return _inline(work, jobs, failed, tell)
    count = min(workers or default_workers(), len(jobs), MAX_WORKERS)
    with leaving_on_signals(), _short_names(), contextlib.closing(_Pool(work, jobs, failed, tell)) as pool:
        return pool.run(count)


@contextlib.contextmanager
def leaving_on_signals() -> Iterator[None]:
    """Within: SIGTERM and SIGHUP end this process the way a Ctrl-C does, so that nothing is left behind.

    Who is deaf to one of them (nohup) stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, _leave) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _short_names() -> Iterator[None]:
    """Within: temporary names are short enough for the sockets that worker processes are started over."""
    before = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > SOCKET_PATH_BYTES - ROOM_BYTES - LISTENER_BYTES:
        tempfile.tempdir = "/tmp"  # noqa: S108 - what is made there is private and has a random name
    try:
        yield
    finally:
        tempfile.tempdir = before


def _leave(number: int, _: object) -> None:
    for again in (signal.SIGTERM, signal.SIGHUP):  # a second one, as timeout(1) sends it, must not cut the clearing up
        signal.signal(again, _stay)
    raise SystemExit(128 + number)


def _stay(_: int, __: object) -> None:
    """Outlive a signal; unlike one that is ignored, what is started from here does not inherit that."""


class _Pool(Generic[Payload, Result]):
    def __init__(
        self,
        work: Callable[[Payload], Result],
        jobs: Sequence[Job[Payload]],
        failed: Callable[[Payload, str], Result],
        tell: Callable[[int, Result], None],
    ) -> None:
        self._work = work
        self._jobs = jobs
        self._failed = failed
        self._tell = tell
        self._next = 0
        self._started = 0
        self._answered = False
        self._lost = 0
        self._results: dict[int, Result] = {}
        self._workers: list[_Worker[Payload]] = []
        self._context = _context()
        self._root = private_folder(room=2 * ROOM_BYTES)

    def run(self, count: int) -> list[Result]:
        for _ in range(count):
            self._feed(self._start())
        while len(self._results) < len(self._jobs):
            busy = [worker for worker in self._workers if worker.index is not None]
            patience = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
            ready = wait([worker.link for worker in busy], timeout=patience)
            for worker in busy:
                if worker.link in ready:
                    self._receive(worker)
                elif time.monotonic() >= worker.deadline:
                    self._lose(worker, "was still running at its hard limit, and was ended")
        return [self._results[index] for index in range(len(self._jobs))]

    def close(self) -> None:
        """Ask every worker to leave, end those that do not, remove all folders."""
        for worker in self._workers:
            with contextlib.suppress(OSError):
                if worker.index is None:
                    worker.link.send(None)
        limit = time.monotonic() + STOP_S
        for worker in self._workers:
            if worker.index is None:
                worker.process.join(max(0.0, limit - time.monotonic()))
            _discard(worker)
        self._workers.clear()
        shutil.rmtree(self._root, ignore_errors=True)

    def _start(self) -> _Worker[Payload]:
        folder = self._root / f"w{self._started}"
        folder.mkdir(mode=0o700)
        self._started += 1
        ours, theirs = multiprocessing.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._work, str(folder)), daemon=True)
        with _same_modules():
            process.start()
        theirs.close()
        worker: _Worker[Payload] = _Worker(process, ours, folder)
        self._workers.append(worker)
        return worker

    def _feed(self, worker: _Worker[Payload]) -> None:
        if self._next >= len(self._jobs):
            return
        job = self._jobs[self._next]
        worker.index = self._next
        worker.deadline = time.monotonic() + job.limit_ms / 1_000
        self._next += 1
        with contextlib.suppress(OSError):  # it has died already: its end of the link says so in a moment
            worker.link.send(job.payload)

    def _receive(self, worker: _Worker[Payload]) -> None:
        try:
            ok, value = worker.link.recv()
        except (EOFError, OSError):
            self._lose(worker, f"its worker {_how_ended(worker.process)}")
            return
        self._answered = True
        index = worker.index
        worker.index, worker.deadline = None, float("inf")
        if index is not None:
            self._keep(index, value if ok else self._failed(self._jobs[index].payload, value))
        self._feed(worker)

    def _lose(self, worker: _Worker[Payload], why: str) -> None:
        tail = _tail(worker.folder)
        words = f"{why}; it said: {tail}" if tail else why
        self._workers.remove(worker)
        index = worker.index
        _discard(worker)
        if index is not None:
            self._keep(index, self._failed(self._jobs[index].payload, words))
        self._lost += 1
        if not self._answered and self._lost >= MAX_DEAD_STARTS:
            self._give_up(f"{self._lost} workers were lost and none has ever answered; the last one: {words}")
        if self._next < len(self._jobs):
            self._feed(self._start())

    def _give_up(self, why: str) -> None:
        for index in range(self._next, len(self._jobs)):
            self._keep(index, self._failed(self._jobs[index].payload, why))
        self._next = len(self._jobs)

    def _keep(self, index: int, result: Result) -> None:
        self._results[index] = result
        self._tell(index, result)


def _inline(
    work: Callable[[Payload], Result],
    jobs: Sequence[Job[Payload]],
    failed: Callable[[Payload, str], Result],
    tell: Callable[[int, Result], None],
) -> list[Result]:
    results = []
    for index, job in enumerate(jobs):
        try:
            with _limited(job.limit_ms):
                result = work(job.payload)
        except OverLimit:
            result = failed(job.payload, "was still running at its hard limit, and was stopped")
        except Exception as error:
            result = failed(job.payload, _words(error))
        results.append(result)
        tell(index, result)
    return results


@contextlib.contextmanager
def _limited(limit_ms: int) -> Iterator[None]:
    """Within: `OverLimit` is raised in the main thread when the limit is over, and again each second until it is heard.

    In another thread, which no signal reaches, there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _over)
    signal.setitimer(signal.ITIMER_REAL, limit_ms / 1_000, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _over(_: int, __: object) -> None:
    raise OverLimit


def _serve(link: Connection, work: Callable[[Any], Any], folder: str) -> None:
    """The life of a worker: alone in its group, deaf to Ctrl-C, its words in a file, nothing foreign around it."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        said = os.open(_said(Path(folder)), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except FileNotFoundError:
        return  # the pool was closed before this worker began
    os.dup2(said, sys.__stdout__.fileno() if sys.__stdout__ else 1)
    os.dup2(said, sys.__stderr__.fileno() if sys.__stderr__ else 2)
    os.close(said)
    tempfile.tempdir = folder
    os.environ["TMPDIR"] = folder
    for name in MODULE_VARIABLES:
        os.environ.pop(name, None)
    scrub(os.environ)
    with contextlib.suppress(EOFError, OSError):  # the parent is gone, and so is the reason to go on
        while (payload := link.recv()) is not None:
            try:
                answer = (True, work(payload))
            except Exception as error:
                answer = (False, _words(error))
            link.send(answer)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        Path(folder).parent.rmdir()  # only the last worker can, and only when the parent could not


@contextlib.contextmanager
def _same_modules() -> Iterator[None]:
    """Within: a process that is started imports what this one would, and nothing from the folder it stands in.

    The server that workers are forked from would otherwise look into the current folder first.
    """
    places = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
    ours = dict(zip(MODULE_VARIABLES, ("1", places), strict=True))
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _context() -> "ForkServerContext | SpawnContext":
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def _discard(worker: _Worker[Any]) -> None:
    """End a worker and whatever it started, close its link, remove its folder."""
    pid = worker.process.pid
    alive = worker.process.is_alive()
    if alive and pid is not None:
        for _ in range(MAX_SWEEPS):  # what is ended may have started something meanwhile
            found = left_over(pid, str(worker.folder))
            if not found:
                break
            end(*found)
        worker.process.kill()
    worker.process.join(STOP_S)
    if worker.index is not None and pid is not None and not alive:
        end(*left_over(pid, str(worker.folder)))
    worker.link.close()
    with contextlib.suppress(ValueError):
        worker.process.close()
    shutil.rmtree(worker.folder, ignore_errors=True)


def _how_ended(process: BaseProcess) -> str:
    process.join(STOP_S)
    code = process.exitcode
    if code is None:
        return "closed its link"
    return f"was ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _said(folder: Path) -> Path:
    return folder / "said"


def _tail(folder: Path) -> str:
    with contextlib.suppress(OSError):
        return _said(folder).read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
    return ""


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _nobody(index: int, result: Any) -> None:
    """Nobody listens."""
