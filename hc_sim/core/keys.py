"""Bytes that somebody types, cut into texts and keys."""

import codecs
import re
from dataclasses import dataclass

_KEY = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[@-~]|\r\n?|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]+",
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)\Z")
MAX_UNREAD = 64
"""Bytes of a key that has not ended which are kept for the next time; more are taken as they are."""

_NAMES = {
    "\r": "Enter",
    "\n": "Enter",
    "\r\n": "Enter",
    "\x1b": "Esc",
    "\x7f": "Backspace",
    "\b": "Backspace",
    "\t": "Tab",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key that is no text, by its name: `Enter`, `Esc`, `Backspace`, `Tab`, `Ctrl+C`, `Esc[A` ..."""

    name: str


def read_keys(data: bytes) -> tuple[list[str | Key], bytes]:
    """Texts and keys in the order typed, and the bytes at the end of a character or sequence that has not ended.

    A lone Esc is a key, not the beginning of something: programs tell the two apart by time, and here there is none.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    unread = decoder.getstate()[0]
    unfinished = _UNFINISHED.search(text)
    if unfinished is not None and not unread and len(unfinished.group()) <= MAX_UNREAD:
        text, unread = text[: unfinished.start()], unfinished.group().encode()
    return [_key(part) for part in _KEY.findall(text)], unread


def _key(part: str) -> str | Key:
    if part in _NAMES:
        return Key(_NAMES[part])
    if part.startswith("\x1b"):
        return Key("Esc" + part[1:])
    if part < " ":
        return Key(f"Ctrl+{chr(ord(part) + 64)}")
    return part
