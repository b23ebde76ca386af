"""Rules of names, environments and arguments, as pure functions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from hc_sim.profile import WireProfile
from hc_sim.script.format import Match

NAME_RULE = "1 to 32 characters of a-z, 0-9, - and _"
MAX_NAME = 32

_LONG_OPTIONS = "session model provider tools extension skill system-prompt name mode tui-mode"
OPTIONS_WITH_VALUE = frozenset({"-e", *(f"--{name}" for name in _LONG_OPTIONS.split())})
"""Options of `pi` that take the next element of argv as their value."""

_NAME = re.compile(r"[a-z0-9_-]{1,32}")


def valid_name(name: str) -> bool:
    """Whether `name` is 1 to 32 characters of `a-z`, `0-9`, `-`, `_`."""
    return _NAME.fullmatch(name) is not None


def effective_env(
    profile: WireProfile, core_env: Mapping[str, str], overlay: Mapping[str, str], address: str, socket: str
) -> dict[str, str]:
    """What a program sees: a minimal environment, the core's own, the overlay over it, and the two markers last."""
    return {
        "PATH": profile.core_path,
        **core_env,
        **overlay,
        "HC_TERMINAL_ID": address,
        "HC_TERMINAL_SOCKET": socket,
    }


def env_fault(env: Mapping[str, str]) -> str | None:
    """What is wrong with an overlay, in words, or None."""
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            return f"{name!r} is not a name of a variable"
        if "\0" in value:
            return f"the value of {name} holds a NUL byte"
    return None


def size_fault(profile: WireProfile, argv: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Why the operating system would not start this program for its sizes, in words and bytes, or None."""
    total = 0
    for place, text in _strings(argv, env):
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > profile.max_arg_bytes:
            return f"argument list too long: {place} has {size} bytes, the limit is {profile.max_arg_bytes}"
        total += size + 1
    if total > profile.max_args_bytes:
        return f"argument list too long: {total} bytes in all, the limit is {profile.max_args_bytes}"
    return None


def matches(match: Match, name: str | None, argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether an agent with this `match` plays the terminal."""
    if match.name is not None and (name is None or not fnmatchcase(name, match.name)):
        return False
    if any(element not in argv for element in match.argv_has):
        return False
    if match.last_arg_starts and not (argv and argv[-1].startswith(tuple(match.last_arg_starts))):
        return False
    return all(_env_matches(env.get(variable), glob) for variable, glob in match.env.items())


def session_file(argv: Sequence[str], cwd: str) -> str | None:
    """The path after `--session` in `argv` (the last one), made absolute by `cwd`; None when there is none."""
    for index in range(len(argv) - 2, -1, -1):
        if argv[index] == "--session":
            path = argv[index + 1]
            return path if path.startswith("/") else f"{cwd.rstrip('/')}/{path}"
    return None


def task_in(argv: Sequence[str]) -> str | None:
    """The task that `argv` gives to an agent: its last element, if that is neither an option nor the value of one."""
    if len(argv) < 2 or argv[-1].startswith("-") or not argv[-1]:
        return None
    return None if argv[-2] in OPTIONS_WITH_VALUE else argv[-1]


def _env_matches(value: str | None, glob: str) -> bool:
    if glob == "!":
        return value is None
    return value is not None and fnmatchcase(value, glob)


def _strings(argv: Sequence[str], env: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for index, argument in enumerate(argv):
        yield f"argv[{index}]", argument
    for name, value in env.items():
        yield f"variable {name}", f"{name}={value}"
