"""What one reply becomes on the wire, with everything that its fault does to it. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hc_sim.faults.call import Fault

Encode = Callable[[Any], bytes]
"""One JSON value to its text, without a line end."""

MAX_WRITES = 100_000
"""At most this many separate writes for one reply; the rest goes out in one piece."""
MAX_COPIES = 1_000
"""At most this many copies of a frame, or messages before it."""
MAX_PAD_BYTES = 64 * 1024 * 1024
SEPARATORS = "one\u2028two\u2029three\u0085four \U0001f600"
"""What a line reader that is not one of bytes stumbles over."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What one reply becomes on the wire: separate writes in order, and whether the connection ends after them.

    `gap_ms`: time between the writes. `join`: they wait for the next parcel of their connection.
    """

    writes: tuple[bytes, ...] = ()
    close: bool = False
    gap_ms: int = 0
    join: bool = False


def carries_out(fault: Fault | None) -> bool:
    """Whether the core carries the call out at all."""
    return fault is None or (fault.apply and fault.error is None)


def answers(fault: Fault | None) -> bool:
    """Whether anything at all comes back, were it only the end of the connection."""
    if fault is None:
        return True
    if fault.silent or fault.restart is not None:
        return False
    return _replies(fault) or fault.close != ""


def deliver(message: Mapping[str, Any], fault: Fault | None, encode: Encode) -> Parcel:
    """Turn one JSON-RPC reply into what goes out, with everything that its fault does to it."""
    if fault is None:
        return Parcel((encode(message) + b"\n",))
    if fault.silent:
        return Parcel()
    if fault.close == "instead" or not _replies(fault):
        return Parcel(close=fault.close != "")
    frame = _frame(message, fault, encode)
    if fault.close == "mid":
        frame = frame[: len(frame) // 2]
    return Parcel(tuple(pieces(frame, fault.cut)), fault.close != "", max(0, fault.gap_ms), fault.join)


def chunks(parcel: Parcel, size: int, gap_ms: int) -> Parcel:
    """The same bytes in writes of at most `size`, with `gap_ms` between them."""
    data = b"".join(parcel.writes)
    step = max(size, len(data) // MAX_WRITES + 1)
    writes = tuple(data[at : at + step] for at in range(0, len(data), step))
    return Parcel(writes, parcel.close, gap_ms, parcel.join)


def _replies(fault: Fault) -> bool:
    return fault.reply and (fault.apply or fault.error is not None or fault.raw is not None)


def _frame(message: Mapping[str, Any], fault: Fault, encode: Encode) -> bytes:
    if fault.raw is None:
        body = _body(message, fault, encode)
    else:
        body = fault.raw.replace("{id}", encode(message.get("id")).decode()).encode()
    end = {"lf": b"\n", "crlf": b"\r\n", "none": b""}[fault.newline]
    before = fault.before.encode() + bytes.fromhex(fault.before_hex)
    one = before + body + end + fault.after.encode()
    return (
        b"".join(_ahead(fault, encode)) + one * min(fault.repeat, MAX_COPIES) + _contradiction(message, fault, encode)
    )


def _body(message: Mapping[str, Any], fault: Fault, encode: Encode) -> bytes:
    altered = _altered(message, fault, encode)
    if fault.shape != "result-first" or "result" not in altered:
        return encode(altered)
    head = b'{"result":' + encode(altered.pop("result"))
    return head + b"," + encode(altered).lstrip()[1:]


def _altered(message: Mapping[str, Any], fault: Fault, encode: Encode) -> dict[str, Any]:
    altered = dict(message)
    if fault.id == "missing":
        altered.pop("id", None)
    elif fault.id != "as-sent":
        altered["id"] = {"null": None, "empty": "", "other-type": _other_type(encode(message.get("id")))}[fault.id]
    result = altered.get("result")
    if fault.pad_bytes and isinstance(result, dict):
        result = altered["result"] = {**result, "pad": "x" * min(fault.pad_bytes, MAX_PAD_BYTES)}
    if fault.separators and isinstance(result, dict):
        altered["result"] = {**result, "text": SEPARATORS}
    match fault.shape:
        case "null-error" if "result" in altered:
            altered["error"] = None
        case "null-result":
            altered.pop("error", None)
            altered["result"] = None
        case "neither":
            altered.pop("error", None)
            altered.pop("result", None)
        case _:
            pass
    return altered


def _other_type(sent: bytes) -> object:
    """The same id in the other of two types that peers mix up: a number as its text, a number's text as a number."""
    text = sent.decode()
    inner = text.strip('"')
    if inner == text:
        return text
    return int(inner) if inner.isdecimal() else inner


def _ahead(fault: Fault, encode: Encode) -> Iterator[bytes]:
    for number in range(1, min(fault.notifications, MAX_COPIES) + 1):
        yield encode({"jsonrpc": "2.0", "method": "event", "params": {"number": number}}) + b"\n"
    for number in range(1, min(fault.requests, MAX_COPIES) + 1):
        yield encode({"jsonrpc": "2.0", "id": f"core-{number}", "method": "ping", "params": {}}) + b"\n"


def _contradiction(message: Mapping[str, Any], fault: Fault, encode: Encode) -> bytes:
    error = fault.contradict
    if error is None:
        return b""
    body = {"code": error.code, "data": {"hint": error.hint, "kind": error.kind}, "message": error.message}
    return encode({"jsonrpc": "2.0", "id": message.get("id"), "error": body}) + b"\n"


def pieces(data: bytes, cut: Sequence[int]) -> Iterator[bytes]:
    """Split at the given offsets; `[-1]` splits after every byte."""
    last = len(data)
    offsets = range(1, last) if list(cut) == [-1] else sorted({at for at in cut if 0 < at < last})
    begin = 0
    for at in offsets[: MAX_WRITES - 1]:
        yield data[begin:at]
        begin = at
    if begin < last:
        yield data[begin:]
