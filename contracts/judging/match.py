"""Partial match: what was expected beside what came, as a list of differences by field.

A table matches a table that has at least its keys. A table whose keys are all operators is a test on one value:

`min`, `max` (numbers) · `matches` (regular expression, searched) · `starts` (text or list begins so) · `contains` (text
in text, or an element of a list that matches) · `not` (what must not match) · `one_of` (any of these) · `len` (a number
or operators over it) · `absent = true` (the key is not there or null) · `any = true` (the key is there).
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec


class _Missing:
    """Stands for a key that is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()

SLIP: Final = 0.75
"""How near (of 1) a key must be to the name of a test to be taken for a slip of the pen."""
NO_SLIPS: Final = frozenset({"note", "started", "status"})
"""Keys of results and calls that are near to the name of a test and yet meant."""

MAX_DEPTH = 32
"""Deeper than this no expectation is followed."""


class Difference(msgspec.Struct, frozen=True):
    """One field in which two values differ: a dotted path below the compared value, `""` for the value itself."""

    field: str
    expected: Any
    got: Any


def _at_least(bound: Any, got: Any) -> bool:
    return _is_number(got) and got >= bound


def _at_most(bound: Any, got: Any) -> bool:
    return _is_number(got) and got <= bound


def _matches(pattern: Any, got: Any) -> bool:
    return isinstance(got, str) and re.search(pattern, got, re.DOTALL) is not None


def _starts(beginning: Any, got: Any) -> bool:
    if isinstance(beginning, list):
        return isinstance(got, list) and equal(beginning, got[: len(beginning)])
    return isinstance(got, str) and got.startswith(str(beginning))


def _contains(part: Any, got: Any) -> bool:
    if isinstance(got, str):
        return isinstance(part, str) and part in got
    if isinstance(got, Mapping):
        return isinstance(part, str) and part in got
    return isinstance(got, list | tuple) and any(equal(part, element) for element in got)


def _not(pattern: Any, got: Any) -> bool:
    return not equal(pattern, got)


def _one_of(options: Any, got: Any) -> bool:
    return any(equal(option, got) for option in options)


def _length(expected: Any, got: Any) -> bool:
    return isinstance(got, str | list | tuple | Mapping) and equal(expected, len(got))


def _absent(wanted: Any, got: Any) -> bool:
    return (got is MISSING or got is None) is bool(wanted)


def _any(wanted: Any, got: Any) -> bool:
    return (got is not MISSING and got is not None) is bool(wanted)


OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "min": _at_least,
    "max": _at_most,
    "matches": _matches,
    "starts": _starts,
    "contains": _contains,
    "not": _not,
    "one_of": _one_of,
    "len": _length,
    "absent": _absent,
    "any": _any,
}

_ARGUMENTS: Final[Mapping[str, tuple[type, ...]]] = {
    "min": (int, float),
    "max": (int, float),
    "matches": (str,),
    "starts": (str, list),
    "one_of": (list,),
    "len": (int, dict),
    "absent": (bool,),
    "any": (bool,),
}


def is_operators(pattern: Any) -> bool:
    """Whether a table is a test on one value: not empty, and every key is an operator."""
    return isinstance(pattern, Mapping) and bool(pattern) and all(key in OPERATORS for key in pattern)


def equal(pattern: Any, got: Any) -> bool:
    """Whether `got` matches `pattern` in full."""
    return not differences(pattern, got)


def differences(pattern: Any, got: Any, field: str = "", depth: int = 0) -> list[Difference]:
    """Every field in which `got` does not match `pattern`. Lists are compared element by element and by length."""
    if depth > MAX_DEPTH:
        return [Difference(field, f"at most {MAX_DEPTH} levels", "deeper")]
    if is_operators(pattern):
        return [
            Difference(field, {key: value}, got) for key, value in pattern.items() if not OPERATORS[key](value, got)
        ]
    if isinstance(pattern, Mapping):
        return _table(pattern, got, field, depth)
    if isinstance(pattern, list | tuple):
        return _list(pattern, got, field, depth)
    return [] if _same(pattern, got) else [Difference(field, pattern, got)]


def _table(pattern: Mapping[str, Any], got: Any, field: str, depth: int) -> list[Difference]:
    if not isinstance(got, Mapping):
        return [Difference(field, dict(pattern), got)]
    return [
        difference
        for key, value in pattern.items()
        for difference in differences(value, got.get(key, MISSING), _join(field, key), depth + 1)
    ]


def _list(pattern: list[Any] | tuple[Any, ...], got: Any, field: str, depth: int) -> list[Difference]:
    if not isinstance(got, list | tuple):
        return [Difference(field, list(pattern), got)]
    if len(got) != len(pattern):
        return [Difference(field, list(pattern), list(got))]
    return [
        difference
        for index, value in enumerate(pattern)
        for difference in differences(value, got[index], f"{field}[{index}]", depth + 1)
    ]


def _same(pattern: Any, got: Any) -> bool:
    if isinstance(pattern, bool) or isinstance(got, bool):
        return pattern is got
    return bool(pattern == got)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _join(field: str, key: str) -> str:
    return f"{field}.{key}" if field else key


def pattern_faults(pattern: Any, field: str = "") -> list[tuple[str, str]]:
    """What is wrong with a pattern as written: (field, message) for each mistake that would make it mean nothing."""
    if isinstance(pattern, list | tuple):
        return [fault for index, value in enumerate(pattern) for fault in pattern_faults(value, f"{field}[{index}]")]
    if not isinstance(pattern, Mapping):
        return []
    if is_operators(pattern):
        return [fault for key, value in pattern.items() for fault in _operator_faults(key, value, _join(field, key))]
    return [
        fault
        for key, value in pattern.items()
        for fault in (*_slips(key, pattern, _join(field, key)), *pattern_faults(value, _join(field, key)))
    ]


def _slips(key: str, pattern: Mapping[str, Any], field: str) -> list[tuple[str, str]]:
    """The mistake of a key in a table that is compared literally, when a test on one value was meant."""
    if key in OPERATORS:
        others = ", ".join(repr(other) for other in pattern if other not in OPERATORS)
        return [(field, f"is a test on one value and cannot stand beside {others}")]
    if key in NO_SLIPS:
        return []
    near = get_close_matches(key, OPERATORS, n=1, cutoff=SLIP)
    return [(field, f"there is no test {key!r}; did you mean {near[0]!r}?")] if near else []


def _operator_faults(key: str, value: Any, field: str) -> list[tuple[str, str]]:
    wanted = _ARGUMENTS.get(key)
    if wanted is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)):
        return [(field, f"takes {' or '.join(_WORDS[kind] for kind in wanted)}, not {value!r}")]
    if key == "matches":
        try:
            re.compile(value)
        except re.error as error:
            return [(field, f"not a regular expression: {error}")]
    if key in ("not", "contains", "one_of", "len", "starts"):
        return pattern_faults(value, field)
    return []


_WORDS: Final[Mapping[type, str]] = {
    int: "a number",
    float: "a fraction",
    str: "a text",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}
