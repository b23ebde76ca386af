"""Binary frames: nine bytes of header and a payload, cut out of a byte stream however the bytes arrive.

    channel u32 LE | kind u8 | length u32 LE | payload

What a kind means, and which number it has, is not decided here. A payload over the limit is never held: its header
comes out at once as a `TooBig`, its bytes are thrown away as they arrive, and the frame after it is read again.
"""

import struct
from dataclasses import dataclass

HEADER = struct.Struct("<IBI")
HEADER_BYTES = HEADER.size
MAX_CHANNEL = 0xFFFF_FFFF
MAX_CREDIT = 0xFFFF_FFFF
"""The largest amount that one credit frame can carry."""

_CREDIT = struct.Struct("<I")
_SIZE = struct.Struct("<HH")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: the number of its channel, the number of its kind, and what it carries."""

    channel: int
    kind: int
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class TooBig:
    """Stands for a frame whose header announces `length` bytes, more than the limit."""

    channel: int
    kind: int
    length: int


class FrameSplitter:
    """Bytes in, frames out. Holds at most one header and `limit` bytes, and never more than has arrived."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self.limit = limit
        self._held = bytearray()
        self._skip = 0

    def feed(self, data: bytes) -> list[Frame | TooBig]:
        """Take in `data` and return the frames that it ends, with a `TooBig` in place of each over the limit."""
        held, out, at = self._held, list[Frame | TooBig](), 0
        held += data
        while True:
            skipped = min(self._skip, len(held) - at)
            self._skip -= skipped
            at += skipped
            if self._skip or len(held) - at < HEADER_BYTES:
                break
            channel, kind, length = HEADER.unpack_from(held, at)
            begin = at + HEADER_BYTES
            if length > self.limit:
                out.append(TooBig(channel, kind, length))
                self._skip, at = length, begin
            elif len(held) < begin + length:
                break
            else:
                at = begin + length
                out.append(Frame(channel, kind, bytes(held[begin:at])))
        del held[:at]
        return out

    def rest(self) -> int:
        """How many bytes have arrived of a frame that has not ended: what an end of stream cuts off."""
        return len(self._held)


def encode_frame(channel: int, kind: int, payload: bytes = b"") -> bytes:
    """The bytes of one frame. Raises `ValueError` for a channel, kind or payload that the header cannot say."""
    try:
        return HEADER.pack(channel, kind, len(payload)) + payload
    except struct.error:
        raise ValueError(f"no frame has channel {channel}, kind {kind} and {len(payload)} bytes") from None


def encode_credit(amount: int) -> bytes:
    """The payload of a credit frame: so many more bytes of data may be sent (u32 LE)."""
    return _CREDIT.pack(amount)


def decode_credit(payload: bytes) -> int | None:
    """The amount in a credit frame; None if it is none."""
    return _CREDIT.unpack(payload)[0] if len(payload) == _CREDIT.size else None


def encode_size(cols: int, rows: int) -> bytes:
    """The payload of a resize frame: columns and rows, each u16 LE."""
    return _SIZE.pack(cols, rows)


def decode_size(payload: bytes) -> tuple[int, int] | None:
    """Columns and rows in a resize frame; None if it is none, or one of them is zero."""
    if len(payload) != _SIZE.size:
        return None
    cols, rows = _SIZE.unpack(payload)
    return (cols, rows) if cols and rows else None
