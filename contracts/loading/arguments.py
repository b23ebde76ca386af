"""What the arguments of a step may be: which there are, which must be there, and what each one has to look like."""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from contracts.scenario import Step
from contracts.sut.base import METHODS

SUT_CALLS: Final = {name: takes for name, takes in METHODS.items() if name != "cancel"}
"""Calls on the system under test and the arguments that they take; `cancel` is a move here."""
MOVES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "fire": (("name",), ()),
    "pause": (("ms",), ()),
    "until": (("calls",), ("count",)),
    "join": ((), ()),
    "cancel": ((), ()),
    "write": (("file", "text"), ("append",)),
    "restart": ((), ("ms",)),
}
"""Moves of the world, with the arguments that each one needs and those that it may have."""
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "steer": ("text",),
    "prompt": ("text",),
    "follow_up": ("text",),
    "card.load": ("text",),
}
"""Arguments without which a call cannot be made."""
HARNESS_ARGUMENTS: Final = frozenset({"child", "token"})
"""Arguments that the harness fills in; a scenario names the child with the step's own `child`."""
MAX_MS: Final = 10**10
"""No time in a scenario is longer (115 days)."""
UNSET: Final = {"unset": True}
"""In the environment of a spawn: a variable that is there without a value."""
_OWN_PLACES: Final = re.compile(r"\{(dir|home|cwd|session)(:[A-Za-z0-9_-]+)?\}")

Found = Iterator[tuple[str, str]]
"""The place below the value (`[2]`, `.PATH`, or nothing) and what is wrong there."""


def argument_faults(step: Step) -> Found:
    """Everything that is wrong with the arguments of a step that exists: dotted key below the step, and message."""
    needed, others = MOVES.get(step.do, (NEEDED.get(step.do, ()), ()))
    allowed = {*needed, *others} if step.do in MOVES else SUT_CALLS[step.do] - HARNESS_ARGUMENTS
    for name in needed:
        if name not in step.args:
            yield f"args.{name}", f"is missing; {step.do} needs it"
    for name, value in step.args.items():
        if name not in allowed:
            takes = ", ".join(sorted(allowed)) or "none"
            yield f"args.{name}", f"{step.do} has no such argument{_nearest(name, allowed)} (it takes {takes})"
            continue
        for place, message in _CHECKS.get((step.do, name), _CHECKS.get(("", name), _text))(value):
            yield f"args.{name}{place}", message


def path_fault(path: str) -> str:
    """Why a path is no file in the run's own folder, in words; "" when it is one."""
    own = _OWN_PLACES.match(path)
    rest = path[own.end() :] if own else path
    if "\0" in path:
        return "holds a NUL character, which no file name can"
    if path.strip() in ("", ".") or path.endswith("/"):
        return f"{path!r} names no file"
    if own is not None and own.group(1) != "session" and not rest.strip("/"):
        return f"{path!r} is a folder"
    if (own is None and path.startswith("/")) or ".." in path.split("/"):
        return "is outside the run's folder"
    return ""


def variable_faults(variables: Mapping[str, Any]) -> Found:
    """What is wrong with the names of environment variables, and with values that hold a NUL."""
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name:
            yield f".{name}", f"{name!r} is no name of a variable: it is empty, or has = or NUL in it"
        elif isinstance(value, str) and "\0" in value:
            yield f".{name}", "holds a NUL character, which no variable can"


def _nearest(name: str, names: set[str] | frozenset[str]) -> str:
    close = get_close_matches(name, sorted(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _text(value: Any) -> Found:
    if not isinstance(value, str):
        yield "", f"must be a text, not {_shown(value)}"


def _truth(value: Any) -> Found:
    if not isinstance(value, bool):
        yield "", f"must be true or false, not {_shown(value)}"


def _texts(value: Any) -> Found:
    if not isinstance(value, list):
        yield "", f"must be a list of texts, not {_shown(value)}"
        return
    for index, one in enumerate(value):
        yield from ((f"[{index}]", message) for _, message in _text(one))


def _number(least: int) -> Callable[[Any], Found]:
    def check(value: Any) -> Found:
        if not isinstance(value, int) or isinstance(value, bool):
            yield "", f"must be a whole number, not {_shown(value)}"
        elif not least <= value <= MAX_MS:
            yield "", f"must be from {least} to {MAX_MS}, not {value}"

    return check


def _any_number(value: Any) -> Found:
    """A timeout may be any number: what a supervisor makes of odd ones is its affair."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        yield "", f"must be a number, not {_shown(value)}"


def _variables(value: Any, *, unset: bool = False) -> Found:
    if not isinstance(value, dict):
        yield "", f"must be a table of variables, not {_shown(value)}"
        return
    yield from variable_faults(value)
    for name, one in value.items():
        if not isinstance(one, str) and not (unset and one == UNSET):
            yield f".{name}", f"must be a text{' or { unset = true }' * unset}, not {_shown(one)}"


def _spawned_variables(value: Any) -> Found:
    return _variables(value, unset=True)


def _file(value: Any) -> Found:
    if not isinstance(value, str):
        yield from _text(value)
    elif fault := path_fault(value):
        yield "", fault


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"the text {value!r}" if isinstance(value, str) else repr(value)


_CHECKS: Final[Mapping[tuple[str, str], Callable[[Any], Found]]] = {
    ("spawn", "env"): _spawned_variables,
    ("", "env"): _variables,
    ("", "tools"): _texts,
    ("", "extensions"): _texts,
    ("", "skills"): _texts,
    ("", "worktree"): _truth,
    ("", "allowNested"): _truth,
    ("", "approve"): _truth,
    ("", "confirmed"): _truth,
    ("", "minFreeMb"): _number(0),
    ("", "noExtensions"): _truth,
    ("", "noSkills"): _truth,
    ("", "noContextFiles"): _truth,
    ("", "append"): _truth,
    ("", "timeoutMs"): _any_number,
    ("", "ms"): _number(0),
    ("", "count"): _number(1),
    ("write", "file"): _file,
}
"""By step and argument, or by argument alone, the check of its value; every other argument is a text."""
