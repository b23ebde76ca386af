"""The output of a program cut into texts and control sequences, fed with bytes in any pieces.

Pure, and bounded: at most `MAX_SEQUENCE` bytes of a sequence that has not ended are kept. A longer one is passed over
up to its end. What comes out does not depend on how the bytes were cut.
"""

import re
from dataclasses import dataclass

MAX_SEQUENCE = 4_096
"""Bytes of a whole sequence, introducer through terminator; the limit of OSC 7501, here for all of them."""

_ESC = b"\x1b"
_BEL = b"\x07"
_OSC_STOP = re.compile(rb"[\x07\x18\x1a\x1b]")
_STRING_STOP = re.compile(rb"[\x18\x1a\x1b]")
"""What ends, or breaks off, a string that is no OSC: there BEL is only data."""
_CSI_STOP = re.compile(rb"[@-~\x18\x1a\x1b]")
_CSI = re.compile(rb"\x1b\[[0-?]*[ -/]*")
_PLAIN = re.compile(rb"\x1b[ -/]*")
_STRINGS = b"PX^_"


@dataclass(frozen=True, slots=True)
class Text:
    """Everything that is no escape sequence; it may hold single control characters."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Sequence:
    """An escape sequence without its ESC: `c` resets the terminal, `[?2004h` asks for bracketed paste."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Command:
    """An operating system command: what stands between `ESC ]` and its terminator, and which one that was."""

    body: bytes
    bell: bool = False


Piece = Text | Sequence | Command


class Splitter:
    """Cuts a stream of bytes. A sequence that breaks off (CAN, SUB, an ESC that begins another) is dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._skip: re.Pattern[bytes] | None = None
        """What ends the over-long sequence that is being passed over."""

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces that are whole with these bytes."""
        data = self._rest + data
        self._rest = b""
        pieces: list[Piece] = []
        at = 0
        while at < len(data):
            if self._skip is not None:
                at = self._pass_over(data, at, self._skip)
                continue
            start = data.find(_ESC, at)
            if start < 0:
                pieces.append(Text(data[at:]))
                break
            if start > at:
                pieces.append(Text(data[at:start]))
            at = self._sequence(data, start, pieces)
        return pieces

    def _pass_over(self, data: bytes, at: int, stop: re.Pattern[bytes]) -> int:
        found = stop.search(data, at)
        if found is None:
            return len(data)
        self._skip = None
        return found.start() if found.group() == _ESC else found.end()

    def _sequence(self, data: bytes, start: int, pieces: list[Piece]) -> int:
        """Take the sequence at `start`; returns where the rest begins."""
        second = data[start + 1 : start + 2]
        if second == b"]":
            return self._string(data, start, pieces, _OSC_STOP)
        if second and second in _STRINGS:
            return self._string(data, start, pieces, _STRING_STOP)
        begun = (_CSI if second == b"[" else _PLAIN).match(data, start)
        end = len(data) if begun is None else begun.end()
        if end - start >= MAX_SEQUENCE:
            self._skip = _CSI_STOP
            return end
        if end == len(data):
            self._rest = data[start:]
            return end
        lowest = 0x40 if second == b"[" else 0x30
        if not lowest <= data[end] <= 0x7E:
            return end  # no final byte: the sequence is broken, and what stands there is looked at by itself
        body = data[start + 1 : end + 1]
        if body != b"\\":  # a terminator without a string says nothing
            pieces.append(Sequence(body))
        return end + 1

    def _string(self, data: bytes, start: int, pieces: list[Piece], stop: re.Pattern[bytes]) -> int:
        found = stop.search(data, start + 2)
        end = len(data) if found is None else found.end()
        if found is not None and found.group() != _ESC:
            if found.group() == _BEL and end - start <= MAX_SEQUENCE:
                pieces.append(Command(data[start + 2 : end - 1], bell=True))
            return end
        if end - start >= MAX_SEQUENCE:
            if found is not None:
                return end - 1
            self._skip = stop
            return end
        if end == len(data):
            self._rest = data[start:]
            return end
        if data[end : end + 1] != b"\\":
            return end - 1
        if stop is _OSC_STOP:
            pieces.append(Command(data[start + 2 : end - 1]))
        return end + 1
