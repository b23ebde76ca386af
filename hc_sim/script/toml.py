"""Read a TOML file into a typed value; every mistake is reported with file, line, key and the nearest right name."""

import difflib
import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from hc_sim.script.places import Key, dotted, line_of

__all__ = ["FileError", "dotted", "find_unknown", "line_of", "nearest", "parse_toml", "read_toml"]

T = TypeVar("T")

MAX_FILE_BYTES = 4 * 1024 * 1024
"""A file that a person writes is smaller than this; anything larger is refused unread."""

_PATH_PART = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`")
_MISSING = re.compile(r"Object missing required field `(.+?)`")
_ENUM = re.compile(r"Invalid enum value (.+?)(?: - at|$)")
_SYNTAX_AT = re.compile(r" \(at line (\d+), column (\d+)\)$| \(at end of document\)$")


class FileError(Exception):
    """A file that cannot be used: `path`, `line` (from 1; 0 = the file as a whole), dotted `key`, and `message`."""

    def __init__(self, path: str | Path, line: int, key: str, message: str) -> None:
        self.path = str(path)
        self.line = line
        self.key = key
        self.message = message
        place = f"{self.path}:{line}" if line else self.path
        super().__init__(f"{place}: {key}: {message}" if key else f"{place}: {message}")


def read_toml(path: str | Path, type_: type[T]) -> T:
    """Read the file at `path` as a `type_`. Raises `FileError` for anything that is wrong with it."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FileError(path, 0, "", f"larger than {MAX_FILE_BYTES} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise FileError(path, 0, "", f"cannot be read: {error.strerror or error}") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(path, line, "", "is not UTF-8") from error
    return parse_toml(text, type_, path=path)


def parse_toml(text: str, type_: type[T], *, path: str | Path = "<text>") -> T:
    """Read TOML text as a `type_`; `path` is only named in errors. Raises `FileError`."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, text, str(error)) from error
    except RecursionError as error:
        raise FileError(path, 0, "", "nested too deeply") from error
    try:
        return msgspec.convert(tree, type_, strict=True)
    except msgspec.ValidationError as error:
        unknown = find_unknown(tree, type_)  # the mistake that most other mistakes come from, and slow to look for
        if unknown is None:
            raise _type_error(path, text, tree, type_, str(error)) from error
        key, names = unknown
        raise FileError(path, line_of(text, key), dotted(key), _unknown_message(str(key[-1]), names)) from error


def find_unknown(tree: Any, type_: Any) -> tuple[Key, Sequence[str]] | None:
    """The first key in `tree` that `type_` does not have, with the names that it has there; None when all are known."""
    struct = _struct_of(type_)
    if struct is not None and isinstance(tree, Mapping):
        members = _members(struct)
        for key, value in tree.items():
            if key not in members:
                return (key,), list(members)
            found = find_unknown(value, members[key])
            if found is not None:
                return (key, *found[0]), found[1]
    item = _item_of(type_)
    if item is not None and isinstance(tree, list):
        for index, value in enumerate(tree):
            found = find_unknown(value, item)
            if found is not None:
                return (index, *found[0]), found[1]
    return None


def nearest(name: str, names: Sequence[str]) -> str:
    """A phrase that offers the nearest of `names`, or lists them when nothing is near."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not close and len(name) > 1:
        close = sorted(known for known in names if known.startswith(name))
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(sorted(names))


def _syntax_error(path: str | Path, text: str, message: str) -> FileError:
    place = _SYNTAX_AT.search(message)
    if place is None:
        return FileError(path, 0, "", f"is not TOML: {message}")
    line = int(place.group(1)) if place.group(1) else max(1, len(text.splitlines()))
    return FileError(path, line, "", f"is not TOML: {message[: place.start()]}")


def _type_error(path: str | Path, text: str, tree: Any, type_: Any, message: str) -> FileError:
    head, _, where = message.rpartition(" - at `$")
    key = _key_of(where.rstrip("`")) if head else ()
    key = _resolve(tree, key)
    said = head or message
    missing = _MISSING.search(said)
    if missing is not None:
        return FileError(path, line_of(text, key), dotted((*key, missing.group(1))), "is required but missing")
    enum = _ENUM.search(said)
    if enum is not None:
        words = _words_at(type_, key)
        hint = f"; {nearest(str(enum.group(1)).strip(chr(39)), words)}" if words else ""
        return FileError(path, line_of(text, key), dotted(key), f"{enum.group(1)} is not one of the known words{hint}")
    return FileError(path, line_of(text, key), dotted(key), said[:1].lower() + said[1:])


def _key_of(where: str) -> Key:
    parts: list[str | int] = []
    for match in _PATH_PART.finditer(where):
        name, index = match.groups()
        parts.append(name if name is not None else (int(index) if index != "..." else "..."))
    return tuple(parts)


def _resolve(tree: Any, key: Key) -> Key:
    """Replace the `[...]` of a path into a table by that table's only possible name, where there is just one."""
    fixed: list[str | int] = []
    for part in key:
        if part == "..." and isinstance(tree, Mapping) and len(tree) == 1:
            part = next(iter(tree))
        fixed.append(part)
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            tree = None
    return tuple(fixed)


def _words_at(type_: Any, key: Key) -> list[str]:
    for part in key:
        if isinstance(part, int):
            type_ = _item_of(type_)
            continue
        struct = _struct_of(type_)
        if struct is None:
            return []
        members = _members(struct)
        if part not in members:
            return []
        type_ = members[part]
    return [word for word in _literals(type_) if isinstance(word, str)]


def _literals(type_: Any) -> list[Any]:
    found: list[Any] = []
    for argument in get_args(type_):
        found += _literals(argument) if get_origin(argument) is not None else [argument]
    return found


def _choices(type_: Any) -> tuple[Any, ...]:
    """The members of a union, with what annotations wrap taken out; a plain type is its own only member."""
    origin = get_origin(type_)
    if origin is Annotated:
        return _choices(get_args(type_)[0])
    if origin in (Union, UnionType):
        return tuple(choice for member in get_args(type_) for choice in _choices(member))
    return (type_,)


@functools.cache
def _members(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Name in the file to type, for every member of a struct."""
    hints = get_type_hints(struct)
    names = zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True)
    return {written: hints[name] for written, name in names}


def _struct_of(type_: Any) -> type[msgspec.Struct] | None:
    for candidate in _choices(type_):
        if isinstance(candidate, type) and issubclass(candidate, msgspec.Struct):
            return candidate
    return None


def _item_of(type_: Any) -> Any:
    for candidate in _choices(type_):
        if get_origin(candidate) in (list, tuple):
            return get_args(candidate)[0]
    return None


def _unknown_message(name: str, names: Sequence[str]) -> str:
    return f"unknown key {name!r}; {nearest(name, names)}"
