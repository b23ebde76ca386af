"""A whole live session: find the core or the cassette, run, clean up whatever happens, and say how it went."""

import asyncio
import contextlib
import datetime
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from contracts.live.cassettes import (
    CassetteFiles,
    CassetteHost,
    Head,
    RecordingFiles,
    RecordingHost,
    TapeWriter,
    read_tape,
)
from contracts.live.cassettes.tape import SCHEMA, OwnerSaid
from contracts.live.corner import Corner, make_corner, remove_folder
from contracts.live.finding import Found
from contracts.live.hosts import LiveHost
from contracts.live.owner import Owner, new_owner
from contracts.live.run import LiveRun, Options, run_live
from hc_sim.clock import run_virtual

T = TypeVar("T")

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""An impatient second Ctrl-C must not end the removal of what was started, so it is taken here as well."""


class EndedError(Exception):
    """A signal ended the run; everything was removed first, but for `left`. `code` is the exit code that says so."""

    def __init__(self, number: int, left: Sequence[str] = ()) -> None:
        words = f"; left behind: {'; '.join(left)}" if left else ""
        super().__init__(f"ended by {signal.Signals(number).name}{words}")
        self.code = 128 + number


@dataclass(slots=True)
class _Signals:
    """Signals that end a run as Ctrl-C does: the work is cancelled, and cleans up on its way out."""

    came: list[int] = field(default_factory=list)

    async def around(self, work: Coroutine[Any, Any, T]) -> T:
        """The work, until one of the signals comes."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        for number in ENDING:
            loop.add_signal_handler(number, self._end, number, task)
        try:
            return await work
        finally:
            for number in ENDING:
                loop.remove_signal_handler(number)

    def _end(self, number: int, task: "asyncio.Task[Any] | None") -> None:
        if not self.came and task is not None:
            task.cancel()
        self.came.append(number)


def run_on_core(found: Found, env: Mapping[str, str], options: Options) -> LiveRun:
    """Run against a core. Raises `LiveError`, `EndedError`; the corner is cleared in any case."""
    with _corner(new_owner()) as corner:
        return _real(run_live(LiveHost(found, env), corner, options), corner)


def record_core(found: Found, env: Mapping[str, str], options: Options, path: Path) -> LiveRun:
    """Run against a core and keep the exchange in a file. Raises as `run_on_core`: the file then has no end."""
    with _corner(new_owner()) as corner:
        tape = TapeWriter(path, _head(found, corner.owner, options))
        corner.files = RecordingFiles(corner.files, tape, corner)
        host = RecordingHost(LiveHost(found, env), tape, corner)
        try:
            run = _real(run_live(host, corner, options), corner)
        except BaseException:
            tape.abandon()
            raise
        tape.close()
        return run


def play_cassette(path: Path, tell: Callable[[str], None]) -> tuple[LiveRun, str]:
    """Run against a recording, on virtual time: the run, and which core was recorded. Raises `CassetteError`."""
    tape = read_tape(path)
    head = tape.head
    owner = Owner(head.owner.token, head.owner.pid, head.owner.start, head.owner.machine)
    with _corner(owner) as corner:
        host = CassetteHost(tape, corner.folder)
        corner.files = CassetteFiles(tape, corner.folder, host.miss)
        options = Options(
            keep_going=True, documents=head.documents, slow=head.slow, supervisor=head.supervisor, tidy=False, tell=tell
        )
        return run_virtual(run_live(host, corner, options)), f"{head.core}, recorded {head.date}"


def today() -> str:
    """The date, for what is kept."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _head(found: Found, owner: Owner, options: Options) -> Head:
    said = OwnerSaid(token=owner.token, pid=owner.pid, start=owner.start, machine=owner.machine)
    return Head(
        schema=SCHEMA,
        date=today(),
        core=found.how,
        owner=said,
        documents=options.documents,
        slow=options.slow,
        supervisor=options.supervisor,
    )


@contextlib.contextmanager
def _corner(owner: Owner) -> Iterator[Corner]:
    corner = make_corner(owner)
    try:
        yield corner
    finally:
        remove_folder(corner)


def _real(work: Coroutine[Any, Any, LiveRun], corner: Corner) -> LiveRun:
    signals = _Signals()
    try:
        return asyncio.run(signals.around(work))
    except asyncio.CancelledError:
        if signals.came:
            raise EndedError(signals.came[0], corner.left) from None
        raise
