"""Recordings of a real agent's terminal: the reports it sent, the keys typed into it, and whose keys they were."""

import base64
import binascii
import json
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from hc_sim.script.format import StatusWord
from hc_sim.script.toml import FileError

MAX_FILE_BYTES = 16 << 20
MAX_RUNS = 1_000
MAX_EVENTS = 10_000
MAX_MS = 3_600_000
ESC_AGAIN_MS = 1_000
"""An Esc that follows another one in the same turn within this time is a person's."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_HOST_ANSWER = re.compile(r"\x1b\]7501;\?[^\x1b\x07]*(\x1b\\|\x07)|\x1b\[\?[0-9;]*[cu]")
_ESC_KEYS = ("\x1b", "\x1b[27u")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f/][^\x00-\x1f\x7f]*")
_STATES: tuple[StatusWord, ...] = ("idle", "working", "blocked", "done", "error")

Act = Literal["said", "steer", "abort", "refused"]


class RecordingError(FileError):
    """A recording file that cannot be imported: the file, the key in it, and what is wrong there."""

    def __init__(self, path: Path, key: str, message: str) -> None:
        super().__init__(path, 0, key, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One recorded event: a report of the program (`osc7501`) or bytes typed into it (`in`)."""

    at_ms: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One recorded run of the program. `exit_code` is negative when a signal ended it."""

    name: str
    events: tuple[Event, ...]
    exit_code: int

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the program, None when it exited by itself."""
        return _signal_name(self.exit_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One thing that matters: the program said something, or the supervisor acts (steer, abort, a refused steer).

    `status` and `turn` are what the terminal shows from then on.
    """

    at_ms: int
    act: Act
    text: str = ""
    status: StatusWord = "none"
    turn: int = 0
    kind: str | None = None
    msg: str | None = None
    app: str = "pi"


def read_runs(path: Path) -> list[Run]:
    """The runs in a recording file: an object of name to `{"events": [[seconds, kind, text], ...], "exit": code}`."""
    try:
        with path.open("rb") as stream:  # what has no size, such as a device, has an end here too
            data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise RecordingError(path, "", f"larger than {MAX_FILE_BYTES} bytes")
        document = json.loads(data, object_pairs_hook=lambda pairs: _unique(path, pairs))
    except OSError as error:
        raise RecordingError(path, "", error.strerror or "cannot be read") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise RecordingError(path, "", f"not JSON: {error}") from error
    if not isinstance(document, dict) or not document:
        raise RecordingError(path, "", "expected an object of run name to run")
    if len(document) > MAX_RUNS:
        raise RecordingError(path, "", f"more than {MAX_RUNS} runs")
    return [_run(path, name, run) for name, run in document.items()]


def _unique(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise RecordingError(path, key, "given twice")
        found[key] = value
    return found


def _run(path: Path, name: str, run: object) -> Run:
    if not _NAME.fullmatch(name):
        raise RecordingError(path, name, "a run's name has 1 to 64 of a-z, 0-9 and -, and does not begin with -")
    if not isinstance(run, dict) or set(run) != {"events", "exit"}:
        raise RecordingError(path, name, "expected an object with exactly `events` and `exit`")
    code, events = run["exit"], run["events"]
    if not isinstance(code, int) or isinstance(code, bool) or not (0 <= code <= 255 or _signal_name(code)):
        raise RecordingError(path, f"{name}.exit", f"expected an exit code or a negative signal number, got {code!r}")
    if not isinstance(events, list) or len(events) > MAX_EVENTS:
        raise RecordingError(path, f"{name}.events", f"expected a list of at most {MAX_EVENTS} events")
    read = tuple(_event(path, f"{name}.events[{at}]", event) for at, event in enumerate(events))
    for at, (before, after) in enumerate(pairwise(read), 1):
        if after.at_ms < before.at_ms:
            raise RecordingError(path, f"{name}.events[{at}]", "earlier than the event before it")
    return Run(name=name, events=read, exit_code=code)


def _event(path: Path, key: str, event: object) -> Event:
    if not isinstance(event, list) or len(event) != 3:
        raise RecordingError(path, key, "expected [seconds, kind, text]")
    seconds, kind, text = event
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds * 1000 <= MAX_MS:
        raise RecordingError(path, key, f"expected seconds between 0 and {MAX_MS // 1000}, got {seconds!r}")
    if kind not in ("osc7501", "in") or not isinstance(text, str):
        raise RecordingError(path, key, 'expected kind "osc7501" or "in" and a text')
    if kind == "osc7501" and text != "?":
        try:
            _report(text)
        except ValueError as error:
            raise RecordingError(path, key, str(error)) from error
    return Event(at_ms=round(seconds * 1000), kind=kind, text=text)


def _report(payload: str) -> Moment:
    """An OSC 7501 payload as what it makes the terminal show; `state=clear` shows nothing."""
    pairs = dict(pair.split("=", 1) for pair in payload.split(":") if "=" in pair)
    word = pairs.get("state", "")
    if word == "clear":
        return Moment(at_ms=0, act="said")
    status = next((state for state in _STATES if state == word), None)
    if status is None:
        raise ValueError(f"unknown state in {payload!r}")
    try:
        text = base64.b64decode(pairs["msg"], validate=True).decode() if "msg" in pairs else None
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"msg is not base64 of UTF-8 in {payload!r}") from error
    return Moment(at_ms=0, act="said", status=status, kind=pairs.get("kind"), msg=text, app=pairs.get("app", "pi"))


def _signal_name(code: int) -> str | None:
    try:
        return signal.Signals(-code).name if code < 0 else None
    except ValueError:
        return None


def moments(run: Run) -> Iterator[Moment]:
    """The run without the host's own answers and without the keys that are a person's.

    A supervisor's prompt is plain text and CR, in one write or two, submitted after the first turn began: its first
    prompt travels in argv. Sent to an open dialog it would answer the dialog, so there the supervisor must refuse it,
    and the effect stays as if a person had typed it. A lone Esc is its interrupt while a status is reported (without
    one, a core would press another key), but not a second one shortly after: an abort presses once.
    """
    status: StatusWord = "none"
    turn = 0
    pressed: tuple[int, int] | None = None
    events = iter(enumerate(run.events))
    for at, event in events:
        following = run.events[at + 1] if at + 1 < len(run.events) else None
        if event.kind == "osc7501" and event.text != "?":
            said = _report(event.text)
            turn += said.status == "working" and status not in ("working", "blocked")
            status = said.status
            yield replace(said, at_ms=event.at_ms, turn=turn)
        elif event.kind == "in" and event.text in _ESC_KEYS and status != "none":
            if pressed is not None and pressed[0] == turn and event.at_ms - pressed[1] <= ESC_AGAIN_MS:
                continue
            pressed = (turn, event.at_ms)
            yield Moment(at_ms=event.at_ms, act="abort", status=status, turn=turn)
        elif event.kind == "in" and not _HOST_ANSWER.fullmatch(event.text):
            submitted = event
            if following is not None and (following.kind, following.text) == ("in", "\r") and event.text[-1:] != "\r":
                submitted = replace(following, text=event.text + "\r")
                next(events)
            text = submitted.text[:-1]
            if turn > 0 and submitted.text.endswith("\r") and _PLAIN.fullmatch(text):
                act: Act = "refused" if status == "blocked" else "steer"
                yield Moment(at_ms=submitted.at_ms, act=act, text=text, status=status, turn=turn)
