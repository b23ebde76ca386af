"""Drives a hub with the time of an event loop, virtual or real: timers, session files, and links in memory.

Whatever carries bytes is a `Link`. Its input is fed to the hub one line at a time and only while the link's peer reads
its replies, so a peer that does not read cannot make memory grow.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from hc_sim.clock import LoopClock
from hc_sim.core import FileEffect
from hc_sim.hub.connection import Hub
from hc_sim.hub.looks import Looker, events
from hc_sim.memory import MemoryLink
from hc_sim.session_files import apply_file
from hc_sim.trace import Event

__all__ = ["Driver", "Link", "MemoryLink"]

HIGH_WATER_BYTES = 1_048_576
"""Replies that a peer may leave unread before its next request has to wait."""
MAX_INBOX_BYTES = 64 * 1024 * 1024
"""Requests that may wait for that; more ends the link."""
LINES_AT_ONCE = 256
"""Lines of one link that are carried out before the next link has its turn."""


class Link(Protocol):
    """The rim's side of one connection."""

    def deliver(self, data: bytes) -> None:
        """Send bytes to the peer."""

    def end(self) -> None:
        """End the connection once everything that was delivered has gone out."""

    def end_half(self) -> None:
        """End our side of the connection once what was delivered has gone out; the peer may go on sending."""

    def backlog(self) -> int:
        """Bytes delivered that the peer has not taken yet."""

    def throttle(self, on: bool) -> None:
        """Stop or go on taking input from the peer."""


class _Port:
    __slots__ = ("ended", "held", "inbox", "link", "throttled")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.inbox = bytearray()
        self.ended = False
        self.throttled = False
        self.held = False
        """Its streams wait because the peer has enough to read."""


