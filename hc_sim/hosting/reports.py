"""OSC 7501: what a program says about itself in one sequence, read by the rules of the program status protocol."""

import base64
import binascii
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, cast, get_args

PREFIX = b"7501;"
MAX_KEY = 16
MAX_ID, MAX_LEVELS = 128, 8
MAX_TITLE, MAX_MSG = (256, 192), (2_732, 2_048)
"""Bytes of base64, and of the text in it."""

State = Literal["idle", "working", "done", "blocked", "error", "clear"]
BlockKind = Literal["permission", "question", "auth"]

_KEY = re.compile(r"[a-z]{1,16}")
_VALUE = re.compile(r"[A-Za-z0-9_.,+/=-]*")
_WORD = re.compile(r"[A-Za-z0-9_.+-]{1,32}")
_NUMBER = re.compile(r"[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class Report:
    """One report. `id` is the path of the record, empty for the program itself; what was not said is None."""

    state: State
    id: str = ""
    kind: BlockKind | None = None
    progress: int | None = None
    app: str | None = None
    title: str | None = None
    msg: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """The program asks whether this terminal understands reports."""


class _DiscardError(Exception):
    """The report is over a limit or ill-formed where that costs the whole of it."""


def read_command(body: bytes) -> Report | Query | None:
    """What an operating system command says; None if it is no report, or one that counts for nothing."""
    if not body.startswith(PREFIX):
        return None
    said = body[len(PREFIX) :]
    if said.strip() == b"?":
        return Query()
    try:
        return _report(said.decode("ascii", "replace"))
    except _DiscardError:
        return None


def _report(said: str) -> Report | None:
    pairs = list(_pairs(said))
    values = dict(pairs)
    state = values.get("state")
    if state not in get_args(State):
        return None
    ids = [_path(value) for key, value in pairs if key == "id"]
    path = ids[-1] if ids else ""
    if state == "clear":
        return Report("clear", path)
    apps = [_app(value) for key, value in pairs if key == "app"]
    titles = [_text(value, *MAX_TITLE) for key, value in pairs if key == "title"]
    messages = [_text(value, *MAX_MSG) for key, value in pairs if key == "msg"]
    return Report(
        state=cast("State", state),
        id=path,
        kind=_kind(values.get("kind")) if state == "blocked" else None,
        progress=_progress(values.get("progress")) if state in ("working", "blocked") else None,
        app=apps[-1] if apps else None,
        title=titles[-1] if titles else None,
        msg=messages[-1] if messages else None,
    )


def _pairs(said: str) -> list[tuple[str, str]]:
    """The pairs that are well-formed, in order; the others are passed over."""
    found = []
    for pair in said.split(":"):
        key, equals, value = (part.strip(" \t") for part in pair.partition("="))
        if equals and _KEY.fullmatch(key) and _VALUE.fullmatch(value):
            found.append((key, value))
    return found


def _path(value: str) -> str:
    segments = value.split("/")
    if len(value) > MAX_ID or len(segments) > MAX_LEVELS or not all(map(_WORD.fullmatch, segments)):
        raise _DiscardError
    return value


def _app(value: str) -> str | None:
    if len(value) > 32:
        raise _DiscardError
    return value if _WORD.fullmatch(value) else None


def _kind(value: str | None) -> BlockKind | None:
    return cast("BlockKind", value) if value in get_args(BlockKind) else None


def _progress(value: str | None) -> int | None:
    if value is None or not _NUMBER.fullmatch(value) or int(value) > 100:
        return None
    return int(value)


def _text(value: str, encoded: int, decoded: int) -> str:
    if len(value) > encoded or ("=" in value and len(value) % 4):
        raise _DiscardError
    try:
        data = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        text = data.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise _DiscardError from None
    if len(data) > decoded or any(unicodedata.category(letter) == "Cc" for letter in text):
        raise _DiscardError
    return text
