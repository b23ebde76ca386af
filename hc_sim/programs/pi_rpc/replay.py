"""Plays a recording: says what was recorded after each recorded command, and echoes the caller's own ids."""

from __future__ import annotations

import json

from .outlet import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .process import Process, Timer

MAX_ENTRIES = 100_000


def read(path: str) -> list[dict[str, Any]]:
    """The entries of a recording; raises `ValueError` with the line that is none, `OSError`."""
    entries: list[dict[str, Any]] = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            if not isinstance(entry, dict) or entry.get("from") not in ("pi", "supervisor"):
                raise ValueError(f"{path}, line {number}: is no entry of a recording")
            entries.append(entry)
            if len(entries) > MAX_ENTRIES:
                raise ValueError(f"{path}: more than {MAX_ENTRIES} entries")
    return entries


class Replay:
    """Where the recording stands. A command that is not the recorded next one is refused.

    One that comes sooner than the recorded one did cuts the pauses short: everything before it is said at once.
    """

    def __init__(self, process: Process, entries: list[dict[str, Any]]) -> None:
        self.process, self._entries = process, entries
        self._next = 0
        self._ids: dict[str, Any] = {}
        self._timer: Timer | None = None
        self._go_on()

    def line(self, line: bytes) -> None:
        """A command, an answer to a request, or anything else."""
        try:
            command = json.loads(line)
        except (ValueError, RecursionError):
            command = None
        kind = command.get("type") if isinstance(command, dict) else None
        place = self._place()
        expected = self._entries[place] if place < len(self._entries) else {}
        recorded = expected.get("record")
        same = recorded["type"] == kind if isinstance(recorded, dict) and "type" in recorded else kind is None
        if expected.get("from") != "supervisor" or "ends" in expected or not same:
            self._refuse(command, kind)
            return
        if isinstance(command, dict) and isinstance(recorded, dict) and "id" in recorded:
            self._ids[json.dumps(recorded["id"])] = command.get("id")
        self._hurry(place)
        self.process.requested(str(kind))
        self._next += 1
        self._go_on()

    def batch_end(self) -> None:
        """Nothing waits for this here."""

    def stop(self, how: str) -> bool:
        """Ends at once, as recorded or not."""
        return True

    def begin(self, text: str) -> None:
        """A recording has no run of its own."""

    def end_workers(self) -> None:
        """There are none."""

    def _refuse(self, command: object, kind: object) -> None:
        own = {"id": command["id"]} if isinstance(command, dict) and "id" in command else {}
        why = f"the recording has no such command at entry {self._next + 1}"
        answer = {**own, "type": "response", "command": kind, "success": False, "error": why}
        self.process.emit(answer)

    def _place(self) -> int:
        """Where the next command stands."""
        place = self._next
        while place < len(self._entries) and self._entries[place]["from"] != "supervisor":
            place += 1
        return place

    def _hurry(self, place: int) -> None:
        """Say everything before this place now."""
        if self._timer is not None:
            self.process.cancel(self._timer)
            self._timer = None
        while self._next < place:
            self._play()

    def _go_on(self) -> None:
        """Say what comes next, each at its distance in time from the entry before."""
        while self._next < len(self._entries):
            entry = self._entries[self._next]
            if entry["from"] == "supervisor":
                return
            if self._timer is None and self._wait_ms(entry):
                self._timer = self.process.after(self._wait_ms(entry), self._go_on)
                return
            self._timer = None
            self._play()

    def _play(self) -> None:
        entry = self._entries[self._next]
        self._next += 1
        if "stderr" in entry:
            self.process.blurt({"do": "stderr", "hex": None, "text": entry["stderr"] + "\n", "bytes": 0})
        elif "record" in entry:
            self._say(entry["record"])
        elif entry.get("exit"):
            self._ends(entry["exit"])

    def _wait_ms(self, entry: dict[str, Any]) -> int:
        before = self._entries[self._next - 1].get("at_ms", 0) if self._next else 0
        return max(0, int(entry.get("at_ms", before)) - int(before))

    def _say(self, record: dict[str, Any]) -> None:
        if key_of(record).startswith("response:") and "id" in record:
            record = {**record, "id": self._ids.get(json.dumps(record["id"]), record["id"])}
        self.process.emit(record)

    def _ends(self, how: dict[str, Any]) -> None:
        """An end that nobody asked for."""
        asked = self._next >= 2 and "ends" in self._entries[self._next - 2]
        if not asked:
            self.process.exit_now(how.get("code"), how.get("signal"))
