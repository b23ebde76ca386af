"""The timeline file format: what a scripted agent does, and what makes it do it.

A timeline is a list of steps that fire in the order written. A step is *armed* when the step before it has fired (the
first one when its terminal starts); its counters (`nth`, `after_observations`) count from that moment. All times are
integer milliseconds.
"""

from typing import Annotated, Literal, dataclass_transform

import msgspec

from hc_sim.knobs import Knob

StatusWord = Literal["none", "idle", "working", "blocked", "done", "error"]
SendMode = Literal["accept", "unconfirmed", "refuse", "hold", "swallow", "fuse"]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Strict(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True, kw_only=True):
    """Base of everything a person writes: an unknown key is an error."""


class Finish(Strict):
    """How the program ended: an exit code, or the name of the signal that ended it (`"SIGKILL"`)."""

    code: int | None = None
    signal: str | None = None


class FileWrite(Strict):
    """What the agent does to its session file (the value after `--session` in its argv), byte for byte.

    Set one of `append`, `append_hex`, `replace` or `remove`. `replace` writes a new file and renames it over the old
    one. `newline` (default true) ends an `append` or `replace` with a line feed.
    """

    append: Annotated[str | None, Knob("adds text: a torn tail, a glued, bad, foreign or late record", 12)] = None
    append_hex: Annotated[str | None, Knob("adds any bytes: half a character, a mark, NUL", 12)] = None
    replace: Annotated[str | None, Knob("writes a new file and renames it over the old one, under its reader", 12)] = (
        None
    )
    remove: Annotated[bool, Knob("removes the file", 12)] = False
    newline: Annotated[bool, Knob("false: the text is not ended by a line feed", 12)] = True
    times: Annotated[int, Knob("the text comes so many times: size", 12)] = 1


class Reborn(Strict):
    """The terminal comes back under the same address and name as another incarnation (core restart, successor).

    It gets a new `created_ms`, turn 0 and no status; `argv` defaults to a bare shell.
    """

    argv: Annotated[list[str], Knob("what runs in the terminal that came back", 5, 10)] = msgspec.field(
        default_factory=lambda: ["/bin/bash"]
    )
    parent: Annotated[str | None, Knob("its parent now: a successor's terminal", 5, 10)] = None
    new_core_id: Annotated[bool, Knob("the core has another id now", 5)] = False


class Step(Strict):
    """One step of a timeline: exactly one trigger, and at least one effect.

    Triggers: `at_ms` (since the terminal started), `after_ms` (since the step before fired), `on_call` with `nth` (the
    n-th such call on this terminal: the effect is visible in that call's own reply), `after_observations` (after n
    answers to `terminal.get`, `terminal.list` or `terminal.wait` have shown this terminal: the next one sees the
    effect), `by_hand` (fired by name from outside), `on_prompt` = true (a prompt is there that no such step has taken
    yet: a text that was sent, or the task that ends argv).
    """

    at_ms: int | None = None
    after_ms: int | None = None
    on_call: str | None = None
    nth: int = 1
    after_observations: int | None = None
    by_hand: str | None = None
    on_prompt: bool | None = None

    turn: Annotated[int | None, Knob("the turn is this now, higher or lower than before", 6)] = None
    turn_add: Annotated[int | None, Knob("the turn grows by this much: a turn begins, asked for or not", 6)] = None
    status: Annotated[
        StatusWord | None,
        Knob("the status is this now: any order, any time between two looks, done withdrawn, error and back, none", 6),
    ] = None
    kind: Annotated[
        Literal["permission", "question", "auth"] | None, Knob("what a blocked agent waits for, with or without end", 6)
    ] = None
    msg: Annotated[str | None, Knob("the words of the status", 6)] = None
    app: Annotated[str | None, Knob("the program that reports", 6)] = None
    finish: Annotated[Finish | None, Knob("the program ends by itself, with this code or by this signal", 9)] = None
    vanish: Annotated[bool, Knob("the terminal is gone, as if it had never been", 9)] = False
    file: FileWrite | None = None
    reborn: Annotated[Reborn | None, Knob("another incarnation takes the place of the terminal", 5, 10)] = None
    rename: Annotated[str | None, Knob("somebody gives the terminal another name, or none", 10)] = None
    labels: Annotated[dict[str, str] | None, Knob("somebody sets labels", 10)] = None
    composer: Annotated[str | None, Knob("unsent text stands in the composer", 7)] = None
    send: Annotated[SendMode | None, Knob("what a text that is sent meets from now on; see agent.send", 7)] = None
    note: str | None = None
    """A word for pictures and reports; `note = "work ends"` marks the moment from which a hazard's cost is counted."""


