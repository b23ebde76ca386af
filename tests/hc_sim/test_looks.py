import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.clock import run_virtual
from hc_sim.core import Core
from hc_sim.core.glances import Glances
from hc_sim.driver import Driver
from hc_sim.faults import Fault
from hc_sim.hub.connection import Hub
from hc_sim.hub.looks import MAX_BYTES, MAX_HELD_BYTES, Looker
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Step
from hc_sim.script.load import POLITE
from hc_sim.trace import Event


class Tape:
    """The rim's side of a connection that writes down everything."""

    def __init__(self, backlog: int = 0) -> None:
        self.written: list[bytes] = []
        self._backlog = backlog

    def deliver(self, data: bytes) -> None:
        self.written.append(data)

    def end(self) -> None:
        self.written.append(b"(end)")

    def end_half(self) -> None:
        self.written.append(b"(half)")

    def backlog(self) -> int:
        return self._backlog

    def throttle(self, on: bool) -> None:
        pass


def get(id_: object = 1, target: str = "t1") -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": id_, "method": "terminal.get", "params": {"terminal": target}}, separators=(",", ":")
    ).encode()


def call(method: str, id_: object = 1, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode()


COUNTS_LOOKS = Agent(
    status="working",
    step=[
        Step(after_observations=2, status="blocked"),
        Step(on_call="terminal.list", nth=2, turn_add=1, status="done"),
    ],
)
LABELS = Agent(step=[Step(after_ms=3, labels={"space": "two"}, status="idle"), Step(after_ms=3, rename="other")])

ODD_LINES = [
    b'{"id":"a","params":{"terminal":"t1"},"method":"terminal.get","jsonrpc":"2.0"}',
    b' {"jsonrpc":"2.0","id":1,"method":"terminal.get","params":{"terminal":"t1"}} ',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.get","params":{"terminal":"t1"}}\r',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.get","params":{"terminal":"t1","terminal":"t2"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.get","params":{"terminal":"t1","x":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.get","params":{"terminal":"t1"},"x":1}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.get","params":{"terminal":1}}',
    b'{"jsonrpc":"1.0","id":1,"method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":null,"method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":-0,"method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":1.0,"method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":01,"method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":"\\u0041","method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":"\\q","method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":"a:b","method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":"\xff","method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":"\xc3\xa9","method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":[1],"method":"terminal.get","params":{"terminal":"t1"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.get","params":["t1"]}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.get","params":{"terminal":"t1"}}{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.get",',
    b'"params":{"terminal":"t1"}}',
    b"\xef\xbb\xbf" + get(),
    get() + b" " + get(),
    get() + get(),
    b"[" + get() + b"]",
    b"",
    b"\x00",
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{"all":true}}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{"all":true,"all":false}}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{"all":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":null}',
    b'{"jsonrpc":"2.0","id":"x","method":"terminal.list","params":{"labels":{"space":"one"}}}',
]

TARGETS = ["t1", "t2", "t3", "one", "two", "other", "nobody", "terminal.get"]
CALLS = [
    *[get(id_, target) for target in TARGETS for id_ in (7, "x")],
    *[call("terminal.label", terminal=target, labels={"k": "v"}) for target in TARGETS[:3]],
    *[call("terminal.label", terminal="t1", labels={"k": None})],
    *[call("terminal.send", terminal=target, text="go") for target in TARGETS[:5]],
    *[
        call(method, terminal="t2")
        for method in ("terminal.kill", "terminal.rm", "terminal.keep", "terminal.interrupt")
    ],
    call("terminal.run", argv=["pi", "task"], name="two"),
    call("terminal.run", argv=["pi", "task"], caller="t1"),
]


