"""All streams of all connections: events and output of terminals, as frames or as notifications.

    the core's news -> channels (each with a bounded queue) -> frames or lines, as far as credit and the reader allow

A reader that is too slow cannot make memory grow. Events that do not fit any more are left out until all that waits has
gone, and then one `events.lost` says how many there were (or the stream ends, if the profile has it so). A stream of a
terminal is not mended by leaving out a piece of it: it ends. A burst that is larger than the queue counts the same,
however fast the reader: what happens in one instant is bounded too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hc_sim.core import Core
from hc_sim.core.answers import Stream
from hc_sim.core.views import Focused, Replied, Resized, Told, Typed, ViewerAct
from hc_sim.core.watches import Facts, News, Notice, Output, Over
from hc_sim.hub.channels import Channel
from hc_sim.model import FrameKind
from hc_sim.notifications import EventName
from hc_sim.wire.frames import Frame, decode_credit, decode_size, encode_credit, encode_frame
from hc_sim.wire.jsonrpc import encode_notification

TOO_SLOW = "the reader is too slow"


@dataclass(slots=True)
class _Desk:
    """The streams of one connection. `last`: the highest number that was ever opened here."""

    framed: bool
    channels: dict[int, Channel] = field(default_factory=dict)
    last: int = 0
    held: bool = False
    over: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """Bytes of a connection's streams that may go out now; `over`: the connection has to end after them."""

    conn: int
    data: bytes
    over: bool = False


