"""A byte stream in pieces that say how long they are, so that its end can be told from a cut.

TLS as it is used here has no half-closed connections: whoever ends one direction ends both. Inside a tunnel the stream
therefore travels as pieces, 4 bytes of length (big-endian) and that many bytes; a piece of length 0 is the end of the
stream in this direction, while the other one goes on.
"""

from typing import Final

MAX_PIECE = 65_536
"""Bytes of one piece; a longer one is a violation."""
HEAD = 4


class EndOfStream:
    """Stands for the end of the stream."""


END: Final = EndOfStream()


class PieceError(Exception):
    """The peer does not keep to the rules; nothing that it sends can be trusted any more."""


def cut(data: bytes) -> bytes:
    """The bytes as pieces, ready to be sent; nothing for no bytes."""
    view = memoryview(data)
    parts: list[bytes | memoryview] = []
    for begin in range(0, len(data), MAX_PIECE):
        piece = view[begin : begin + MAX_PIECE]
        parts += (len(piece).to_bytes(HEAD, "big"), piece)
    return b"".join(parts)


def end() -> bytes:
    """The piece that ends the stream."""
    return bytes(HEAD)


class Joiner:
    """Bytes in, pieces out, however they arrive. Holds less than one piece and its head."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the end of the stream has come."""
        return self._ended

    def feed(self, data: bytes) -> list[bytes | EndOfStream]:
        """Take in `data` and return what it completes.

        Raises `PieceError` for a piece that is too long and for bytes after the end.
        """
        self._held += data
        out: list[bytes | EndOfStream] = []
        begin = 0
        while len(self._held) - begin >= HEAD:
            size = int.from_bytes(self._held[begin : begin + HEAD], "big")
            if self._ended:
                raise PieceError("bytes after the end")
            if size > MAX_PIECE:
                raise PieceError(f"a piece of {size} bytes, and the limit is {MAX_PIECE}")
            if size == 0:
                self._ended = True
                out.append(END)
                begin += HEAD
                continue
            if len(self._held) - begin - HEAD < size:
                break
            out.append(bytes(self._held[begin + HEAD : begin + HEAD + size]))
            begin += HEAD + size
        del self._held[:begin]
        if self._ended and self._held:
            raise PieceError("bytes after the end")
        return out
