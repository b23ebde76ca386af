import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.core import Core
from hc_sim.faults import (
    Bridge,
    ChildExit,
    ClockJump,
    DocumentFault,
    Fault,
    FaultError,
    FaultPlan,
    Faults,
    LinkFault,
    Parcel,
    Planned,
    Restart,
    Rival,
    Until,
    answers,
    carries_out,
    chunks,
    deliver,
    describe,
)
from hc_sim.faults.check import mistakes
from hc_sim.hub.connection import METHOD_NAMES, Hub
from hc_sim.script.load import read_script
from hc_sim.script.places import dotted
from hc_sim.script.toml import FileError

REPLY = {"jsonrpc": "2.0", "id": 7, "result": {"turn": 1}}


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


FRAME = encode(REPLY) + b"\n"


def sent(**fault: Any) -> bytes:
    return b"".join(deliver(REPLY, Fault(**fault), encode).writes)


def test_without_a_fault_a_reply_is_one_line_in_one_write() -> None:
    assert deliver(REPLY, None, encode) == Parcel((FRAME,))


def test_a_fault_that_changes_nothing_changes_nothing() -> None:
    assert deliver(REPLY, Fault(), encode) == Parcel((FRAME,))


@pytest.mark.parametrize(
    ("how", "expected"),
    [("null", None), ("empty", ""), ("other-type", "7"), ("as-sent", 7)],
)
def test_the_id_can_come_back_as_another_one(how: str, expected: object) -> None:
    assert json.loads(sent(id=how))["id"] == expected


def test_the_id_can_be_left_out() -> None:
    assert json.loads(sent(id="missing")) == {"jsonrpc": "2.0", "result": {"turn": 1}}


@pytest.mark.parametrize(("as_sent", "as_echoed"), [("12", 12), ("a12", "a12"), (12, "12")])
def test_an_id_comes_back_in_the_other_type_where_there_is_one(as_sent: object, as_echoed: object) -> None:
    data = deliver({**REPLY, "id": as_sent}, Fault(id="other-type"), encode).writes[0]
    assert json.loads(data)["id"] == as_echoed


def test_noise_stands_around_the_frame() -> None:
    assert sent(before="warn\n", before_hex="1b5b306d", after="tail") == b"warn\n\x1b[0m" + FRAME + b"tail"


@pytest.mark.parametrize(("newline", "end"), [("lf", b"\n"), ("crlf", b"\r\n"), ("none", b"")])
def test_the_line_end_can_be_another_one(newline: str, end: bytes) -> None:
    assert sent(newline=newline) == FRAME.rstrip(b"\n") + end


def test_raw_bytes_stand_in_for_the_frame_and_know_its_id() -> None:
    assert sent(raw='{"id":{id},"result":') == b'{"id":7,"result":\n'


def test_a_reply_can_come_more_than_once() -> None:
    assert sent(repeat=3) == FRAME * 3


def test_notifications_come_before_the_reply_and_have_no_id() -> None:
    *before, last = sent(notifications=2).splitlines()
    assert [json.loads(line)["params"] for line in before] == [{"number": 1}, {"number": 2}]
    assert all("id" not in json.loads(line) for line in before)
    assert last + b"\n" == FRAME


def test_a_result_can_be_padded_to_any_size() -> None:
    assert json.loads(sent(pad_bytes=1000))["result"] == {"turn": 1, "pad": "x" * 1000}


def test_padding_leaves_an_error_alone() -> None:
    message = {"jsonrpc": "2.0", "id": 7, "error": {"code": -1}}
    assert deliver(message, Fault(pad_bytes=9), encode).writes == (encode(message) + b"\n",)


def test_one_cut_makes_two_writes() -> None:
    assert deliver(REPLY, Fault(cut=[5]), encode).writes == (FRAME[:5], FRAME[5:])


def test_minus_one_cuts_after_every_byte() -> None:
    assert deliver(REPLY, Fault(cut=[-1]), encode).writes == tuple(FRAME[at : at + 1] for at in range(len(FRAME)))


@given(st.lists(st.integers(-5, 200), max_size=8))
def test_no_cut_loses_or_reorders_a_byte(cut: list[int]) -> None:
    writes = deliver(REPLY, Fault(cut=cut), encode).writes
    assert b"".join(writes) == FRAME
    assert all(writes)


