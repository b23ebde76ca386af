"""Bytes from a child into lines: split at 0A only; a line above the limit is passed over, and the next one counts.

One event of a long run can carry the whole conversation, images included. Nothing that decides anything is that long,
so such a line is dropped whole and the stream goes on; only the bytes of one line are ever kept.
"""

from typing import Final

MAX_LINE_BYTES: Final = 16 * 2**20
"""The longest line that is looked at."""


class LineSplitter:
    """Cuts a stream into lines of at most `limit` bytes. `dropped` counts the longer ones."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self.limit = limit
        self.dropped = 0
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Add what was read; return the lines that are complete now, without their line feeds."""
        *ended, rest = data.split(b"\n")
        lines = []
        for part in ended:
            self._add(part)
            if not self._skipping:
                lines.append(bytes(self._buffer))
            self._buffer.clear()
            self._skipping = False
        self._add(rest)
        return lines

    def end(self) -> bytes:
        """A last line without its line feed, or a part of one; empty when there is none."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def _add(self, part: bytes) -> None:
        if self._skipping:
            return
        if len(self._buffer) + len(part) > self.limit:
            self._skipping = True
            self.dropped += 1
            self._buffer.clear()
        else:
            self._buffer += part
