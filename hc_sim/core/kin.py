"""Waiting for children: until none of them works, or for the next news of any."""

from typing import Any, Literal

from hc_sim.core.answers import Answer, Pending
from hc_sim.core.onlookers import look_on
from hc_sim.core.terminal import Entry, show
from hc_sim.core.world import World

Mode = Literal["all", "any"]


def wait_for_children(world: World, parent: Entry, mode: Mode, timeout_ms: int, now: int) -> Any:
    """`terminal.wait` with `children`: answer at once if there is nothing to wait for, else owe the answer."""
    if _over(world, parent, mode):
        return told(world, parent, ended=True)
    ticket = world.owe(parent)
    timer = world.timers.at(now + timeout_ms, lambda _: _check_in(world, parent, ticket))
    world.kin.setdefault(parent.address, {})[ticket] = (mode, timer)
    look_on(world, lambda: world.table.children(parent.address) if _held(world, parent, ticket) else None, now)
    return Pending(ticket)


def _held(world: World, parent: Entry, ticket: int) -> bool:
    return ticket in world.kin.get(parent.address, {})


def tell_parent(world: World, child: Entry) -> None:
    """Something changed about a terminal: whoever waits for the children of its parent may have an answer."""
    waits = world.kin.get(child.parent or "")
    parent = world.table.find(child.parent or "") if waits else None
    if not waits or parent is None:
        return
    news = not child.live or child.word not in ("working", "none")
    for ticket, (mode, timer) in list(waits.items()):
        if (mode == "any" and news) or _over(world, parent, mode):
            timer.cancel()
            del waits[ticket]
            world.settle(ticket, told(world, parent, ended=True))
    if not waits:
        del world.kin[parent.address]


def drop_kin(world: World, parent: Entry) -> None:
    """The terminal whose children somebody waits for is gone."""
    for ticket, (_, timer) in world.kin.pop(parent.address, {}).items():
        timer.cancel()
        error = world.refusal("no_such_terminal", f'no terminal "{parent.address}"').error
        world.settle(ticket, Answer(error=error))


def told(world: World, parent: Entry, *, ended: bool) -> Answer:
    """The answer: the parent and all of its children as they are now. They count as seen."""
    children = world.table.children(parent.address)
    world.shown += children
    shown = [show(child, world.profile) for child in children]
    return Answer({world.profile.ended_key: ended, "terminal": show(parent, world.profile), "children": shown})


def _over(world: World, parent: Entry, mode: Mode) -> bool:
    live = [child for child in world.table.children(parent.address) if child.live]
    return not live or (mode == "all" and all(child.word != "working" for child in live))


def _check_in(world: World, parent: Entry, ticket: int) -> None:
    waits = world.kin.get(parent.address, {})
    if waits.pop(ticket, None) is not None and not waits:
        del world.kin[parent.address]
    world.settle(ticket, told(world, parent, ended=False))
