"""Replies that wait for their time: delays, orders, pieces, and what one reply sets free when it goes out."""

import heapq
import itertools
from collections import Counter
from dataclasses import replace

from hc_sim.faults import Fault, Parcel, chunks
from hc_sim.hub.links import Link, Reply


class Outbox:
    """The replies of all connections, in the order of their time, equal times in the order they were made."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, Reply]] = []
        self._held: list[tuple[Fault, Link, Reply]] = []
        self._order = itertools.count()
        self._sent: Counter[str] = Counter()
        """Replies that went out so far, by method, and all of them."""

    @property
    def empty(self) -> bool:
        """Whether nothing waits, neither for its time nor for another reply."""
        return not (self._queue or self._held)

    def next_due(self) -> int | None:
        """When the next reply goes out; None if none waits for a time."""
        return self._queue[0][0] if self._queue else None

    def put(self, link: Link, reply: Reply, fault: Fault | None, now: int) -> None:
        """A reply is ready; its fault and its connection's say when it goes out, and in which pieces."""
        wrong = link.course.fault
        if wrong.chunk_bytes > 0:
            reply = replace(reply, parcel=chunks(reply.parcel, wrong.chunk_bytes, wrong.chunk_ms))
        link.queued += reply.size
        until = fault.hold_until if fault is not None else None
        if fault is not None and until is not None and self._sent[until.method] < until.nth:
            self._held.append((fault, link, reply))
            return
        self._schedule(link, reply, now + max(0, fault.delay_ms if fault is not None else 0))

    def take(self, now: int) -> Reply | None:
        """The next reply whose time has come, or None."""
        if not self._queue or self._queue[0][0] > now:
            return None
        return heapq.heappop(self._queue)[2]

    def sent(self, reply: Reply, now: int) -> None:
        """A reply has gone out: what waited for it is free."""
        if not reply.method:
            return
        for name in (reply.method, "*"):
            self._sent[name] += 1
        if not self._held:
            return
        held, self._held = self._held, []
        for fault, link, waiting in held:
            until = fault.hold_until
            if until is not None and self._sent[until.method] >= until.nth:
                self._schedule(link, waiting, now + max(0, fault.delay_ms))
            else:
                self._held.append((fault, link, waiting))

    def forget(self, conn: int) -> None:
        """Drop what waits on a connection."""
        if any(item[2].conn == conn for item in self._queue):
            self._queue = [item for item in self._queue if item[2].conn != conn]
            heapq.heapify(self._queue)
        self._held = [item for item in self._held if item[2].conn != conn]

    def _schedule(self, link: Link, reply: Reply, at: int) -> None:
        """Put a reply into the queue for a time; one that leaves in pieces takes its time, and others wait for it."""
        at = max(at, link.free_at)
        gap, writes = reply.parcel.gap_ms, reply.parcel.writes
        if gap > 0 and len(writes) > 1:
            for data in writes[:-1]:
                heapq.heappush(self._queue, (at, next(self._order), Reply(reply.conn, Parcel((data,)), size=len(data))))
                at += gap
            rest = replace(reply.parcel, writes=writes[-1:])
            reply = replace(reply, parcel=rest, size=len(writes[-1]))
            link.free_at = at
        heapq.heappush(self._queue, (at, next(self._order), reply))
