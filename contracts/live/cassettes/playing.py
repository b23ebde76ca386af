"""Play: a cassette answers in the place of a core, offline and on virtual time.

A call is answered with what the same call (method and parameters) was answered with in the recording, on the
connection of the same name, as long after as it took then. Looks may be made more or less often than in the recording,
since that depends on the machine: of looks that are alike the next one is played, but none from behind the next call
that changes something, and when there is no next one, the last is played again. Everything else has to be as it was.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.live.cassettes.tape import FOLDER, PYTHON, Entry, Tape
from contracts.live.peer import shown
from contracts.live.problem import CassetteError
from legion_terminal.link import Transport

LOOKS: Final = frozenset(
    {"hello", "terminal.get", "terminal.list", "terminal.read", "doc.get", "server.status", "rpc.discover"}
)
"""Calls that change nothing."""


@dataclass(slots=True)
class Said:
    """Bytes that came, so many ms after the call before them."""

    after_ms: int
    data: bytes


@dataclass(slots=True)
class Turn:
    """One thing that was sent, and all that came of it. `key` is its method and parameters, or its bytes."""

    key: str
    look: bool
    id: Any = None
    at: int = 0
    reply: Said | None = None
    others: list[Said] = field(default_factory=list)
    played: bool = False


class CassetteHost:
    """A tape as a host. `folder` is where the run is played now."""

    def __init__(self, tape: Tape, folder: Path) -> None:
        self._folder = folder
        self._turns: dict[str, list[Turn]] = {}
        self._ends: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._missing = ""
        for entry in tape.entries:
            if entry.c:
                self._take(entry)

    def connect(self, label: str) -> Transport:
        """The next connection of this name in the recording."""
        self._counts[label] = self._counts.get(label, 0) + 1
        name = f"{label}#{self._counts[label]}"
        return PlayedTransport(name, self._turns.get(name), self._ends.get(name), self.miss)

    async def pause(self, ms: int) -> None:
        """Let virtual time go by."""
        await asyncio.sleep(ms / 1_000)

    def problem(self) -> str:
        """What was asked and is not on the tape, "" while that has not happened."""
        return self._missing

    def miss(self, words: str) -> CassetteError:
        """Something is not on the tape."""
        self._missing = self._missing or f"the cassette does not hold what is asked: {words}"
        return CassetteError(self._missing)

    def _take(self, entry: Entry) -> None:
        turns = self._turns.setdefault(entry.c, [])
        data = local(entry.data(), self._folder)
        if entry.out is not None:
            key, id_, look = key_of(data)
            turns.append(Turn(key=key, look=look, id=id_, at=entry.t))
        elif entry.end is not None:
            self._ends[entry.c] = entry.end
        elif turns:
            _put(turns, data, entry.t)


def _put(turns: list[Turn], data: bytes, at: int) -> None:
    """What came belongs to the call whose id it has, else to the last thing that was sent."""
    id_ = _id_in(data)
    turn = next((one for one in reversed(turns) if one.id is not None and one.id == id_ and one.reply is None), None)
    if turn is not None:
        turn.reply = Said(at - turn.at, data)
    else:
        turns[-1].others.append(Said(at - turns[-1].at, data))


class PlayedTransport:
    """One connection of a cassette."""

    def __init__(
        self, name: str, turns: list[Turn] | None, end: str | None, miss: Callable[[str], CassetteError]
    ) -> None:
        self._name = name
        self._turns = turns
        self._end = end
        self._miss = miss
        self._floor = 0
        self._coming: asyncio.Queue[bytes] = asyncio.Queue()
        self._timers: list[asyncio.TimerHandle] = []

    async def open(self) -> None:
        """Nothing to connect to. Raises `CassetteError` for a connection that was not recorded."""
        if self._turns is None:
            raise self._miss(f"a connection {self._name}")

    async def write(self, data: bytes) -> None:
        """Find what was sent in the recording, and let come what came then. Raises `CassetteError`."""
        key, id_, look = key_of(data)
        turn = self._look(key) if look else self._change(key)
        if turn is None:
            self._coming.put_nowait(b"")
            raise self._miss(f"{self._name}: {shown(data)}")
        if turn.reply is not None:
            self._later(turn.reply.after_ms, _under(turn.reply.data, turn.id, id_))
        if not turn.played:
            turn.played = True
            for said in turn.others:
                self._later(said.after_ms, said.data)
            self._end_after(turn)

    async def read(self) -> bytes:
        """The next bytes of the recording."""
        return await self._coming.get()

    async def close(self) -> None:
        """Nothing more is played."""
        for timer in self._timers:
            timer.cancel()
        self._coming.put_nowait(b"")

    def tail(self) -> str:
        """Nothing."""
        return ""

    def ended(self) -> str | None:
        """How the connection ended then."""
        return self._end

    def _look(self, key: str) -> Turn | None:
        turns = self._turns or []
        limit = next(
            (at for at, one in enumerate(turns) if at >= self._floor and not one.look and not one.played), None
        )
        near = turns[self._floor : limit]
        ahead = next((one for one in near if one.key == key and not one.played), None)
        behind = next((one for one in reversed(turns[:limit]) if one.key == key), None)
        return ahead or behind or next((one for one in turns if one.key == key), None)

    def _change(self, key: str) -> Turn | None:
        turns = self._turns or []
        for at, one in enumerate(turns):
            if one.key == key and not one.played:
                self._floor = max(self._floor, at + 1)
                return one
        return None

    def _later(self, ms: int, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(ms / 1_000, self._coming.put_nowait, data))

    def _end_after(self, turn: Turn) -> None:
        """The other side hangs up after the last thing that it said."""
        if self._end is not None and self._turns and turn is self._turns[-1]:
            last = max((said.after_ms for said in (*turn.others, *([turn.reply] if turn.reply else []))), default=0)
            self._later(last + 1, b"")


class CassetteFiles:
    """What programs had written down when it was looked at; it is put in its place for others to read."""

    def __init__(self, tape: Tape, folder: Path, miss: Callable[[str], CassetteError]) -> None:
        self._folder = folder
        self._miss = miss
        self._kept: dict[str, list[Entry]] = {}
        for entry in tape.entries:
            if entry.file is not None:
                self._kept.setdefault(entry.file, []).append(entry)

    async def read(self, path: Path, wanted: Callable[[str], bool], within_ms: int) -> str | None:
        """The text as it was then, after the time that it took. Raises `CassetteError`."""
        name = str(path.relative_to(self._folder))
        kept = self._kept.get(name)
        if not kept:
            raise self._miss(f"the file {name}")
        entry = kept.pop(0) if len(kept) > 1 else kept[0]
        await asyncio.sleep(entry.took / 1_000)
        if entry.text is None:
            return None
        text = local(entry.text.encode(), self._folder).decode()
        _put_down(path, text)
        return text


def _put_down(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)


def local(data: bytes, folder: Path) -> bytes:
    """Recorded bytes with the places of this machine."""
    places: Iterable[tuple[str, str]] = ((FOLDER, str(folder)), (PYTHON, sys.executable))
    for word, place in places:
        data = data.replace(word.encode(), msgspec.json.encode(place)[1:-1])
    return data


def key_of(data: bytes) -> tuple[str, Any, bool]:
    """What makes two requests the same; the id of a single call; and whether it only looks."""
    lines = data.split(b"\n")
    if len(lines) == 2 and not lines[1]:
        try:
            value = msgspec.json.decode(lines[0])
        except (msgspec.DecodeError, RecursionError):
            value = None
        if isinstance(value, dict) and isinstance(value.get("id"), str) and isinstance(value.get("method"), str):
            params = msgspec.json.encode(value.get("params"), order="sorted").decode()
            return f"{value['method']} {params}", value["id"], value["method"] in LOOKS
    return data.decode("utf-8", "backslashreplace"), None, False


def _id_in(data: bytes) -> Any:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value.get("id") if isinstance(value, dict) and ("result" in value or "error" in value) else None


def _under(data: bytes, recorded: Any, wanted: Any) -> bytes:
    """A reply under the id that is asked with now."""
    if recorded == wanted:
        return data
    value = msgspec.json.decode(data)
    return msgspec.json.encode({**value, "id": wanted}) + b"\n"