class Match(Strict):
    """Which started terminal an agent plays. All that is set must hold; nothing set matches every terminal.

    `name` is a glob over the terminal's name. `argv_has`: each of these is an element of argv. `last_arg_starts`: the
    last element of argv begins with one of these. `env`: variable to glob, over the effective environment; the glob
    `"!"` demands that the variable is absent.
    """

    name: str | None = None
    argv_has: list[str] = []
    last_arg_starts: list[str] = []
    env: dict[str, str] = {}


class Agent(Strict):
    """A scripted agent: which terminal it plays, its manners, and its timeline.

    `uses`: how many terminals it plays before the next matching agent takes over (0 = no limit). `status`/`turn`: state
    at start. `send`: what a `terminal.send` meets: `accept` (taken, started true), `unconfirmed` (taken, started
    false), `refuse` (error, nothing taken), `hold` (answered after `hold_ms`, then as accept), `swallow` (answered as
    taken, but a dialog ate it: nothing reaches the agent as a prompt), `fuse` (taken behind the composer's unsent
    text).
    `kill_ms`: delay between the answer to `terminal.kill` and the end of the program, null = it never ends by it.
    `repeat_from`: after the last step, arm the step with this index again.
    """

    match: Match = Match()
    uses: int = 0
    turn: int = 0
    status: StatusWord = "none"
    app: str = "pi"
    send: Annotated[
        SendMode,
        Knob("accept; unconfirmed: started is false; refuse; hold: answered later; swallow: a dialog eats it; fuse", 7),
    ] = "accept"
    hold_ms: Annotated[int, Knob("how long a text is held back when send is hold", 7)] = 60_000
    boot_ms: Annotated[int, Knob("a text that comes earlier than this after the start is dropped", 7)] = 0
    input: Annotated[
        Literal["paste", "lines"], Knob("paste: a text is one prompt; lines: each of its lines is one", 7)
    ] = "paste"
    composer: Annotated[str, Knob("unsent text that stands in the composer at the start", 7)] = ""
    queued: Annotated[bool, Knob("text sent while working waits for the end of the turn; Esc gives it back", 7)] = False
    """Esc gives text that was sent while working back to the composer, as the real `pi` does."""
    interrupt: Annotated[
        Literal["esc", "no-effect", "overlay"],
        Knob("esc ends work; no-effect; overlay: as esc, but a second Esc opens an overlay that eats the next text", 8),
    ] = "esc"
    esc_ms: Annotated[int, Knob("Esc takes effect so long after it was answered", 8)] = 0
    esc_alt: Annotated[
        bool, Knob("a text that comes within esc_ms makes Alt and its first letter of Esc: no stop, a letter lost", 8)
    ] = False
    kill_ms: Annotated[
        int | None, Knob("the program ends so long after a kill was answered; null: it never does", 9)
    ] = 0
    kill_signal: Annotated[str, Knob("the signal that ends a killed program", 9)] = "SIGHUP"
    kill_code: Annotated[int | None, Knob("it catches the signal and exits with this code instead", 9)] = None
    """The program catches the signal of a kill and exits with this code instead, as the real `pi` does with 0."""
    parent_end: Annotated[
        Literal["ends", "outlives", "early"],
        Knob(
            "a child that is to die with its parent ends then; outlives: its request came too late and it lives on; "
            "early: it is hung up parent_ms after its start although the parent lives",
            9,
        ),
    ] = "ends"
    parent_ms: Annotated[int, Knob("how long that takes", 9)] = 0
    survivors: Annotated[list[str], Knob("programs of its own that outlive it; the trace names them", 9, 15)] = []
    eof_ms: Annotated[
        int, Knob("after the exit something holds the terminal open so long, and only then it has finished", 9)
    ] = 0
    zombie_ms: Annotated[int, Knob("its process stays so long unreaped: finished, but with a pid", 9)] = 0
    repeat_from: int | None = None
    after_esc: int | None = None
    """The step that is armed when Esc has ended work; null: the timeline goes on as if nothing had happened."""
    step: list[Step] = []
