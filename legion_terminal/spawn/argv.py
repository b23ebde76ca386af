"""D4: the argument list of a child, the same for every backend, and the task as its last element."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

from legion_terminal.errors import SupervisorError
from legion_terminal.types import SpawnRequest

PROGRAM: Final = "pi"
TASK_PREFIX: Final = "Your task, from the supervisor of this run."
"""How every task element begins: a program takes an argument with a leading `-` for an option, with `@` for a file."""
MAX_ARGUMENT_BYTES: Final = 131_071
"""The longest single argument Linux takes (MAX_ARG_STRLEN less its closing NUL), in bytes of UTF-8."""


def terminal_argv(request: SpawnRequest) -> list[str]:
    """The whole command of a terminal child: the program, its options, and the task as one last element (D4).

    Raises SupervisorError `bad-request` for what no argument list can hold.
    """
    return [PROGRAM, *build_pi_args(request, include_task=True)]


def build_pi_args(request: SpawnRequest, *, include_task: bool) -> list[str]:
    """The options of a child, in one fixed order, whatever the backend; the task behind them if asked for (D4).

    Every inherited extension is passed on, providers among them: without its provider a child has no model and
    never takes a turn.

    Raises SupervisorError `bad-request` for a relative session file and for what no argument list can hold.
    """
    if not PurePath(request.session_file).is_absolute():
        raise SupervisorError(
            "bad-request", f"the session file {request.session_file!r} is not an absolute path", child=request.handle
        )
    args = list(_options(request))
    for option, value in zip(["", *args], args, strict=False):
        _check(value, f"the argument after {option}" if option else "the first argument", request.handle)
    if include_task:
        args.append(_task(request))
    return args


def _options(request: SpawnRequest) -> Iterator[str]:
    yield from ("--session", request.session_file)
    if request.model is not None:
        yield from ("--model", request.model)
    if request.provider is not None:
        yield from ("--provider", request.provider)
    if request.tools:
        yield from ("--tools", ",".join(request.tools))
    if request.no_extensions:
        yield "--no-extensions"
    for extension in request.extensions:
        yield from ("-e", extension)
    for skill in request.skills:
        yield from ("--skill", skill)
    if request.no_skills:
        yield "--no-skills"
    if request.no_context_files:
        yield "--no-context-files"
    if request.system_prompt is not None:
        yield from ("--system-prompt", request.system_prompt)


def format_child_task(task: str, *, allow_nested: bool, worktree_branch: str | None) -> str:
    """The task as one argument: a fixed heading, what holds for this child, a blank line, the task as it stands (D4).

    The result begins with neither `-` nor `@`, and ends in `task`, unchanged to the last character.

    Raises SupervisorError `bad-request` for a task that is empty, holds NUL or a half surrogate pair, or makes an
    argument of more than `MAX_ARGUMENT_BYTES`; for a branch that no repository could have.
    """
    if not isinstance(task, str) or not task.strip():
        raise SupervisorError("bad-request", "the task is empty", hint="give the child something to do")
    lines = [TASK_PREFIX]
    if worktree_branch is not None:
        if not worktree_branch or any(char <= " " or char == "\x7f" for char in worktree_branch):
            raise SupervisorError("bad-request", f"{worktree_branch!r} cannot be the name of a branch")
        lines.append(f"You are in a git worktree of your own, on the branch {worktree_branch}: stay on it.")
    lines.append("You may start agents of your own." if allow_nested else "Do not start agents of your own.")
    text = "\n".join(lines) + "\n\n" + task
    _check(text, "the task", "", own=len(text) - len(task))
    return text


def _task(request: SpawnRequest) -> str:
    try:
        return format_child_task(
            request.task, allow_nested=request.allow_nested, worktree_branch=request.worktree_branch
        )
    except SupervisorError as error:
        raise error.about(request.handle) from None


def _check(value: str, what: str, child: str, *, own: int = 0) -> None:
    """Refuse what no argument can be. `own`: how many leading characters are the heading and not the caller's."""
    if "\0" in value:
        raise SupervisorError("bad-request", f"{what} holds a NUL character, and no argument can", child=child)
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise SupervisorError(
            "bad-request",
            f"{what} is not valid Unicode text: half a surrogate pair at character {error.start - own}",
            child=child,
        ) from None
    if size > MAX_ARGUMENT_BYTES:
        heading = f" ({own} of them its heading)" if own else ""
        raise SupervisorError(
            "bad-request",
            f"{what} makes an argument of {size} bytes{heading}, and one argument can have {MAX_ARGUMENT_BYTES}",
            child=child,
            hint="put the long part into a file and name the file in the task",
        )
