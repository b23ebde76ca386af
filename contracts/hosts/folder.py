"""The temporary folder that one run lives in: short path, mode 0700, always removed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOCKET_PATH_BYTES = 107
"""The longest Unix socket path that Linux takes."""

ROOM_BYTES = 28
"""What a run needs below its root for `hc-XXXXXXXX/s/core.sock`, with a reserve."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Where everything of one run lives. `path` is the `{dir}` of a scenario."""

    path: Path

    @property
    def home(self) -> Path:
        """The supervisor's HOME."""
        return self.path / "home"

    @property
    def work(self) -> Path:
        """Where its agents work (`{cwd}`); a git repository when the world says so."""
        return self.path / "work"

    @property
    def programs(self) -> Path:
        """Where the `hc` executable lies; deliberately not on PATH."""
        return self.path / "bin"

    @property
    def agents(self) -> Path:
        """Where the scripted `pi` lies, on PATH in a world that has one."""
        return self.path / "agents"

    @property
    def witness(self) -> Path:
        """First entry of PATH: the git that counts."""
        return self.path / "witness"

    @property
    def socket(self) -> Path:
        """The core's socket, in a folder of its own that only the owner can enter."""
        return self.path / "s" / "core.sock"

    def session(self, handle: str) -> Path:
        """The session file of the child with this handle."""
        safe = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in handle)[:64]
        return self.path / f"session-{safe or 'unnamed'}.jsonl"

    def listing(self) -> set[str]:
        """Every file, socket and link below, relative to the folder; folders only when they are empty."""
        found: set[str] = set()
        for root, folders, files in os.walk(self.path):
            inside = Path(root).relative_to(self.path)
            found.update(str(inside / name) for name in files)
            found.update(str(inside / name) for name in folders if not any((Path(root) / name).iterdir()))
        return found


def private_folder(root: str | None = None, room: int = ROOM_BYTES) -> Path:
    """A fresh folder of mode 0700 below `root` (default: the system's own), or below /tmp when the path would get so
    long that a socket `room` bytes further down could not be bound.
    """
    base = root or tempfile.gettempdir()
    if len(os.fsencode(base)) > SOCKET_PATH_BYTES - room:
        base = "/tmp"  # noqa: S108 - the folder below it is private and has a random name
    return Path(tempfile.mkdtemp(prefix="hc-", dir=base))


@contextmanager
def world_folder(root: str | None = None) -> Iterator[Folder]:
    """A fresh folder with its sub-folders, removed at the end whatever happened. `root` defaults to the system's own.

    A root so long that a socket below it could not be bound gives way to `/tmp`.
    """
    folder = Folder(private_folder(root))
    try:
        for path in (folder.home, folder.work, folder.programs, folder.witness, folder.socket.parent):
            path.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
