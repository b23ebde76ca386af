"""Events and the output of terminals reach those who asked for them: in order, in both modes, never without bound."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.core import Core
from hc_sim.faults import Fault
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, Reborn, Step
from hc_sim.wire import Frame, FrameSplitter, encode_frame
from hc_sim.wire.frames import decode_credit, encode_credit, encode_size

DATA, CREDIT, CLOSE, RESIZE, FOCUS, FACTS, VIEWER_REPLY = range(7)
MODES = pytest.mark.parametrize("framed", [False, True], ids=["lines", "frames"])


class Client:
    """A client in either mode that keeps what it is told unasked: (name, parameters), or frames of a terminal."""

    def __init__(self, hub: Hub, *, framed: bool = False) -> None:
        self.hub = hub
        self.framed = framed
        self.conn = hub.connect(0)
        self.splitter: FrameSplitter | None = None
        self.replies: list[Any] = []
        self.told: list[tuple[str, Any]] = []
        self.frames: list[Frame] = []
        self.ended = False
        self.now = 0
        self._kinds: dict[int, str] = {}
        self._line = b""
        self.call("hello", frames=framed)
        if framed:
            self.splitter = FrameSplitter(2**24)

    def call(self, method: str, **params: Any) -> Any:
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"
        before = len(self.replies)
        self.write(encode_frame(0, DATA, line) if self.splitter else line)
        found = self.replies[before]
        if method == "events.subscribe" and "result" in found:
            self._kinds[found["result"]["channel"]] = "events"
        return found.get("result", found.get("error"))

    def send(self, channel: int, kind: int, payload: bytes = b"") -> None:
        self.write(encode_frame(channel, kind, payload))

    def write(self, data: bytes) -> None:
        self.hub.receive(self.conn, data, self.now)
        self.take()

    def at(self, now: int) -> None:
        self.now = now
        self.hub.advance(now)
        self.take()

    def take(self) -> None:
        for delivery in self.hub.outgoing(self.now):
            assert delivery.conn == self.conn, "another client's bytes: give it its own turn first"
            self.ended |= delivery.close
            if self.splitter is None:
                self._lines(delivery.data)
            else:
                for frame in self.splitter.feed(delivery.data):
                    assert isinstance(frame, Frame)
                    self._frame(frame)

    def _frame(self, frame: Frame) -> None:
        if frame.channel == 0 or (self._kinds.get(frame.channel) == "events" and frame.kind == DATA):
            self._lines(frame.payload)
        else:
            self.frames.append(frame)

    def _lines(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            value = json.loads(line)
            if "id" in value:
                self.replies.append(value)
            else:
                self.told.append((value["method"], value["params"]))

    def names(self) -> list[str]:
        return [name for name, _ in self.told]

    def shown(self) -> str:
        """What a viewer saw so far."""
        if self.splitter is not None:
            return b"".join(frame.payload for frame in self.frames if frame.kind == DATA).decode()
        return "".join(params["text"] for name, params in self.told if name == "terminal.output")


def kinds(client: Client) -> list[int]:
    return [frame.kind for frame in client.frames]


# ------------------------------------------------------------------ events


@MODES
def test_every_change_is_told_once_in_order_with_the_terminal_as_it_then_is(framed: bool) -> None:
    client = Client(Hub(Core()), framed=framed)
    client.call("events.subscribe")
    client.call("terminal.run", argv=["pi"], name="a")
    client.call("terminal.label", terminal="a", labels={"k": "v"})
    client.hub.core.set_state("a", status="working", turn=1, now=0)
    client.call("doc.set", name="d", value=1)
    client.call("terminal.kill", terminal="a")
    client.call("terminal.rm", terminal="a")
    assert client.names() == [
        "terminal.created",
        "terminal.changed",
        "terminal.changed",
        "document.changed",
        "terminal.changed",
        "terminal.removed",
    ]
    assert [params["number"] for _, params in client.told] == [1, 2, 3, 4, 5, 6]
    terminals = [params["terminal"] for _, params in client.told if "terminal" in params]
    assert [terminal["labels"] for terminal in terminals[:2]] == [{}, {"k": "v"}]
    assert [terminal["turn"] for terminal in terminals] == [0, 0, 1, 1, 1]
    assert [terminal["state"] for terminal in terminals] == ["running"] * 3 + ["finished"] * 2
    assert client.told[3][1]["name"] == "d"
    assert client.told[3][1]["version"] == 1


@MODES
def test_an_event_shows_what_get_shows_at_that_moment(framed: bool) -> None:
    client = Client(Hub(Core()), framed=framed)
    client.call("events.subscribe")
    client.call("terminal.run", argv=["pi"], name="a")
    assert client.told[-1][1]["terminal"] == client.call("terminal.get", terminal="a")


def test_in_line_mode_each_notification_says_which_stream_it_belongs_to() -> None:
    client = Client(Hub(Core()))
    first, second = client.call("events.subscribe"), client.call("events.subscribe")
    client.call("terminal.run", argv=["pi"])
    assert [params["channel"] for _, params in client.told] == [first["channel"], second["channel"]]


def test_in_frames_the_channel_says_it_and_the_parameters_do_not() -> None:
    client = Client(Hub(Core()), framed=True)
    client.call("events.subscribe")
    client.call("terminal.run", argv=["pi"])
    assert "channel" not in client.told[0][1]


@MODES
def test_nothing_of_a_stream_goes_out_before_the_answer_that_opened_it(framed: bool) -> None:
    client = Client(Hub(Core(), [Fault(method="events.subscribe", delay_ms=50)]), framed=framed)
    line = b'{"jsonrpc":"2.0","id":1,"method":"events.subscribe"}\n'
    client.write(encode_frame(0, DATA, line) if framed else line)
    client._kinds[1] = "events"
    client.call("terminal.run", argv=["pi"])
    assert client.told == []
    before = len(client.replies)
    client.at(50)
    assert client.replies[before]["result"]["channel"] == 1
    assert client.names() == ["terminal.created"]


def test_whoever_did_not_subscribe_hears_nothing() -> None:
    client = Client(Hub(Core()))
    client.call("terminal.run", argv=["pi"])
    assert client.told == []
    assert not client.hub.core.has_news


@MODES
def test_one_client_hears_what_another_does(framed: bool) -> None:
    hub = Hub(Core())
    doer, hearer = Client(hub), Client(hub, framed=framed)
    hearer.call("events.subscribe")
    line = b'{"jsonrpc":"2.0","method":"terminal.run","params":{"argv":["pi"]}}\n'
    hub.receive(doer.conn, line, 0)
    hearer.take()
    assert hearer.names() == ["terminal.created"]


def test_a_subscriber_that_leaves_is_forgotten() -> None:
    hub = Hub(Core())
    leaver, stayer = Client(hub), Client(hub)
    leaver.call("events.subscribe")
    hub.disconnect(leaver.conn, 0)
    stayer.call("terminal.run", argv=["pi"])
    assert not hub.core.has_news
    assert stayer.told == []


def test_closing_the_channel_ends_the_events_and_the_connection_goes_on() -> None:
    client = Client(Hub(Core()), framed=True)
    channel = client.call("events.subscribe")["channel"]
    client.send(channel, CLOSE)
    client.call("terminal.run", argv=["pi"])
    assert client.told == []
    assert client.frames == []


def test_a_timeline_s_steps_are_told_at_their_time() -> None:
    steps = [
        Step(at_ms=100, status="working", turn_add=1),
        Step(at_ms=200, status="done"),
        Step(at_ms=300, vanish=True),
    ]
    client = Client(Hub(Core(agents=[Agent(status="idle", step=steps)])))
    client.call("terminal.run", argv=["pi"], name="a")
    client.call("events.subscribe")
    for now, told in ((99, 0), (100, 1), (200, 2), (300, 3)):
        client.at(now)
        assert len(client.told) == told
    assert client.names() == ["terminal.changed", "terminal.changed", "terminal.removed"]


def test_another_incarnation_is_a_removal_and_a_creation() -> None:
    steps = [Step(at_ms=10, reborn=Reborn())]
    client = Client(Hub(Core(agents=[Agent(step=steps)])))
    client.call("terminal.run", argv=["pi"], name="a")
    client.call("events.subscribe")
    client.at(10)
    assert client.names() == ["terminal.removed", "terminal.created"]
    before, after = (params["terminal"] for _, params in client.told)
    assert before["address"] == after["address"]
    assert before["created_ms"] < after["created_ms"]


def test_a_cascade_is_told_parent_first() -> None:
    client = Client(Hub(Core()))
    client.call("terminal.run", argv=["pi"], name="parent")
    client.call("terminal.run", argv=["pi"], name="child", caller="parent")
    client.call("events.subscribe")
    client.call("terminal.kill", terminal="parent")
    assert [params["terminal"]["name"] for _, params in client.told] == ["parent", "child"]


def test_names_of_events_are_the_profile_s() -> None:
    client = Client(Hub(Core(WireProfile(event_names={"terminal.created": "t.new"}))))
    client.call("events.subscribe")
    client.call("terminal.run", argv=["pi"])
    assert client.names() == ["t.new"]


def test_one_stream_too_many_on_a_connection_is_refused_and_another_connection_has_its_own() -> None:
    hub = Hub(Core(WireProfile(max_channels=2)))
    client, other = Client(hub, framed=True), Client(hub)
    opened = [client.call("events.subscribe") for _ in range(3)]
    assert opened[2]["data"]["kind"] == "limit_reached"
    client.send(opened[0]["channel"], CLOSE)
    assert "channel" in client.call("events.subscribe")
    assert "channel" in other.call("events.subscribe")


def test_channels_are_numbered_as_the_profile_has_it_and_never_twice() -> None:
    client = Client(Hub(Core(WireProfile(first_channel=10, channel_step=5))), framed=True)
    numbers = []
    for _ in range(3):
        numbers.append(client.call("events.subscribe")["channel"])
        client.send(numbers[-1], CLOSE)
    assert numbers == [10, 15, 20]


# ------------------------------------------------------------------ readers that are too slow


def busy(client: Client, times: int) -> None:
    for number in range(times):
        client.hub.core.set_state("t1", turn=number + 1, now=0)


@MODES
def test_a_reader_that_is_too_slow_loses_events_and_is_told_how_many(framed: bool) -> None:
    client = Client(Hub(Core(WireProfile(max_stream_bytes=3_000))), framed=framed)
    client.hub.core.add_terminal()
    client.call("events.subscribe")
    client.hub.hold(client.conn, on=True)
    busy(client, 100)
    client.take()
    assert client.told == []
    client.hub.hold(client.conn, on=False)
    client.take()
    kept = len(client.told) - 1
    assert 0 < kept < 20
    assert client.names() == ["terminal.changed"] * kept + ["events.lost"]
    assert client.told[-1][1]["lost"] == 100 - kept
    busy(client, 1)
    client.take()
    assert client.told[-1][1]["number"] == 101


@MODES
def test_a_reader_that_is_too_slow_can_be_cut_off_instead(framed: bool) -> None:
    client = Client(Hub(Core(WireProfile(max_stream_bytes=3_000, slow_reader="close"))), framed=framed)
    client.hub.core.add_terminal()
    client.call("events.subscribe")
    client.hub.hold(client.conn, on=True)
    busy(client, 100)
    client.take()
    client.hub.hold(client.conn, on=False)
    client.take()
    assert client.told == []
    if framed:
        assert [(frame.kind, frame.payload) for frame in client.frames] == [(CLOSE, b"the reader is too slow")]
    assert client.ended is not framed


@MODES
def test_replies_go_out_while_streams_wait(framed: bool) -> None:
    client = Client(Hub(Core()), framed=framed)
    client.call("events.subscribe")
    client.hub.hold(client.conn, on=True)
    assert client.call("terminal.run", argv=["pi"])["address"] == "t1"
    assert client.told == []


@MODES
def test_a_viewer_that_is_too_slow_is_cut_off_and_the_terminal_goes_on(framed: bool) -> None:
    client = Client(Hub(Core(WireProfile(max_stream_bytes=500))), framed=framed)
    client.hub.core.add_terminal(status="working")
    client.call("terminal.attach", terminal="t1")
    client.hub.hold(client.conn, on=True)
    for number in range(50):
        client.hub.core.set_state("t1", status="working", msg=f"line {number} {'x' * 20}", now=0)
    client.take()
    client.hub.hold(client.conn, on=False)
    client.take()
    assert client.shown() == ""
    if framed:
        assert (client.frames[-1].kind, client.frames[-1].payload) == (CLOSE, b"the reader is too slow")
    else:
        assert client.told[-1][0] == "terminal.closed"
        assert client.told[-1][1]["reason"] == "the reader is too slow"
    assert client.call("terminal.get", terminal="t1")["status"]["msg"].startswith("line 49")


# ------------------------------------------------------------------ credit


def viewer(profile: WireProfile, *, msg: str = "0123456789") -> Client:
    client = Client(Hub(Core(profile)), framed=True)
    client.hub.core.add_terminal(status="working")
    client.hub.core.set_state("t1", status="working", msg=msg, now=0)
    client.call("terminal.attach", terminal="t1")
    return client


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 20))
def test_no_byte_more_than_the_credit_goes_out_and_none_is_lost(grants: list[int], window: int) -> None:
    client = viewer(WireProfile(window_bytes=window, attach_facts=False))
    text = "0123456789\r\n"
    allowed = window
    assert client.shown() == text[:allowed]
    for amount in grants:
        client.send(1, CREDIT, encode_credit(amount))
        allowed += amount
        assert client.shown() == text[:allowed]


def test_events_obey_credit_too_and_arrive_whole_in_the_end() -> None:
    client = Client(Hub(Core(WireProfile(window_bytes=10))), framed=True)
    client.call("events.subscribe")
    client.call("terminal.run", argv=["pi"])
    assert client.told == []
    client.send(1, CREDIT, encode_credit(10_000))
    assert client.names() == ["terminal.created"]


def test_what_is_no_data_costs_no_credit_but_keeps_its_place() -> None:
    client = viewer(WireProfile(window_bytes=4))
    assert kinds(client) == [FACTS, DATA]
    client.call("terminal.kill", terminal="t1")
    assert kinds(client) == [FACTS, DATA]
    client.send(1, CREDIT, encode_credit(100))
    assert kinds(client)[:2] + kinds(client)[-1:] == [FACTS, DATA, CLOSE]
    assert client.shown() == "0123456789\r\n"


def test_with_explicit_credit_nobody_sends_data_before_it_was_granted() -> None:
    client = viewer(WireProfile(credit_first="explicit", window_bytes=50))
    assert kinds(client) == [CREDIT, FACTS]
    assert decode_credit(client.frames[0].payload) == 50
    client.send(1, CREDIT, encode_credit(5))
    assert client.shown() == "01234"


def test_what_a_viewer_types_is_granted_anew_when_half_of_it_is_used() -> None:
    client = viewer(WireProfile(window_bytes=100))
    client.frames.clear()
    client.send(1, DATA, b"x" * 40)
    assert CREDIT not in kinds(client)
    client.send(1, DATA, b"x" * 20)
    assert [decode_credit(frame.payload) for frame in client.frames if frame.kind == CREDIT] == [60]
    client.send(1, DATA, b"x" * 100)
    assert not client.ended


# ------------------------------------------------------------------ viewers


@MODES
def test_a_viewer_sees_the_screen_and_then_what_comes_onto_it(framed: bool) -> None:
    client = Client(Hub(Core()), framed=framed)
    client.call("terminal.run", argv=["pi"], name="a")
    client.call("terminal.send", terminal="a", text="before")
    client.call("terminal.attach", terminal="a")
    assert client.shown() == "> before\r\n"
    client.call("terminal.send", terminal="a", text="after")
    assert client.shown() == "> before\r\n> after\r\n"


@MODES
def test_the_stream_ends_with_the_program_and_says_why(framed: bool) -> None:
    client = Client(Hub(Core(agents=[Agent(step=[Step(at_ms=10, msg="bye", status="done", finish=Finish(code=0))])])))
    client = Client(client.hub, framed=framed)
    client.call("terminal.run", argv=["pi"], name="a")
    client.call("terminal.attach", terminal="a")
    client.at(10)
    assert client.shown() == "bye\r\n"
    if framed:
        assert (client.frames[-1].kind, client.frames[-1].payload) == (CLOSE, b"finished")
    else:
        assert client.told[-1] == ("terminal.closed", {"channel": 1, "reason": "finished", "terminal": "t1"})


def test_facts_are_the_terminal_and_only_the_newest_waits() -> None:
    client = viewer(WireProfile())
    client.frames.clear()
    client.hub.hold(client.conn, on=True)
    busy(client, 5)
    client.take()
    client.hub.hold(client.conn, on=False)
    client.take()
    (facts,) = [frame for frame in client.frames if frame.kind == FACTS]
    assert json.loads(facts.payload)["turn"] == 5


def test_an_attach_to_what_has_finished_or_is_not_there_is_an_error() -> None:
    client = Client(Hub(Core()))
    client.hub.core.add_terminal(finished=0)
    assert client.call("terminal.attach", terminal="t1")["data"]["kind"] == "not_live"
    assert client.call("terminal.attach", terminal="t9")["data"]["kind"] == "no_such_terminal"


def test_what_a_viewer_types_reaches_the_agent_with_its_enter() -> None:
    client = Client(Hub(Core(agents=[Agent(status="idle")])), framed=True)
    client.call("terminal.run", argv=["pi"], name="a")
    client.call("terminal.attach", terminal="a")
    client.send(1, DATA, b"hel")
    client.send(1, DATA, b"lx\x7fo")
    assert client.hub.core.trace.of("text") == []
    client.send(1, DATA, b"\r")
    assert [event.text for event in client.hub.core.trace.of("text")] == ["hello"]
    assert [event.text for event in client.hub.core.trace.of("key")] == ["hel", "lx", "Backspace", "o", "Enter"]


def test_esc_typed_by_a_viewer_does_what_interrupt_does() -> None:
    client = viewer(WireProfile())
    client.send(1, DATA, b"\x1b")
    assert client.call("terminal.get", terminal="t1")["status"]["state"] == "idle"


def test_unsent_text_of_a_viewer_is_a_draft_that_a_send_can_meet() -> None:
    client = Client(Hub(Core(agents=[Agent(status="idle", send="refuse")])), framed=True)
    client.call("terminal.run", argv=["pi"], name="a")
    client.call("terminal.attach", terminal="a")
    client.send(1, DATA, b"half a thought")
    assert client.call("terminal.send", terminal="a", text="x")["data"]["kind"] == "draft_present"


def test_a_viewer_s_reply_size_focus_and_facts_are_noted_and_are_no_typing() -> None:
    client = viewer(WireProfile())
    client.send(1, VIEWER_REPLY, b"\x1b[?62c")
    client.send(1, RESIZE, encode_size(120, 40))
    client.send(1, FOCUS, b"\x01")
    client.send(1, FOCUS, b"\x00")
    client.send(1, FACTS, b"{}")
    trace = client.hub.core.trace
    assert [event.note for event in trace.of("view")] == [
        "viewer reply",
        "resize 120x40",
        "focus on",
        "focus off",
        "facts",
    ]
    assert trace.of("view")[0].text == "\x1b[?62c"
    assert trace.of("key") == []
    assert client.call("terminal.get", terminal="t1")["status"]["state"] == "working"


def test_idle_after_work_becomes_done_unless_somebody_is_looking() -> None:
    def end(look: bytes) -> str:
        client = viewer(WireProfile(derive_done=True))
        client.send(1, FOCUS, look)
        client.hub.core.set_state("t1", status="idle", now=0)
        return str(client.call("terminal.get", terminal="t1")["status"]["state"])

    assert (end(b"\x00"), end(b"\x01")) == ("done", "idle")


def test_two_viewers_see_the_same_and_one_that_leaves_takes_nothing_from_the_other() -> None:
    client = viewer(WireProfile(attach_replay=False))
    second = client.call("terminal.attach", terminal="t1")["channel"]
    client.hub.core.set_state("t1", status="working", msg="one", now=0)
    client.take()
    client.send(1, CLOSE)
    client.hub.core.set_state("t1", status="working", msg="two", now=0)
    client.take()
    seen = dict.fromkeys((1, second), b"")
    for frame in client.frames:
        if frame.kind == DATA:
            seen[frame.channel] += frame.payload
    assert seen == {1: b"one\r\n", second: b"one\r\ntwo\r\n"}


# ------------------------------------------------------------------ batches and notifications that open streams


def test_a_stream_opened_in_a_batch_begins_after_the_replies_to_the_batch() -> None:
    client = Client(Hub(Core(WireProfile(batches="accept"))))
    members = [{"id": 1, "method": "events.subscribe"}, {"id": 2, "method": "terminal.run"}]
    batch = json.dumps([{"jsonrpc": "2.0", **member} for member in members]).encode()
    client.hub.receive(client.conn, batch + b"\n", 0)
    first, second = (json.loads(delivery.data) for delivery in client.hub.outgoing(0))
    assert [reply["id"] for reply in first] == [1, 2]
    assert second["method"] == "terminal.created"


@pytest.mark.parametrize("fault", [None, Fault(method="events.subscribe", reply=False)])
def test_a_stream_whose_answer_never_comes_begins_all_the_same(fault: Fault | None) -> None:
    client = Client(Hub(Core(), [fault] if fault else []))
    id_ = {"id": 1} if fault else {}
    client.write(json.dumps({"jsonrpc": "2.0", "method": "events.subscribe", **id_}).encode() + b"\n")
    client.call("terminal.run", argv=["pi"])
    assert client.names() == ["terminal.created"]
