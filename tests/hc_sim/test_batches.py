"""Batches, where a profile takes them: carried out in order, answered together, and subject to faults one by one."""

import json
from typing import Any

import pytest

from hc_sim.core import Core
from hc_sim.faults import Fault, FaultError
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent
from hc_sim.wire.jsonrpc import MAX_BATCH

PROFILE = WireProfile(batches="accept")


def member(method: str, id_: Any = None, **params: Any) -> dict[str, Any]:
    named = {"jsonrpc": "2.0", "method": method, "params": params}
    return named if id_ is None else {**named, "id": id_}


class Client:
    def __init__(self, *faults: Fault, agents: tuple[Agent, ...] = (), **limits: int) -> None:
        self.hub = Hub(Core(PROFILE, agents=agents), faults, **limits)
        self.conn = self.hub.connect(0)
        self.ended = False

    def send(self, *members: Any, now: int = 0) -> list[Any]:
        self.hub.receive(self.conn, json.dumps(list(members)).encode() + b"\n", now)
        return self.due(now)

    def due(self, now: int) -> list[Any]:
        self.hub.advance(now)
        out = self.hub.outgoing(now)
        self.ended |= any(delivery.close for delivery in out)
        return [json.loads(line) for line in b"".join(delivery.data for delivery in out).splitlines()]


def test_members_are_carried_out_in_order_so_that_a_later_one_sees_an_earlier_one_s_effect() -> None:
    (replies,) = Client().send(member("terminal.run", 1, name="a"), member("terminal.get", 2, terminal="a"))
    assert [reply["id"] for reply in replies] == [1, 2]
    assert replies[0]["result"] == replies[1]["result"]


def test_one_member_that_takes_its_time_holds_the_whole_answer_and_no_other_call() -> None:
    client = Client(agents=(Agent(send="hold", hold_ms=500),))
    client.send(member("terminal.run", 1, name="slow"))
    assert client.send(member("terminal.send", 1, terminal="slow", text="x"), member("hello", 2)) == []
    assert len(client.send(member("hello", 3))) == 1
    (replies,) = client.due(500)
    assert [reply["id"] for reply in replies] == [1, 2]


def test_notifications_in_a_batch_take_effect_and_no_place_in_the_answer() -> None:
    client = Client()
    (replies,) = client.send(member("terminal.run", name="quiet"), member("terminal.get", 1, terminal="quiet"))
    assert [reply["id"] for reply in replies] == [1]
    assert client.send(member("terminal.run", name="b")) == []
    assert [terminal.name for terminal in client.hub.core.terminals()] == ["quiet", "b"]


def test_a_lost_reply_is_missing_from_the_answer_and_a_scripted_error_stands_in_it() -> None:
    client = Client(Fault(method="hello", reply=False), Fault(method="server.status", error=FaultError(kind="busy")))
    (replies,) = client.send(member("hello", 1), member("server.status", 2), member("hello", 3))
    assert [(reply["id"], "error" in reply) for reply in replies] == [(2, True), (3, False)]


def test_where_all_replies_are_lost_nothing_is_sent() -> None:
    client = Client(Fault(method="hello", nth=0, reply=False))
    assert client.send(member("hello", 1), member("hello", 2)) == []
    assert len(client.send(member("server.status", 3))) == 1


def test_the_trace_has_a_call_and_a_reply_for_each_member() -> None:
    client = Client()
    client.send(member("hello", 1), member("hello"), member("hello", "2"))
    assert [event.id for event in client.hub.core.trace.of("call")] == [1, None, "2"]
    assert [event.id for event in client.hub.core.trace.of("reply")] == [1, "2"]


def test_members_count_as_open_calls() -> None:
    client = Client(agents=(Agent(send="hold", hold_ms=500),), max_owed=2)
    client.send(member("terminal.run", 0, name="slow"))
    client.send(*(member("terminal.send", number, terminal="slow", text="x") for number in (1, 2, 3)))
    (replies,) = client.due(500)
    assert [(reply["id"], "error" in reply) for reply in replies] == [(1, False), (2, False), (3, True)]
    (replies,) = client.send(member("hello", 4), now=500)
    assert "result" in replies[0]


def test_a_batch_over_the_limit_is_refused_as_one() -> None:
    client = Client()
    reply = client.send(*(member("hello", number) for number in range(MAX_BATCH + 1)))[0]
    assert reply["error"]["data"]["kind"] == "limit_reached"
    (replies,) = client.send(*(member("hello", number) for number in range(MAX_BATCH)))
    assert len(replies) == MAX_BATCH


@pytest.mark.parametrize("last", ["eof", "restart"])
def test_a_batch_under_way_when_all_ends_leaves_nothing_behind(last: str) -> None:
    client = Client(agents=(Agent(send="hold", hold_ms=500),))
    client.send(member("terminal.run", 0, name="slow"))
    client.send(member("terminal.send", 1, terminal="slow", text="x"), member("hello", 2))
    if last == "eof":
        client.hub.eof(client.conn, 0)
        (replies,) = client.due(500)
        assert len(replies) == 2
    else:
        client.hub.disconnect(client.conn, 0)
        assert client.due(500) == []
    assert client.hub.connections == ()
