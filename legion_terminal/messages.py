"""Between one line and one message: requests out, replies in, and what a reply means. Pure.

The client numbers its calls with decimal text. A core that echoes the number itself, or a float of it, still answers
the call; only the envelope's own `id` is ever looked at.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

MAX_GLUED_STARTS = 8
MAX_NOISE_TEXT = 200

_TERMINAL_SEQUENCE = re.compile(
    rb"^(?:\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[^\[\]]|[\x00-\x09\x0b-\x1a\x1c-\x1f])+"
)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_KIND_PREFIX = re.compile(r"^([A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)+)\b")
_KIND_BY_CODE = {-32601: "unknown_method", -32602: "invalid_params", -32700: "parse_error", -32600: "invalid_request"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireError:
    """An error that the core answered with. `kind` is normalised: lower case, underscores (`name_taken`)."""

    code: int | str | None = None
    message: str = ""
    kind: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer to the call `id` ("" when the core could not say to which). `broken`: why it is no valid answer."""

    id: str
    result: Any = None
    error: WireError | None = None
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification or a request of the core's own: legal, and of no use to this client."""


@dataclass(frozen=True, slots=True)
class Noise:
    """A line that is no message at all, as printable text, cut short."""

    text: str


def encode(call_id: str, method: str, params: dict[str, Any]) -> bytes:
    """One request as one line of ASCII.

    Raises ValueError for what JSON cannot say: a value of another type, NaN, or a lone surrogate (a core that reads
    UTF-8 strictly could not even tell which call it belongs to).
    """
    message = {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}
    try:
        frame = _ENCODER.encode(message)
        if _SURROGATE in frame:  # maybe half of a pair: only a strict encoding of the text itself can tell
            json.dumps(message, ensure_ascii=False).encode()
        return frame.encode() + b"\n"
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def decode(line: bytes) -> Reply | Notice | Noise:
    """Read one line. Escape sequences or other text glued to the front of a message are skipped."""
    message, raw = _find_message(line)
    if message is None:
        return Noise(printable(line.decode("utf-8", "replace")))
    if "method" in message:
        return Notice()
    if "result" not in message and "error" not in message and "id" not in message:
        return Noise(printable(line.decode("utf-8", "replace")))
    return _reply(message, "" if _is_utf8(raw) else "the reply is not valid UTF-8")


def printable(text: str, limit: int = MAX_NOISE_TEXT) -> str:
    """Make foreign text fit for an error message: no control characters, at most `limit` characters."""
    return _UNPRINTABLE.sub(" ", text[: limit * 4]).strip()[:limit]


def read_error(value: object) -> WireError:
    """Read an error member of any shape.

    The kind is taken from the first place that has one: `data.kind`, `data.code`, `data` itself, `kind`, the code, the
    beginning of the message.
    """
    if not isinstance(value, dict):
        return WireError(message=printable(str(value)))
    code = value.get("code")
    message = str(value.get("message") or "")
    data = value.get("data")
    fields = data if isinstance(data, dict) else {}
    return WireError(
        code=code if isinstance(code, int | str) else None,
        message=printable(message, 2 * MAX_NOISE_TEXT),
        kind=_kind([fields.get("kind"), fields.get("code"), data, value.get("kind"), code], message),
        hint=printable(str(fields.get("hint") or "")),
    )


def _kind(places: list[object], message: str) -> str:
    for place in places:
        if isinstance(place, str) and place.strip():
            return _spell(place)
    found = _KIND_PREFIX.match(message)
    if found:
        return _spell(found[1])
    code = places[-1]
    return _KIND_BY_CODE.get(code, "") if isinstance(code, int) else ""


def _spell(kind: str) -> str:
    return printable(kind).casefold().replace("-", "_").replace(" ", "_")


def _reply(message: dict[str, Any], broken: str) -> Reply:
    call_id = _call_id(message.get("id"))
    error = message.get("error")
    if error is not None:
        if message.get("result") is not None:
            broken = broken or "the reply has both a result and an error"
        return Reply(id=call_id, error=read_error(error), broken=broken)
    if "result" not in message:
        return Reply(id=call_id, broken=broken or "the reply has neither a result nor an error")
    return Reply(id=call_id, result=message["result"], broken=broken)


def _call_id(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return str(int(value)) if value == value // 1 else str(value)


def _find_message(line: bytes) -> tuple[dict[str, Any] | None, bytes]:
    """The JSON object in a line, and the bytes that it was read from."""
    whole = _parse(line)
    if isinstance(whole, dict):
        return whole, line
    rest = _TERMINAL_SEQUENCE.sub(b"", line)
    start = -1 if whole is None else len(rest)
    for _ in range(MAX_GLUED_STARTS):
        start = rest.find(b"{", start + 1)
        if start < 0:
            break
        found = _parse(rest[start:])
        if isinstance(found, dict):
            return (found, rest[start:]) if found.get("jsonrpc") == "2.0" else (None, line)
    return None, line


def _parse(raw: bytes) -> Any:
    try:
        return _DECODER.decode(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_SURROGATE = "\\ud"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
