"""Connections to a core without any I/O: bytes in, bytes out, with the fault plan in between.

    bytes -> lines or frames -> requests -> core -> replies -> faults -> bytes, each with its time
                                             \\-> news -> streams ------^

The rim calls `receive`, `eof`, `disconnect` and `advance` as things happen, then takes what is ready from `outgoing`.
`next_due` says when to come back if nothing else happens. All times are milliseconds of the rim's clock.
"""

import itertools

import msgspec

from hc_sim.core import Core
from hc_sim.faults import (
    MAX_FAULTS,
    ClockJump,
    DocumentFault,
    Fault,
    FaultPlan,
    Faults,
    LinkFault,
    Parcel,
    Restart,
    as_plan,
)
from hc_sim.faults.check import check_plan
from hc_sim.faults.course import Course
from hc_sim.hub.agenda import Agenda
from hc_sim.hub.answering import Answering
from hc_sim.hub.links import Delivery, Got, Link, Reply
from hc_sim.hub.outbox import Outbox
from hc_sim.hub.packing import Packer
from hc_sim.hub.streams import Streams
from hc_sim.model import METHODS, REFUSED
from hc_sim.trace import Event
from hc_sim.wire import Batch, Frame, Refusal, Request, TooBig, TooLong, decode, encode_error, refuse_line
from hc_sim.wire.frames import decode_credit

__all__ = ["MAX_FAULTS", "Delivery", "Hub"]

