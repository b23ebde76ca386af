"""Environments built from nothing: what a supervisor may know, and what this process must not know."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from contracts.hosts.folder import Folder
from contracts.hosts.witness import SYSTEM_PATH
from contracts.scenario import World

FOREIGN_PREFIXES = ("HC_", "PI_SUBAGENT_", "GIT_")
"""Variables of a surrounding hc terminal, agent or repository: a run must neither see nor follow them (A1)."""


def decoys(folder: Path) -> dict[str, str]:
    """Variables of a surrounding session that lead nowhere: whoever reads them instead of its own is seen (A1, D2).

    Every path is below `folder` and stays empty, so that no real core can be reached through them.
    """
    nobody = str(folder / "nobody.sock")
    return {
        "HC_TERMINAL_SOCKET": nobody,
        "HC_TERMINAL_ID": "t-decoy",
        "HC_SOCKET": nobody,
        "HC_SESSION": "decoy",
        "HC_BIN": str(folder / "nobody" / "hc"),
        "PI_SUBAGENT_DEPTH": "3",
        "PI_SUBAGENT_RUN_ID": "decoy",
        "PI_SUBAGENT_WORKTREE": "1",
        "HERDR_ENV": "1",
        "TERM": "decoy",
        "TERM_PROGRAM": "decoy",
        "COLORTERM": "decoy",
    }


def supervisor_env(world: World, folder: Folder, *, parent: str, hc: Path) -> dict[str, str]:
    """The whole environment of a supervisor in this world; nothing of this process's own environment is in it.

    `parent`: address of the terminal it runs in. `hc`: the executable that HC_BIN names.
    """
    path = f"{folder.witness}:{SYSTEM_PATH}" if world.pi is None else f"{folder.witness}:{folder.agents}:{SYSTEM_PATH}"
    env = {"HOME": str(folder.home), "PATH": path, "HC_BIN": str(hc)}
    if world.inside:
        env |= {"HC_TERMINAL_SOCKET": str(folder.socket), "HC_TERMINAL_ID": parent}
    env.update(world.env)
    return {key: value for key, value in env.items() if key not in world.unset}


def is_foreign(name: str) -> bool:
    """Whether a variable belongs to a surrounding hc terminal, agent or repository."""
    return name.startswith(FOREIGN_PREFIXES)


@contextmanager
def hermetic_process(witness: Path, decoys: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Within: this process's environment has no foreign variable, and its PATH begins with the witness (A1, I3).

    `decoys` are laid out instead, for those who look where they should not.
    """
    with surrounded(decoys):
        os.environ["PATH"] = f"{witness}:{os.environ.get('PATH') or SYSTEM_PATH}"
        yield


@contextmanager
def surrounded(decoys: Mapping[str, str]) -> Iterator[None]:
    """Within: this process's environment has these variables and no other foreign one; afterwards it is as before."""
    before = dict(os.environ)
    try:
        scrub(os.environ)
        os.environ.update(decoys)
        yield
    finally:
        _restore(before)


def scrub(environ: "os._Environ[str] | dict[str, str]") -> None:
    """Take every foreign variable out of an environment, in place."""
    for name in [name for name in environ if is_foreign(name)]:
        del environ[name]


def _restore(before: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)
