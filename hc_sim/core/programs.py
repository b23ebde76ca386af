"""Terminals whose program is really started: what the core asks of whoever starts it, and what it is told back.

The core itself starts nothing. It is given a `Starter`; what that returns is the only way to the program from here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hc_sim.core.ending import end
from hc_sim.core.status import change, complete, press
from hc_sim.core.terminal import Entry
from hc_sim.core.watches import Output
from hc_sim.core.world import World
from hc_sim.model import Status
from hc_sim.trace import Event

KEYS = {"Esc": b"\x1b", "Ctrl+C": b"\x03"}
"""The stop keys as bytes."""
ENTER = b"\r"
PASTE_START, PASTE_END = b"\x1b[200~", b"\x1b[201~"


@dataclass(frozen=True, slots=True)
class Launch:
    """A program to start: `argv` as it is, without any shell, with `env` as its whole environment."""

    address: str
    argv: Sequence[str]
    cwd: str
    env: dict[str, str]


class StartError(Exception):
    """The program was not started: why, and what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Program(Protocol):
    """A program that runs in a terminal of its own."""

    @property
    def pid(self) -> int:
        """Its process id; it leads a session and a process group."""

    @property
    def unfinished(self) -> str:
        """The line on its screen that has not ended yet."""

    @property
    def pastes(self) -> bool:
        """Whether it asked that pasted text be bracketed."""

    def type(self, data: bytes) -> bool:
        """Type these bytes; false if nothing was typed because the program does not read."""

    def resize(self, cols: int, rows: int) -> None:
        """Its window has this size now."""

    def hang_up(self, grace_ms: int) -> None:
        """End it and its whole group: hangup, terminate, kill, `grace_ms` apart. Its exit is told when it comes."""

    def abandon(self, grace_ms: int) -> None:
        """As `hang_up`, and nothing is told any more."""


Starter = Callable[[Launch], Program]
"""Starts a program at once. Raises `StartError`."""


def launch(world: World, entry: Entry) -> None:
    """Start the program of a new terminal. Raises `RefusalError`."""
    if world.start_program is None:
        return
    wanted = Launch(entry.address, entry.argv, entry.cwd, entry.env)
    try:
        entry.program = world.start_program(wanted)
    except StartError as error:
        raise world.refusal("spawn_failed", str(error), error.hint) from None
    entry.pid = entry.program.pid


def send_to(world: World, entry: Entry, program: Program, text: str, now: int) -> None:
    """Type a prompt and submit it, whatever its program makes of it. Raises `RefusalError` if it does not read."""
    wanted = world.profile.program_paste
    bracketed = wanted == "always" or (wanted == "asked" and program.pastes)
    if not program.type(as_typed(text, bracketed=bracketed)):
        message = f'the program in terminal "{entry.address}" does not read what was typed before'
        raise world.refusal("send_refused", message)
    world.trace.add(Event(t=now, kind="text", terminal=entry.address, name=entry.name or "", text=text))


def as_typed(text: str, *, bracketed: bool) -> bytes:
    """A text and Enter as they are typed; in brackets, what would be a key is only text."""
    data = text.encode("utf-8", "replace")
    if bracketed:
        data = PASTE_START + data.replace(PASTE_END, b"") + PASTE_END
    return data + ENTER


def press_stop(world: World, entry: Entry, program: Program, key: str, now: int) -> None:
    """Press the stop key; what comes of it, the program decides."""
    press(world, entry, now, key)
    program.type(KEYS[key])


def reported(world: World, entry: Entry, status: Status | None, now: int) -> None:
    """The program reports this. The turn moves by `program_turn`, as there is no script to move it."""
    complete(entry)
    change(world, entry, now, turn=_turn(world, entry, status), status=status, report=True)


def _turn(world: World, entry: Entry, status: Status | None) -> int:
    word = "none" if status is None else status.state
    busy = entry.word in ("working", "blocked")
    if world.profile.program_turn == "work-ends":
        return entry.turn + (busy and word in ("idle", "done", "error"))
    begins = word == "working" and entry.word != "working"
    return entry.turn + (begins and (not busy or world.profile.blocked_to_working_counts))


def printed(world: World, entry: Entry, data: bytes, lines: Sequence[str]) -> None:
    """The program printed something: viewers get it as it is, whoever reads gets the lines."""
    for line in lines:
        entry.print(line)
    if data and entry.views:
        world.watches.news.append(Output(tuple(entry.views), data))


def exited(world: World, entry: Entry, code: int | None, signal: str | None, now: int) -> None:
    """The program has ended: the terminal is finished."""
    entry.program = None
    end(world, entry, now, code=code, signal=signal)
