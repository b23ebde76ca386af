"""Looks of those who do not ask: whoever subscribed to events, and whoever waits while the core holds the answer.

Timelines that count looks go on for them as they do for a client that asks again and again. An event is a look, and
they look on as long as nothing comes. Each look is a moment after what it follows, so that a client has time to act in
between, and a timeline never runs through in one instant.
"""

from collections.abc import Callable, Sequence

from hc_sim.core.terminal import Entry
from hc_sim.core.world import World
from hc_sim.script.format import Agent

EVENT_LOOK_MS = 1
"""So long after an event told of a terminal, its subscribers have seen it."""
LOOK_ON_MS = 50
"""How often whoever waits, or subscribed, looks while nothing comes."""


def event_told(world: World, entry: Entry) -> None:
    """An event shows this terminal to at least one subscriber, who sees it, and looks on."""
    if entry.player is None or not _counts_looks(entry.player.agent):
        return
    known = world.watches.looking.pop(id(entry), None)
    if known is not None:
        known.cancel()
    _see_later(world, entry, world.now + EVENT_LOOK_MS)


def look_on(world: World, looked_at: Callable[[], Sequence[Entry] | None], now: int) -> None:
    """A wait is held: its client looks at these terminals again and again, until there is None to look at."""
    if any(map(_counts_looks, world.agents)):
        _look_later(world, looked_at, now)


def _counts_looks(agent: Agent) -> bool:
    return any(step.after_observations is not None for step in agent.step)


def _see_later(world: World, entry: Entry, due: int) -> None:
    def see(at: int) -> None:
        del world.watches.looking[id(entry)]
        if world.watches.heard and not entry.gone and entry.player is not None and entry.player.index is not None:
            world.shown.append(entry)
            _see_later(world, entry, at + LOOK_ON_MS)

    world.watches.looking[id(entry)] = world.timers.at(due, see)


def _look_later(world: World, looked_at: Callable[[], Sequence[Entry] | None], now: int) -> None:
    def look(at: int) -> None:
        entries = looked_at()
        if entries is not None:
            world.shown += entries
            _look_later(world, looked_at, at)

    world.timers.at(now + LOOK_ON_MS, look)