def play(
    chunks: Sequence[bytes | int], *, short: bool, agents: Sequence[Agent], profile: WireProfile, traced: bool
) -> tuple[bytes, list[Event]]:
    """What goes out for these chunks (numbers are milliseconds to wait), and what the trace says."""

    async def scene() -> tuple[bytes, list[Event]]:
        core = Core(profile, agents=agents)
        core.add_terminal(name="one", labels={"space": "one"}, played=True)
        core.add_terminal(status="working", turn=3)
        events: list[Event] = []
        driver = Driver(Hub(core), on_event=events.append if traced else None, keep_trace=False)
        tape = Tape()
        conn = driver.attach(tape)
        await asyncio.sleep(0)
        for chunk in chunks:
            if isinstance(chunk, int):
                await asyncio.sleep(chunk / 1_000)
            else:
                (driver.received_now if short else driver.received)(conn, chunk)
            while driver._soon is not None:  # noqa: ASYNC110 - the loop goes round until the driver has done all
                await asyncio.sleep(0)
        driver.close()
        assert not driver.problems
        return b"".join(tape.written), events

    return run_virtual(scene())


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False) if begin < end]


profiles = st.sampled_from(
    [
        WireProfile(),
        WireProfile(sorted_keys=False),
        WireProfile(wrap_terminal=True, absent_keys="null"),
        WireProfile(no_status="omit", exit_code_key="code", live_state="live"),
        WireProfile(target_key="address"),
        WireProfile(strict_hello=True),
        WireProfile(require_jsonrpc=False, unknown_params="ignore"),
        WireProfile(max_line_bytes=100),
    ]
)
lines = st.lists(st.sampled_from([*CALLS, *CALLS, *ODD_LINES]), min_size=1, max_size=12)
chunk_lists = st.lists(
    st.one_of(
        st.integers(1, 400),
        st.tuples(lines, st.lists(st.integers(0, 2_000), max_size=3)).map(
            lambda drawn: cut(b"\n".join([*drawn[0], b""]), drawn[1])
        ),
    ),
    min_size=1,
    max_size=6,
).map(lambda parts: [chunk for part in parts for chunk in (part if isinstance(part, list) else [part])])


@given(chunk_lists, profiles, st.sampled_from([[POLITE], [COUNTS_LOOKS], [LABELS], []]), st.booleans())
def test_the_short_way_says_byte_for_byte_what_the_long_way_says(
    chunks: list[bytes | int], profile: WireProfile, agents: list[Agent], traced: bool
) -> None:
    short = play(chunks, short=True, agents=agents, profile=profile, traced=traced)
    long = play(chunks, short=False, agents=agents, profile=profile, traced=traced)

    assert short == long


@pytest.mark.parametrize("line", ODD_LINES)
def test_an_odd_line_is_answered_the_same_either_way(line: bytes) -> None:
    chunks = [line + b"\n", get(5) + b"\n" + line + b"\n" + get(6) + b"\n"]

    assert play(chunks, short=True, agents=[], profile=WireProfile(), traced=True) == play(
        chunks, short=False, agents=[], profile=WireProfile(), traced=True
    )


def test_a_line_that_ends_in_the_middle_of_a_request_is_no_request() -> None:
    torn = get(1).replace(b',"params"', b',\n"params"') + b"\n" + get(2) + get(3) + b"\n"

    said, _ = play([torn], short=True, agents=[], profile=WireProfile(), traced=False)

    assert b"parse error" in said.lower() or b"parse_error" in said
    assert (said, []) == play([torn], short=False, agents=[], profile=WireProfile(), traced=False)


@pytest.fixture
def core() -> Core:
    core = Core()
    core.add_terminal(name="one")
    core.add_terminal(name="two")
    return core


@pytest.fixture
def looker(core: Core) -> Looker:
    return Looker(core.glances, core.profile)


def answers(looker: Looker, data: bytes) -> list[Any] | None:
    looks = looker.answer(data)
    return None if looks is None else [json.loads(line) for line in b"".join(looks.replies).splitlines()]


def test_plain_gets_are_answered_in_one_go_and_in_order(looker: Looker) -> None:
    found = answers(looker, b"".join(get(number, name) + b"\n" for number, name in enumerate(["t1", "two", "t1"])))

    assert found is not None
    assert [(reply["id"], reply["result"]["name"]) for reply in found] == [(0, "one"), (1, "two"), (2, "one")]


