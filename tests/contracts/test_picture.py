"""The picture of a run: lanes, folded polls, the poll that settled, and what was expected."""

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from contracts.judging.judge import judge
from contracts.picture import MAX_ROWS, SETTLED, draw
from contracts.records import RunRecord, StepRecord
from contracts.scenario import Expect, Scenario, Step, Terminal, World
from hc_sim.trace import Event

NAME = "lgl-run00001-alpha"


def call(t: int, method: str, **params: Any) -> Event:
    return Event(t=t, kind="call", method=method, params=params)


def get(t: int) -> Event:
    return call(t, "terminal.get", terminal=NAME)


def state(t: int, turn: int, status: str, **more: Any) -> Event:
    return Event(t=t, kind="state", terminal="t3", turn=turn, status=status, **more)


TRACE = [
    Event(t=0, kind="link", conn=1),
    call(0, "hello"),
    call(0, "terminal.get", terminal="t1"),
    call(0, "terminal.run", name=NAME),
    Event(t=0, kind="run", terminal="t3", name=NAME, argv=["pi"]),
    get(0),
    *[get(t) for t in range(250, 2_000, 250)],
    state(2_100, 1, "working"),
    get(2_250),
    state(2_300, 1, "done"),
    get(2_500),
    call(2_600, "terminal.send", terminal=NAME, text="once more"),
    Event(t=2_600, kind="text", terminal="t3", text="once more"),
    Event(t=2_601, kind="reply", method="terminal.send", error={"data": {"kind": "blocked"}}),
    Event(t=2_700, kind="key", terminal="t3", text="esc"),
    state(2_800, 1, "done", state="finished", exit_code=1),
    Event(t=2_900, kind="gone", terminal="t3"),
]
STEPS = [
    StepRecord(index=0, do="spawn", name="a", at_ms=0, took_ms=0, returned={"mode": "terminal"}),
    StepRecord(index=1, do="wait", child="a", at_ms=2_500, took_ms=2_500, returned={"settled": True, "lastTurn": 1}),
    StepRecord(index=2, do="steer", child="a", started_ms=2_600, at_ms=2_601, took_ms=1, raised={"code": "blocked"}),
]
SCENARIO = Scenario(
    id="settle-example",
    why="One fact.",
    clauses=["D8"],
    drive=[
        Step(do="spawn", as_="a"),
        Step(do="wait", child="a", returns={"settled": True, "lastTurn": 2}),
        Step(do="steer", child="a", raises={"code": "blocked"}),
    ],
    expect=[Expect(calls="terminal.send", count=1, say="once", clause="D10")],
)
RECORD = RunRecord(
    scenario="settle-example",
    host="memory",
    steps=STEPS,
    trace=TRACE,
    children={"a": NAME},
    real_ms=120,
    virtual_ms=2_900,
)


def picture(record: RunRecord = RECORD, scenario: Scenario = SCENARIO, width: int = 100) -> list[str]:
    return draw(scenario, record, judge(scenario, record), width)


def replaced(**more: Any) -> RunRecord:
    fields = {name: getattr(RECORD, name) for name in RECORD.__struct_fields__}
    return RunRecord(**{**fields, **more})


@pytest.mark.parametrize("width", [80, 120])
def test_the_picture_as_a_person_sees_it(width: int, snapshot: SnapshotAssertion) -> None:
    assert "\n".join(picture(width=width)) == snapshot


def test_the_poll_that_settled_is_marked_once() -> None:
    marked = [line for line in picture() if SETTLED in line]

    assert len(marked) == 1
    assert marked[0].lstrip().startswith("2500 |")


def test_of_two_looks_in_one_millisecond_the_first_settled() -> None:
    lines = picture(replaced(trace=[*TRACE, get(2_500)]))

    assert [line.split("|")[-1].strip() for line in lines if SETTLED in line] == [f"get {SETTLED}, get"]


def test_a_wait_that_did_not_settle_marks_nothing() -> None:
    timeout = StepRecord(index=1, do="wait", child="a", at_ms=2_500, returned={"settled": False, "reason": "timeout"})
    lines = picture(replaced(steps=[STEPS[0], timeout]))

    assert not [line for line in lines if SETTLED in line]
    assert [line for line in lines if "wait a = timeout" in line]


def test_polls_that_show_nothing_new_are_one_row() -> None:
    rows = [line for line in picture() if " get x" in line]

    assert [row.split("|")[0].strip() for row in rows] == ["250-1750"]
    assert rows[0].rstrip().endswith("get x7")


def test_no_line_of_the_lanes_is_wider_than_asked() -> None:
    for width in (60, 80, 100):
        lines = picture(width=width)
        lanes = [line for line in lines if " | " in line or "-+-" in line]

        assert lanes
        assert max(map(len, lanes)) <= width


def test_a_fourteen_minute_wait_is_a_few_rows() -> None:
    polls = [get(t) for t in range(0, 840_000, 250)]

    assert len(picture(replaced(trace=[*TRACE[:5], *polls]))) < 30


def test_more_moments_than_can_be_drawn_are_counted() -> None:
    many = [state(t, t, "working") for t in range(1, MAX_ROWS + 20)]
    [more] = [line for line in picture(replaced(trace=[*TRACE[:5], *many])) if line.startswith("... and")]

    assert "more moments" in more


def test_an_errored_run_is_drawn_as_far_as_it_came() -> None:
    lines = picture(replaced(errored="the core fell over", trace=TRACE[:3]))

    assert lines[0] == "settle-example on memory: errored"
    assert "errored: the core fell over" in lines
    assert "  nothing was checked" in lines


def test_each_child_and_each_named_terminal_has_a_lane() -> None:
    scenario = Scenario(
        id="two", why="x", clauses=["D8"], drive=[Step(do="spawn")], expect=[Expect(git=0)],
        world=World(terminal=[Terminal(name="other")]),
    )  # fmt: skip
    [title] = [line for line in picture(replaced(children={"a": NAME, "b": "lgl-b"}), scenario, 140) if "calls" in line]

    assert [part.strip() for part in title.split("|")] == [
        "ms", "drive", f"a: {NAME}", "b: lgl-b", "other: terminal", "calls",
    ]  # fmt: skip


def test_a_hazard_shows_what_it_cost() -> None:
    scenario = Scenario(
        id="h", why="x", clauses=["D8-idle-end"], level="hazard", drive=SCENARIO.drive[:1], expect=[Expect(git=0)]
    )

    assert "hazard: 0.2 s lost" in picture(RECORD, scenario)
