import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.core import Core
from hc_sim.faults import Fault, FaultError, Until
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Step


class Client:
    """A client of a hub, with a time that the test moves."""

    def __init__(self, hub: Hub, now: int = 0) -> None:
        self.hub = hub
        self.now = now
        self.conn = hub.connect(now)
        self.data = b""
        self.ended = False

    def send(self, method: str, id: Any = 1, **params: Any) -> None:  # noqa: A002
        request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.write(json.dumps(request).encode() + b"\n")

    def write(self, data: bytes) -> None:
        self.hub.receive(self.conn, data, self.now)

    def at(self, now: int) -> "Client":
        self.now = now
        self.hub.advance(now)
        return self

    def take(self) -> list[Any]:
        """The replies that are due, decoded."""
        for delivery in self.hub.outgoing(self.now):
            if delivery.conn == self.conn:
                self.data += delivery.data
                self.ended |= delivery.close
        data, self.data = self.data, b""
        return [json.loads(line) for line in data.splitlines()]

    def call(self, method: str, **params: Any) -> Any:
        self.send(method, **params)
        (reply,) = self.take()
        return reply


def hub(*faults: Fault, **options: Any) -> Hub:
    return Hub(Core(), faults, **options)


def kinds(replies: list[Any]) -> list[str]:
    return [reply["error"]["data"]["kind"] if "error" in reply else "result" for reply in replies]


def test_a_call_is_answered_under_its_id() -> None:
    client = Client(hub())
    client.send("hello", id="x")
    (reply,) = client.take()
    assert reply["id"] == "x"
    assert reply["result"]["core_id"] == "core-1"


@pytest.mark.parametrize("id_", ["a", 0, -1, 1.5, None, True, [1, "b"], {"k": {"n": 1}}, 10**30, ""])
def test_ids_of_any_json_type_come_back_as_sent(id_: Any) -> None:
    client = Client(hub())
    client.send("hello", id=id_)
    (reply,) = client.take()
    assert reply["id"] == id_
    assert type(reply["id"]) is type(id_)


@given(st.lists(st.integers(0, 400), max_size=12))
def test_requests_mean_the_same_however_their_bytes_are_cut(cuts: list[int]) -> None:
    lines = [json.dumps({"jsonrpc": "2.0", "id": number, "method": "hello"}).encode() + b"\n" for number in range(5)]
    data = b"".join(lines)
    client = Client(hub())
    begin = 0
    for cut in sorted({cut for cut in cuts if cut < len(data)} | {len(data)}):
        client.write(data[begin:cut])
        begin = cut
    assert [reply["id"] for reply in client.take()] == [0, 1, 2, 3, 4]


def test_bad_lines_cost_an_error_each_and_nothing_else() -> None:
    client = Client(hub())
    client.write(b'not json\n[]\n"x"\n{"jsonrpc":"2.0","id":3,"method":"nope"}\n\n   \n')
    client.send("hello", id=4)
    replies = client.take()
    assert kinds(replies) == ["parse_error", "batch_refused", "invalid_request", "unknown_method", "result"]
    assert [reply["id"] for reply in replies] == [None, None, None, 3, 4]
    assert not client.ended


def test_a_wrong_typed_parameter_is_named_and_the_connection_goes_on() -> None:
    client = Client(hub())
    reply = client.call("terminal.get", terminal=7)
    assert reply["error"]["data"]["kind"] == "invalid_params"
    assert "terminal" in reply["error"]["message"]
    assert kinds([client.call("terminal.get", terminal="t9")]) == ["no_such_terminal"]


def test_a_line_over_the_limit_is_answered_once_and_ends_the_connection() -> None:
    client = Client(Hub(Core(WireProfile(max_line_bytes=100))))
    client.write(b"x" * 300)
    client.write(b"x" * 300 + b"\n")
    client.send("hello")
    assert kinds(client.take()) == ["line_too_long"]
    assert client.ended
    assert client.hub.connections == ()


def test_a_line_of_exactly_the_limit_is_taken() -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"pad": ""}}).encode()
    client = Client(Hub(Core(WireProfile(max_line_bytes=len(line) + 10))))
    client.write(line.replace(b'""', b'"' + b"p" * 10 + b'"') + b"\n")
    assert kinds(client.take()) == ["result"]


def test_a_profile_can_end_the_connection_without_a_word() -> None:
    client = Client(Hub(Core(WireProfile(max_line_bytes=100, oversize="close"))))
    client.write(b"x" * 200)
    assert client.take() == []
    assert client.ended


