"""A campaign as a value that can be put down and taken up again: what it is, how far it came, what it has found."""

import os
from pathlib import Path

import msgspec

from contracts.fuzz.batch import Failure, Mode, Report

SCHEMA = 1
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_CORPUS = 2_000
"""Runs that a guided campaign keeps to start others from; the oldest go first. More than any batch looks back on."""
MAX_KEPT = 200
"""Failures that a campaign keeps; more are only counted."""


class SavedError(Exception):
    """A file that holds no campaign, or not this one: in words, why."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign is. Two campaigns of one setting and length find the same, to the byte."""

    seed: int
    mode: Mode = "guided"
    plant: str = ""
    batch_runs: int = 25
    window: int = 8
    """How many batches a batch lags behind what is known, and how many may be under way at a time."""


class State(msgspec.Struct, kw_only=True):
    """How far a campaign came: all batches before `next` are in it, and no other."""

    schema: int = SCHEMA
    setting: Setting
    next: int = 0
    drawn: int = 0
    """Seeds that were handed out: the next batch begins with `setting.seed + drawn`."""
    runs: int = 0
    calls: int = 0
    decisions: int = 0
    virtual_ms: int = 0
    failed: int = 0
    seen: dict[str, int] = {}
    features: dict[str, int] = {}
    """Each feature with the number of the batch that reached it first."""
    corpus: list[tuple[int, list[int]]] = []
    """Runs that reached something new, each with the number of its batch."""
    failures: list[Failure] = []
    disagreements: list[str] = []
    seconds: float = 0.0
    """Time spent so far; no part of what a campaign finds."""


def fold(state: State, report: Report) -> None:
    """Take the report of the next batch in. Raises ValueError for any other."""
    if report.index != state.next:
        raise ValueError(f"batch {report.index} came, and {state.next} is next")
    state.next += 1
    state.drawn += report.drawn
    state.runs += report.runs
    state.calls += report.calls
    state.decisions += report.decisions
    state.virtual_ms += report.virtual_ms
    state.failed += report.failed
    for name, count in report.seen.items():
        state.seen[name] = state.seen.get(name, 0) + count
    new = [feature for feature in report.features if feature not in state.features]
    state.features.update(dict.fromkeys(new, report.index))
    if state.setting.mode == "guided":
        state.corpus = [*state.corpus, *((report.index, choices) for choices in report.fresh)][-MAX_CORPUS:]
    state.failures += report.failures[: MAX_KEPT - len(state.failures)]
    state.disagreements += report.disagreements[: MAX_KEPT - len(state.disagreements)]


def found(state: State) -> bytes:
    """What the campaign has found, without the time it took: the same setting and length give the same bytes."""
    return msgspec.json.encode(msgspec.structs.replace(state, seconds=0.0), order="deterministic")


def save(path: Path, state: State) -> None:
    """Write the campaign, whole or not at all. Raises OSError."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as stream:
        stream.write(msgspec.json.encode(state, order="deterministic"))
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(path)


def load(path: Path, setting: Setting) -> State:
    """The campaign in a file, a new one if the file is not there. Raises `SavedError`; the file is left as it is."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SavedError(f"{path}: larger than any saved campaign")
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except FileNotFoundError:
        return State(setting=setting)
    except OSError as error:
        raise SavedError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SavedError(f"{path}: this is no saved campaign: {error}") from error
    if state.schema != SCHEMA:
        raise SavedError(f"{path}: a saved campaign of schema {state.schema}; this release reads {SCHEMA}")
    if state.setting != setting:
        raise SavedError(f"{path}: another campaign ({_differs(state.setting, setting)}); use another file")
    return state


def seed_in(path: Path) -> int | None:
    """The seed of the campaign in a file, None where there is none to be read: `load` then says why."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=State).setting.seed
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _differs(theirs: Setting, ours: Setting) -> str:
    return ", ".join(
        f"{name} {getattr(theirs, name)!r} there, {getattr(ours, name)!r} asked for"
        for name in Setting.__struct_fields__
        if getattr(theirs, name) != getattr(ours, name)
    )
