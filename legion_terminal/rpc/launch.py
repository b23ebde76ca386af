"""What a headless child is started with: argument list, environment, session file; and whether its start went well."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from legion_terminal.errors import SupervisorError
from legion_terminal.messages import printable
from legion_terminal.rpc.exit_table import Exit
from legion_terminal.rpc.words import NODE_HINT, node_trouble, telling
from legion_terminal.spawn import build_pi_args
from legion_terminal.types import SpawnRequest

MODE: Final = ("--mode", "rpc")
APPROVE: Final = "--approve"
REFUSED: Final = frozenset(("-p", "--print", "--mode", "--approve", "-a", "--no-approve", "-na"))
"""What nothing else on the command line may be, alone or before a `=`: another mode, or a trust that nobody set."""


def rpc_argv(program: Sequence[str], request: SpawnRequest, *, approve: bool) -> list[str]:
    """The command of a headless child: the program in rpc mode, the options of D4, and `--approve` if it is set.

    The task is not in it: it travels as the first prompt. Raises SupervisorError `bad-request`.
    """
    if not program or not program[0]:
        raise SupervisorError("bad-request", "no program is set that could be started", child=request.handle)
    options = build_pi_args(request, include_task=False)
    for value in (*program[1:], *options):
        if value.partition("=")[0] in REFUSED:
            raise SupervisorError(
                "bad-request",
                f"{value!r} cannot stand on the command line of a headless child: its mode is rpc, approval a setting",
                child=request.handle,
            )
    return [*program, *MODE, *options, *([APPROVE] if approve else [])]


def child_env(
    own: Mapping[str, str], memory_env: Mapping[str, str | None], request_env: Mapping[str, str | None]
) -> dict[str, str]:
    """The whole environment of a headless child: the supervisor's own, then the memory settings, then the request's.

    None takes a variable away. Raises SupervisorError `bad-request` for what no environment can hold.
    """
    merged = dict(own)
    for block in (memory_env, request_env):
        for name, value in block.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = value
    for name, value in merged.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or "=" in name or "\0" in name + value:
            raise SupervisorError("bad-request", f"the environment variable {name!r} cannot be set to {value!r}")
    return merged


def check_folder(cwd: str) -> None:
    """Raises SupervisorError `bad-request` when the working folder is not there, or no folder."""
    if not Path(cwd).is_dir():
        what = "is no folder" if Path(cwd).exists() else "does not exist"
        raise SupervisorError("bad-request", f"the working folder {cwd!r} {what}")


def prepare_session(path: str) -> bool:
    """Make the session file, empty and for its owner alone (0600), where it is not there; whether it was made.

    pi makes it readable for all, and only at the first prompt; made by anybody in between, its run fails. Raises
    SupervisorError `bad-request` for anything but a regular file, or when it cannot be made.
    """
    try:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        _check_regular(path)
        return False
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise SupervisorError("bad-request", f"the session file {path!r} cannot be made: {reason}") from error
    return True


def forget_session(path: str) -> None:
    """Remove a session file that was made for a start that failed, if nothing was written to it."""
    try:
        if Path(path).stat().st_size == 0:
            Path(path).unlink()
    except OSError:
        return


def _check_regular(path: str) -> None:
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise SupervisorError(
            "bad-request", f"the session file {path!r} cannot be looked at: {error.strerror}"
        ) from error
    if stat.S_ISREG(mode):
        return
    what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
    raise SupervisorError("bad-request", f"the session file {path!r} is {what}", hint="name a file of its own")


def failed_start(exit_: Exit | None, *, spoke: bool, noise: Sequence[str], stderr: str) -> SupervisorError | None:
    """Why a start failed, as far as the program itself shows it; None when it did not, or ended without a word.

    A program that says nothing and ends is a row of the exit table, like one that ends later; so is one that a signal
    ended, and one that ends with code 0.
    """
    if spoke:
        return None
    if noise:
        ended = f", and ended with {exit_}" if exit_ is not None else ""
        return SupervisorError(
            "protocol",
            printable(f"it does not speak the rpc protocol: it wrote {noise[0]!r}{ended}", 400),
            known="not-applied",
            hint="check that the program is pi, 0.80.4 or later",
        )
    if exit_ is None or exit_.signal is not None or exit_.code in (0, None):
        return None
    words = telling(stderr)
    if words is None:
        return None
    trouble = node_trouble(stderr)
    head = f"it did not start: {trouble}, and it" if trouble else "it did not start: it"
    return SupervisorError(
        "start-failed",
        f"{head} ended with {exit_}: {words}",
        known="not-applied",
        hint=NODE_HINT if trouble else "",
    )
