"""Turn, status, texts and keys of a terminal.

Two rules hold for everything here. A finished terminal keeps the turn and the status it had. The turn moves only when a
script says so (or, by `turn_rule`, when work starts).
"""

from hc_sim.core.composer import take_in
from hc_sim.core.events import is_focused, show_line, tell_terminal
from hc_sim.core.kin import tell_parent
from hc_sim.core.terminal import MAX_QUEUED_TEXTS, Entry
from hc_sim.core.waits import end_stops, end_waits
from hc_sim.core.world import World
from hc_sim.model import Status
from hc_sim.notifications import EventName
from hc_sim.trace import Event


def make_status(word: str, app: str | None, *, kind: str | None = None, msg: str | None = None) -> Status | None:
    """The status that a program reports; None for `none`. A `kind` counts only beside `blocked`."""
    if word == "none":
        return None
    return Status(state=word, app=app, kind=kind if word == "blocked" else None, msg=msg)  # type: ignore[arg-type]


def change(
    world: World,
    entry: Entry,
    now: int,
    *,
    turn: int | None = None,
    status: Status | None = None,
    report: bool = False,
) -> None:
    """Move turn (if given) and status (if `report`) of a live terminal, as one snapshot unless the profile tears it."""
    if not entry.live:
        return
    shown = (entry.turn, entry.status)
    complete(entry)
    profile = world.profile
    ends = report and entry.word == "working" and status is not None and status.state == "idle"
    if status is not None and ends and profile.derive_done and not is_focused(entry):
        status = replace_state(status, "done")
    word = ("none" if status is None else status.state) if report else entry.word
    if turn is None and profile.turn_rule == "work-starts" and word == "working" and entry.word != "working":
        turn = entry.turn + (entry.word != "blocked" or profile.blocked_to_working_counts)
    new_turn = entry.turn if turn is None else turn
    new_status = status if report else entry.status
    if (new_turn, new_status) == shown:
        entry.turn, entry.status = shown
        return
    if profile.torn == "no" or new_turn == entry.turn or new_status == entry.status:
        _show_change(world, entry, now, new_turn, new_status)
        return
    half = (new_turn, entry.status) if profile.torn == "turn-first" else (entry.turn, new_status)
    _show_change(world, entry, now, *half)
    entry.goal = (new_turn, new_status)
    entry.torn = world.timers.at(now + profile.torn_ms, lambda due: _mend(world, entry, due))


def complete(entry: Entry) -> None:
    """If a torn change shows only its first half, take over the second half now, before something else follows."""
    if entry.torn is not None and entry.goal is not None:
        entry.torn.cancel()
        entry.turn, entry.status = entry.goal
        entry.torn = entry.goal = None


def give_back(entry: Entry) -> None:
    """Esc is pressed: text that waited for the end of the turn goes back to the composer."""
    if entry.queue:
        entry.composer += "".join(entry.queue)
        entry.queue.clear()
        entry.returned = True


def replace_state(status: Status, word: str) -> Status:
    """The same report with another state."""
    return Status(state=word, app=status.app, kind=None, msg=status.msg, title=status.title)  # type: ignore[arg-type]


def _mend(world: World, entry: Entry, now: int) -> None:
    goal, entry.goal, entry.torn = entry.goal, None, None
    if goal is not None:
        _show_change(world, entry, now, *goal)


def _show_change(world: World, entry: Entry, now: int, turn: int, status: Status | None) -> None:
    was_working = entry.word == "working"
    entry.turn, entry.status = turn, status
    if status is not None and status.msg and entry.program is None:
        show_line(world, entry, status.msg)
    note_state(world, entry, now)
    if entry.queue and was_working:
        _empty_queue(world, entry, now)
    if entry.waits and entry.word not in ("working", "none"):
        end_waits(world, entry)
    if entry.stops:
        end_stops(world, entry)


def note_state(world: World, entry: Entry, now: int, event: EventName = "terminal.changed") -> None:
    """Write the state of a terminal into the trace, and tell those who want to hear of it."""
    tell_terminal(world, event, entry)
    world.trace.add(
        Event(
            t=now, kind="state", terminal=entry.address, name=entry.name or "", turn=entry.turn, status=entry.word,
            state=entry.state, exit_code=entry.exit_code, signal=entry.signal,
        )
    )  # fmt: skip
    if world.kin:
        tell_parent(world, entry)


def deliver(world: World, entry: Entry, now: int, text: str, *, busy: bool) -> None:
    """A text is typed and submitted: it reaches the agent now or, if that queues while `busy`, at a boundary."""
    for prompt in take_in(world, entry, now, text):
        _submit(world, entry, now, prompt, busy=busy)


def _submit(world: World, entry: Entry, now: int, text: str, *, busy: bool) -> None:
    if entry.send == "fuse" or entry.returned:
        text, entry.composer, entry.returned = entry.composer + text, "", False
    agent = entry.player.agent if entry.player is not None else None
    if agent is not None and agent.queued and busy and len(entry.queue) < MAX_QUEUED_TEXTS:
        entry.queue.append(text)
        return
    _reach(world, entry, now, text)


def press(world: World, entry: Entry, now: int, key: str) -> None:
    """A key press reaches the program; the trace shows it. What it does is decided elsewhere."""
    world.trace.add(Event(t=now, kind="key", terminal=entry.address, name=entry.name or "", text=key))


def _reach(world: World, entry: Entry, now: int, text: str) -> None:
    show_line(world, entry, f"> {text}")
    if entry.player is not None:
        entry.player.prompted()
        world.prompted.append(entry)
    world.trace.add(Event(t=now, kind="text", terminal=entry.address, name=entry.name or "", text=text))


def _empty_queue(world: World, entry: Entry, now: int) -> None:
    texts, entry.queue = entry.queue, []
    for text in texts:
        _reach(world, entry, now, text)
