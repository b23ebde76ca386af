"""One line of a driver: an answer, a failure, a notification, or words that say why it is none of them. Pure."""

from dataclasses import dataclass
from typing import Any, Final, get_args, get_type_hints

import msgspec

from contracts.sut.base import ERROR_KEYS
from contracts.sut.messages import Message

NOT_IMPLEMENTED: Final = -32601
SHOWN_BYTES: Final = 200
"""How much of a wrong line is shown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, and the call it belongs to."""

    id: int
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """An error: JSON-RPC's own `code`, and the rest as `SutError` has it (`code` "" when the driver gave none)."""

    id: int
    code: int
    error: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification: legal, and of no use."""


def read(line: bytes) -> Answer | Failure | Notice | str:
    """What a line says; in words, what is wrong with it."""
    try:
        message = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return f"wrote a line that is no JSON on its standard output: {_shown(line)}"
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return f"wrote a line that is no JSON-RPC 2.0 message: {_shown(line)}"
    if "method" in message:
        return Notice() if "id" not in message else f"made a request of its own: {_shown(line)}"
    number = message.get("id")
    if not isinstance(number, int) or isinstance(number, bool):
        return f"answered with an id that the suite never uses: {_shown(line)}"
    if ("result" in message) is ("error" in message):
        return f"answered with neither or both of result and error: {_shown(line)}"
    if "error" in message:
        return _failure(number, message["error"], line)
    if not isinstance(message["result"], dict):
        return f"answered with a result that is no object: {_shown(line)}"
    return Answer(number, message["result"])


def _failure(number: int, error: object, line: bytes) -> Failure | str:
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return f"answered with an error that is none: {_shown(line)}"
    data = error.get("data")
    told = data if isinstance(data, dict) else {}
    found = {key: told[key] for key in ERROR_KEYS if isinstance(told.get(key), str)}
    whole = {"code": "", "child": "", "known": "not-sent", "kind": "", "hint": "", **found}
    return Failure(number, error["code"], {**whole, "message": str(error.get("message") or "")})


def without_nulls(result: dict[str, Any], kind: type[Message]) -> dict[str, Any]:
    """A result without its nulls, where null means left out."""
    hints = get_type_hints(kind)
    fields = msgspec.structs.fields(kind)
    nullable = {field.encode_name for field in fields if type(None) in get_args(hints[field.name])}
    return {key: value for key, value in result.items() if value is not None or key in nullable}


def _shown(line: bytes) -> str:
    text = line[:SHOWN_BYTES].decode("utf-8", "replace")
    return repr(text) + (" ..." if len(line) > SHOWN_BYTES else "")
