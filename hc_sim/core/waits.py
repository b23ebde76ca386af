"""Answers that are owed: to those who wait for a terminal, and to those whose text is held back."""

from hc_sim.core.answers import Answer
from hc_sim.core.terminal import Entry, show
from hc_sim.core.world import World


def end_waits(world: World, entry: Entry) -> None:
    """Answer everybody who waits for this terminal; the answer shows it as it is now."""
    waits, entry.waits = entry.waits, {}
    for ticket, timer in waits.items():
        timer.cancel()
        world.settle(ticket, ended(world, entry, ended=True))
        world.shown.append(entry)


def end_stops(world: World, entry: Entry) -> None:
    """Answer everybody who watches for the effect of an interrupt: there is one."""
    stops, entry.stops = entry.stops or {}, None
    for ticket, timer in stops.items():
        timer.cancel()
        world.settle(ticket, Answer({"effect": True, "key": stop_key(entry)}))


def stop_key(entry: Entry) -> str:
    """The key that stops the program in a terminal."""
    return "Esc" if entry.player is not None or entry.status is not None else "Ctrl+C"


def ended(world: World, entry: Entry, *, ended: bool) -> Answer:
    """What a wait is answered with."""
    return Answer({world.profile.ended_key: ended, "terminal": show(entry, world.profile)})


def forget_waits(world: World, conn: int) -> None:
    """A connection is gone: nobody hears what its waits would be told. A text that is held back is still typed."""
    for ticket in [ticket for ticket, asker in world.asked.items() if asker == conn]:
        entry = world.owed[ticket]
        kin = world.kin.get(entry.address, {})
        timer = entry.waits.pop(ticket, None) or (kin.pop(ticket)[1] if ticket in kin else None)
        if not kin:
            world.kin.pop(entry.address, None)
        if timer is not None:
            timer.cancel()
            del world.owed[ticket], world.asked[ticket]


def drop_waits(world: World, entry: Entry) -> None:
    """Tell everybody who waits for this terminal that it is gone."""
    waits, entry.waits = entry.waits, {}
    for ticket, timer in waits.items():
        timer.cancel()
        error = world.refusal("no_such_terminal", f'no terminal "{entry.address}"').error
        world.settle(ticket, Answer(error=error))


def drop_held(world: World, entry: Entry, message: str) -> None:
    """Tell everybody whose text is still held back that it will not be typed."""
    held, entry.held = entry.held, {}
    for ticket, timer in held.items():
        timer.cancel()
        world.settle(ticket, Answer(error=world.refusal("not_live", message).error))
