"""Put a scripted headless `pi` into a folder of the caller's choice, where PATH can point to it."""

import json
import py_compile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from hc_sim.faults import ChildExit
from hc_sim.programs.install import write_program
from hc_sim.programs.pi_rpc.replay import read
from hc_sim.programs.pi_rpc.script import complete

_MODULES = Path(__file__).parent / "pi_rpc"

_SOURCE = '''
"""A scripted headless `pi`; written by hc_sim.programs.install_pi."""
import os
import sys

PROGRAM = os.path.realpath(__file__)
sys.dont_write_bytecode = True
sys.path.insert(0, PROGRAM.rpartition("/")[0])
__import__("pi_rpc.main").main.run(sys.argv[1:], PROGRAM)
'''


def install_pi(
    directory: Path | str,
    script: Mapping[str, Any] | Path | str | None = None,
    *,
    recording: Path | str | None = None,
    exits: Sequence[ChildExit] = (),
    name: str = "pi",
) -> Path:
    """Write a `pi` into `directory` that acts out `script`, or plays `recording`; returns its path.

    `script`: a table of keys, or the path of a .toml or .json file with one; without any, each prompt is answered with
    a greeting. `exits`: how it ends, in the words of a fault plan; they are added to the script.

    Raises `ValueError`, one line that names the key, for a script or a recording that is none; `OSError`.
    """
    whole = complete({**_table(script), **exit_plan(_table(script), exits)} if exits else _table(script))
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    _copy_modules(folder / "pi_rpc")
    (folder / f"{name}.script.json").write_text(json.dumps(whole))
    played = folder / f"{name}.replay.jsonl"
    played.unlink(missing_ok=True)
    if recording is not None:
        read(str(recording))
        played.write_bytes(Path(recording).read_bytes())
    write_program(folder / name, _SOURCE)
    return folder / name


def exit_plan(script: Mapping[str, Any], exits: Sequence[ChildExit]) -> dict[str, Any]:
    """The tables of a script that make it end as the entries of a fault plan say.

    The first that is not `retiring` is its own end, the first that is is how it ends when it is told to.
    """
    own = next((one for one in exits if not one.retiring), None)
    told = next((one for one in exits if one.retiring), None)
    twists, acts = list(script.get("twist") or ()), list(script.get("act") or ())
    if own is not None:
        if own.order == "event-first":
            twists.append({"at": "response:prompt", "nth": 0, "hold_until": "agent_settled"})
        elif own.order == "event-only":
            twists.append({"at": "response:prompt", "nth": 0, "drop": True})
        moment = {"start": "start", "request": "request", "reply": "response:prompt", "event": "agent_settled"}
        end = {"at": moment[own.after], "do": "exit", "holds_pipe_ms": own.holds_pipe_ms}
        acts.append({**end, "signal": own.signal} if own.signal else {**end, "code": own.code})
    plan: dict[str, Any] = {"twist": twists, "act": acts}
    if told is not None:
        plan["stop"] = {"ignores": list(told.ignores), "holds_pipe_ms": told.holds_pipe_ms}
        plan["stop"] |= {"signal": told.signal} if told.signal else {"code": told.code}
    return plan


def _table(script: Mapping[str, Any] | Path | str | None) -> dict[str, Any]:
    if script is None or isinstance(script, Mapping):
        return dict(script or {})
    path = Path(script)
    try:
        given = tomllib.loads(path.read_text()) if path.suffix == ".toml" else json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(given, dict):
        raise ValueError(f"{path}: must be a table of keys")
    return given


def _copy_modules(folder: Path) -> None:
    """Our modules beside the program, compiled: it starts once for every child, and stands alone."""
    (folder / "__pycache__").mkdir(parents=True, exist_ok=True)
    for name, data in _modules().items():
        (folder / name).write_bytes(data)


@cache
def _modules() -> dict[str, bytes]:
    """Path below the folder, and content: each source, and what it compiles to. The same as long as we are."""
    files: dict[str, bytes] = {}
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(_MODULES.glob("*.py")):
            place = Path("__pycache__", Path(cache_from_source(source.name)).name).as_posix()
            compiled = Path(folder) / source.name
            py_compile.compile(
                str(source), str(compiled), f"pi_rpc/{source.name}", doraise=True, invalidation_mode=mode
            )
            files[source.name], files[place] = source.read_bytes(), compiled.read_bytes()
    return files
