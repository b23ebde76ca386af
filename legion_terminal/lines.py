"""Bytes from the core into lines: split on byte 0A only, whatever the read boundaries, under an exact ceiling.

The text of a reply may hold U+2028 or U+0085, a read may end inside a character, and one read may hold many lines or a
part of one. So nothing is decoded here: a line is bytes between two line feeds.
"""

MAX_LINE_BYTES = 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineReader:
    """Cuts a stream into lines. A line may hold `limit` bytes before its line feed, and not one more.

    When a line is longer, `overflowed` is true from then on and nothing further comes out. A byte order mark is dropped
    at the very start of the stream only.
    """

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self.limit = limit
        self.overflowed = False
        self._buffer = bytearray()
        self._scanned = 0
        self._at_start = True

    @property
    def pending(self) -> int:
        """Bytes of a line that has not ended yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Add what was read; return the lines that are complete now, without their line feeds."""
        if self.overflowed:
            return []
        self._buffer += data
        self._drop_mark()
        lines: list[bytes] = []
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._scanned))) >= 0:
            if end - start > self.limit:
                self._overflow()
                return lines
            lines.append(bytes(self._buffer[start:end]))
            start = end + 1
        del self._buffer[:start]
        self._scanned = len(self._buffer)
        if len(self._buffer) > self.limit:
            self._overflow()
        return lines

    def end(self) -> bytes:
        """Return what is left when the stream has ended: a last line without its line feed, or a part of one."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._scanned = 0
        return rest

    def _overflow(self) -> None:
        self.overflowed = True
        self._buffer.clear()
        self._scanned = 0

    def _drop_mark(self) -> None:
        if not self._at_start:
            return
        if self._buffer.startswith(BYTE_ORDER_MARK):
            del self._buffer[: len(BYTE_ORDER_MARK)]
        elif BYTE_ORDER_MARK.startswith(bytes(self._buffer)):
            return
        self._at_start = False
