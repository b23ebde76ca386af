"""Between one line and one message of `pi --mode rpc`: commands out; answers, events and questions in. Pure.

An event that decides nothing is `Other`, a line that is no message is `Noise`. Only the members that matter are
decoded: an event may carry megabytes of conversation beside them.
"""

import json
import math
from dataclasses import dataclass
from typing import Any, Final

import msgspec

MAX_NOISE_CHARS: Final = 200
_ESC: Final = 0x1B


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to a command. `id` is "" when it names none. `disposition`: what became of a prompt, if told."""

    id: str
    command: str
    success: bool
    error: str = ""
    disposition: str | None = None
    steering: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunStarted:
    """An agent loop begins; the first one of a run begins the run."""


@dataclass(frozen=True, slots=True)
class RunSettled:
    """The run is over: nothing is queued and nothing will be tried again. `aborted`: None from a pi that says not."""

    aborted: bool | None


@dataclass(frozen=True, slots=True)
class UserText:
    """A user's message entered the conversation: the prompt, or a queued text that is taken up."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """An answer of the model ended: `stop`, `toolUse`, `aborted`, `error`, ..."""

    stop: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialog:
    """A question or notice that an extension shows. `timeout_ms`: after this it answers itself."""

    id: str
    method: str
    title: str = ""
    message: str = ""
    options: tuple[str, ...] = ()
    timeout_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """An event that decides nothing here."""

    type: str


@dataclass(frozen=True, slots=True)
class Noise:
    """A line that is no message, as far as it can be shown."""

    text: str


Event = Response | RunStarted | RunSettled | UserText | AnswerEnded | Dialog | Other | Noise


class _Line(msgspec.Struct):
    type: Any = None
    id: Any = None
    command: Any = None
    success: Any = None
    error: Any = None
    data: msgspec.Raw = msgspec.Raw()
    aborted: Any = None
    message: msgspec.Raw = msgspec.Raw()
    method: Any = None
    title: Any = None
    options: Any = None
    timeout: Any = None


class _Told(msgspec.Struct):
    disposition: Any = None
    steering: Any = None
    followUp: Any = None  # noqa: N815  (spelt as on the wire)


class _Message(msgspec.Struct):
    role: Any = None
    content: msgspec.Raw = msgspec.Raw()
    stopReason: Any = None  # noqa: N815  (spelt as on the wire)


_LINE: Final = msgspec.json.Decoder(_Line)
_TOLD: Final = msgspec.json.Decoder(_Told)
_MESSAGE: Final = msgspec.json.Decoder(_Message)
_ANY: Final = msgspec.json.Decoder()
_BROKEN: Final = (msgspec.MsgspecError, RecursionError, UnicodeError)


def encode(command: dict[str, Any]) -> bytes:
    """One command as one line of ASCII: always an object, for the line `null` ends the real pi.

    Raises ValueError for anything but an object, and for what JSON cannot say.
    """
    if not isinstance(command, dict) or not command:
        raise ValueError(f"a command is a JSON object, not {command!r}")
    return json.dumps(command, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def sendable(text: str) -> str:
    """The text with half surrogate pairs, which no UTF-8 can carry, as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def decode(line: bytes) -> Event | None:
    """What one line says; None for a blank one. Takes any bytes and never raises."""
    line = line.strip(b" \t\r\n\xef\xbb\xbf")
    if line[:1] == b"\x1b":  # the title or colour sequence of some program, glued to the front of a message
        line = line[max(line.find(b"{"), 0) :]
    if not line:
        return None
    try:
        read = _LINE.decode(line)
    except _BROKEN:
        return Noise(_shown(line))
    return _event(read) if isinstance(read.type, str) else Noise(_shown(line))


def _event(line: _Line) -> Event:
    match line.type:
        case "response":
            return _response(line)
        case "agent_start":
            return RunStarted()
        case "agent_settled":
            return RunSettled(line.aborted if isinstance(line.aborted, bool) else None)
        case "message_start" | "message_end":
            return _message(line)
        case "extension_ui_request":
            return _dialog(line)
        case _:
            return Other(line.type)


def _response(line: _Line) -> Response:
    told = _decoded(_TOLD, line.data) or _Told()
    return Response(
        id=_id(line.id),
        command=_text(line.command),
        success=line.success is True,
        error="" if line.success is True else _text(line.error) or "it gave no reason",
        disposition=told.disposition if isinstance(told.disposition, str) else None,
        steering=_texts(told.steering),
        follow_up=_texts(told.followUp),
    )


def _message(line: _Line) -> Event:
    message = _decoded(_MESSAGE, line.message)
    if message is not None and message.role == "user" and line.type == "message_start":
        return UserText(_words(_decoded(_ANY, message.content)))
    if message is not None and message.role == "assistant" and line.type == "message_end":
        return AnswerEnded(message.stopReason if isinstance(message.stopReason, str) else None)
    return Other(line.type)


def _dialog(line: _Line) -> Event:
    name = _id(line.id)
    if not name:
        return Other(line.type)
    timeout = line.timeout
    timed = isinstance(timeout, int | float) and not isinstance(timeout, bool) and math.isfinite(timeout)
    return Dialog(
        id=name,
        method=_text(line.method),
        title=_text(line.title),
        message=_text(_decoded(_ANY, line.message)),
        options=_texts(line.options),
        timeout_ms=max(0.0, float(timeout)) if timed else None,
    )


def _decoded(decoder: "msgspec.json.Decoder[Any]", raw: msgspec.Raw) -> Any:
    try:
        return decoder.decode(raw) if bytes(raw) else None
    except _BROKEN:
        return None


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        part["text"]
        for part in parts
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )


def _id(value: Any) -> str:
    """An id as text: a number that comes back as a number, or as a float of it, is the same id."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | int) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _shown(line: bytes) -> str:
    return line[: 4 * MAX_NOISE_CHARS].decode("utf-8", "replace")[:MAX_NOISE_CHARS]
