"""Cut a byte stream into lines: at the byte 0A and at nothing else, however the bytes arrive."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a line of more than `limit` bytes. It comes once, as soon as the line is known to be too long."""

    limit: int


class LineSplitter:
    """Bytes in, lines out (without their 0A). Holds at most `limit` bytes; the rest of a longer line is thrown away."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self.limit = limit
        self._held = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Take in `data` and return the lines that it ends, with a `TooLong` in place of each over the limit."""
        *ended, rest = data.split(b"\n")
        out: list[bytes | TooLong] = []
        for piece in ended:
            self._take(piece, out)
            if not self._dropping:
                out.append(bytes(self._held))
            self._reset()
        if rest:
            self._take(rest, out)
        return out

    def rest(self) -> bytes:
        """What has arrived of a line that has not ended: what an end of stream cuts off."""
        return bytes(self._held)

    def _take(self, piece: bytes, out: list[bytes | TooLong]) -> None:
        if self._dropping:
            return
        if len(self._held) + len(piece) > self.limit:
            self._reset()
            self._dropping = True
            out.append(TooLong(self.limit))
        else:
            self._held += piece

    def _reset(self) -> None:
        self._held = bytearray()
        self._dropping = False
