"""A connection that asks for frames in its hello gets them; what breaks their rules ends it, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.core import Core
from hc_sim.faults import Fault, FaultPlan, LinkFault
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent
from hc_sim.wire import Frame, FrameSplitter, encode_frame
from hc_sim.wire.frames import encode_credit, encode_size

DATA, CREDIT, CLOSE, RESIZE, FOCUS, FACTS, VIEWER_REPLY = range(7)


def request(method: str, id_: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n"


HELLO = request("hello", 0, frames=True)


class Client:
    """A client in frames. `control` is what came as JSON on channel 0, `streams` the frames of every other channel."""

    def __init__(self, hub: Hub, hello: bytes = HELLO) -> None:
        self.hub = hub
        self.conn = hub.connect(0)
        self.splitter = FrameSplitter(2**24)
        self.control: list[Any] = []
        self.streams: list[Frame] = []
        self.ended = False
        self.greeting = self.raw(hello)

    def raw(self, data: bytes, now: int = 0) -> bytes:
        self.hub.receive(self.conn, data, now)
        return self.due(now)

    def due(self, now: int = 0) -> bytes:
        self.hub.advance(now)
        data = b""
        for delivery in self.hub.outgoing(now):
            if delivery.conn == self.conn:
                data += delivery.data
                self.ended |= delivery.close
        return data

    def take(self, data: bytes) -> None:
        for frame in self.splitter.feed(data):
            assert isinstance(frame, Frame)
            if frame.channel:
                self.streams.append(frame)
            else:
                assert frame.kind == DATA
                self.control += [json.loads(line) for line in frame.payload.splitlines()]

    def send(self, channel: int, kind: int, payload: bytes = b"") -> None:
        self.take(self.raw(encode_frame(channel, kind, payload)))

    def call(self, method: str, id_: Any = 1, **params: Any) -> Any:
        before = len(self.control)
        self.send(0, DATA, request(method, id_, **params))
        (reply,) = self.control[before:]
        return reply


def kind_of(reply: Any) -> str:
    return str(reply["error"]["data"]["kind"]) if "error" in reply else "result"


def test_the_answer_to_hello_is_still_a_line_and_everything_after_it_is_frames() -> None:
    client = Client(Hub(Core()))
    assert json.loads(client.greeting)["result"]["core_id"] == "core-1"
    assert client.greeting.endswith(b"}\n")
    assert client.call("terminal.run", argv=["pi"])["result"]["address"] == "t1"


def test_without_the_wish_in_hello_lines_stay_lines() -> None:
    client = Client(Hub(Core()), request("hello", 0, frames=False))
    assert json.loads(client.raw(request("server.status")))["result"]["generation"] == 1


def test_a_hello_that_is_refused_leaves_the_connection_in_line_mode() -> None:
    client = Client(Hub(Core()), request("hello", 0, frames=True, generation=9))
    assert kind_of(json.loads(client.greeting)) == "other_generation"
    assert kind_of(json.loads(client.raw(request("server.status")))) == "result"


@given(st.integers(0, 400))
def test_frames_may_follow_the_hello_line_in_the_same_bytes_wherever_these_are_cut(cut: int) -> None:
    data = HELLO + b"".join(encode_frame(0, DATA, request("server.status", number)) for number in (1, 2))
    client = Client(Hub(Core()), data[:cut])
    out = client.greeting + client.raw(data[cut:])
    line, _, rest = out.partition(b"\n")
    client.take(rest)
    assert json.loads(line)["id"] == 0
    assert [reply["id"] for reply in client.control] == [1, 2]


def test_what_follows_a_hello_that_is_answered_late_waits_for_that_answer() -> None:
    client = Client(Hub(Core(), [Fault(method="hello", delay_ms=50)]))
    assert client.raw(encode_frame(0, DATA, request("server.status", 7))) == b""
    line, _, rest = client.due(50).partition(b"\n")
    client.take(rest)
    assert (json.loads(line)["id"], [reply["id"] for reply in client.control]) == (0, [7])


def test_a_lost_answer_to_hello_switches_all_the_same() -> None:
    client = Client(Hub(Core(), [Fault(method="hello", reply=False)]))
    assert client.greeting == b""
    assert kind_of(client.call("server.status")) == "result"


def test_a_hello_that_never_reaches_the_core_switches_nothing() -> None:
    client = Client(Hub(Core(), [Fault(method="hello", apply=False)]))
    assert kind_of(json.loads(client.raw(request("server.status")))) == "result"


@given(st.lists(st.integers(0, 500), max_size=10))
def test_lines_on_channel_0_mean_the_same_however_they_are_spread_over_frames(cuts: list[int]) -> None:
    lines = b"".join(request("server.status", number) for number in range(4))
    client, begin = Client(Hub(Core())), 0
    for cut in [*sorted({cut for cut in cuts if cut < len(lines)}), len(lines)]:
        client.send(0, DATA, lines[begin:cut])
        begin = cut
    assert [reply["id"] for reply in client.control] == [0, 1, 2, 3]


def test_without_newlines_a_frame_is_a_message() -> None:
    client = Client(Hub(Core(WireProfile(frame_newline=False))))
    client.send(0, DATA, request("server.status", 1).strip())
    client.send(0, DATA, request("server.status", 2))
    assert [reply["id"] for reply in client.control] == [1, 2]


def test_calls_run_side_by_side_and_a_held_one_is_overtaken() -> None:
    client = Client(Hub(Core(agents=[Agent(send="hold", hold_ms=500)])))
    client.call("terminal.run", argv=["pi"], name="slow")
    client.send(0, DATA, request("terminal.send", "slow", terminal="slow", text="x"))
    assert client.call("server.status", "quick")["id"] == "quick"
    client.take(client.due(500))
    assert client.control[-1]["id"] == "slow"


def test_other_numbers_for_kinds_are_used_both_ways() -> None:
    client = Client(Hub(Core(WireProfile(frame_kinds={"data": 7, "close": 0}))))
    out = client.raw(encode_frame(0, 7, request("server.status")))
    assert out[4] == 7
    client.raw(encode_frame(0, 0))
    assert client.ended


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (encode_frame(0, 99), "kind 99"),
        (encode_frame(4, 99), "kind 99"),
        (encode_frame(9, DATA, b"x"), "never opened"),
        (encode_frame(0, RESIZE, encode_size(1, 1)), "channel 0"),
        (encode_frame(0, CREDIT, b"abc"), "channel 0"),
        (encode_frame(2, DATA, b"x"), "carries events"),
        (encode_frame(2, FOCUS, b"\1"), "carries events"),
        (encode_frame(1, RESIZE, encode_size(0, 5)), "resize"),
        (encode_frame(1, FOCUS, b"\2"), "focus"),
        (encode_frame(1, CREDIT, b""), "four bytes"),
        (encode_frame(1, CREDIT, encode_credit(0xFFFF_FFFF)), "no sum"),
        (encode_frame(1, DATA, b"x" * 101), "no credit for 101"),
        (encode_frame(0, DATA, b"x" * 3_000), "3000 bytes"),
    ],
)
def test_a_violation_is_named_and_ends_this_connection_only(frame: bytes, words: str) -> None:
    hub = Hub(Core(WireProfile(window_bytes=100, max_frame_bytes=2_000)))
    client, other = Client(hub), Client(hub)
    client.call("terminal.run", argv=["pi"])
    client.call("terminal.attach", terminal="t1")
    client.call("events.subscribe")
    client.take(client.raw(frame + encode_frame(0, DATA, request("server.status", "later"))))
    error = client.control[-1]
    assert (error["id"], kind_of(error)) == (None, "bad_frame")
    assert words in error["error"]["message"]
    assert client.ended
    assert kind_of(other.call("server.status")) == "result"
    assert hub.connections == (other.conn,)


def test_a_profile_can_end_it_without_a_word() -> None:
    client = Client(Hub(Core(WireProfile(bad_frames="close"))))
    assert client.raw(encode_frame(0, 99)) == b""
    assert client.ended


def test_a_line_over_the_limit_in_frames_is_refused_as_one_in_lines() -> None:
    client = Client(Hub(Core(WireProfile(max_line_bytes=100))), request("hello", 0, frames=1))
    client.send(0, DATA, b"x" * 60)
    client.send(0, DATA, b"x" * 60)
    assert kind_of(client.control[-1]) == "line_too_long"
    assert client.ended


def test_a_frame_for_a_channel_that_was_closed_meanwhile_is_no_violation() -> None:
    client = Client(Hub(Core()))
    client.call("terminal.run", argv=["pi"])
    client.call("terminal.attach", terminal="t1")
    client.call("terminal.kill", terminal="t1")
    client.send(1, DATA, b"too late")
    client.send(1, CREDIT, encode_credit(5))
    assert kind_of(client.call("server.status")) == "result"


def test_credit_for_channel_0_is_taken_and_means_nothing() -> None:
    client = Client(Hub(Core()))
    client.send(0, CREDIT, encode_credit(5))
    assert kind_of(client.call("server.status")) == "result"


def test_a_close_of_channel_0_ends_the_connection_once_what_is_owed_has_gone_out() -> None:
    client = Client(Hub(Core(agents=[Agent(send="hold", hold_ms=500)])))
    client.call("terminal.run", argv=["pi"], name="slow")
    client.send(0, DATA, request("terminal.send", "slow", terminal="slow", text="x"))
    client.send(0, CLOSE)
    assert not client.ended
    client.take(client.due(500))
    assert client.control[-1]["id"] == "slow"
    assert client.ended


def test_an_end_of_input_within_a_frame_is_an_end() -> None:
    client = Client(Hub(Core()))
    client.raw(encode_frame(0, DATA, request("terminal.run", argv=["pi"]))[:-1])
    client.hub.eof(client.conn, 0)
    client.due()
    assert client.ended
    assert client.hub.core.terminals() == []


def test_a_reply_is_cut_at_the_bytes_of_its_frame() -> None:
    hub = Hub(Core(), [Fault(method="server.status", cut=[3, 9])])
    client = Client(hub)
    hub.receive(client.conn, encode_frame(0, DATA, request("server.status")), 0)
    pieces = [delivery.data for delivery in hub.outgoing(0)]
    assert [len(piece) for piece in pieces[:2]] == [3, 6]
    client.take(b"".join(pieces))
    assert kind_of(client.control[-1]) == "result"


def test_a_connection_can_end_within_a_frame() -> None:
    client = Client(Hub(Core(), [Fault(method="server.status", close="mid")]))
    client.take(client.raw(encode_frame(0, DATA, request("server.status"))))
    assert client.ended
    assert client.control == []
    assert client.splitter.rest() > 9


def test_a_connection_that_stalls_reads_frames_one_call_at_a_time() -> None:
    hub = Hub(Core(), FaultPlan(link=[LinkFault(nth=0, stall_after=2, stall_ms=100)]))
    client = Client(hub)
    client.take(client.raw(b"".join(encode_frame(0, DATA, request("server.status", number)) for number in (1, 2, 3))))
    assert [reply["id"] for reply in client.control] == [1]
    client.take(client.due(100))
    assert [reply["id"] for reply in client.control] == [1, 2, 3]


@given(st.lists(st.binary(max_size=60), max_size=12))
def test_no_bytes_whatever_break_it(chunks: list[bytes]) -> None:
    hub = Hub(Core())
    wild, calm = Client(hub), Client(hub)
    for chunk in chunks:
        wild.raw(chunk)
    hub.eof(wild.conn, 0)
    hub.outgoing(0)
    assert kind_of(calm.call("server.status")) == "result"


@given(st.lists(st.builds(Frame, st.integers(0, 3), st.integers(0, 8), st.binary(max_size=8)), max_size=12))
def test_no_frames_whatever_break_it(frames: list[Frame]) -> None:
    hub = Hub(Core())
    wild, calm = Client(hub), Client(hub)
    wild.call("terminal.run", argv=["pi"])
    wild.call("terminal.attach", terminal="t1")
    wild.call("events.subscribe")
    for frame in frames:
        wild.raw(encode_frame(frame.channel, frame.kind, frame.payload))
    assert kind_of(calm.call("server.status")) == "result"
    hub.disconnect(wild.conn, 0)
    assert kind_of(calm.call("terminal.run", argv=["pi"])) == "result"
    assert not hub.core.has_news


def test_a_hello_that_is_carried_out_late_and_refused_lets_the_lines_after_it_go_on() -> None:
    client = Client(Hub(Core(), [Fault(method="hello", apply_ms=40)]), request("hello", 0, frames=True, generation=9))
    assert client.raw(request("server.status", 5)) == b""
    assert [json.loads(line)["id"] for line in client.due(40).splitlines()] == [0, 5]


def test_an_answer_that_was_owed_before_the_hello_does_not_end_its_waiting() -> None:
    core = Core(agents=[Agent(send="hold", hold_ms=20)])
    client = Client(Hub(core, [Fault(method="hello", delay_ms=50)]), b"")
    client.raw(request("terminal.run", argv=["pi"], name="slow"))
    client.raw(request("terminal.send", "owed", terminal="slow", text="x"))
    client.raw(HELLO + encode_frame(0, DATA, request("server.status", 7)))
    assert json.loads(client.due(20))["id"] == "owed"
    line, _, rest = client.due(50).partition(b"\n")
    client.take(rest)
    assert (json.loads(line)["id"], [reply["id"] for reply in client.control]) == (0, [7])


def test_a_thousand_refused_hellos_in_one_piece_are_refused_one_by_one() -> None:
    client = Client(Hub(Core()), request("hello", 0, frames=True, generation=9) * 1_000)
    assert len(client.greeting.splitlines()) == 1_000
