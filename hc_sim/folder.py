"""Temporary folders for a core's socket: private, short enough for a socket path, and removed even after a kill.

Whoever owns a folder holds a lock on a file in it, which the system takes away from a process that is killed. So the
next owner can tell which folders have none any more, and removes them.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "hc-sim-"
MAX_FOLDER = 70
"""Bytes of a folder's path that leave room for a socket below it."""
MAX_LOOKED_AT = 1_000
"""Folders that are looked at to see whether their owner lives."""
OWNER = "owner"


def private_folder(prefix: str = PREFIX) -> Path:
    """Make a folder of mode 0700 with a random name, where temporary files usually are unless that path is long."""
    usual = tempfile.gettempdir()
    short = usual if len(os.fsencode(usual)) <= MAX_FOLDER else "/tmp"  # noqa: S108 - mkdtemp makes it ours alone
    return Path(tempfile.mkdtemp(prefix=prefix, dir=short))


@contextlib.contextmanager
def owned_folder(prefix: str = PREFIX) -> Iterator[Path]:
    """A private folder that is removed at the end; those beside it whose owners were killed are removed at once."""
    folder = private_folder(prefix)
    lock = _claim(folder)
    try:
        remove_ownerless(folder.parent, prefix)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_ownerless(parent: Path, prefix: str = PREFIX) -> None:
    """Remove our folders in `parent` whose owner is dead. What never had one, or is not ours, stays."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        ours = [entry.path for entry in entries if entry.name.startswith(prefix)]
        for path in ours[:MAX_LOOKED_AT]:
            with contextlib.suppress(OSError):  # it is going or coming at this very moment, or is none of ours
                _remove_if_ownerless(path)


def _claim(folder: Path) -> int:
    """Hold the lock of this folder; the file bears its name only when it is held."""
    draft = folder / f".{OWNER}"
    lock = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    draft.rename(folder / OWNER)
    return lock


def _remove_if_ownerless(path: str) -> None:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    lock = os.open(f"{path}/{OWNER}", os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
