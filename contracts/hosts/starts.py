"""Which programs a start of a process names, and a count of the git that this very process starts (I3).

The witness on PATH counts every git that is found by its name, whoever starts it. What it cannot see is a git that is
called by its path; this process's own starts of that kind are seen by an audit hook. A hook cannot be taken back, so
there is one for the whole life of the process, and outside of `counting_git` it does nothing.
"""

import functools
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, Final

from contracts.hosts.witness import count_git

GIT: Final = "git"
STARTS: Final = frozenset(("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"))
"""Audit events that start a program or become one; every other way to start one ends in one of them."""

_SHELLS: Final = frozenset(("sh", "bash", "dash", "ksh", "zsh"))
_BEFORE_A_COMMAND: Final = frozenset(
    ("exec", "command", "env", "nohup", "time", "if", "then", "else", "while", "do", "!", "{")
)
_ASSIGNMENT: Final = re.compile(r"\w+=.*", re.DOTALL)

_counting: list[Path] = []
"""The witnesses of the runs that are counted now, the innermost last; one hook serves the whole process."""


def programs(event: str, args: Sequence[Any]) -> list[str]:
    """The programs that an audit event is about to start, as written; what a shell is told to start is among them."""
    if event == "os.system":
        return in_shell_text(os.fsdecode(args[0]))
    words = [os.fsdecode(word) for word in args[1]]
    return [os.fsdecode(args[0]), *_told_to_a_shell(os.fsdecode(args[0]), words[1:])]


def in_shell_text(text: str) -> list[str]:
    """The words of a shell command that name a program; none when the quotes of the text do not close."""
    lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found = []
    expected, is_file = True, False
    with suppress(ValueError):
        for word in lexer:
            if word[0] in "<>":
                is_file = True
            elif word[0] in "();|&":
                expected, is_file = True, False
            elif is_file:
                is_file = False
            elif expected and word not in _BEFORE_A_COMMAND and not _ASSIGNMENT.fullmatch(word):
                found.append(word)
                expected = False
    return found


def is_git(program: str) -> bool:
    """Whether a program, by name or by path, is git."""
    return PurePath(program).name == GIT


@contextmanager
def counting_git(witness: Path) -> Iterator[None]:
    """Within: a git that this process starts past the witness in this folder is counted there as well."""
    _hook_up()
    _counting.append(witness)
    try:
        yield
    finally:
        _counting.pop()


@functools.cache
def _hook_up() -> None:
    sys.addaudithook(_hear)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not _counting or event not in STARTS:
        return
    if event == "os.posix_spawn" and sys._getframe(1).f_globals.get("__name__") == "subprocess":
        return  # the second half of a subprocess.Popen that was heard already
    with suppress(Exception):  # an error here would forbid the start, and the run would be judged by that
        _count(event, args)


def _count(event: str, args: tuple[Any, ...]) -> None:
    env = {"subprocess.Popen": 3, "os.posix_spawn": 2, "os.exec": 2}.get(event)
    path = _path_of(args[env] if env is not None else None)
    for program in filter(is_git, programs(event, args)):
        found = program if "/" in program else shutil.which(program, path=path)
        searched = event == "os.exec" and not (found and os.access(found, os.X_OK))
        if not searched and not _is_witness(found):
            count_git(_counting[-1])


def _path_of(env: Mapping[Any, Any] | None) -> str | None:
    """The PATH by which a program is found, None for this process's own."""
    if env is None:
        return None
    named = {os.fsdecode(key): os.fsdecode(value) for key, value in env.items()}
    return named.get("PATH", os.defpath)


def _is_witness(program: str | None) -> bool:
    return program is not None and os.path.realpath(program) == os.path.realpath(_counting[-1] / GIT)


def _told_to_a_shell(program: str, arguments: Sequence[str]) -> list[str]:
    if PurePath(program).name not in _SHELLS:
        return []
    flags = (place for place, word in enumerate(arguments) if re.fullmatch(r"-[a-z]*c[a-z]*", word))
    place = next(flags, len(arguments))
    return in_shell_text(arguments[place + 1]) if place + 1 < len(arguments) else []
