"""The fields and types of replies: what the model of the wire says of them, and what a core really sent.

An object is known by a short name: `terminal`, `status`, `document`, or the method whose result it is. All objects of
one name are put together, so that a field that is missing is said once and not for each method.
"""

import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

import msgspec

from hc_sim.model import METHODS, Document, Foreground, ServerStatus, Status, Terminal

MAX_FIELDS: Final = 500
"""Fields of one object that are kept."""

OBJECTS: Final[Mapping[type, str]] = {
    Terminal: "terminal",
    Status: "status",
    Foreground: "foreground",
    Document: "document",
    ServerStatus: "server",
}
"""What is seen in several places, and its name."""
_WORDS: Final[Mapping[type, str]] = {str: "text", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@dataclass(frozen=True, slots=True)
class FieldModel:
    """One field of an object: the types that it may have, whether it is always there, and the object that it holds."""

    types: frozenset[str]
    always: bool
    inner: str = ""


@dataclass(slots=True)
class Seen:
    """All objects of one name: how many, in answers to which methods, and the types of each field."""

    count: int = 0
    methods: set[str] = field(default_factory=set)
    fields: dict[str, set[str]] = field(default_factory=dict)


def models() -> dict[str, dict[str, FieldModel]]:
    """Every object of the model: its fields by name."""
    found: dict[str, dict[str, FieldModel]] = {}
    for method in METHODS.values():
        if isinstance(method.result, type) and issubclass(method.result, msgspec.Struct):
            _add(found, method.result, OBJECTS.get(method.result, method.name))
    return found


def take_in(seen: dict[str, Seen], method: str, name: str, value: Any, known: Mapping[str, Any]) -> None:
    """Put a value that came as `name` to what was seen. `known` are the models, which say where objects are inside."""
    if not isinstance(value, dict):
        return
    entry = seen.setdefault(name, Seen())
    entry.count += 1
    entry.methods.add(method)
    model: Mapping[str, FieldModel] = known.get(name, {})
    for key, one in value.items():
        if len(entry.fields) < MAX_FIELDS or key in entry.fields:
            entry.fields.setdefault(key, set()).add(type_of(one))
        inner = model[key].inner if key in model else ""
        for item in one if isinstance(one, list) else [one]:
            if inner:
                take_in(seen, method, inner, item, known)


def type_of(value: Any) -> str:
    """The type of a JSON value, in a word; of a list or an object, with that of what is in it."""
    if isinstance(value, list):
        return _held("list", map(type_of, value))
    if isinstance(value, dict):
        return "object"
    return _WORDS.get(type(value), "other")


def words(types_: frozenset[str] | set[str]) -> str:
    """Types in words: `integer or null`."""
    return " or ".join(sorted(types_, key=lambda word: (word == "null", word)))


def _held(what: str, inside: Iterator[str]) -> str:
    kinds = sorted(set(inside))
    return f"{what} of {' and '.join(kinds)}" if kinds else what


def _add(found: dict[str, dict[str, FieldModel]], struct: type[msgspec.Struct], name: str) -> None:
    if name in found:
        return
    fields: dict[str, FieldModel] = {}
    found[name] = fields
    omits = struct.__struct_config__.omit_defaults
    hints = typing.get_type_hints(struct)
    for one in msgspec.structs.fields(struct):
        inner = next((part for part in _parts(hints[one.name]) if _is_struct(part)), None)
        fields[one.name] = FieldModel(
            frozenset(_types(hints[one.name])),
            one.required or not (omits or one.default_factory is not msgspec.NODEFAULT),
            "" if inner is None else OBJECTS.get(inner, inner.__name__.lower()),
        )
        if inner is not None:
            _add(found, inner, fields[one.name].inner)


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in typing.get_args(hint):
        yield from _parts(part)


def _is_struct(part: Any) -> TypeGuard[type[msgspec.Struct]]:
    return inspect.isclass(part) and issubclass(part, msgspec.Struct)


def _types(hint: Any) -> Iterator[str]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        for part in typing.get_args(hint):
            yield from _types(part)
    elif origin is typing.Literal:
        yield from {_WORDS[type(value)] for value in typing.get_args(hint)}
    elif origin is list:
        yield "list"
        yield from (f"list of {word}" for word in _types(typing.get_args(hint)[0]))
    elif hint is Any:
        yield "any"
    elif origin is dict or _is_struct(hint):
        yield "object"
    else:
        yield _WORDS.get(hint, "other")