METHOD_NAMES = frozenset({*METHODS, *REFUSED})
MAX_CONNECTIONS = 2_048
MAX_OWED = 4_096
"""Calls that one connection may have open at once; the next one is refused."""
MAX_UNREAD = 32 * 1024 * 1024
"""Bytes that came on a connection which is not read at present; more ends it."""
MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes of replies that wait for their time on one connection; more ends the connection."""


class Hub:
    """All connections to one core. Replies are in the order of their time, equal times in the order they were made.

    Streams follow the replies of their time. A connection that is held (`hold`) gets replies, and no more of streams.
    Raises `ValueError` for a plan that cannot be carried out.
    """

    def __init__(
        self,
        core: Core,
        faults: Faults = (),
        *,
        max_connections: int = MAX_CONNECTIONS,
        max_owed: int = MAX_OWED,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
    ) -> None:
        check_plan(as_plan(faults), METHOD_NAMES)
        self.core = core
        self._agenda = Agenda(faults)
        self._down_until = 0
        self._max_connections = max_connections
        self._links: dict[int, Link] = {}
        self._ending: set[int] = set()
        self._numbers = itertools.count(1)
        self._outbox = Outbox()
        self._packer = Packer(core.profile)
        self._streams = Streams(core)
        self._answering = Answering(
            self, core, self._links, self._outbox, self._streams, self._agenda,
            max_owed=max_owed, max_queued_bytes=max_queued_bytes,
        )  # fmt: skip
        self._kinds = {number: kind for kind, number in core.profile.frame_numbers().items()}

    @property
    def connections(self) -> tuple[int, ...]:
        """The connections that are open, by number."""
        return tuple(self._links)

    def connect(self, now: int) -> int:
        """A connection was opened; returns its number (from 1). One too many is answered with an error and closed."""
        conn = next(self._numbers)
        full = len(self._links) >= self._max_connections
        fault = self._agenda.plan.link(now)
        course = Course() if fault is None else Course(fault, planned=True)
        self._links[conn] = Link(self.core.profile, course)
        self._note(Event(t=now, kind="link", conn=conn))
        if not self.listening(now):
            self._turn_deaf(conn)
        elif fault is not None:
            self._open_faulty(conn, fault, now)
        elif full:
            self._refuse(
                conn, self._limit(f"more than {self._max_connections} connections", "close some"), now, close=True
            )
        return conn

    def listening(self, now: int) -> bool:
        """Whether the core takes connections, or is down after a restart."""
        return now >= self._down_until

    def reads(self, conn: int) -> bool:
        """Whether the core reads what comes on this connection; if not, its peer should have to wait."""
        link = self._links.get(conn)
        return link is None or link.course.reads

    def hold(self, conn: int, *, on: bool) -> None:
        """The peer has more than enough to read (`on`), or has read it: its streams wait meanwhile."""
        self._streams.hold(conn, on=on)

    def receive(self, conn: int, data: bytes, now: int) -> None:
        """Bytes arrived. Whatever they are, the worst that happens is an error reply or the end of this connection."""
        link = self._links.get(conn)
        if link is not None and not link.deaf:
            link.raw += data
            self.read_on(conn, now)

    def at_rest(self, conn: int) -> bool:
        """Whether this is a connection in line mode on which nothing waits, and no fault is planned anywhere."""
        link = self._links.get(conn)
        if link is None or link.deaf or link.silent or link.half_closed or link.framed or link.greeting:
            return False
        if link.raw or link.ready or link.lines.rest() or link.course.planned:
            return False
        return self._agenda.idle and self._outbox.empty

    def inject(self, fault: Fault | LinkFault) -> None:
        """Plan one more fault, before those that were planned; its `nth` counts what comes from now on.

        Raises `ValueError` when `MAX_FAULTS` are planned already, and for a fault that cannot be carried out.
        """
        check_plan(
            FaultPlan(fault=[fault]) if isinstance(fault, Fault) else FaultPlan(link=[fault]),
            METHOD_NAMES,
        )
        self._agenda.plan.inject(fault)

    def restart(self, restart: Restart, now: int) -> None:
        """The core ends and comes back, now: every connection ends, and what was owed is never answered.

        Raises `ValueError` for a restart that cannot be carried out.
        """
        check_plan(FaultPlan(restart=[restart]), METHOD_NAMES)
        self.advance(now)
        self.core.happen(restart, now)
        self._down_until = max(self._down_until, now + restart.down_ms)
        if restart.down_ms > 0:
            self._agenda.at(self._down_until, lambda due: None)  # so that whoever listens for us comes back in time
        self._answering.forget()
        for conn in self._links:
            self.cut(conn)

    def eof(self, conn: int, now: int) -> None:
        """The client will send no more; what is owed still goes out, then the connection ends."""
        link = self._links.get(conn)
        if link is None or link.half_closed or link.deaf:
            return
        if not link.framed and (link.raw or link.lines.rest()):
            link.raw += b"\n"  # the last line needs no line feed of its own; in frames one more byte means nothing
        self.read_on(conn, now)
        link.half_closed = True
        self._ending.add(conn)

    def disconnect(self, conn: int, now: int) -> None:
        """The client is gone. Its calls stay in effect, their replies go nowhere."""
        if self._links.pop(conn, None) is None:
            return
        self._ending.discard(conn)
        self._streams.forget(conn)
        self.core.hang_up(conn)
        self._note(Event(t=now, kind="unlink", conn=conn))
        self._outbox.forget(conn)

    def advance(self, now: int) -> None:
        """Let the core's time reach `now`; answers that it owed become replies."""
        while (due := self._agenda.next_due()) is not None and due <= now:
            self._core_to(due)
            taken = self._agenda.take(due)
            if isinstance(taken, Restart):
                self.restart(taken, due)
            elif isinstance(taken, DocumentFault | ClockJump):
                self.core.happen(taken, due)
            else:
                taken(due)
        self._core_to(now)

    def next_due(self) -> int | None:
        """When something will happen by itself: a step of the core's, or a reply's time. None if nothing is planned."""
        due = (self._outbox.next_due(), self._agenda.next_due(), self.core.next_due())
        return min((at for at in due if at is not None), default=None)

    def outgoing(self, now: int) -> list[Delivery]:
        """Everything that is due, in order; what it sets free (a reply held until this one) is due as well."""
        out: list[Delivery] = []
        while (reply := self._outbox.take(now)) is not None:
            if reply.conn in self._links:
                out += self._send(reply, now)
                self._outbox.sent(reply, now)
        for due in self._streams.due():
            link = self._links.get(due.conn)
            if link is None or link.silent or link.deaf:
                continue
            if due.data:
                out.append(Delivery(due.conn, due.data))
            if due.over:
                self._turn_deaf(due.conn)
        for conn in sorted(self._ending):
            link = self._links[conn]
            through = link.deaf or (link.half_closed and link.owed == 0 and not link.unread)
            if through and link.queued == 0 and not link.silent:
                out.append(Delivery(conn, close=True))
                self.disconnect(conn, now)
        return out

    # ------------------------------------------------------------------ what comes in

    def read_on(self, conn: int, now: int) -> None:
        """Carry out what has come, as long as the core reads on this connection."""
        link = self._links.get(conn)
        if link is None or link.reading:
            return
        link.reading = True
        try:
            while not link.deaf and not link.greeting:
                if link.course.planned and not self._reads_on(conn, link, now):
                    break
                got = link.next()
                if got is None:
                    return
                self._take(conn, link, got, now)
        finally:
            link.reading = False
        if link.unread > MAX_UNREAD:
            self._turn_deaf(conn)

    def _reads_on(self, conn: int, link: Link, now: int) -> bool:
        if link.course.stalls() and link.course.fault.stall_ms is not None:
            self._agenda.at(now + link.course.fault.stall_ms, lambda due: self._resume(conn, due))
        return link.course.reads

    def _take(self, conn: int, link: Link, got: Got, now: int) -> None:
        if isinstance(got, bytes | TooLong):
            self._line(conn, got, now)
        elif isinstance(got, TooBig):
            self._violate(conn, f"a payload of {got.length} bytes is over the limit", now)
        elif got.channel:
            wrong = self._streams.frame(conn, got, now)
            if wrong:
                self._violate(conn, wrong, now)
        else:
            self._control(conn, link, got, now)

    def _control(self, conn: int, link: Link, frame: Frame, now: int) -> None:
        """A frame of channel 0: requests, or the wish to end."""
        kind, payload = self._kinds.get(frame.kind), frame.payload
        if kind == "data":
            whole = payload if self.core.profile.frame_newline else payload.rstrip(b"\n") + b"\n"
            link.ready.extendleft(reversed(link.lines.feed(whole)))
        elif kind == "close":
            link.raw.clear()
            link.ready.clear()
            self.eof(conn, now)
        elif kind is None:
            self._violate(conn, f"no frame is of kind {frame.kind}", now)
        elif kind != "credit" or decode_credit(payload) is None:
            self._violate(conn, f"channel 0 takes no such {kind}", now)

    def _line(self, conn: int, line: bytes | TooLong, now: int) -> None:
        profile = self.core.profile
        if isinstance(line, TooLong):
            refusal = refuse_line(profile)
            if refusal is None:
                self._turn_deaf(conn)
                return
        elif not line.strip():
            return
        else:
            read = decode(line, profile)
            if isinstance(read, Request):
                self._answering.request(conn, read, now)
                return
            if isinstance(read, Batch):
                self._answering.batch(conn, read, now)
                return
            refusal = read
        self._refuse(conn, refusal, now, close=refusal.close)

    # ------------------------------------------------------------------ what goes out

    def _send(self, reply: Reply, now: int) -> list[Delivery]:
        link = self._links[reply.conn]
        link.queued -= reply.size
        link.owed -= reply.settles
        for event in reply.events:
            self._note(msgspec.structs.replace(event, t=now))
        if link.silent:
            return []
        link.course.replies += reply.settles
        writes = reply.parcel.writes
        if link.stash or reply.parcel.join:
            link.stash, writes = b"", (link.stash + b"".join(writes),)
        if reply.parcel.join and not reply.parcel.close:
            link.stash = writes[0]
            writes = ()
        out = [Delivery(reply.conn, data) for data in writes if data]
        if link.course.shut():
            link.silent = True
            out.append(Delivery(reply.conn, half=True))
        if reply.parcel.close or link.course.over():
            out.append(Delivery(reply.conn, close=True))
            self.disconnect(reply.conn, now)
            return out
        for channel in reply.opens:
            self._streams.uncork(channel)
        if reply.switches:
            link.frame()
            self.read_on(reply.conn, now)
        return out

    def _refuse(self, conn: int, refusal: Refusal, now: int, *, close: bool = False) -> None:
        data = encode_error(refusal.raw_id, refusal.error, self.core.profile)
        if self._links[conn].framed:
            data = self._packer.frame(data)
        event = Event(t=now, kind="reply", conn=conn, id=refusal.id, error=refusal.error.body())
        self._answering.queue_up(Reply(conn, Parcel((data,), close), (event,), size=len(data)), None, now)
        if close:
            self._turn_deaf(conn)

    def _violate(self, conn: int, wrong: str, now: int) -> None:
        """The peer broke the rules of frames: it is told so, if the profile wants it, and the connection ends."""
        if self.core.profile.bad_frames == "close":
            self._turn_deaf(conn)
        else:
            error = self.core.profile.error("bad_frame", wrong, "see the header and the credit of frames")
            self._refuse(conn, Refusal(error), now, close=True)

    # ------------------------------------------------------------------ what faults do to connections

    def _open_faulty(self, conn: int, fault: LinkFault, now: int) -> None:
        """A connection was opened that goes wrong from its beginning."""
        self._note(Event(t=now, kind="fault", conn=conn, note="this connection goes wrong"))
        if fault.refuse:
            self._turn_deaf(conn)
            return
        greeting = self._links[conn].course.greeting()
        self._answering.queue_up(Reply(conn, Parcel((greeting,)), size=len(greeting)), None, now)
        if fault.close_ms is not None:
            self._agenda.at(now + fault.close_ms, lambda due: self.cut(conn))
        self.read_on(conn, now)

    def _resume(self, conn: int, now: int) -> None:
        link = self._links.get(conn)
        if link is not None:
            link.course.fault = msgspec.structs.replace(link.course.fault, stall_after=None)
            link.course.reads = True
            self.read_on(conn, now)

    def cut(self, conn: int) -> None:
        """The connection ends, whatever is still to go out."""
        link = self._links.get(conn)
        if link is not None:
            self._outbox.forget(conn)
            link.queued, link.silent = 0, False
            link.raw.clear()
            link.ready.clear()
            self._turn_deaf(conn)

    def _core_to(self, now: int) -> None:
        for answered in self.core.advance(now):
            self._answering.answered(answered, now)

    def _turn_deaf(self, conn: int) -> None:
        self._links[conn].deaf = True
        self._ending.add(conn)

    def _limit(self, message: str, hint: str) -> Refusal:
        return Refusal(self.core.profile.error("limit_reached", message, hint))

    def _note(self, event: Event) -> None:
        self.core.trace.add(event)
