"""Find an installed core: which `hc` leads to it, in the supervisor's own order, and whether there is one at all."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contracts.live.problem import LiveError, UsageError
from legion_terminal.host import EXECUTABLE, EXECUTABLE_VAR, is_executable_file, resolve_hc

MAX_SOCKET_BYTES: Final = 107
"""Bytes of a Unix socket path that the operating system takes."""
SOCKET_VARS: Final = ("HC_SOCKET", "HC_TERMINAL_SOCKET")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The way to a core: the executable `hc` (None: only a socket), the socket if one was named, how it was found."""

    hc: str | None
    socket: str | None
    how: str

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """What `hc` is started with: this process's own environment, and the socket if one was named."""
        return dict(env) if self.socket is None else {**env, "HC_SOCKET": self.socket}

    def words(self) -> str:
        """Both in a few words, for a person."""
        way = "a socket" if self.hc is None else self.hc
        return f"{way} ({self.how})" + (f", socket {self.socket}" if self.socket else "")


def find_core(env: Mapping[str, str], *, hc: Path | None = None, socket: Path | None = None) -> Found | None:
    """The way to an installed core, None if there is none.

    `hc` and `socket` are what the user named; then HC_BIN, `hc` on PATH, `~/.local/bin/hc`. A socket alone is enough.
    Raises `UsageError` for a name of the user's that leads nowhere, `LiveError` for such an HC_BIN.
    """
    at = None if socket is None else _checked_socket(socket)
    if hc is not None:
        path = os.path.abspath(hc)  # noqa: PTH100 - links stay as given
        if why := _no_program(path):
            raise UsageError(f"--hc: {path} {why}; name an executable hc")
        return Found(hc=path, socket=at, how="as named")
    named = env.get(EXECUTABLE_VAR)
    if named:
        if why := _no_program(named):
            raise LiveError(f"HC_BIN names {named}, which {why}; correct the variable, or take it away")
        return Found(hc=named, socket=at, how="named by HC_BIN")
    found = resolve_hc(env)
    if found != EXECUTABLE:
        local = found == f"{env.get('HOME')}/.local/bin/{EXECUTABLE}"
        return Found(hc=found, socket=at, how="in ~/.local/bin" if local else "on PATH")
    return None if at is None else Found(hc=None, socket=at, how="no hc was found")


def where_looked(env: Mapping[str, str]) -> str:
    """In words, everywhere that `find_core` looks, for the report of a machine without a core."""
    home = env.get("HOME")
    place = f"in {home}/.local/bin" if home else "in ~/.local/bin"
    return f"there is no hc: HC_BIN is not set, none is on PATH, and none is {place}"


def _checked_socket(socket: Path) -> str:
    path = os.path.abspath(socket)  # noqa: PTH100 - links stay as given
    size = len(os.fsencode(path))
    if size > MAX_SOCKET_BYTES:
        raise UsageError(f"--socket: the path has {size} bytes and the limit is {MAX_SOCKET_BYTES}: {path}")
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError as error:
        raise LiveError(f"--socket: {path}: {error.strerror}; is the core running, and is this its socket?") from error
    if not stat.S_ISSOCK(mode):
        raise LiveError(f"--socket: {path} is not a socket")
    return path


def _no_program(path: str) -> str:
    """Why a path cannot be started, in words that follow it; "" if it can."""
    if is_executable_file(path):
        return ""
    if not Path(path).exists():
        return "is not there"
    return "is a folder" if Path(path).is_dir() else "is not executable"