class Driver:
    """Pumps a hub: call `attach` for a new link and `received`, `eof`, `lost`, `drained` as things happen to it.

    `problems` lists in words what should never happen: a defect of the core itself, a session file that could not be
    written. A problem ends at most the connection that it happened on. `on_event` sees every trace event once; without
    `keep_trace` the trace then forgets it, for a core that runs for days.
    """

    def __init__(
        self,
        hub: Hub,
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        on_event: Callable[[Event], None] | None = None,
        keep_trace: bool = True,
    ) -> None:
        self.hub = hub
        self.problems: list[str] = []
        self._loop = loop or asyncio.get_running_loop()
        self.clock = LoopClock(self._loop)
        self._on_event = on_event
        self._keep_trace = keep_trace
        self._traced = keep_trace or on_event is not None
        self._looker = Looker(hub.core.glances, hub.core.profile)
        self._seen = 0
        self.listener: Callable[[bool], None] | None = None
        """Told when a restart ends, and when it begins, that somebody listens."""
        self._listening = True
        self._stalled: set[int] = set()
        """Connections on which the core, by a fault, does not read at present."""
        self._ports: dict[int, _Port] = {}
        self._waiting: dict[int, None] = {}
        """Links with something to be carried out, in the order in which it came."""
        self._timer: tuple[int, asyncio.TimerHandle] | None = None
        self._soon: asyncio.Handle | None = None
        self._closed = False

    def now(self) -> int:
        """Milliseconds since this driver was made: the time that its core lives in."""
        return self.clock.now()

    @property
    def links(self) -> int:
        """How many links are open."""
        return len(self._ports)

    @property
    def scheduled(self) -> bool:
        """Whether a timer or a pump of this driver is still to come."""
        return self._timer is not None or self._soon is not None

    def attach(self, link: Link) -> int:
        """Take on a new link; returns its connection number."""
        conn = self.hub.connect(self.now())
        self._ports[conn] = _Port(link)
        self.kick()
        return conn

    def received(self, conn: int, data: bytes) -> None:
        """Bytes came in on a link; they are carried out as soon as the loop comes round."""
        port = self._ports.get(conn)
        if port is None:
            return
        port.inbox += data
        self._waiting[conn] = None
        if len(port.inbox) > MAX_INBOX_BYTES:
            self._drop(conn, "a peer sends without reading its replies")
        self.kick()

    def received_now(self, conn: int, data: bytes) -> None:
        """As `received`, for a link whose peer is no part of this loop: what can be answered is answered at once."""
        port = self._ports.get(conn)
        if port is None:
            return
        if self._waiting or self._soon is not None:
            self.received(conn, data)
            return
        if port.inbox:
            data = bytes(port.inbox) + data
            port.inbox.clear()
        rest = self._look(conn, port, data)
        if rest is None:
            port.inbox += data
            self._waiting[conn] = None
            self._pump()
        elif rest:
            port.inbox += rest

    def eof(self, conn: int) -> None:
        """The peer will send no more."""
        if conn in self._ports:
            self._ports[conn].ended = True
            self._waiting[conn] = None
            self.kick()

    def lost(self, conn: int) -> None:
        """The link is gone."""
        if self._ports.pop(conn, None) is not None:
            self._waiting.pop(conn, None)
            self._stalled.discard(conn)
            self.hub.disconnect(conn, self.now())
            self.kick()

    def drained(self, conn: int) -> None:
        """The peer took some of its backlog."""
        port = self._ports.get(conn)
        if port is None:
            return
        if port.held and port.link.backlog() < HIGH_WATER_BYTES:
            port.held = False
            self.hub.hold(conn, on=False)
            self.kick()
        if port.inbox:
            self._waiting[conn] = None
            self.kick()

    def fire(self, name: str) -> int:
        """Fire the `by_hand` steps with this name, now; returns how many there were."""
        fired: int = self.hub.core.fire(name, self.now())
        self.kick()
        return fired

    def open_link(self) -> MemoryLink:
        """A connection that lives in this event loop alone."""
        link = MemoryLink(self)
        link.conn = self.attach(link)
        return link

    def kick(self) -> None:
        """Pump as soon as the loop comes round; for callers that changed the core themselves."""
        if self._soon is None and not self._closed:
            self._soon = self._loop.call_soon(self._pump)

    def close(self) -> None:
        """End every link and stop; nothing is scheduled afterwards."""
        self._closed = True
        for conn in list(self._ports):
            self._drop(conn, "")
        for handle in (self._soon, self._timer[1] if self._timer else None):
            if handle is not None:
                handle.cancel()
        self._soon = self._timer = None
        self._report()

    def _look(self, conn: int, port: _Port, data: bytes) -> bytes | None:
        """Answer lines that only look, the short way, and return what is left: a line that has not ended.

        None: nothing was done, and all of it has to go the long way.
        """
        core = self.hub.core
        due = core.next_due()
        if not self.hub.at_rest(conn) or (due is not None and due <= self.now()):
            return None
        looks = self._looker.answer(data)
        if looks is None or port.ended or port.link.backlog() >= HIGH_WATER_BYTES:
            return None
        if self._traced:
            if not looks.gets:
                return None
            for event in events(looks, core.glances, conn, self.now()):
                core.trace.add(event)
            self._report()
        for piece in looks.replies:
            port.link.deliver(piece)
        return looks.rest

    def _pump(self) -> None:
        self._soon = None
        now = self.now()
        try:
            self.hub.advance(now)
        except Exception as error:  # a defect of ours: said once, and the connections go on
            self.problems.append(f"advancing the core failed: {error!r}")
        self._flush(now)
        for conn in [conn for conn in self._stalled if self.hub.reads(conn)]:
            self._stalled.discard(conn)
            self._waiting[conn] = None
        waiting, self._waiting = self._waiting, {}
        for conn in waiting:
            self._feed(conn, now)
        self._report()
        self._arm()

    def _feed(self, conn: int, now: int) -> None:
        """Carry out what a link has sent, one line and its reply at a time, until its peer has enough to read."""
        for _ in range(LINES_AT_ONCE):
            port = self._ports.get(conn)
            if port is None:
                return
            if not port.inbox or port.link.backlog() >= HIGH_WATER_BYTES or not self.hub.reads(conn):
                break
            end = port.inbox.find(b"\n") + 1 or len(port.inbox)
            data = bytes(port.inbox[:end])
            del port.inbox[:end]
            try:
                self.hub.receive(conn, data, now)
            except Exception as error:  # a defect of ours: it costs this connection and no other
                self._drop(conn, f"a request could not be carried out: {error!r}")
            self._flush(now)
        else:
            self._waiting[conn] = None
            self.kick()
        port = self._ports.get(conn)
        if port is None:
            return
        if port.ended and not port.inbox:
            self.hub.eof(conn, now)
            self._flush(now)
        self._throttle(conn, port)

    def _flush(self, now: int) -> None:
        """Pass on what is due; what the agents wrote to files before is written first."""
        try:
            deliveries = self.hub.outgoing(now)
        except Exception as error:  # a defect of ours: said, and what comes later still goes out
            self.problems.append(f"replies could not be sent: {error!r}")
            deliveries = []
        for effect in self.hub.core.drain_files():
            self._write(effect)
        for delivery in deliveries:
            port = self._ports.get(delivery.conn)
            if port is None:
                continue
            if delivery.data:
                port.link.deliver(delivery.data)
                if not port.held and port.link.backlog() >= HIGH_WATER_BYTES:
                    port.held = True
                    self.hub.hold(delivery.conn, on=True)
            if delivery.half:
                port.link.end_half()
            if delivery.close:
                self._stalled.discard(delivery.conn)
                del self._ports[delivery.conn]
                port.link.end()

    def _throttle(self, conn: int, port: _Port) -> None:
        reads = self.hub.reads(conn)
        if not reads:
            self._stalled.add(conn)
        full = bool(port.inbox) and (port.link.backlog() >= HIGH_WATER_BYTES or not reads)
        if full != port.throttled:
            port.throttled = full
            port.link.throttle(full)

    def _drop(self, conn: int, problem: str) -> None:
        port = self._ports.pop(conn, None)
        self._waiting.pop(conn, None)
        self._stalled.discard(conn)
        if problem:
            self.problems.append(problem)
        self.hub.disconnect(conn, self.now())
        if port is not None:
            port.link.end()

    def _arm(self) -> None:
        listening = self.hub.listening(self.now())
        if listening != self._listening and not self._closed:
            self._listening = listening
            if self.listener is not None:
                self.listener(listening)
        due = self.hub.next_due()
        if self._timer is not None:
            if self._timer[0] == due:
                return
            self._timer[1].cancel()
            self._timer = None
        if due is not None and not self._closed:
            self._timer = (due, self._loop.call_at(self.clock.at(due), self._ring))

    def _ring(self) -> None:
        self._timer = None
        self._pump()

    def _report(self) -> None:
        events = self.hub.core.trace.events
        while self._on_event is not None and self._seen < len(events):
            self._seen += 1
            self._on_event(events[self._seen - 1])
        if not self._keep_trace:
            events.clear()
            self._seen = 0

    def _write(self, effect: FileEffect) -> None:
        try:
            apply_file(effect)
        except OSError as error:
            self.problems.append(f"session file {effect.path}: {error.strerror or error}")
