"""Who owns what a live run starts: a process on this machine, known by its number and the moment it began."""

import os
import platform
import re
import secrets
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LABEL: Final = "legion.live"
SPACE: Final = "herdr.space"
PREFIXES: Final = ("lgv", "lgl")
"""How names begin: of terminals that live checks start, and of those that the supervisor starts for them."""
TOKEN: Final = re.compile(r"lv[a-z0-9]{6}")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_MARK = re.compile(
    r"legion-live\.(?P<token>lv[a-z0-9]{6})\.(?P<pid>\d{1,10})\.(?P<start>[0-9a-fx]*)\.(?P<machine>[0-9a-f]{8})"
)
_STAT_START = 19
"""Place of the start time behind the name in /proc/PID/stat."""
_ENDED = ("Z", "X")
"""States of a process that has ended and that nobody has asked about yet."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One run: its token, and the process that it is. `start` is "" where the system does not tell it."""

    token: str
    pid: int
    start: str
    machine: str

    @property
    def mark(self) -> str:
        """The label that everything of this run carries."""
        return f"legion-live.{self.token}.{self.pid}.{self.start}.{self.machine}"

    def named(self, name: str | None) -> bool:
        """Whether a terminal of this name could be this run's."""
        return name is not None and any(name.startswith(f"{prefix}-{self.token}-") for prefix in PREFIXES)

    def gone(self) -> bool:
        """Whether the process is certainly no more. Of another machine that can never be said."""
        if self.machine != this_machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            return False
        fields = _stat(self.pid)
        ended = bool(fields) and fields[0] in _ENDED
        return ended or (bool(self.start) and start_of(self.pid) not in ("", self.start))


def new_owner(token: str = "") -> Owner:
    """This process as the owner of a new run; a cassette brings its own `token`."""
    made = "lv" + "".join(secrets.choice(_ALPHABET) for _ in range(6))
    return Owner(token or made, os.getpid(), start_of(os.getpid()), this_machine())


def read_mark(mark: object) -> Owner | None:
    """The owner that a label names; None if it is no such label."""
    found = _MARK.fullmatch(mark) if isinstance(mark, str) else None
    return None if found is None else Owner(found["token"], int(found["pid"]), found["start"], found["machine"])


def this_machine() -> str:
    """This machine, as eight hexadecimal digits; containers that cannot see each other's processes are two machines."""
    return _digits(f"{platform.node()} {_text('/etc/machine-id')} {_view()}")


def start_of(pid: int) -> str:
    """When a process began, in a form to compare (boot, "x", clock ticks); "" where the system does not tell."""
    fields = _stat(pid)
    boot = _digits(_text("/proc/sys/kernel/random/boot_id"))
    return f"{boot}x{fields[_STAT_START]}" if len(fields) > _STAT_START else ""


def _stat(pid: int) -> list[str]:
    """What the system says of a process, behind its name; nothing where it does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _view() -> str:
    """The processes that can be seen from here, as a name: the same number in another view is another process."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _digits(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