def test_a_line_that_has_not_ended_is_handed_back(looker: Looker) -> None:
    looks = looker.answer(get(1) + b"\n" + get(2)[:30])

    assert looks is not None
    assert looks.rest == get(2)[:30]


def test_a_line_that_goes_on_for_too_long_is_left_to_the_hub(looker: Looker) -> None:
    assert looker.answer(get(1) + b"\n" + b"x" * (MAX_HELD_BYTES + 1)) is None


@pytest.mark.parametrize(
    "line", [get(1, "nobody"), call("terminal.send", terminal="t1", text="x"), call("terminal.kill", terminal="t1")]
)
def test_what_is_no_plain_look_is_left_to_the_long_way(looker: Looker, line: bytes) -> None:
    assert looker.answer(line + b"\n") is None
    assert looker.answer(get(1) + b"\n" + line + b"\n") is None


def test_a_list_is_put_together_from_the_terminals(looker: Looker, core: Core) -> None:
    core.set_state("two", status="done", turn=4, now=5)

    found = answers(looker, call("terminal.list", 9) + b"\n")

    assert found is not None
    assert [(shown["name"], shown["turn"]) for shown in found[0]["result"]["terminals"]] == [("one", 0), ("two", 4)]


def test_a_huge_answer_is_left_to_the_long_way(looker: Looker, core: Core) -> None:
    core.add_terminal(name="big", argv=["x" * (MAX_BYTES // 10)])

    assert looker.answer((get(1, "big") + b"\n") * 20) is None


@given(st.data())
def test_an_encoded_terminal_is_never_older_than_the_terminal(data: st.DataObject) -> None:
    core = Core(agents=[POLITE])
    core.add_terminal(name="t", played=True)
    now = 0
    for _ in range(data.draw(st.integers(1, 8))):
        now += data.draw(st.integers(0, 500))
        method, params = data.draw(
            st.sampled_from(
                [
                    ("terminal.send", {"terminal": "t", "text": "x"}),
                    ("terminal.label", {"terminal": "t", "labels": {"a": "b"}}),
                    ("terminal.keep", {"terminal": "t"}),
                    ("terminal.kill", {"terminal": "t"}),
                    ("terminal.interrupt", {"terminal": "t"}),
                ]
            )
        )
        core.call(method, params, now)
        glance = core.glances.get("t")
        answer = core.call("terminal.get", {"terminal": "t"}, now)

        assert glance is not None
        assert json.loads(glance) == getattr(answer, "result", None)


def test_a_timeline_that_counts_looks_is_never_looked_at_the_short_way() -> None:
    core = Core(agents=[COUNTS_LOOKS])
    core.add_terminal(name="t", played=True)
    glances: Glances = core.glances

    assert glances.get("t") is None
    assert glances.all(finished_too=False) is None


@pytest.mark.parametrize("faults", [[Fault(method="terminal.get", nth=3, reply=False)], [Fault(method="hello")]])
def test_with_a_fault_planned_everything_goes_the_long_way(faults: list[Fault]) -> None:
    async def scene() -> int:
        core = Core()
        core.add_terminal()
        driver = Driver(Hub(core, faults))
        conn = driver.attach(Tape())
        await asyncio.sleep(0)
        for number in range(5):
            driver.received_now(conn, get(number) + b"\n")
        driver.close()
        return len(core.trace.of("reply"))

    expected = 4 if faults[0].method == "terminal.get" else 5
    assert run_virtual(scene()) == expected


def test_a_peer_that_does_not_read_is_not_answered_the_short_way() -> None:
    async def scene() -> list[bytes]:
        core = Core()
        core.add_terminal()
        driver = Driver(Hub(core))
        tape = Tape(backlog=1 << 30)
        conn = driver.attach(tape)
        await asyncio.sleep(0)
        driver.received_now(conn, get() + b"\n")
        driver.close()
        return tape.written

    assert run_virtual(scene()) == [b"(end)"]
