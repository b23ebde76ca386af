"""What a command finds around itself: streams that are closed, a reader that leaves, a folder that is gone."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

INTERRUPTED = 130
"""Exit code after Ctrl-C: nothing was found out, so none of the four."""
NOWHERE = Path(os.devnull)
READER_GONE = 141
"""Exit code when nobody reads the output any more: what a program gets that the system ends for it."""


class SurroundingsError(Exception):
    """A command cannot begin here; the message says why."""


def settle_in() -> None:
    """Give closed standard streams somewhere to go. Raises `SurroundingsError` when the current folder is gone.

    Otherwise the next file that is opened would take the number of a standard stream, and its output.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdin = sys.stdin or NOWHERE.open(encoding="utf-8")
    sys.stdout = sys.stdout or NOWHERE.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or NOWHERE.open("w", encoding="utf-8")
    try:
        Path.cwd()
    except OSError as error:
        raise SurroundingsError("the current folder is not there any more; change to one that is") from error


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Within: output that nobody reads any more is dropped."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()


def drop_output() -> None:
    """Let everything that is still to be written to standard output go nowhere."""
    sys.stdout = NOWHERE.open("w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def unwritable(path: Path) -> str:
    """Why a file cannot be written, in words; "" when it can. Leaves no file behind and changes none."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    try:
        if path.is_dir():
            return f"{path} is a folder"
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            return ""  # a device or a pipe: to try it would be to write to it
        is_new = not path.exists()
        with path.open("ab"):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}"
    return ""
