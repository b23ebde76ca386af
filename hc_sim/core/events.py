"""What a core tells unasked: events for those who subscribed, and what a terminal shows for those who look at it.

Nothing is made for nobody: without subscribers and viewers every function here returns at once.
"""

from hc_sim.core.onlookers import event_told
from hc_sim.core.terminal import Entry, show
from hc_sim.core.watches import Facts, Notice, Output, Over
from hc_sim.core.world import World
from hc_sim.notifications import EventName


def tell_terminal(world: World, name: EventName, entry: Entry) -> None:
    """A terminal was created, changed or removed: subscribers hear of it, viewers get it as facts."""
    watches = world.watches
    if watches.heard:
        watches.events += 1
        watches.news.append(Notice(name, {"number": watches.events, "terminal": show(entry, world.profile)}))
        event_told(world, entry)
    if entry.views and name == "terminal.changed" and world.profile.attach_facts:
        watches.news.append(Facts(tuple(entry.views), show(entry, world.profile)))


def tell_document(world: World, name: str, version: int | str) -> None:
    """A document has a new version."""
    watches = world.watches
    if watches.heard:
        watches.events += 1
        params = {"name": name, "number": watches.events, "version": version}
        watches.news.append(Notice("document.changed", params))


def show_line(world: World, entry: Entry, line: str) -> None:
    """A line comes onto the screen of a terminal."""
    entry.print(line)
    if entry.views:
        world.watches.news.append(Output(tuple(entry.views), as_output([line])))


def as_output(lines: list[str]) -> bytes:
    """Lines of a screen as the bytes that a terminal would be sent for them."""
    return "".join(f"{line}\r\n" for line in lines).encode("utf-8", "replace")


def end_views(world: World, entry: Entry, reason: str) -> None:
    """Nothing more will come from this terminal: the streams of its viewers end."""
    if entry.views:
        channels = tuple(entry.views)
        world.watches.news.append(Over(channels, reason))
        for channel in channels:
            world.watches.close(channel)


def is_focused(entry: Entry) -> bool:
    """Whether somebody has this terminal in front of the eyes."""
    return entry.views is not None and any(watch.focused for watch in entry.views.values())
