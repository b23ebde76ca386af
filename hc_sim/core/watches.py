"""Who wants to hear of what: subscribers of events and viewers of terminals, and the news that waits for them."""

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hc_sim.core.timers import Timer
from hc_sim.notifications import EventName

if TYPE_CHECKING:
    from hc_sim.core.terminal import Entry

MAX_NEWS = 100_000
"""News that nobody has fetched yet; the oldest are forgotten beyond."""


@dataclass(frozen=True, slots=True)
class Notice:
    """An event, for all who subscribed: its name and its parameters on the wire, without a channel."""

    name: EventName
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that a terminal shows, for the viewers on these channels."""

    channels: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Facts:
    """A terminal as it is now, for the viewers on these channels."""

    channels: tuple[int, ...]
    terminal: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Over:
    """The streams of a terminal have ended, and why."""

    channels: tuple[int, ...]
    reason: str


News = Notice | Output | Facts | Over


@dataclass(slots=True, eq=False)
class Watch:
    """One subscriber (no `entry`) or viewer. `unread` is the beginning of a key whose other bytes are still to come."""

    channel: int
    conn: int
    entry: "Entry | None" = None
    focused: bool = False
    unread: bytes = b""


class Watches:
    """All subscribers and viewers of a core, by channel, and the news for them in the order in which it happened."""

    def __init__(self) -> None:
        self.news: deque[News] = deque(maxlen=MAX_NEWS)
        self.events = 0
        """Events told so far."""
        self.looking: dict[int, Timer] = {}
        """When the subscribers look at a terminal next, by the identity of the object."""
        self._last = 0
        self._all: dict[int, Watch] = {}
        self._subscribers = 0
        self._by_conn: Counter[int] = Counter()

    @property
    def heard(self) -> bool:
        """Whether anybody subscribed."""
        return self._subscribers > 0

    def count(self, conn: int) -> int:
        """How many streams a connection has."""
        return self._by_conn[conn]

    def next_channel(self, first: int, step: int) -> int:
        """The number that the next stream will have."""
        return self._last + step if self._last else first

    def find(self, channel: int) -> Watch | None:
        """The stream on this channel."""
        return self._all.get(channel)

    def open(self, channel: int, conn: int, entry: "Entry | None") -> Watch:
        """Add a stream, under a number that `next_channel` gave."""
        watch = Watch(channel, conn, entry)
        self._last = channel
        self._all[channel] = watch
        self._by_conn[conn] += 1
        if entry is None:
            self._subscribers += 1
        else:
            entry.views = {**(entry.views or {}), channel: watch}
        return watch

    def close(self, channel: int) -> None:
        """Forget a stream; nothing happens if it is not there."""
        watch = self._all.pop(channel, None)
        if watch is None:
            return
        self._by_conn[watch.conn] -= 1
        if not self._by_conn[watch.conn]:
            del self._by_conn[watch.conn]
        if watch.entry is None:
            self._subscribers -= 1
        elif watch.entry.views is not None:
            left = {number: one for number, one in watch.entry.views.items() if number != channel}
            watch.entry.views = left or None

    def hang_up(self, conn: int) -> None:
        """Forget all streams of a connection."""
        if self._by_conn[conn]:
            for channel in [channel for channel, watch in self._all.items() if watch.conn == conn]:
                self.close(channel)