@pytest.mark.parametrize(
    ("close", "writes"), [("after", (FRAME,)), ("instead", ()), ("mid", (FRAME[: len(FRAME) // 2],))]
)
def test_a_connection_can_end_around_a_reply(close: str, writes: tuple[bytes, ...]) -> None:
    assert deliver(REPLY, Fault(close=close), encode) == Parcel(writes, close=True)  # type: ignore[arg-type]


def test_a_lost_reply_sends_nothing_and_leaves_the_connection() -> None:
    assert deliver(REPLY, Fault(reply=False), encode) == Parcel()
    assert not answers(Fault(reply=False))
    assert carries_out(Fault(reply=False))


def test_a_reply_can_be_lost_with_its_connection() -> None:
    assert deliver(REPLY, Fault(reply=False, close="after"), encode) == Parcel(close=True)
    assert answers(Fault(reply=False, close="after"))


def test_a_call_that_is_not_carried_out_gets_no_reply_of_its_own() -> None:
    assert not carries_out(Fault(apply=False))
    assert not answers(Fault(apply=False))


def test_a_scripted_error_is_answered_instead_of_carrying_the_call_out() -> None:
    fault = Fault(error=FaultError(kind="busy"))
    assert not carries_out(fault)
    assert answers(fault)


def test_a_silent_connection_says_nothing_whatever_else_was_planned() -> None:
    fault = Fault(silent=True, notifications=3, close="after")
    assert not answers(fault)
    assert deliver(REPLY, fault, encode) == Parcel()


def hits(plan: Faults, *calls: tuple[str, int], now: int = 0) -> list[Fault | None]:
    planned = Planned(plan)
    return [planned.call(method, conn, now) for method, conn in calls]


def test_a_fault_meets_the_nth_call_of_its_method_on_the_whole_core() -> None:
    second = Fault(method="terminal.get", nth=2)
    calls = [("terminal.get", 1), ("hello", 2), ("terminal.get", 2), ("terminal.get", 2)]
    assert hits([second], *calls) == [None, None, second, None]


def test_a_fault_of_a_connection_counts_the_calls_of_that_connection() -> None:
    fault = Fault(method="*", nth=1, connection=2)
    assert hits([fault], ("hello", 1), ("hello", 2), ("hello", 2)) == [None, fault, None]


def test_nth_zero_meets_every_call() -> None:
    every = Fault(method="hello", nth=0)
    assert hits([every], *[("hello", 1)] * 3) == [every] * 3


def test_of_two_faults_that_meet_one_call_the_first_is_taken_and_both_have_counted() -> None:
    first, second = Fault(method="*"), Fault(method="hello", nth=2)
    assert hits([first, second], ("hello", 1), ("hello", 1)) == [first, second]


@pytest.mark.parametrize(("now", "met"), [(0, False), (10, True), (19, True), (20, False)])
def test_a_fault_of_a_time_meets_the_calls_of_that_time(now: int, met: bool) -> None:
    fault = Fault(nth=0, from_ms=10, until_ms=20)
    assert hits([fault], ("hello", 1), now=now) == [fault if met else None]


def test_calls_outside_its_time_do_not_count_for_a_fault() -> None:
    planned = Planned([Fault(nth=2, from_ms=10)])
    assert [planned.call("hello", 1, now) is not None for now in (0, 5, 10, 11, 12)] == [False] * 3 + [True, False]


def test_a_fault_of_connections_meets_as_many_as_it_says_from_the_nth_on() -> None:
    planned = Planned(FaultPlan(link=[LinkFault(nth=2, times=2, refuse=True)]))
    assert [planned.link(0) is not None for _ in range(5)] == [False, True, True, False, False]


def test_what_happens_to_the_core_is_taken_once_and_in_the_order_of_time() -> None:
    plan = FaultPlan(
        restart=[Restart(at_ms=30)], clock=[ClockJump(at_ms=20, jump_ms=1)], document=[DocumentFault(name="d")]
    )
    planned = Planned(plan)
    assert planned.next_due() == 0
    taken = []
    while (found := planned.take(25)) is not None:
        taken.append((found[0], type(found[1])))
    assert taken == [(0, DocumentFault), (20, ClockJump)]
    assert (planned.next_due(), planned.idle) == (30, False)
    planned.take(30)
    assert (planned.next_due(), planned.idle) == (None, True)


def test_an_injected_fault_comes_first_and_counts_from_now_on() -> None:
    old = Fault(method="hello", nth=0)
    planned = Planned([old])
    planned.call("hello", 1, 0)
    new = Fault(method="hello")
    planned.inject(new)
    assert [planned.call("hello", 1, 0) for _ in range(2)] == [new, old]


def test_a_plan_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hc_sim.faults.plan.MAX_FAULTS", 1)
    planned = Planned([Fault()])
    with pytest.raises(ValueError, match="1 faults are planned already"):
        planned.inject(Fault())


def test_a_parcel_is_cut_into_chunks_that_lose_nothing() -> None:
    parcel = chunks(Parcel((b"abc", b"defg"), close=True), 3, 5)
    assert parcel == Parcel((b"abc", b"def", b"g"), close=True, gap_ms=5)


def test_a_plan_is_read_from_toml_and_from_python_alike() -> None:
    text = """
    [[fault]]
    method = "terminal.run"
    rival = { finished = 127 }
    [[link]]
    nth = 2
    refuse = true
    [[restart]]
    at_ms = 500
    terminals = "shells"
    [[document]]
    name = "d"
    version = "7"
    [[clock]]
    at_ms = 5
    jump_ms = -1
    [[child]]
    signal = "SIGKILL"
    [[bridge]]
    exit_code = 1
    """
    assert msgspec.toml.decode(text, type=FaultPlan) == FaultPlan(
        fault=[Fault(method="terminal.run", rival=Rival(finished=127))],
        link=[LinkFault(nth=2, refuse=True)],
        restart=[Restart(at_ms=500, terminals="shells")],
        document=[DocumentFault(name="d", version="7")],
        clock=[ClockJump(at_ms=5, jump_ms=-1)],
        child=[ChildExit(signal="SIGKILL")],
        bridge=[Bridge(exit_code=1)],
    )


def test_a_fault_is_described_by_what_makes_it_one() -> None:
    assert describe(Fault(method="hello", delay_ms=5, close="after")) == "delay_ms=5, close='after'"
    assert describe(Fault(rival=Rival(finished=127))) == "rival=(finished=127)"
    assert describe(Fault(from_ms=5)) == "nothing"


def test_a_misspelt_fault_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"metod": "hello"}, Fault)


@pytest.mark.parametrize(
    ("plan", "key", "message"),
    [
        (FaultPlan(fault=[Fault(method="terminal.snd")]), "fault[0].method", "no method 'terminal.snd'"),
        (FaultPlan(fault=[Fault(hold_until=Until(method="x"))]), "fault[0].hold_until.method", "no method 'x'"),
        (FaultPlan(fault=[Fault(), Fault(delay_ms=-1)]), "fault[1].delay_ms", "must not be negative"),
        (FaultPlan(fault=[Fault(before_hex="xyz")]), "fault[0].before_hex", "is not hexadecimal"),
        (FaultPlan(fault=[Fault(connection=0)]), "fault[0].connection", "counts from 1"),
        (FaultPlan(fault=[Fault(method="hello", rival=Rival())]), "fault[0].rival", "belongs to terminal.run"),
        (FaultPlan(fault=[Fault(restart=Restart(at_ms=5))]), "fault[0].restart.at_ms", "the call says when"),
        (FaultPlan(link=[LinkFault(greeting_hex="0")]), "link[0].greeting_hex", "is not hexadecimal"),
        (FaultPlan(restart=[Restart(down_ms=-5)]), "restart[0].down_ms", "must not be negative"),
        (FaultPlan(bridge=[Bridge(signal="SIGNONE")]), "bridge[0].signal", "no signal 'SIGNONE'"),
        (FaultPlan(bridge=[Bridge(exit_code=256)]), "bridge[0].exit_code", "0 to 255"),
        (FaultPlan(child=[ChildExit(code=1, signal="SIGHUP")]), "child[0].signal", "cannot stand beside code"),
    ],
)
def test_a_mistake_in_a_plan_is_named_with_its_key(plan: FaultPlan, key: str, message: str) -> None:
    found = list(mistakes(plan, frozenset({"hello", "terminal.send"})))
    assert [dotted(one.path) for one in found] == [key]
    assert message in found[0].message


def test_a_good_plan_has_no_mistakes() -> None:
    plan = FaultPlan(
        fault=[Fault(method="terminal.run", rival=Rival(value=-1)), Fault(method="*", nth=0, cut=[-1])],
        clock=[ClockJump(at_ms=0, jump_ms=-1)],
    )
    assert list(mistakes(plan, frozenset({"terminal.run"}))) == []


def test_a_mistake_in_the_plan_of_a_script_is_named_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text('[[link]]\nrefuse = true\n\n[[fault]]\nmethod = "terminal.snd"\n')
    with pytest.raises(FileError, match=r"script\.toml:5: fault\[0\]\.method"):
        read_script(path)


A_FAULT = st.builds(
    Fault,
    method=st.sampled_from(["*", "terminal.run", "terminal.get", "doc.set"]),
    nth=st.integers(0, 3),
    connection=st.none() | st.integers(1, 2),
    from_ms=st.none() | st.integers(0, 50),
    apply=st.booleans(),
    apply_ms=st.integers(0, 30),
    reply=st.booleans(),
    delay_ms=st.integers(0, 30),
    hold_until=st.none() | st.builds(Until, method=st.sampled_from(["*", "hello"])),
    error=st.none() | st.builds(FaultError, kind=st.just("busy")),
    rival=st.none() | st.builds(Rival, dies_ms=st.none() | st.integers(0, 20), unknown=st.booleans()),
    restart=st.none()
    | st.builds(Restart, terminals=st.sampled_from(["kept", "shells", "by-keep", "finished", "lost"])),
    cut=st.lists(st.integers(-1, 50), max_size=3),
    gap_ms=st.integers(0, 5),
    join=st.booleans(),
    repeat=st.integers(0, 3),
    close=st.sampled_from(["", "after", "instead", "mid"]),
    silent=st.booleans(),
).filter(lambda fault: not list(mistakes(FaultPlan(fault=[fault]), METHOD_NAMES)))
A_LINK = st.builds(
    LinkFault,
    nth=st.integers(0, 2),
    refuse=st.booleans(),
    greeting=st.sampled_from(["", "hi\n"]),
    chunk_bytes=st.integers(0, 20),
    chunk_ms=st.integers(0, 3),
    silent_after=st.none() | st.integers(0, 3),
    half_close_after=st.none() | st.integers(0, 3),
    close_after=st.none() | st.integers(0, 3),
    close_ms=st.none() | st.integers(0, 50),
    stall_after=st.none() | st.integers(0, 3),
    stall_ms=st.none() | st.integers(0, 30),
)
A_CALL = st.tuples(
    st.integers(0, 1),
    st.sampled_from(
        [
            ("hello", {}),
            ("terminal.run", {"argv": ["pi"], "name": "a"}),
            ("terminal.get", {"terminal": "a"}),
            ("terminal.wait", {"terminal": "a", "timeout_ms": 20}),
            ("doc.set", {"name": "d", "value": 1}),
        ]
    ),
    st.integers(0, 15),
)


@given(st.lists(A_FAULT, max_size=4), st.lists(A_LINK, max_size=2), st.lists(A_CALL, max_size=12))
def test_no_plan_makes_the_core_fail_or_leaves_anything_to_do(
    faults: list[Fault], links: list[LinkFault], calls: list[tuple[int, tuple[str, dict[str, Any]], int]]
) -> None:
    hub = Hub(Core(), FaultPlan(fault=faults, link=links, restart=[Restart(at_ms=40, down_ms=5)]))
    conns = [hub.connect(0), hub.connect(0)]
    now = 0
    for index, (method, params), pause in calls:
        message = {"jsonrpc": "2.0", "id": now, "method": method, "params": params}
        hub.receive(conns[index], encode(message) + b"\n", now)
        hub.outgoing(now)
        now += pause
        hub.advance(now)
        hub.outgoing(now)
    for conn in conns:
        hub.eof(conn, now)
    for _ in range(10_000):
        due = hub.next_due()
        if due is None:
            break
        now = max(now, due)
        hub.advance(now)
        hub.outgoing(now)
    assert hub.next_due() is None
    for conn in hub.connections:
        hub.disconnect(conn, now)
    assert hub.connections == ()
