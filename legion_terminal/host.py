"""D2 and D3: is this process inside an hc terminal, and which executable leads to its core."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

SOCKET_VAR: Final = "HC_TERMINAL_SOCKET"
ID_VAR: Final = "HC_TERMINAL_ID"
EXECUTABLE_VAR: Final = "HC_BIN"
EXECUTABLE: Final = "hc"


def terminal_host_available(env: Mapping[str, str]) -> bool:
    """Whether both markers of an hc terminal are set and not empty (D2). Looks at `env` and at nothing else."""
    return bool(env.get(SOCKET_VAR)) and bool(env.get(ID_VAR))


def is_executable_file(path: str) -> bool:
    """Whether `path` is a file (links followed) that this process may execute."""
    return Path(path).is_file() and os.access(path, os.X_OK)


def resolve_hc(env: Mapping[str, str], *, is_executable: Callable[[str], bool] = is_executable_file) -> str:
    """Which executable to start for `hc connect` (D3): the first of four that there is.

    1. `HC_BIN`, as it stands: who names an executable gets that one or an error about it, never another.
    2. The first `hc` on `PATH`. Empty elements of PATH are skipped: they would mean the current folder.
    3. `~/.local/bin/hc`, where the installer puts it; an hc terminal's own PATH does not lead there.
    4. The bare name `hc`, so that the start fails with that name in its message.
    """
    named = env.get(EXECUTABLE_VAR)
    if named:
        return named
    folders = [folder for folder in env.get("PATH", "").split(os.pathsep) if folder]
    home = env.get("HOME")
    if home:
        folders.append(f"{home}/.local/bin")
    candidates = (f"{folder}/{EXECUTABLE}" for folder in folders)
    return next((path for path in candidates if is_executable(path)), EXECUTABLE)