class Streams:
    """The streams of a core. What it is told about a connection that has none costs nothing."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._numbers = core.profile.frame_numbers()
        self._kinds: Mapping[int, FrameKind] = {number: kind for kind, number in self._numbers.items()}
        self._desks: dict[int, _Desk] = {}
        self._conns: dict[int, int] = {}
        self._subscribers: dict[int, Channel] = {}
        self._busy: dict[int, None] = {}

    def open(self, conn: int, stream: Stream, *, framed: bool) -> None:
        """A call has opened a stream; nothing of it goes out before `uncork`."""
        profile = self._core.profile
        desk = self._desks.setdefault(conn, _Desk(framed))
        implied = profile.credit_first == "implied"
        channel = Channel(stream.channel, stream.terminal, profile.window_bytes, profile.max_stream_bytes)
        if framed:
            channel.credit = channel.window = profile.window_bytes if implied else 0
        desk.channels[stream.channel] = channel
        desk.last = stream.channel
        self._conns[stream.channel] = conn
        if not stream.terminal:
            self._subscribers[stream.channel] = channel
        if framed and not implied and stream.terminal:
            channel.window = profile.window_bytes
            channel.queue.appendleft(("credit", encode_credit(profile.window_bytes)))

    def uncork(self, channel: int) -> None:
        """The answer that opened the stream has gone out."""
        conn = self._conns.get(channel)
        if conn is not None:
            self._desks[conn].channels[channel].corked = False
            self._busy[conn] = None

    def hold(self, conn: int, *, on: bool) -> None:
        """The connection has (or has no more) enough to read: its streams wait meanwhile."""
        desk = self._desks.get(conn)
        if desk is not None:
            desk.held = on
            self._busy[conn] = None

    def forget(self, conn: int) -> None:
        """The connection is gone."""
        desk = self._desks.pop(conn, None)
        if desk is not None:
            self._busy.pop(conn, None)
            for number in list(desk.channels):
                self._drop(desk, number)

    def due(self) -> list[Due]:
        """What may go out now, in order."""
        if self._core.has_news:
            for news in self._core.drain_news():
                self._spread(news)
        if not self._busy:
            return []
        busy, self._busy = self._busy, {}
        return [due for conn in busy if (desk := self._desks[conn]) and not desk.held for due in self._flow(conn, desk)]

    def frame(self, conn: int, frame: Frame, now: int) -> str:
        """A frame came in on a channel other than 0. Returns what is wrong with it, in words; "" if nothing is."""
        kind = self._kinds.get(frame.kind)
        if kind is None:
            return f"no frame is of kind {frame.kind}"
        desk = self._desks.get(conn)
        if desk is None or frame.channel > desk.last:
            return f"channel {frame.channel} was never opened"
        channel = desk.channels.get(frame.channel)
        if channel is None:
            return ""  # it was closed meanwhile, and the peer could not know
        self._busy[conn] = None
        match kind:
            case "close":
                self._drop(desk, frame.channel)
                return ""
            case "credit":
                amount = decode_credit(frame.payload)
                if amount is None or not channel.grant(amount):
                    return "a credit is four bytes, and no sum of them is above 4294967295"
                return ""
            case _:
                return self._act(channel, kind, frame.payload, now)

    def _act(self, channel: Channel, kind: FrameKind, payload: bytes, now: int) -> str:
        if not channel.terminal:
            return f"channel {channel.number} carries events, and takes no {kind}"
        act = _act_of(kind, payload)
        if act is None:
            return f"that is no payload of a {kind} frame"
        if isinstance(act, Typed):
            anew = channel.receive(len(payload))
            if anew is None:
                return f"channel {channel.number} has no credit for {len(payload)} bytes"
            if anew:
                channel.put("credit", encode_credit(anew))
        self._core.viewer(channel.number, act, now)
        return ""

    def _spread(self, news: News) -> None:
        if isinstance(news, Notice):
            line = b""
            for channel in list(self._subscribers.values()):
                if self._framed(channel) and not line:
                    line = self._notification(channel, news.name, news.params)
                self._event(channel, line if self._framed(channel) else b"", news)
            return
        for number in news.channels:
            conn = self._conns.get(number)
            if conn is not None:
                self._busy[conn] = None
                self._to_viewer(self._desks[conn], self._desks[conn].channels[number], news)

    def _event(self, channel: Channel, line: bytes, notice: Notice) -> None:
        conn = self._conns[channel.number]
        self._busy[conn] = None
        if not channel.lost and channel.put("data", line or self._notification(channel, notice.name, notice.params)):
            return
        if self._core.profile.slow_reader == "skip":
            channel.lost += 1
        else:
            self._end(self._desks[conn], channel, TOO_SLOW)

    def _to_viewer(self, desk: _Desk, channel: Channel, news: Output | Facts | Over) -> None:
        match news:
            case Output(_, data):
                if not channel.put("data", data if desk.framed else self._output(channel, data)):
                    self._end(desk, channel, TOO_SLOW)
            case Facts(_, terminal):
                if desk.framed:
                    channel.put_newest("facts", self._encode(terminal))
            case Over(_, reason):
                self._close(desk, channel, reason)

    def _end(self, desk: _Desk, channel: Channel, reason: str) -> None:
        """End a stream whose reader is too slow: what waits for it is thrown away."""
        channel.clear()
        self._close(desk, channel, reason)
        if not desk.framed and not channel.terminal:
            desk.over = True
        self._core.end_stream(channel.number)
        self._subscribers.pop(channel.number, None)

    def _close(self, desk: _Desk, channel: Channel, reason: str) -> None:
        if desk.framed:
            channel.close(reason.encode() if self._core.profile.close_words else b"")
        elif channel.terminal:
            params = {"reason": reason, "terminal": channel.terminal}
            channel.close(self._notification(channel, "terminal.closed", params))

    def _flow(self, conn: int, desk: _Desk) -> list[Due]:
        out: list[Due] = []
        for channel in list(desk.channels.values()):
            pieces = channel.take()
            if channel.lost and not channel.queue and not channel.corked:
                channel.put("data", self._notification(channel, "events.lost", {"lost": channel.lost}))
                channel.lost = 0
                pieces += channel.take()
            for kind, data in pieces:
                framed = encode_frame(channel.number, self._numbers[kind], data) if desk.framed else data
                out.append(Due(conn, framed))
            if pieces and pieces[-1][0] == "close":
                self._drop(desk, channel.number)
        if desk.over:
            out.append(Due(conn, b"", over=True))
        return out

    def _drop(self, desk: _Desk, number: int) -> None:
        del desk.channels[number]
        del self._conns[number]
        self._subscribers.pop(number, None)
        self._core.end_stream(number)

    def _framed(self, channel: Channel) -> bool:
        return self._desks[self._conns[channel.number]].framed

    def _notification(self, channel: Channel, name: EventName, params: Mapping[str, Any]) -> bytes:
        profile = self._core.profile
        whole = params if self._framed(channel) else {**params, "channel": channel.number}
        return encode_notification(profile.event(name), whole, profile)

    def _output(self, channel: Channel, data: bytes) -> bytes:
        params = {"terminal": channel.terminal, "text": data.decode("utf-8", "replace")}
        return self._notification(channel, "terminal.output", params)

    def _encode(self, value: Any) -> bytes:
        return msgspec.json.encode(value, order="sorted" if self._core.profile.sorted_keys else None)


def _act_of(kind: FrameKind, payload: bytes) -> ViewerAct | None:
    match kind:
        case "data":
            return Typed(payload)
        case "viewer_reply":
            return Replied(payload)
        case "facts":
            return Told(payload)
        case "focus":
            return Focused(payload == b"\x01") if payload in (b"\x00", b"\x01") else None
        case "resize":
            size = decode_size(payload)
            return None if size is None else Resized(*size)
        case _:
            return None
