"""One connection as the hub keeps it, and what travels on it: calls, replies, deliveries."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hc_sim.core import Answer
from hc_sim.faults import Fault, Parcel
from hc_sim.faults.course import Course
from hc_sim.model import WireError
from hc_sim.profile import WireProfile
from hc_sim.trace import Event
from hc_sim.wire import Frame, FrameSplitter, LineSplitter, Request, TooBig, TooLong

Got = bytes | TooLong | Frame | TooBig
"""What a connection has brought: a line, a frame, or what stands for one over its limit."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Bytes that are due on a connection now; `close` ends the connection after them, `half` only our side of it."""

    conn: int
    data: bytes = b""
    close: bool = False
    half: bool = False


class Link:
    """The state of one connection. It begins with lines; `frame` turns it to frames."""

    __slots__ = (
        "_limits",
        "course",
        "deaf",
        "frames",
        "free_at",
        "greeting",
        "half_closed",
        "lines",
        "owed",
        "queued",
        "raw",
        "reading",
        "ready",
        "silent",
        "stash",
    )

    def __init__(self, profile: WireProfile, course: Course) -> None:
        self._limits = (profile.max_line_bytes, profile.max_frame_bytes)
        self.course = course
        self.lines = LineSplitter(profile.max_line_bytes)
        self.frames: FrameSplitter | None = None
        self.owed = 0
        self.queued = 0
        self.half_closed = False
        self.silent = False
        self.deaf = False
        """Nothing more is read: the connection ends as soon as what is queued has gone out."""
        self.greeting = False
        """A hello asked for frames and is not answered yet, so nobody can say what the next bytes are."""
        self.raw = bytearray()
        """Bytes that came and were not looked at yet."""
        self.ready: deque[Got] = deque()
        """Lines or frames that were cut out of them and not carried out yet."""
        self.reading = False
        """What has come is being carried out just now."""
        self.stash = b""
        """A reply that waits to leave in one write with the next one."""
        self.free_at = 0
        """When the last write of a reply that leaves in pieces goes out."""

    @property
    def framed(self) -> bool:
        """Whether frames travel here."""
        return self.frames is not None

    @property
    def unread(self) -> int:
        """How much has come that was not carried out: bytes and whole messages."""
        return len(self.raw) + len(self.ready)

    def frame(self) -> None:
        """From here on, frames travel."""
        self.greeting = False
        self.frames = FrameSplitter(self._limits[1])
        self.lines = LineSplitter(self._limits[0])

    def next(self) -> Got | None:
        """The next line or frame that has come whole, or None. In line mode no byte after it is touched."""
        ready, raw = self.ready, self.raw
        while not ready and raw:
            if self.frames is not None:
                data = bytes(raw)
                raw.clear()
                ready += self.frames.feed(data)
            else:
                end = raw.find(b"\n") + 1 or len(raw)
                data = bytes(raw[:end])
                del raw[:end]
                ready += self.lines.feed(data)
        return ready.popleft() if ready else None


@dataclass(slots=True)
class Gathering:
    """The answers to a batch, which go back together: a place for each member that gets one."""

    size: int
    left: int
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    opens: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Call:
    """A call under way, and its place in a batch if it came in one. `switches`: its answer turns the link to frames."""

    conn: int
    request: Request
    fault: Fault | None
    gathering: Gathering | None = None
    place: int = 0
    switches: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes out, and what that means. `settles`: so many calls that the connection is owed."""

    conn: int
    parcel: Parcel
    events: tuple[Event, ...] = ()
    method: str = ""
    size: int = 0
    settles: int = 0
    opens: tuple[int, ...] = ()
    """The channels whose streams begin once this has gone out."""
    switches: bool = False


def message(raw_id: msgspec.Raw, answer: Answer) -> dict[str, Any]:
    """An answer as the object that goes out."""
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": raw_id}
    if answer.error is not None:
        return {**head, "error": answer.error.body()}
    return {**head, "result": answer.result}


def call_event(conn: int, request: Request, target_key: str, now: int) -> Event:
    """What the trace says about a call."""
    params = request.params if isinstance(request.params, dict) else {}
    target, name = params.get(target_key), params.get("name")
    return Event(
        t=now,
        kind="call",
        conn=conn,
        id=request.id,
        method=request.method,
        terminal=target if isinstance(target, str) else "",
        name=name if isinstance(name, str) else "",
        params=request.params,
    )


def reply_event(call: Call, answer: Answer, target_key: str) -> Event:
    """What the trace says about the answer to a call."""
    return msgspec.structs.replace(
        call_event(call.conn, call.request, target_key, 0),
        kind="reply",
        params=None,
        result=None if answer.error is not None else msgspec.to_builtins(answer.result),
        error=None if answer.error is None else answer.error.body(),
    )


def scripted(fault: Fault | None) -> Answer:
    """The answer that a fault has for a call which the core never sees."""
    if fault is None or fault.error is None:
        return Answer()
    error = fault.error
    return Answer(error=WireError(error.code, error.message, error.kind, error.hint))
