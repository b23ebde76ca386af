"""The file of a cassette: a head, one JSON object a line for everything that happened, and an end that counts them.

    {"schema": 1, "date": ..., "core": ..., "owner": {...}, "documents": ..., "slow": ..., "supervisor": ...}
    {"c": "main#1", "t": 12, "out": "{...}\\n"}      what was sent on a connection, after so many milliseconds
    {"c": "main#1", "t": 13, "in": "{...}\\n"}       a line that came; "hex" stands for bytes that are no text
    {"c": "main#1", "t": 99, "end": "exit code 0"}   the other side ended it
    {"file": "home.log", "t": 31, "took": 30, "text": ...}   what a program had written down; null: not in time
    {"lines": 4711}

The folder of the run stands as `{folder}` in it and the interpreter as `{python}`, so that it can be played anywhere.
What looks like a secret is hidden, and terminals that are not the run's own are left out.
"""
# ruff: noqa: RUF012 - msgspec gives every value its own copy of an empty default

import os
from pathlib import Path
from typing import IO, Annotated, Any, Final

import msgspec

from contracts.live.owner import TOKEN
from contracts.live.problem import CassetteError
from hc_sim.script.format import Strict

SCHEMA: Final = 1
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_HEAD_BYTES: Final = 4_096
MAX_LINES: Final = 1_000_000
FOLDER: Final = "{folder}"
PYTHON: Final = "{python}"


class OwnerSaid(Strict, frozen=True):
    """The run that was recorded: its names and labels are made from this."""

    token: Annotated[str, msgspec.Meta(pattern=f"^{TOKEN.pattern}$")]
    pid: int
    start: str
    machine: str


class _AnyHead(msgspec.Struct, frozen=True):
    """The one member that every head has."""

    schema: int


class Head(Strict, frozen=True):
    """What was recorded: when, of which core, and what was run."""

    schema: int
    date: str
    core: str
    owner: OwnerSaid
    documents: bool = False
    slow: bool = True
    supervisor: bool = True


class Entry(Strict, frozen=True):
    """One line of a tape. Times are ms since the recording began."""

    t: int = 0
    c: str = ""
    out: str | None = None
    in_: str | None = msgspec.field(default=None, name="in")
    hex: Annotated[str, msgspec.Meta(pattern="^([0-9a-fA-F]{2})*$")] | None = None
    end: str | None = None
    file: str | None = None
    took: int = 0
    text: str | None = None
    lines: int | None = None

    def data(self) -> bytes:
        """The bytes that were sent or came."""
        text = self.out if self.out is not None else self.in_
        return bytes.fromhex(self.hex) if self.hex is not None else (text or "").encode()


class Tape(Strict, frozen=True):
    """A whole cassette."""

    head: Head
    entries: list[Entry] = []


class TapeWriter:
    """Writes a cassette as it happens. The file is private (0600), and without its end until `close`.

    A cassette that was there before stays as it is until the new one is whole; another file is never replaced.
    """

    def __init__(self, path: Path, head: Head) -> None:
        self._path = path
        self._draft = path.with_name(f".{path.name}.new") if _may_replace(path) else path
        try:
            number = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            self._stream: IO[bytes] = os.fdopen(number, "wb")
        except OSError as error:
            raise CassetteError(f"{path} cannot be written: {error.strerror}") from error
        self._count = 0
        self._write(msgspec.to_builtins(head))

    def add(self, **values: Any) -> None:
        """One thing that happened."""
        if self._count < MAX_LINES:
            self._count += 1
            self._write(values)

    def close(self) -> None:
        """The recording is whole."""
        self._write({"lines": self._count})
        self._stream.close()
        self._draft.replace(self._path)

    def abandon(self) -> None:
        """The recording broke off: the file stays without its end and cannot be played, or an older one stays."""
        self._stream.close()
        if self._draft != self._path:
            self._draft.unlink(missing_ok=True)

    def _write(self, value: Any) -> None:
        self._stream.write(msgspec.json.encode(value) + b"\n")


def _may_replace(path: Path) -> bool:
    """Whether there is a cassette that may be recorded anew. Raises `CassetteError` for any other file."""
    try:
        if not path.exists():
            return False
        with path.open("rb") as stream:
            head = stream.readline(MAX_HEAD_BYTES) if path.is_file() else b"-"
    except OSError as error:
        raise CassetteError(f"{path} cannot be written: {error.strerror}") from error
    if head:
        try:
            msgspec.json.decode(head, type=Head)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise CassetteError(
                f"{path} is there and is no cassette, so it is not replaced; name another file"
            ) from None
    return True


def read_tape(path: Path) -> Tape:
    """Read a cassette. Raises `CassetteError` that names the line and says what is wrong with it."""
    try:
        if path.exists() and not path.is_file():
            raise CassetteError(f"{path} cannot be read: it is no file")
        if path.stat().st_size > MAX_BYTES:
            raise CassetteError(f"{path} has more than {MAX_BYTES} bytes, too many for a cassette")
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise CassetteError(f"{path} cannot be read: {error.strerror}") from error
    if not lines:
        raise CassetteError(f"{path} is empty; make a cassette with legion-contracts record {path}")
    schema = _decoded(path, 1, lines[0], _AnyHead).schema  # first: another schema has other members
    if schema != SCHEMA:
        raise CassetteError(f"{path} is a cassette of schema {schema}, and this reads schema {SCHEMA}")
    head = _decoded(path, 1, lines[0], Head)
    entries = [_decoded(path, number, line, Entry) for number, line in enumerate(lines[1:], 2)]
    if not entries or entries[-1].lines is None:
        raise CassetteError(f"{path} is cut off: it has no end; record it again")
    if entries[-1].lines != len(entries) - 1:
        raise CassetteError(
            f"{path} is not whole: {entries[-1].lines} entries were written, {len(entries) - 1} are there"
        )
    return Tape(head=head, entries=entries[:-1])


def _decoded(path: Path, number: int, line: bytes, type_: Any) -> Any:
    try:
        return msgspec.json.decode(line, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = "no cassette" if number == 1 else "not a line of a cassette"
        raise CassetteError(f"{path}, line {number}: {what}: {error}") from error
