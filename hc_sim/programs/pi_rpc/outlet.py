"""What leaves by stdout: records in order, in pieces with pauses where the script says so, never more than is taken."""

from __future__ import annotations

import os

from .session import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .process import Process

MAX_WAITING_BYTES = 256 * 1024 * 1024
"""Bytes that may wait for a reader."""
CHUNK = 4_096
"""Bytes written at once: a pipe that polls writable takes as many without blocking (PIPE_BUF)."""


class Outlet:
    """The twists of the script, then the bytes that wait for stdout."""

    def __init__(self, process: Process, twists: list[dict[str, Any]]) -> None:
        self._process = process
        self._twists = twists
        self._met = [0] * len(twists)
        self._held: dict[str, list[dict[str, Any]]] = {}
        self._pieces: list[tuple[float, bytearray]] = []
        self._not_before: float | None = None
        self.muted = False
        self.stopped = False
        self._marks: list[tuple[int, Callable[[], None]]] = []
        self._said = self._taken = 0

    def emit(self, record: dict[str, Any]) -> None:
        """Let a record out, with whatever the script does to it."""
        if self.muted:
            return
        key = key_of(record)
        twist = self._twist(key)
        if twist is None:
            self._out(key, record)
            return
        if twist["set"] is not None:
            record = {name: value for name, value in {**record, **twist["set"]}.items() if value is not None}
        if twist["drop"]:
            self._process.left(key)
        elif twist["hold_until"]:
            self._held.setdefault(twist["hold_until"], []).append(record)
        elif twist["delay_ms"]:
            self._process.after(twist["delay_ms"], lambda: self._out(key, record))
        else:
            data = encode(record) + b"\n"
            size = twist["chunk_bytes"] or len(data)
            pause = self._process.scaled(twist["chunk_ms"]) / 1000
            for _ in range(twist["copies"]):
                for start in range(0, len(data), size):
                    self.raw(data[start : start + size], pause if start else 0.0)
            self._left(key)

    def raw(self, data: bytes, pause_s: float = 0.0) -> None:
        """Let bytes out, `pause_s` after those before them."""
        if self.muted:
            return
        self._said += len(data)
        if self._said - self._taken > MAX_WAITING_BYTES:
            self._process.give_up("nobody reads stdout, and too much waits for it")
        if pause_s or not self._pieces:
            self._pieces.append((pause_s, bytearray(data)))
        else:
            self._pieces[-1][1].extend(data)

    def writable_in(self, now: float) -> float | None:
        """Seconds until there is something to write (0: now), or None."""
        if self.stopped or not self._pieces:
            return None
        pause = self._pieces[0][0]
        if self._not_before is None:
            self._not_before = now + pause
        return max(0.0, self._not_before - now)

    def write(self) -> None:
        """Write what a pipe takes without blocking; raises `OSError` when nobody reads any more."""
        _, data = self._pieces[0]
        room = min(CHUNK, self._marks[0][0] - self._taken) if self._marks else CHUNK
        written = os.write(1, data[:room])
        del data[:written]
        self._taken += written
        if not data:
            self._pieces.pop(0)
            self._not_before = None
        while self._marks and self._marks[0][0] <= self._taken:
            self._marks.pop(0)[1]()

    def when_taken(self, call: Callable[[], None]) -> None:
        """Do this once everything that has been said until now has been taken; nothing later leaves before that."""
        if self._said > self._taken and not self.stopped:
            self._marks.append((self._said, call))
        else:
            call()

    def rest(self) -> bytes:
        """Take everything that has been said and not been taken."""
        data = b"".join(bytes(piece) for _, piece in self._pieces)
        self._pieces.clear()
        self._taken += len(data)
        return data

    def stop(self) -> None:
        """Let nothing more out."""
        self.stopped = True

    def _out(self, key: str, record: dict[str, Any]) -> None:
        self.raw(encode(record) + b"\n")
        self._left(key)

    def _left(self, key: str) -> None:
        for record in self._held.pop(key, ()):
            self._out(key_of(record), record)
        self._process.left(key)

    def _twist(self, key: str) -> dict[str, Any] | None:
        met = None
        for place, twist in enumerate(self._twists):
            if twist["at"] in (key, "*"):
                self._met[place] += 1
                if twist["nth"] in (0, self._met[place]) and met is None:
                    met = twist
        return met


def key_of(record: dict[str, Any]) -> str:
    """What the script calls a record: the type of an event, `response:` and the command of an answer."""
    kind = record.get("type")
    return f"response:{record.get('command')}" if kind == "response" else str(kind)
