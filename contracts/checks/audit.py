"""Run a piece of Python in a process of its own and see which processes, sockets and files it touches.

An audit hook cannot be taken back, so it never enters this process. The piece calls `watch()` when its imports are
done, and `forget()` before it does something that is not meant.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any, Final

from contracts.checks.base import Subject
from contracts.hosts.witness import SYSTEM_PATH

LIMIT_S = 60
"""Bound for one watched process."""

PROCESS_EVENTS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
)
SOCKET_EVENTS = ("socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname")
FILE_EVENTS = (
    "open",
    "os.listdir",
    "os.scandir",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "shutil.copyfile",
    "tempfile.mkstemp",
)

LOOK_EVENTS = ("os.stat", "os.lstat", "os.access", "os.readlink")
"""Looks at the file system that no audit event tells of; the watched process reports them itself."""
IMPORT_EVENTS = ("import",)
COMMANDS: Final = {"subprocess.Popen": 2, "os.posix_spawn": 2, "os.exec": 2, "os.system": 1}
"""Events whose first arguments are the program and its command line, or the text for a shell; how many they are."""

_FRAME = """
import json, os, sys
_watching = False
_events = []

def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else repr(value)

def _hook(event, args):
    watched = ("subprocess.", "os.", "pty.", "socket.", "open", "shutil.", "tempfile.", "import")
    if _watching and event.startswith(watched):
        _events.append([event, repr(args)[:400], _plain(args[:{commands!r}.get(event, 1)])])

sys.addaudithook(_hook)

def _reported(name):
    look = getattr(os, name)
    def reporting(*args, **kwargs):
        _hook("os." + name, args)
        return look(*args, **kwargs)
    setattr(os, name, reporting)

for _name in ("stat", "lstat", "access", "readlink"):
    _reported(_name)

def watch():
    global _watching
    _watching = True

def forget():
    global _watching
    _watching = False

sys.path.insert(0, {root!r})
{code}
forget()
sys.stdout.write("\\n" + json.dumps(_events))
"""


@dataclass(frozen=True, slots=True)
class Touched:
    """One audit event: its name, its arguments as text, and the first of them (see `COMMANDS`) as plain values."""

    event: str
    arguments: str
    first: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.event} {self.arguments}"


class WatchedFailedError(Exception):
    """The watched piece itself did not run to its end."""


def touched(
    code: str, subject: Subject, *, kinds: tuple[str, ...] = PROCESS_EVENTS + SOCKET_EVENTS + FILE_EVENTS
) -> list[Touched]:
    """What the piece of code touched between `watch()` and `forget()`, only events of these kinds.

    The package of the subject comes first on the import path. Raises `WatchedFailedError` when the piece raises.
    """
    frame = _FRAME.format(root=str(subject.root), code=code, commands=COMMANDS)
    with tempfile.TemporaryDirectory(prefix="hc-") as home:
        done = subprocess.run(
            [sys.executable, "-B", "-c", frame],
            cwd=home,
            env={"HOME": home, "PATH": SYSTEM_PATH},
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    if done.returncode != 0:
        raise WatchedFailedError(f"exit code {done.returncode}: {done.stderr.strip()[-2_000:]}")
    events = json.loads(done.stdout.rpartition("\n")[2])
    return [Touched(event, arguments, tuple(first)) for event, arguments, first in events if event in kinds]