def test_a_notification_is_carried_out_and_not_answered() -> None:
    client = Client(hub())
    client.write(b'{"jsonrpc":"2.0","method":"terminal.run","params":{"argv":["pi"],"name":"quiet"}}\n')
    assert client.take() == []
    assert client.call("terminal.get", terminal="quiet")["result"]["name"] == "quiet"


def test_replies_that_are_owed_still_come_after_the_client_has_said_its_last_word() -> None:
    agent = Agent(send="hold", hold_ms=500)
    client = Client(Hub(Core(agents=[agent])))
    client.call("terminal.run", argv=["pi"], name="held")
    client.send("terminal.send", terminal="held", text="go")
    client.hub.eof(client.conn, 0)
    assert client.take() == []
    assert not client.ended
    assert client.hub.next_due() == 500
    assert client.at(500).take()[0]["result"]["started"] is True
    assert client.ended


def test_a_last_line_without_its_line_end_is_still_a_line() -> None:
    client = Client(hub())
    client.write(b'{"jsonrpc":"2.0","id":1,"method":"hello"}')
    client.hub.eof(client.conn, 0)
    assert kinds(client.take()) == ["result"]
    assert client.ended


def test_a_client_that_leaves_takes_no_other_with_it() -> None:
    shared = hub(Fault(method="hello", nth=1, delay_ms=50))
    leaver, stayer = Client(shared), Client(shared)
    leaver.send("hello")
    shared.disconnect(leaver.conn, 0)
    assert kinds([stayer.call("hello")]) == ["result"]
    assert shared.connections == (stayer.conn,)
    assert leaver.at(100).take() == []


def test_the_state_is_one_for_all_connections() -> None:
    shared = hub()
    one, two = Client(shared), Client(shared)
    one.call("terminal.run", argv=["pi"], name="shared")
    assert two.call("terminal.get", terminal="shared")["result"]["argv"] == ["pi"]


def test_one_connection_too_many_is_told_so_and_closed() -> None:
    shared = hub(max_connections=1)
    first, second = Client(shared), Client(shared)
    assert kinds(second.take()) == ["limit_reached"]
    assert second.ended
    assert kinds([first.call("hello")]) == ["result"]
    shared.disconnect(first.conn, 0)
    assert kinds([Client(shared).call("hello")]) == ["result"]


def test_one_open_call_too_many_is_refused_and_the_others_stay_open() -> None:
    client = Client(hub(Fault(method="hello", nth=0, delay_ms=100), max_owed=2))
    for number in range(3):
        client.send("hello", id=number)
    (refused,) = client.take()
    assert (refused["id"], kinds([refused])) == (2, ["limit_reached"])
    assert [reply["id"] for reply in client.at(100).take()] == [0, 1]


def test_replies_that_pile_up_end_the_connection_and_not_the_memory() -> None:
    shared = hub(Fault(method="hello", nth=0, delay_ms=1_000, pad_bytes=1_000), max_queued_bytes=5_000)
    greedy, other = Client(shared), Client(shared)
    for number in range(10):
        greedy.send("hello", id=number)
    assert greedy.take() == []
    assert greedy.ended
    assert kinds([other.call("server.status")]) == ["result"]


def test_a_delayed_reply_is_overtaken_by_a_later_one() -> None:
    client = Client(hub(Fault(method="hello", nth=1, delay_ms=30)))
    client.send("hello", id="slow")
    client.send("server.status", id="quick")
    assert [reply["id"] for reply in client.take()] == ["quick"]
    assert client.hub.next_due() == 30
    assert [reply["id"] for reply in client.at(30).take()] == ["slow"]


def test_a_reply_can_be_held_until_another_one_has_gone_out() -> None:
    held = Fault(method="hello", hold_until=Until(method="server.status", nth=2))
    client = Client(hub(held))
    client.send("hello", id="held")
    client.send("server.status", id="first")
    assert [reply["id"] for reply in client.take()] == ["first"]
    client.send("server.status", id="second")
    assert [reply["id"] for reply in client.take()] == ["second", "held"]


def test_a_lost_reply_leaves_the_call_in_effect() -> None:
    client = Client(hub(Fault(method="terminal.run", reply=False)))
    client.send("terminal.run", argv=["pi"], name="there")
    assert client.take() == []
    assert client.call("terminal.get", terminal="there")["result"]["name"] == "there"


