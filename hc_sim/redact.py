"""Hide what looks like a secret before a person or a file is shown it; checks work on the values as they are."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from hc_sim.trace import Event

HIDDEN = "(hidden)"

MAX_DEPTH = 64
"""Levels of a value that are looked into; what lies deeper is hidden as a whole."""
MAX_TEXT = 1_000_000
"""Characters of one text that are looked at; a longer one is cut there."""
LONG = 24
"""From this length on a word without any meaning counts as a secret."""
MANY_BITS = 3.6
"""Bits of surprise in each of its characters that make a word meaningless."""

T = TypeVar("T")

_PARTS = "api[-_]?key|key|token|secret|password|passwd|passphrase|bearer|credentials?|cookie|authorization|auth"
_NAME = re.compile(rf"(?:^|[-_. ])(?:{_PARTS})(?:[-_.]|$)", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_KNOWN = re.compile(
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}|\bgh[opsur]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bxox[abops]-[\w-]{10,}"
    r"|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|\bglpat-[\w-]{12,}|\bhf_[A-Za-z0-9]{16,}"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)([A-Za-z0-9._~+/=-]{6,})")
_PAIR = re.compile(r"(?<![\w-])((?:--?)?[A-Za-z_][\w.-]{0,100})(\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;\"'{}\[\]]+)")
_FLAG = re.compile(r"(?<![\w-])(--[A-Za-z][\w-]{0,100})(\s+)(?!-)(\S+)")
_URL = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s:/@]*):([^\s@/]+)@")
_WORD = re.compile(r"[A-Za-z0-9_+=-]{24,}")
_HEX = re.compile(r"(?=.*[0-9])(?=.*[a-fA-F])[0-9a-fA-F]{32,}")
_HEADERS = ("-H", "--header")


def secret_name(name: str) -> bool:
    """Whether a variable, flag or member of this name holds a secret: its name has key, token, secret ... as a part."""
    return _NAME.search(_CAMEL.sub("_", name.lstrip("-"))) is not None


def secret_word(word: str) -> bool:
    """Whether a single word looks like a secret by itself: a known form, or long and without any meaning."""
    if _KNOWN.fullmatch(word) or _HEX.fullmatch(word):
        return True
    kinds = any(map(str.isupper, word)) + any(map(str.islower, word)) + any(map(str.isdigit, word))
    return len(word) >= LONG and kinds == 3 and _bits(word) >= MANY_BITS


def redact_text(text: str) -> str:
    """The text with everything in it hidden that looks like a secret: `NAME=value`, `--flag value`, bearers, words."""
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT] + "..."
    text = _BEARER.sub(rf"\1\2{HIDDEN}", text)
    text = _URL.sub(rf"\1:{HIDDEN}@", text)
    text = _PAIR.sub(lambda found: _hide_pair(found.group(1), found.group(2), found.group(3)), text)
    text = _FLAG.sub(lambda found: _hide_pair(found.group(1), found.group(2), found.group(3)), text)
    text = _KNOWN.sub(HIDDEN, text)
    return _WORD.sub(lambda found: HIDDEN if secret_word(found.group()) else found.group(), text)


def redact_argv(argv: Iterable[Any]) -> list[Any]:
    """The arguments, without what `--flag value`, `--flag=value` and `NAME=value` give to a flag of a secret's name."""
    shown: list[Any] = []
    before = ""
    for argument in argv:
        if not isinstance(argument, str):
            shown.append(redact_value(argument))
            before = ""
            continue
        flag = before.startswith("-") and "=" not in before and not any(map(str.isspace, before))
        if flag and secret_name(before) and not (argument.startswith("--") or before in _HEADERS):
            shown.append(HIDDEN)
            before = ""
            continue
        name, equals, given = argument.partition("=")
        whole = equals and _hides(name) and not any(map(str.isspace, name)) and given[:1] not in ('"', "'")
        shown.append(f"{name}={HIDDEN}" if whole else redact_text(argument))
        before = argument
    return shown


def redact_env(env: Mapping[str, Any]) -> dict[str, Any]:
    """The variables, with the values hidden that are secrets by their name or by their looks."""
    return {
        name: HIDDEN if secret_name(name) and value not in ("", None) else redact_value(value)
        for name, value in env.items()
    }


def redact_value(value: Any, depth: int = 0) -> Any:
    """A JSON value of any shape: `env` and `argv` in it by their own rules, members by name, texts by their looks.

    A member that is just called `key` is not taken for a secret: it is the key that was pressed.
    """
    if depth > MAX_DEPTH:
        return HIDDEN
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {name: _member(str(name), one, depth) for name, one in value.items()}
    if isinstance(value, list | tuple):
        if value and all(isinstance(one, str) for one in value):
            return redact_argv(value)
        return [redact_value(one, depth + 1) for one in value]
    return value


def redact(event: "Event") -> "Event":
    """The same event without what looks like a secret. For what a person or a file is shown."""
    return msgspec.structs.replace(
        event,
        env=redact_env(event.env),
        argv=redact_argv(event.argv),
        labels=redact_env(event.labels),
        params=redact_value(event.params),
        result=redact_value(event.result),
        error=redact_value(event.error),
        text=redact_text(event.text),
        note=redact_text(event.note),
        status=event.status,
    )


def redact_struct(value: T) -> T:
    """The same value of a msgspec type, without what looks like a secret in any of its texts."""
    if not isinstance(value, msgspec.Struct):
        shown: T = redact_value(value)
        return shown
    fields = {name: _field(name, getattr(value, name)) for name in value.__struct_fields__}
    return msgspec.structs.replace(value, **fields)


def _field(name: str, value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return redact_struct(value)
    if isinstance(value, list) and any(isinstance(one, msgspec.Struct) for one in value):
        return [redact_struct(one) for one in value]
    return _member(name, value, 0)


def _member(name: str, value: Any, depth: int) -> Any:
    if name in ("env", "overlay") and isinstance(value, Mapping):
        return redact_env(value)
    if name == "argv" and isinstance(value, list | tuple):
        return redact_argv(value)
    if isinstance(value, str) and value and name.lower() != "key" and secret_name(name):
        return HIDDEN
    return redact_value(value, depth + 1)


def _hide_pair(name: str, between: str, value: str) -> str:
    if not _hides(name):
        inner = _PAIR.sub(lambda found: _hide_pair(found.group(1), found.group(2), found.group(3)), value)
        return f"{name}{between}{inner}"
    if value.startswith(HIDDEN[:7]) or value.lower() in ("bearer", "basic"):
        return f"{name}{between}{value}"
    return f"{name}{between}{HIDDEN}"


def _hides(name: str) -> bool:
    """Whether this name before a value hides it; the word key alone is one that was pressed."""
    return name != "key" and secret_name(name)


def _bits(word: str) -> float:
    total = len(word)
    return -sum(count / total * math.log2(count / total) for count in Counter(word).values())
