"""Send one look into a process of its own, over a copy made for it, and bring back what it saw, whatever it does."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from contracts.hosts.environment import scrub
from contracts.hosts.folder import private_folder
from contracts.records import Record
from contracts.violations.copies import EditError, plant
from contracts.violations.entries import Edit
from contracts.violations.plans import Looked, Plan

LOOK_LIMIT_S: Final = 120
WHOLE_LIMIT_S: Final = 1_200
GRACE_S: Final = 10
"""What a worker gets beyond the limit of its look, to end it and to clear up."""
POLL_S: Final = 0.02
TAIL_CHARACTERS: Final = 500
SEEN_BYTES: Final = 4 * 1024 * 1024
"""The longest result that is read."""


class Look(Record, frozen=True):
    """One job: the edits, made in a copy of the snapshot, and the plan that is carried out in that copy."""

    snapshot: str
    plan: Plan
    edits: list[Edit] = []  # noqa: RUF012 - msgspec gives every value a copy

    @property
    def limit_s(self) -> int:
        """How long the look may take, in seconds."""
        return WHOLE_LIMIT_S if self.plan.part == "whole" else LOOK_LIMIT_S


def look(job: Look) -> Looked:
    """Make the copy, look, remove the copy. Never raises for what the look does: then the result says why."""
    with _room(Path(job.snapshot).parent) as room:
        copy = room / "copy"
        try:
            plant(Path(job.snapshot), copy, job.edits)
        except (EditError, OSError) as error:
            return Looked(why=str(error))
        if job.plan.part == "live":
            plan = msgspec.structs.replace(job.plan, root=job.snapshot, core_root=str(copy))
        else:
            plan = msgspec.structs.replace(job.plan, root=str(copy))
        return _carried_out(plan, room, job.limit_s)


def lost(_: Look, why: str) -> Looked:
    """The result of a look whose worker was lost."""
    return Looked(why=f"the look {why}")


@contextmanager
def _room(beside: Path) -> Iterator[Path]:
    room = private_folder(str(beside))
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _carried_out(plan: Plan, room: Path, limit_s: int) -> Looked:
    asked, result, home = room / "plan.json", room / "result.json", room / "home"
    home.mkdir(mode=0o700)
    asked.write_bytes(msgspec.json.encode(plan))
    said = room / "said"
    with said.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-B", "-P", "-m", "contracts.violations.look", str(asked), str(result)],
            cwd=home,
            env=_environment(plan, room),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        ended = _ended_within(process, limit_s)
    finally:
        code = _end_group(process)
    if not ended:
        return Looked(why=f"the look was still running after {limit_s} s, and was ended")
    if code == 0 and result.exists() and result.stat().st_size <= SEEN_BYTES:
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(result.read_bytes(), type=Looked)
    return Looked(why=f"the look ended with exit code {code} and no result; it said: {_tail(said)}")


def _environment(plan: Plan, room: Path) -> dict[str, str]:
    """This process's own environment without surrounding markers, importing from the copy and from nowhere before."""
    env = dict(os.environ)
    scrub(env)
    own = {
        "PYTHONPATH": plan.root,
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": str(plan.seed),
        "TMPDIR": str(room / "home"),
    }
    return env | own


def _ended_within(process: "subprocess.Popen[bytes]", limit_s: int) -> bool:
    """Wait for the end of the look, without taking its number from it: its group is still to be ended by that."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        time.sleep(POLL_S)
    return False


def _end_group(process: "subprocess.Popen[bytes]") -> int:
    """End whatever is left of the look's session, and the look itself; its exit code."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _tail(said: Path) -> str:
    text = said.read_bytes()[-4 * TAIL_CHARACTERS :].decode(errors="replace").strip()
    return text[-TAIL_CHARACTERS:].strip() or "nothing"
