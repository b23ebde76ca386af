"""One terminal as the core keeps it, and how it is shown on the wire."""

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec

from hc_sim.core.timers import Timer
from hc_sim.model import Foreground, State, Status, Terminal
from hc_sim.profile import WireProfile
from hc_sim.script.format import SendMode
from hc_sim.script.player import Player

if TYPE_CHECKING:
    from hc_sim.core.programs import Program
    from hc_sim.core.watches import Watch

SCREEN_LINES = 24
MAX_SCREEN_LINES = 1000
MAX_QUEUED_TEXTS = 256

SIGNAL_NUMBERS = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGILL": 4,
    "SIGABRT": 6,
    "SIGBUS": 7,
    "SIGFPE": 8,
    "SIGKILL": 9,
    "SIGSEGV": 11,
    "SIGPIPE": 13,
    "SIGTERM": 15,
}

_NOT_SHOWN = frozenset({
    "env", "rm", "session_file", "timer", "dying", "torn", "goal", "app", "send", "composer", "returned", "queue",
    "screen", "waits", "held", "exited", "esc", "escs", "overlay", "gone", "drawn", "program",
})  # fmt: skip
"""Attributes of an entry that its looks do not depend on."""


@dataclass(slots=True, eq=False, kw_only=True)
class Entry:
    """A terminal of the core. Only `status` and `ending` change `turn`, `status` and `state`.

    What is shown is replaced, never changed in place, so that `drawn` can be relied on.
    """

    address: str
    name: str | None
    argv: list[str]
    cwd: str
    labels: dict[str, str]
    env: dict[str, str]
    parent: str | None
    die_with_parent: bool
    keep: bool
    rm: bool
    created_ms: int
    pid: int
    turn: int
    status: Status | None = None
    state: State = "running"
    exit_code: int | None = None
    signal: str | None = None
    session_file: str | None = None
    player: Player | None = None
    timer: Timer | None = None
    """When the player's armed step fires by itself."""
    dying: Timer | None = None
    torn: Timer | None = None
    goal: tuple[int, Status | None] | None = None
    """Turn and status that a torn change leads to, while only its first half shows."""
    app: str | None = None
    send: SendMode = "accept"
    composer: str = ""
    returned: bool = False
    """The composer holds text that Esc gave back, so the next text is glued to it."""
    queue: list[str] = field(default_factory=list)
    screen: list[str] = field(default_factory=list)
    waits: dict[int, Timer] = field(default_factory=dict)
    held: dict[int, Timer] = field(default_factory=dict)
    exited: bool = False
    """Its program has ended, but something still holds the terminal open."""
    zombie: bool = False
    """It has finished, and nobody has reaped its process yet."""
    esc: Timer | None = None
    """An Esc that has not taken effect yet."""
    escs: int = 0
    """How often Esc was pressed since the last text."""
    overlay: bool = False
    """Something is open that eats the next text."""
    stops: dict[int, Timer] | None = None
    """Interrupts whose effect is still watched for."""
    views: "dict[int, Watch] | None" = None
    """Its viewers, by channel."""
    program: "Program | None" = None
    """The program that really runs here."""
    gone: bool = False
    drawn: bytes | None = None
    """How it is shown, encoded, for as long as nothing of it changes."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name not in _NOT_SHOWN:
            object.__setattr__(self, "drawn", None)

    @property
    def live(self) -> bool:
        """Whether its program runs."""
        return self.state == "running"

    @property
    def word(self) -> str:
        """The status word, `none` when nothing is reported."""
        return "none" if self.status is None else self.status.state

    def print(self, line: str) -> None:
        """Put a line on the screen."""
        self.screen.append(line)
        if len(self.screen) > 2 * MAX_SCREEN_LINES:
            del self.screen[:-MAX_SCREEN_LINES]


def view(entry: Entry) -> Terminal:
    """The terminal as a value."""
    live = entry.state == "running"
    return Terminal(
        address=entry.address,
        name=entry.name,
        argv=entry.argv,
        cwd=entry.cwd,
        state=entry.state,
        status=entry.status,
        turn=entry.turn,
        exit_code=entry.exit_code,
        signal=entry.signal,
        labels=dict(entry.labels),
        parent=entry.parent,
        die_with_parent=entry.die_with_parent,
        keep=entry.keep,
        created_ms=entry.created_ms,
        pid=entry.pid if live or entry.zombie else None,
        foreground=Foreground(pid=entry.pid, name=entry.argv[0].rstrip("/").rpartition("/")[2]) if live else None,
    )


def show(entry: Entry, profile: WireProfile) -> dict[str, Any]:
    """The terminal as an object of the wire, in the spelling of `profile`."""
    shown = cast("dict[str, Any]", msgspec.to_builtins(view(entry)))
    shown["state"] = profile.live_state if entry.state == "running" else entry.state
    if profile.signal_style == "exit-128" and entry.signal is not None:
        number = SIGNAL_NUMBERS.get(entry.signal, getattr(signal, entry.signal, 0))
        shown["exit_code"] = 128 + number
        shown["signal"] = None
    for key, spelt in (("exit_code", profile.exit_code_key), ("signal", profile.signal_key)):
        if spelt != key:
            shown[spelt] = shown.pop(key)
    if entry.status is None:
        if profile.no_status == "omit":
            del shown["status"]
    elif profile.absent_keys == "null":
        shown["status"] = {key: getattr(entry.status, key) for key in Status.__struct_fields__}
    return shown
