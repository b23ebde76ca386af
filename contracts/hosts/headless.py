"""The scripted `pi` of a world: put where the supervisor's PATH finds it, and what each one that was started saw."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.hosts.folder import Folder
from contracts.hosts.replayed import played
from contracts.hosts.world import WorldError
from contracts.loading.scripts import RECORDINGS, script_of
from contracts.records import PiRecord
from contracts.scenario import Pi, World
from hc_sim.programs import install_pi

LOG: Final = "pi.log.jsonl"
MAX_LOG_BYTES: Final = 64 * 1024 * 1024
"""Of a longer log only this much is read."""


def install_headless(folder: Folder, world: World) -> None:
    """Install the `pi` of a world that has one. Raises `WorldError`."""
    if world.pi is None:
        return
    try:
        recording = _recording(folder, world.pi)
        install_pi(folder.agents, {**script_of(world.pi), "log": LOG}, recording=recording, exits=world.child)
    except (OSError, ValueError) as error:
        raise WorldError(f"world.pi: {error}") from error


def _recording(folder: Folder, pi: Pi) -> Path | None:
    if not pi.recording:
        return None
    lines = (RECORDINGS / f"{pi.recording}.jsonl").read_text(encoding="utf-8").splitlines()
    folder.agents.mkdir(mode=0o700)
    path = folder.agents / "recording.jsonl"
    entries = played([json.loads(line) for line in lines])
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def started(folder: Folder) -> list[PiRecord]:
    """What every `pi` of this run was started with, was told and did, in the order in which they were started."""
    path = folder.agents / LOG
    if not path.is_file():
        return []
    with path.open("rb") as stream:
        data = stream.read(MAX_LOG_BYTES)
    found: dict[int, PiRecord] = {}
    for line in data.splitlines():
        entry = _decoded(line)
        if entry is not None:
            found[entry["pid"]] = _with(found.get(entry["pid"], PiRecord()), entry)
    return list(found.values())


def _with(record: PiRecord, entry: dict[str, Any]) -> PiRecord:
    match entry["what"]:
        case "start":
            argv = entry["argv"][1:]
            leads = entry["pid"] == entry["group"] == entry["session"]
            return PiRecord(argv=argv, session=_session(argv), env=entry["env"], cwd=entry["cwd"], leads=leads)
        case "line":
            return msgspec.structs.replace(record, lines=[*record.lines, entry["line"]])
        case "told":
            return msgspec.structs.replace(record, told=[*record.told, entry["how"]])
        case _:
            return msgspec.structs.replace(record, code=entry["code"], signal=entry["signal"])


def _session(argv: list[str]) -> str:
    places = [place for place, word in enumerate(argv[:-1]) if word == "--session"]
    return argv[places[0] + 1] if places else ""


def _decoded(line: bytes) -> dict[str, Any] | None:
    """One line of the log; None for one that was cut short by the end of the program."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
