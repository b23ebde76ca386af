"""The symbols of the exhaustive search, and what each makes of the world that a wait looks at.

A history is a tuple of symbol numbers, one a step; a step lasts `STEP_MS`. A symbol takes effect when its step begins.
Only a torn pair has two effects: one half of it shows until the middle of the step, the other one comes then.

    18  turn same / +1 / back, with each of the six statuses    the terminal is there and shows this
     3  finished with code 0, code 3, or by SIGKILL             for good, until the terminal vanishes
     1  vanished                                                there is no such terminal until a later step shows it
     1  look fails                                              in this step no look says anything
     1  prompt                                                  one goes out, unless the supervisor must not send it
     1  interrupt                                               Esc: ends work in idle, and denies a question
     2  torn pair, turn first or status first                   half an update shows
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

STEP_MS: Final = 1_000
"""How long a step lasts."""
TEAR_MS: Final = 500
"""When the second half of a torn pair comes, after the step began."""
START_TURN: Final = 2
"""Turn of the terminal when the wait begins, and the turn remembered before the prompt that it waits for."""
MAX_STEPS: Final = 10
"""Longer histories are not searched exhaustively."""

Kind = Literal["shows", "finished", "vanished", "fails", "prompt", "interrupt", "torn"]


@dataclass(frozen=True, slots=True)
class World:
    """What a look would show. `there` is false while the core knows no such terminal."""

    turn: int = START_TURN
    status: str | None = None
    state: str = "running"
    exit_code: int | None = None
    signal: str | None = None
    there: bool = True

    @property
    def live(self) -> bool:
        """Whether a program runs in it."""
        return self.there and self.state == "running"


@dataclass(frozen=True, slots=True)
class Symbol:
    """One letter of the alphabet. `move` is what it does to the turn, `status` what it makes of the status."""

    name: str
    kind: Kind
    move: int = 0
    status: str | None = None
    exit_code: int | None = None
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """What a step makes of a world: what shows until its middle, what shows from there on, and what else happens.

    `prompt` is the turn remembered before a prompt that went out, None when none did.
    """

    early: World
    late: World
    fails: bool = False
    prompt: int | None = None
    interrupted: bool = False


STATUSES: Final = (None, "idle", "working", "blocked", "done", "error")
MOVES: Final = (("same", 0), ("+1", 1), ("back", -1))

ALPHABET: Final[tuple[Symbol, ...]] = (
    *(
        Symbol(f"{word} {status or 'none'}", "shows", move=move, status=status)
        for word, move in MOVES
        for status in STATUSES
    ),
    Symbol("finished 0", "finished", exit_code=0),
    Symbol("finished 3", "finished", exit_code=3),
    Symbol("killed", "finished", signal="SIGKILL"),
    Symbol("vanished", "vanished"),
    Symbol("look fails", "fails"),
    Symbol("prompt", "prompt"),
    Symbol("interrupt", "interrupt"),
    Symbol("torn turn first", "torn", move=1, status="working"),
    Symbol("torn status first", "torn", move=1, status="done"),
)
"""Simplest first: shrinking goes towards the front."""

NUMBERS: Final = {symbol.name: number for number, symbol in enumerate(ALPHABET)}


@cache
def effect(world: World, number: int) -> Effect:
    """What the step with this symbol makes of a world."""
    symbol = ALPHABET[number]
    match symbol.kind:
        case "vanished":
            gone = replace(world, there=False)
            return Effect(gone, gone)
        case "fails":
            return Effect(world, world, fails=True)
        case "prompt":
            return Effect(world, world, prompt=world.turn if promptable(world) else None)
        case "interrupt":
            after = replace(world, status=_AFTER_ESC.get(world.status, world.status)) if world.live else world
            return Effect(after, after, interrupted=world.live)
        case _ if world.state == "finished":
            return Effect(world, world)
        case "finished":
            ended = replace(world, state="finished", exit_code=symbol.exit_code, signal=symbol.signal, there=True)
            return Effect(ended, ended)
        case "torn" if world.there:
            new = replace(world, turn=world.turn + symbol.move, status=symbol.status)
            half = replace(new, status=world.status) if symbol.status == "working" else replace(new, turn=world.turn)
            return Effect(half, new)
        case _:
            shown = replace(world, turn=max(0, world.turn + symbol.move), status=symbol.status, there=True)
            return Effect(shown, shown)


_AFTER_ESC: Final[dict[str | None, str]] = {"working": "idle", "blocked": "working"}


def promptable(world: World) -> bool:
    """Whether a supervisor sends a prompt into this world: not into a question, nor before the first turn began."""
    return world.live and world.status != "blocked" and (world.turn > 0 or world.status == "working")


def spelled(steps: tuple[int, ...]) -> list[str]:
    """The names of the symbols of a history."""
    return [ALPHABET[number].name for number in steps]
