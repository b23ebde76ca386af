"""Calls under way: a request goes to the core past the fault that meets it, and its answer becomes a reply."""

from typing import Protocol

from hc_sim.core import Answer, Answered, Core, Pending
from hc_sim.core.parameters import asks_for_frames
from hc_sim.faults import Fault, Parcel, Restart, answers, carries_out, describe
from hc_sim.hub.agenda import Agenda
from hc_sim.hub.links import Call, Gathering, Link, Reply, call_event, message, reply_event, scripted
from hc_sim.hub.outbox import Outbox
from hc_sim.hub.packing import Packer
from hc_sim.hub.streams import Streams
from hc_sim.trace import Event
from hc_sim.wire import Batch, Refusal, Request


class Upkeep(Protocol):
    """Whoever has the connections and the core's time in hand."""

    def advance(self, now: int) -> None:
        """Let the core's time reach `now`."""

    def restart(self, restart: Restart, now: int) -> None:
        """The core ends and comes back."""

    def read_on(self, conn: int, now: int) -> None:
        """Carry out what has come on a connection, as far as it is read."""

    def cut(self, conn: int) -> None:
        """End a connection, whatever is still to go out on it."""


class Answering:
    """The calls of all connections, from the moment they were read to the moment their reply is ready to go out."""

    def __init__(
        self,
        hub: Upkeep,
        core: Core,
        links: dict[int, Link],
        outbox: Outbox,
        streams: Streams,
        agenda: Agenda,
        *,
        max_owed: int,
        max_queued_bytes: int,
    ) -> None:
        self._hub = hub
        self._core = core
        self._links = links
        self._outbox = outbox
        self._streams = streams
        self._agenda = agenda
        self._max_owed = max_owed
        self._max_queued = max_queued_bytes
        self._packer = Packer(core.profile)
        self._lives = 0
        self._tickets: dict[int, Call] = {}

    def answered(self, answered: Answered, now: int) -> None:
        """The core gives an answer that it owed."""
        call = self._tickets.pop(answered.ticket, None)
        if call is not None:
            self._answer(call, answered.answer, now)

    def forget(self) -> None:
        """The core has started again: what it owed is never answered, what was put off never done."""
        self._lives += 1
        self._tickets.clear()

    def batch(self, conn: int, batch: Batch, now: int) -> None:
        """Carry out the members of a batch one after the other; their answers go back together."""
        size = sum(isinstance(item, Refusal) or item.answer for item in batch.items)
        gathering = Gathering(size, size)
        for place, item in enumerate(batch.items):
            if self._links[conn].deaf:
                return
            if isinstance(item, Request):
                self.request(conn, item, now, gathering, place)
                continue
            self._links[conn].owed += 1
            self._gather(conn, gathering, place, message(item.raw_id, Answer(error=item.error)), None, now)

    def request(
        self, conn: int, request: Request, now: int, gathering: Gathering | None = None, place: int = 0
    ) -> None:
        """Carry out a request, or the member of a batch at this `place`, as its fault has it."""
        self._hub.advance(now)
        link = self._links[conn]
        fault = self._agenda.plan.call(request.method, conn, now)
        link.silent = link.course.called() or link.silent
        self._core.trace.add(call_event(conn, request, self._core.profile.target_key, now))
        if fault is not None:
            self._core.trace.add(Event(t=now, kind="fault", conn=conn, method=request.method, note=describe(fault)))
        asks = request.method == "hello" and asks_for_frames(self._core.profile, request.params)
        call = Call(conn, request, fault, gathering, place, switches=asks and not link.framed and gathering is None)
        if request.answer:
            link.owed += 1
            if link.owed > self._max_owed:
                words = f"more than {self._max_owed} calls are open"
                error = self._core.profile.error("limit_reached", words, "wait for some replies")
                self._answer(Call(conn, request, None, gathering, place), Answer(error=error), now)
                return
        link.greeting = link.greeting or call.switches
        if fault is not None and fault.apply_ms > 0 and carries_out(fault):
            life = self._lives
            self._agenda.at(
                now + fault.apply_ms, lambda due: self._carry_out(call, due) if life == self._lives else None
            )
        else:
            self._carry_out(call, now)

    def _carry_out(self, call: Call, now: int) -> None:
        """Let the core do it, unless a fault keeps it from that, and answer if it answers at once."""
        fault, request = call.fault, call.request
        refused = None
        if fault is not None and fault.rival is not None:
            refused = self._core.rival(request.method, request.params, fault.rival, now)
        if not carries_out(fault):
            self._answer(call, scripted(fault), now, done=False)
            return
        answer = refused or self._core.call(request.method, request.params, now, conn=call.conn)
        if fault is not None and fault.restart is not None:
            self._hub.restart(fault.restart, now)
        elif isinstance(answer, Pending):
            self._tickets[answer.ticket] = call
        else:
            self._answer(call, answer, now)
        self._hub.advance(now)

    def _answer(self, call: Call, answer: Answer, now: int, *, done: bool = True) -> None:
        """An answer is there: make a reply of it, unless a fault loses it. `done`: the core carried the call out."""
        link = self._links.get(call.conn)
        if link is None:
            if answer.stream is not None:
                self._core.end_stream(answer.stream.channel)
            return
        if answer.stream is not None:
            self._streams.open(call.conn, answer.stream, framed=link.framed)
        switches = call.switches and done and answer.error is None
        self._reply(call, link, answer, now, switches=switches)
        if call.switches and not (switches and link.greeting):
            link.greeting = False
            self._hub.read_on(call.conn, now)

    def _reply(self, call: Call, link: Link, answer: Answer, now: int, *, switches: bool) -> None:
        fault, request = call.fault, call.request
        opens = () if answer.stream is None else (answer.stream.channel,)
        link.silent = link.silent or (fault is not None and fault.silent)
        if link.silent or not request.answer or not answers(fault):
            self._unanswered(call, link, now, opens)
            if switches:
                link.frame()
            return
        event = reply_event(call, answer, self._core.profile.target_key)
        body = message(request.raw_id, answer)
        if call.gathering is not None:
            call.gathering.opens += opens
            self._gather(call.conn, call.gathering, call.place, body, event, now)
            return
        framed = link.framed or (switches and self._core.profile.hello_reply == "frame")
        parcel = self._packer.reply(body, fault, framed=framed)
        size = sum(map(len, parcel.writes))
        events = (event,) if parcel.writes else ()
        self.queue_up(Reply(call.conn, parcel, events, request.method, size, 1, opens, switches), fault, now)

    def _unanswered(self, call: Call, link: Link, now: int, opens: tuple[int, ...]) -> None:
        """Nothing is said about a call; a stream that it opened begins all the same."""
        for channel in opens:
            self._streams.uncork(channel)
        if call.gathering is not None and call.request.answer:
            self._gather(call.conn, call.gathering, call.place, None, None, now)
            return
        link.owed -= call.request.answer
        if not link.silent and call.fault is not None and call.fault.close:
            self.queue_up(Reply(call.conn, Parcel(close=True), method=call.request.method), call.fault, now)

    def _gather(
        self, conn: int, gathering: Gathering, place: int, body: dict[str, object] | None, event: Event | None, now: int
    ) -> None:
        """One answer to a batch is there (or is known never to come); the last one sends them all."""
        gathering.left -= 1
        if body is not None:
            gathering.messages[place] = body
        if event is not None:
            gathering.events.append(event)
        if gathering.left:
            return
        link = self._links[conn]
        if link.silent or not gathering.messages:
            link.owed -= gathering.size
            return
        messages = [gathering.messages[place] for place in sorted(gathering.messages)]
        parcel = self._packer.batch(messages, framed=link.framed)
        reply = Reply(
            conn,
            parcel,
            tuple(gathering.events),
            size=len(parcel.writes[0]),
            settles=gathering.size,
            opens=tuple(gathering.opens),
        )
        self.queue_up(reply, None, now)

    def queue_up(self, reply: Reply, fault: Fault | None, now: int) -> None:
        """Let a reply wait for its time; a connection on which too much waits ends."""
        link = self._links[reply.conn]
        if link.queued + reply.size > self._max_queued:
            self._core.trace.add(Event(t=now, kind="fault", conn=reply.conn, note="too many reply bytes are waiting"))
            self._hub.cut(reply.conn)
            return
        self._outbox.put(link, reply, fault, now)
