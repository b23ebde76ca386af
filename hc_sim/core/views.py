"""`events.subscribe` and `terminal.attach`, and what a viewer does to the terminal in front of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hc_sim.core.answers import Answer, Stream
from hc_sim.core.calls import Handler, must_live
from hc_sim.core.events import as_output
from hc_sim.core.keys import Key, read_keys
from hc_sim.core.status import change, deliver, give_back, make_status, press
from hc_sim.core.terminal import SCREEN_LINES, Entry, show
from hc_sim.core.timeline import called, escape, play_due
from hc_sim.core.watches import Facts, Output, Watch
from hc_sim.core.world import World
from hc_sim.model import AttachParams, Nothing
from hc_sim.trace import Event
from hc_sim.wire.frames import MAX_CHANNEL

MAX_COMPOSER = 65_536
"""Characters of an unsent text; what is typed beyond is not kept."""
MAX_SIDE = 65_535


@dataclass(frozen=True, slots=True)
class Typed:
    """Somebody pressed these keys."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Replied:
    """The viewer's own terminal sent these bytes, as an answer to a query: nobody typed."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """The viewer has this many columns and rows now."""

    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Focused:
    """The viewer has, or has no more, the attention of a person."""

    on: bool


@dataclass(frozen=True, slots=True)
class Told:
    """The viewer says something about itself that means nothing here."""

    data: bytes


ViewerAct = Typed | Replied | Resized | Focused | Told


def subscribe(world: World, params: Nothing, now: int, conn: int) -> Any:
    """`events.subscribe`: open a stream of events."""
    return _opened(_open(world, conn, None))


def attach(world: World, params: AttachParams, now: int, conn: int) -> Any:
    """`terminal.attach`: open a stream of what a terminal shows, beginning with its screen."""
    profile = world.profile
    for name, side in (("cols", params.cols), ("rows", params.rows)):
        if side is not None and not 1 <= side <= MAX_SIDE:
            raise world.refusal("invalid_params", f"{name} must be 1 to {MAX_SIDE}")
    entry = world.find(params.terminal)
    called(world, entry, now, "terminal.attach")
    entry = world.find(params.terminal) if entry.gone else entry
    must_live(world, entry)
    watch = _open(world, conn, entry)
    if params.cols is not None and params.rows is not None:
        _resize(world, entry, params.cols, params.rows, now)
    if profile.attach_facts:
        world.watches.news.append(Facts((watch.channel,), show(entry, profile)))
    if profile.attach_replay and entry.screen:
        world.watches.news.append(Output((watch.channel,), as_output(entry.screen[-SCREEN_LINES:])))
    if profile.attach_sees:
        see(world, entry, now)
    return _opened(watch)


def carry_out(world: World, channel: int, act: ViewerAct, now: int) -> None:
    """A viewer acts. Nothing happens if its stream has ended."""
    watch = world.watches.find(channel)
    if watch is None or watch.entry is None:
        return
    entry = watch.entry
    match act:
        case Typed(data):
            _type(world, watch, entry, data, now)
        case Replied(data):
            _note(world, entry, now, "viewer reply", data)
            if entry.program is not None:
                entry.program.type(data)
        case Resized(cols, rows):
            _resize(world, entry, cols, rows, now)
        case Focused(on):
            watch.focused = on
            _note(world, entry, now, "focus on" if on else "focus off")
            if on and world.profile.focus_sees:
                see(world, entry, now)
        case Told(data):
            _note(world, entry, now, "facts", data)


def see(world: World, entry: Entry, now: int) -> None:
    """Somebody has seen the result of the last turn: `done` becomes `idle`."""
    if entry.word == "done":
        change(world, entry, now, turn=entry.turn, status=make_status("idle", entry.app), report=True)


def _open(world: World, conn: int, entry: Entry | None) -> Watch:
    profile, watches = world.profile, world.watches
    if watches.count(conn) >= profile.max_channels:
        message = f"there are {profile.max_channels} streams on this connection already"
        raise world.refusal("limit_reached", message, "close some, or open another connection")
    channel = watches.next_channel(profile.first_channel, profile.channel_step)
    if channel > MAX_CHANNEL:
        raise world.refusal("limit_reached", "every channel number was used already", "start the core again")
    return watches.open(channel, conn, entry)


def _opened(watch: Watch) -> Answer:
    terminal = "" if watch.entry is None else watch.entry.address
    return Answer({"channel": watch.channel}, stream=Stream(watch.channel, terminal))


def _type(world: World, watch: Watch, entry: Entry, data: bytes, now: int) -> None:
    parts, watch.unread = read_keys(watch.unread + data)
    if entry.program is not None:
        entry.program.type(data)
    for part in parts:
        press(world, entry, now, part.name if isinstance(part, Key) else part)
        if entry.program is not None:
            continue
        if isinstance(part, str):
            entry.composer = (entry.composer + part)[:MAX_COMPOSER]
        elif part.name == "Backspace":
            entry.composer = entry.composer[:-1]
        elif part.name == "Enter":
            _enter(world, entry, now)
        elif part.name == "Esc" and (entry.player is not None or entry.status is not None):
            if entry.player is not None and entry.player.agent.interrupt == "esc":
                give_back(entry)
            escape(world, entry, now)
        if not entry.live:
            return


def _enter(world: World, entry: Entry, now: int) -> None:
    """What stands in the input is submitted; before a dialog, Enter answers it and the text stays where it is."""
    if not entry.composer or entry.word == "blocked":
        return
    text, entry.composer, entry.returned = entry.composer, "", False
    deliver(world, entry, now, text, busy=entry.word == "working")
    play_due(world, entry, now)


def _resize(world: World, entry: Entry, cols: int, rows: int, now: int) -> None:
    _note(world, entry, now, f"resize {cols}x{rows}")
    if entry.program is not None:
        entry.program.resize(cols, rows)


def _note(world: World, entry: Entry, now: int, note: str, data: bytes = b"") -> None:
    text = data.decode("utf-8", "backslashreplace")
    world.trace.add(
        Event(t=now, kind="view", terminal=entry.address, name=entry.name or "", note=note, text=text),
    )


STREAM_CALLS: Mapping[str, Handler] = {"events.subscribe": subscribe, "terminal.attach": attach}
