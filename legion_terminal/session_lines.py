"""A session file's lines become records: whole ones, salvaged ones, and word of what could not be read.

A line normally holds one JSON object. Crashes, second writers and full disks leave others: half an object, two objects
without a line end between them, the start of one with the whole of the next behind it, runs of NUL, foreign text. What
is whole is taken; the rest becomes `Lost`, which says whether a prompt may have been lost with it: after a lost prompt
the answer before it is no longer the newest word.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import msgspec

MAX_LINE_BYTES: Final = 64 * 2**20
"""The longest line that is read; what is longer is lost."""
MAX_SALVAGE_BYTES: Final = 4 * 2**20
"""The longest broken line that is searched for whole records."""
MAX_STARTS: Final = 64
"""How many places of one broken line are tried as the start of a record."""
_PIECE_BYTES: Final = 2**20
_HOLE: Final = bytes(_PIECE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What matters of one entry. `role`, `stop`, `text` and `asks_tool` belong to messages.

    `removes`: the id of the entry that this one takes out of the conversation (`context_edit`, replacement null).
    """

    kind: str
    id: str | None = None
    parent: str | None = None
    role: str | None = None
    stop: str | None = None
    text: str = ""
    asks_tool: bool = False
    removes: str | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A stretch of bytes that holds no whole record. `maybe_prompt`: it may have been a user's message."""

    maybe_prompt: bool


Item = Record | Lost


def read_lines(stream: BinaryIO) -> Iterator[bytes | Lost]:
    """Split a file at 0A, with at most one line of `MAX_LINE_BYTES` in memory.

    NUL at the start of a line (a hole in a sparse file) is passed over without being kept, whatever its length.
    """
    while piece := stream.readline(_PIECE_BYTES):
        if piece[0] == 0:
            piece = _skip_hole(stream, piece)
            yield Lost(maybe_prompt=False)
        if piece.endswith(b"\n"):
            yield piece
            continue
        line = bytearray(piece)
        while len(line) < MAX_LINE_BYTES and not line.endswith(b"\n"):
            piece = stream.readline(min(_PIECE_BYTES, MAX_LINE_BYTES - len(line)))
            if not piece:
                break
            line += piece
        if len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
            _skip_line(stream)
            yield Lost(maybe_prompt=True)
        elif line:
            yield bytes(line)


def _skip_hole(stream: BinaryIO, piece: bytes) -> bytes:
    """What follows the NULs, as far as it has been read; empty at the end of the file."""
    while piece == _HOLE:
        piece = stream.readline(_PIECE_BYTES)
    while piece and not (rest := piece.lstrip(b"\0")):
        piece = stream.readline(_PIECE_BYTES)
    return rest if piece else b""


def _skip_line(stream: BinaryIO) -> None:
    while piece := stream.readline(_PIECE_BYTES):
        if piece.endswith(b"\n"):
            return


def read_line(line: bytes) -> list[Item]:
    """The records of one line, and what was lost in it. Never raises."""
    line = line.strip(b" \t\r\n")
    if not line:
        return []
    try:
        return [_from_bytes(line)]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if len(line) > MAX_SALVAGE_BYTES:
            return [Lost(maybe_prompt=True)]
        return list(_salvage(line.decode("utf-8", "replace")))


# -- whole objects -----------------------------------------------------------------------------------------------------


class _Entry(msgspec.Struct, rename="camel"):
    type: Any = None
    id: Any = None
    parent_id: Any = None
    message: msgspec.Raw = msgspec.Raw(b"null")  # kept as bytes: tool results can be tens of megabytes
    target_id: Any = None
    replacement: msgspec.Raw = msgspec.Raw(b"0")


class _Message(msgspec.Struct, rename="camel"):
    role: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    stop_reason: Any = None


_entries: Final = msgspec.json.Decoder(_Entry)
_messages: Final = msgspec.json.Decoder(_Message)


