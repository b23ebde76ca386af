"""A headless `pi` driven by hand: lines in, records out, no opinion: for facts, not for supervising."""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

WAIT_S = 20.0
"""How long a record, or the end, may take."""
MAX_RECORDS = 100_000
MAX_STDERR_BYTES = 1024 * 1024
CHUNK = 65_536

Record = dict[str, Any]


class TooLate(Exception):  # noqa: N818 - one line for a person
    """What was waited for did not come."""


class RawPi:
    """One process in a group of its own. A context manager: afterwards it and its group are gone."""

    def __init__(self, argv: Sequence[str], *, cwd: Path | str, env: Mapping[str, str]) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        self.records: list[Record] = []
        self.noise: list[bytes] = []
        self._buffer = self._said = b""
        self._ended = False
        self._looked = 0

    @property
    def pid(self) -> int:
        """The id of the process, and of its group."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """What it has said on stderr so far."""
        if not self._stderr.closed:  # not by seeking: the program writes where this file stands
            self._said = os.pread(self._stderr.fileno(), MAX_STDERR_BYTES, 0)
        return self._said.decode(errors="replace")

    def send(self, *records: Record) -> None:
        """Write records, all at once. A program that is gone is no error here: its end tells."""
        self.write(b"".join(json.dumps(one).encode() + b"\n" for one in records))

    def write(self, data: bytes) -> None:
        """Write bytes."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None  # noqa: S101 - it was asked for as a pipe
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def end_input(self) -> None:
        """Close its stdin."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None  # noqa: S101 - it was asked for as a pipe
            self._process.stdin.close()

    def signal(self, name: str) -> None:
        """Send a signal to the process alone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(getattr(signal, name))

    def until(self, wanted: Callable[[Record], bool] | str, wait_s: float = WAIT_S) -> Record:
        """The next record that is wanted (a text: the type it has), of those not looked at yet; raises `TooLate`."""
        deadline = time.monotonic() + wait_s
        while True:
            while self._looked < len(self.records):
                record = self.records[self._looked]
                self._looked += 1
                if record.get("type") == wanted if isinstance(wanted, str) else wanted(record):
                    return record
            if self._ended or not self.read(deadline - time.monotonic()):
                raise TooLate(f"{wanted} did not come; the last words were {self.records[-3:]} {self.stderr[-500:]}")

    def answer(self, command: str, wait_s: float = WAIT_S) -> Record:
        """The next answer to a command of this kind."""
        return self.until(lambda one: one.get("type") == "response" and one.get("command") == command, wait_s)

    def read(self, wait_s: float) -> bool:
        """Read what is there, or comes within the time; False when there was nothing, or nothing comes any more."""
        assert self._process.stdout is not None  # noqa: S101 - it was asked for as a pipe
        out = self._process.stdout.fileno()
        if wait_s < 0 or not select.select([out], [], [], wait_s)[0]:
            return False
        data = os.read(out, CHUNK)
        self._ended = not data
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._keep(line)
        return bool(data)

    def wait(self, wait_s: float = WAIT_S) -> int:
        """How it ended, as Python says it (negative: by that signal); everything that it said has been read by then."""
        deadline = time.monotonic() + wait_s
        while not self._ended and self._process.poll() is None:
            self.read(min(0.2, max(0.0, deadline - time.monotonic())))
            if time.monotonic() > deadline:
                raise TooLate(f"it did not end within {wait_s:g} s; {self.stderr[-500:]}")
        while not self._ended and self.read(0.2):
            pass
        try:
            return self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TooLate(f"it let go of stdout and did not end within {wait_s:g} s") from None

    def ended(self) -> int | None:
        """How it ended, or None while it lives."""
        return self._process.poll()

    def kill(self) -> None:
        """End it and its group at once; whoever reads it sees its end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def __enter__(self) -> "RawPi":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        self._process.kill()
        self._process.wait()
        self.end_input()
        self._said = self.stderr.encode()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def _keep(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict) and len(self.records) < MAX_RECORDS:
            self.records.append(record)
        elif len(self.noise) < MAX_RECORDS:
            self.noise.append(line)