def test_a_call_that_is_not_applied_leaves_nothing() -> None:
    client = Client(hub(Fault(method="terminal.run", apply=False)))
    client.send("terminal.run", argv=["pi"], name="ghost")
    assert client.take() == []
    assert kinds([client.call("terminal.get", terminal="ghost")]) == ["no_such_terminal"]


def test_a_scripted_error_comes_instead_of_the_effect() -> None:
    fault = Fault(method="terminal.run", error=FaultError(kind="busy", message="try later", hint="wait"))
    client = Client(hub(fault))
    reply = client.call("terminal.run", argv=["pi"], name="x")
    assert reply["error"] == {"code": -32000, "message": "try later", "data": {"kind": "busy", "hint": "wait"}}
    assert client.call("terminal.list")["result"]["terminals"] == []


def test_a_connection_can_end_in_the_middle_of_a_reply() -> None:
    client = Client(hub(Fault(method="hello", close="mid")))
    client.send("hello")
    client.send("hello")
    (delivery, end) = client.hub.outgoing(0)
    assert delivery.data.startswith(b'{"id":1')
    assert b"\n" not in delivery.data
    assert end.close
    assert client.hub.connections == ()


def test_a_silent_connection_answers_nothing_more_and_does_not_end() -> None:
    shared = hub(Fault(method="terminal.list", silent=True))
    mute, other = Client(shared), Client(shared)
    assert kinds([mute.call("hello")]) == ["result"]
    mute.send("terminal.list")
    mute.send("terminal.run", argv=["pi"], name="applied")
    shared.eof(mute.conn, 0)
    assert mute.at(10_000).take() == []
    assert not mute.ended
    assert other.call("terminal.get", terminal="applied")["result"]["name"] == "applied"


def test_a_cut_reply_arrives_in_separate_deliveries() -> None:
    client = Client(hub(Fault(method="hello", cut=[3, 10])))
    client.send("hello")
    assert [len(delivery.data) for delivery in client.hub.outgoing(0)][:2] == [3, 7]


def test_a_fault_of_the_second_connection_leaves_the_first_alone() -> None:
    shared = hub(Fault(method="*", connection=2, close="instead"))
    first, second = Client(shared), Client(shared)
    assert kinds([first.call("hello")]) == ["result"]
    second.send("hello")
    assert second.take() == []
    assert second.ended


def test_a_step_that_is_due_fires_before_the_call_of_the_same_moment_is_answered() -> None:
    agent = Agent(status="idle", step=[Step(at_ms=100, turn=1, status="working")])
    client = Client(Hub(Core(agents=[agent])))
    client.call("terminal.run", argv=["pi"], name="a")
    client.now = 100
    assert client.call("terminal.get", terminal="a")["result"]["turn"] == 1


def test_the_trace_tells_the_calls_and_replies_of_each_connection_in_order() -> None:
    client = Client(hub(Fault(method="hello", nth=2, delay_ms=5)))
    client.call("hello")
    client.send("hello", id=2)
    client.at(5).take()
    client.hub.eof(client.conn, 5)
    client.take()
    trace = [(event.kind, event.t, event.id) for event in client.hub.core.trace if event.conn == client.conn]
    assert trace == [
        ("link", 0, None),
        ("call", 0, 1),
        ("reply", 0, 1),
        ("call", 0, 2),
        ("fault", 0, None),
        ("reply", 5, 2),
        ("unlink", 5, None),
    ]


def test_the_trace_names_the_terminal_that_a_call_is_about() -> None:
    client = Client(hub())
    client.call("terminal.run", argv=["pi"], name="named")
    client.call("terminal.get", terminal="named")
    calls = client.hub.core.trace.of("call")
    assert [(event.method, event.terminal or event.name) for event in calls] == [
        ("terminal.run", "named"),
        ("terminal.get", "named"),
    ]


def test_a_lost_reply_is_no_reply_in_the_trace() -> None:
    client = Client(hub(Fault(method="hello", reply=False)))
    client.send("hello")
    client.take()
    assert client.hub.core.trace.of("reply") == []
    assert [event.note for event in client.hub.core.trace.of("fault")] == ["reply=False"]


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_whatever_break_the_hub(chunks: list[bytes]) -> None:
    shared = hub()
    wild, calm = Client(shared), Client(shared)
    for chunk in chunks:
        wild.write(chunk)
        shared.outgoing(0)
    shared.eof(wild.conn, 0)
    shared.outgoing(0)
    assert kinds([calm.call("hello")]) == ["result"]