def _from_bytes(line: bytes) -> Item:
    entry = _entries.decode(line)
    if entry.type != "message":
        removes = entry.target_id if entry.type == "context_edit" and bytes(entry.replacement) == b"null" else None
        return _entry(entry.type, entry.id, entry.parent_id, removes)
    if not bytes(entry.message).startswith(b"{"):
        return Lost(maybe_prompt=True)
    message = _messages.decode(entry.message)
    content = msgspec.json.decode(message.content) if message.role == "assistant" else None
    return _message(entry.id, entry.parent_id, message.role, content, message.stop_reason)


def _from_value(value: dict[str, Any]) -> Item:
    kind = value.get("type")
    if kind != "message":
        removes = value.get("targetId") if kind == "context_edit" and value.get("replacement", 0) is None else None
        return _entry(kind, value.get("id"), value.get("parentId"), removes)
    message = value.get("message")
    if not isinstance(message, dict):
        return Lost(maybe_prompt=True)
    return _message(
        value.get("id"), value.get("parentId"), message.get("role"), message.get("content"), message.get("stopReason")
    )


def _entry(kind: Any, own_id: Any, parent: Any, removes: Any) -> Item:
    if not isinstance(kind, str):
        return Lost(maybe_prompt=False)
    return Record(kind=kind, id=_id(own_id), parent=_id(parent), removes=_id(removes))


def _message(own_id: Any, parent: Any, role: Any, content: Any, stop: Any) -> Item:
    if not isinstance(role, str):
        return Lost(maybe_prompt=True)
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if part.get("type") == "text"]
    text = content if isinstance(content, str) else "".join(text for text in texts if isinstance(text, str))
    return Record(
        kind="message",
        id=_id(own_id),
        parent=_id(parent),
        role=role,
        stop=stop if isinstance(stop, str) else None,
        text=_whole_characters(text) if role == "assistant" else "",
        asks_tool=any(part.get("type") == "toolCall" for part in parts),
    )


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole_characters(text: str) -> str:
    """JSON can carry half a surrogate pair; no output of ours can."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# -- broken lines ------------------------------------------------------------------------------------------------------

_START: Final = re.compile(
    r'\{\s*"type"\s*:\s*"(?:session|message|context_edit|compaction|branch_summary|custom|custom_message|label'
    r'|session_info|model_change|thinking_level_change|usage)"'
)
"""Where a record can begin. The parts of a message have other types, and quoted JSON has its quotes escaped."""
_USER: Final = re.compile(r'"role"\s*:\s*"user"')
_decode: Final = json.JSONDecoder().raw_decode


def _salvage(text: str) -> Iterator[Item]:
    """Take every whole record out of a broken line; each stretch between them is lost."""
    at, end = 0, len(text)
    for _ in range(MAX_STARTS):
        if at >= end:
            return
        value, stop, torn = _object(text, at)
        if value is not None and (at == 0 or _record_may_follow(text, stop)):
            yield _from_value(value)
            at = stop
        else:
            found = _START.search(text, at + 1)
            stop = found.start() if found else end
            yield Lost(maybe_prompt=_maybe_prompt(text[at:stop], torn=torn or found is not None or value is not None))
            at = stop
        while at < end and text[at] in " \t\r":
            at += 1
    if at < end:
        yield Lost(maybe_prompt=True)


def _object(text: str, at: int) -> tuple[dict[str, Any] | None, int, bool]:
    """The object that begins at `at`, where it ends, and whether the text ends inside of it."""
    if text[at] != "{":
        return None, at, False
    try:
        value, stop = _decode(text, at)
    except json.JSONDecodeError as error:
        return None, at, error.msg.startswith("Unterminated string") or error.pos >= len(text) - len('"\\uD83D')
    except (ValueError, RecursionError):
        return None, at, False
    return value, stop, False


def _record_may_follow(text: str, at: int) -> bool:
    """Behind a record comes the end of the line or the next record; anything else means that it was part of another."""
    rest = text[at : at + 64].lstrip(" \t\r")
    return not rest or rest.startswith("{")


def _maybe_prompt(fragment: str, *, torn: bool) -> bool:
    """A fragment that names the user was a prompt. Else a record that was cut is none, and a mangled one may be one."""
    return bool(_USER.search(fragment)) or (fragment.startswith("{") and not torn)
