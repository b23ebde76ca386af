"""Record: what goes over the connections of a live run goes on a tape as well, cleaned before it is written."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.live.cassettes.tape import FOLDER, PYTHON, TapeWriter
from contracts.live.corner import Corner, Files
from contracts.live.hosts import Host
from hc_sim.redact import redact_text, redact_value
from legion_terminal.link import Transport

UNRECORDED: Final = frozenset({"tidy"})
"""Connections that are about other runs: not for this tape."""


class Cleaner:
    """Makes bytes fit for a file: no secrets, no terminals of others, nothing of this machine's folders."""

    def __init__(self, corner: Corner) -> None:
        self._corner = corner
        self._places = [(_inside_json(str(corner.folder)), FOLDER), (_inside_json(corner.python), PYTHON)]

    def line(self, data: bytes) -> dict[str, str]:
        """One line or a piece of binary, as the members that stand for it on the tape (`text` or `hex`)."""
        if (framed := _framed(data)) is not None:
            return {"hex": framed.hex()}
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return {"hex": data.hex()}
        return {"text": self.text("".join(self._json(one) for one in text.splitlines(keepends=True)))}

    def text(self, text: str) -> str:
        """A text without the places of this machine."""
        for place, word in self._places:
            text = text.replace(place, word)
        return text

    def _json(self, line: str) -> str:
        """A line without secrets: as it was, to the letter, if there are none."""
        body = line.rstrip("\n")
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return redact_text(body) + line[len(body) :]
        cleaned = redact_value(self._without_others(value))
        return line if cleaned == value else msgspec.json.encode(cleaned).decode() + line[len(body) :]

    def _without_others(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._without_others(one) for key, one in value.items() if not self._is_foreign(one)}
        if isinstance(value, list):
            return [self._without_others(one) for one in value if not self._is_foreign(one)]
        return value

    def _is_foreign(self, value: Any) -> bool:
        """Whether a value is a terminal that this run has not started, in a full list or in a compact one."""
        if not (isinstance(value, dict) and isinstance(value.get("address"), str)):
            return False
        if value.keys().isdisjoint(("argv", "name", "cwd", "labels", "status", "title")):
            return False
        named = self._corner.owner.named(value.get("name"))
        return not (named or self._corner.is_labelled(value) or value["address"] in self._corner.mine)


def _inside_json(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def _framed(data: bytes) -> bytes | None:
    """A frame that holds JSON, its secrets overwritten so that it stays as long as it says; None for anything else."""
    at = data.find(b"{")
    if at <= 0 or data[:at].isspace() or data.startswith(b"["):
        return None
    try:
        value = msgspec.json.decode(data[at:])
    except (msgspec.DecodeError, RecursionError):
        return None
    payload = data[at:]
    for secret in _hidden(value, redact_value(value)):
        raw = msgspec.json.encode(secret)[1:-1]
        if raw not in payload:  # it is spelt in another way: nothing of it is kept
            return data[:at] + b"*" * len(payload)
        payload = payload.replace(raw, b"*" * len(raw))
    return data[:at] + payload


def _hidden(value: Any, cleaned: Any) -> Iterator[str]:
    """The texts in a value that are not in its cleaned form."""
    if isinstance(value, str):
        if value != cleaned:
            yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _hidden(one, cleaned.get(key) if isinstance(cleaned, dict) else None)
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from _hidden(one, cleaned[place] if isinstance(cleaned, list) else None)


class RecordingHost:
    """A host whose connections are recorded."""

    def __init__(self, host: Host, tape: TapeWriter, corner: Corner) -> None:
        self._host = host
        self._tape = tape
        self._cleaner = Cleaner(corner)
        self._counts: dict[str, int] = {}
        self._begun = time.monotonic()

    def connect(self, label: str) -> Transport:
        """A new connection of the host, with a microphone in it."""
        inner = self._host.connect(label)
        if label in UNRECORDED:
            return inner
        self._counts[label] = self._counts.get(label, 0) + 1
        return _Recorded(inner, f"{label}#{self._counts[label]}", self._say)

    async def pause(self, ms: int) -> None:
        """As the host's own."""
        await self._host.pause(ms)

    def problem(self) -> str:
        """As the host's own."""
        return self._host.problem()

    def _say(self, connection: str, what: str, data: bytes) -> None:
        said = self._cleaner.line(data)
        values = {"hex": said["hex"], what: ""} if "hex" in said else {what: said["text"]}
        self._tape.add(c=connection, t=round((time.monotonic() - self._begun) * 1_000), **values)


class RecordingFiles:
    """What programs have written down, read as usual and kept on the tape."""

    def __init__(self, files: Files, tape: TapeWriter, corner: Corner) -> None:
        self._files = files
        self._tape = tape
        self._corner = corner
        self._cleaner = Cleaner(corner)

    async def read(self, path: Path, wanted: Callable[[str], bool], within_ms: int) -> str | None:
        """Read and record."""
        begun = time.monotonic()
        text = await self._files.read(path, wanted, within_ms)
        took = round((time.monotonic() - begun) * 1_000)
        kept = None if text is None else self._cleaner.line(text.encode())["text"]
        self._tape.add(file=str(path.relative_to(self._corner.folder)), took=took, text=kept)
        return text


class _Recorded:
    """One connection. What is sent is one entry a write; what comes is one entry a line."""

    def __init__(self, inner: Transport, name: str, say: Callable[[str, str, bytes], None]) -> None:
        self._inner = inner
        self._name = name
        self._say = say
        self._rest = b""

    async def open(self) -> None:
        """Connect."""
        await self._inner.open()

    async def write(self, data: bytes) -> None:
        """Send and record."""
        self._say(self._name, "out", data)
        await self._inner.write(data)

    async def read(self) -> bytes:
        """Take what came and record it."""
        data = await self._inner.read()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(self._name, "in", line + b"\n")
        if not data:
            self._end()
        return data

    async def close(self) -> None:
        """Close the connection; what had come of a line is kept."""
        await self._inner.close()
        if self._rest:
            self._say(self._name, "in", self._rest)
            self._rest = b""

    def tail(self) -> str:
        """As the connection's own."""
        return self._inner.tail()

    def ended(self) -> str | None:
        """As the connection's own."""
        return self._inner.ended()

    def _end(self) -> None:
        if self._rest:
            self._say(self._name, "in", self._rest)
            self._rest = b""
        self._say(self._name, "end", (self._inner.ended() or "closed").encode())
