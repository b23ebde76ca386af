"""The drawing of one run as SVG: what stands where, how much of a long run is drawn, and that nothing escapes it."""

import re
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest
from syrupy.assertion import SnapshotAssertion

from contracts.records import RunRecord, StepRecord
from contracts.report.html.drawing import Drawing, draw, in_words
from contracts.report.html.layout import FIRST, LAST, MAX_CHILDREN, MAX_LINES, Line, Notes, sheet
from contracts.report.moments import Story, story
from contracts.scenario import Scenario, Step
from hc_sim.trace import Event

NAME = "lgl-run00001-alpha"
SCENARIO = Scenario(id="settle-example", why="One fact.", clauses=["D8"], drive=[Step(do="spawn", as_="a")])


def call(t: int, method: str, **params: Any) -> Event:
    return Event(t=t, kind="call", method=method, params=params)


def get(t: int) -> Event:
    return Event(t=t, kind="call", id=t, method="terminal.get", params={"terminal": NAME})


def told_of(t: int, turn: int, status: str | None, after: int = 0, state: str = "running") -> Event:
    """The reply to the look at `t`."""
    shown = {"turn": turn, "state": state, "status": status and {"state": status}}
    return Event(t=t + after, kind="reply", id=t, method="terminal.get", result=shown)


def state(t: int, turn: int, status: str, **more: Any) -> Event:
    return Event(t=t, kind="state", terminal="t3", turn=turn, status=status, **more)


BORN = Event(t=0, kind="run", terminal="t3", name=NAME, argv=["pi"])
TRACE = [
    call(0, "terminal.run", name=NAME),
    BORN,
    *[event for t in range(250, 2_000, 250) for event in (get(t), told_of(t, 0, None))],
    state(2_100, 1, "working"),
    Event(t=2_200, kind="fault", note="reply cut"),
    state(2_300, 1, "done"),
    get(2_500),
    told_of(2_500, 1, "done"),
    call(2_600, "terminal.send", terminal=NAME, text="once more"),
    Event(t=2_600, kind="text", terminal="t3", text="once more"),
    Event(t=2_601, kind="reply", method="terminal.send", error={"data": {"kind": "blocked"}}),
    Event(t=2_700, kind="key", terminal="t3", text="esc"),
    state(2_800, 1, "done", state="finished", exit_code=1),
    Event(t=12_900, kind="gone", terminal="t3"),
]
STEPS = [
    StepRecord(index=0, do="spawn", name="a", at_ms=0, took_ms=0, returned={"mode": "terminal"}),
    StepRecord(index=1, do="wait", child="a", at_ms=2_500, took_ms=2_500, returned={"settled": True}),
    StepRecord(index=2, do="steer", child="a", started_ms=2_600, at_ms=2_601, took_ms=1, raised={"code": "blocked"}),
    StepRecord(index=3, do="wait", child="a", started_ms=2_650),
]


def told(trace: list[Event] = TRACE, steps: list[StepRecord] = STEPS, **more: Any) -> Story:
    record = {"children": {"a": NAME}, **more}
    return story(SCENARIO, RunRecord(scenario="settle-example", host="memory", trace=trace, steps=steps, **record))


def drawn(one: Story | None = None, notes: Notes | None = None) -> tuple[Drawing, Element]:
    drawing = draw(one or told(), notes or Notes(), "a run")
    return drawing, fromstring(drawing.svg)  # noqa: S314 - our own output


def texts(root: Element) -> list[str]:
    return ["".join(one.itertext()) for one in root.iter("text")]


def of_class(root: Element, css: str) -> list[Element]:
    return [one for one in root.iter() if css in (one.get("class") or "").split()]


def test_a_small_run_as_a_person_sees_it(snapshot: SnapshotAssertion) -> None:
    notes = Notes({1: [Line("✓ as expected", "held")], 2: [Line("✗ settled = true, not false", "differs")]})
    svg = draw(told(), notes, "settle-example on memory").svg

    assert re.sub(r">(?=<[^/])", ">\n", svg) == snapshot


def test_every_lane_has_a_title_and_the_words_of_the_run() -> None:
    _, root = drawn()
    words = texts(root)

    assert words[:4] == ["time, ms", "drive", "calls to the core", f"a: {NAME}"]
    assert {
        "wait a = settled", "get → 1 done: settled", "turn 1 working", "get → 0 none ×7",  # noqa: RUF001
        "fault reply cut", "once more", "key esc",
        "finished (exit 1)", "removed", "steer a ! blocked", "blocked",
    } <= set(words)  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (told_of(5, 2, "working"), "get → 2 working"),
        (told_of(5, 2, None), "get → 2 none"),
        (told_of(5, 2, "done", state="finished"), "get → 2 finished"),
        (told_of(5, 2, "done", after=300), "get → 2 done after 300 ms"),
        (Event(t=5, kind="reply", id=5, result=[1]), "get"),
        (Event(t=5, kind="reply", id=5, error={"message": "no"}), "get"),
        (Event(t=5, kind="reply", id=6, result={}), "get → no reply"),
    ],
)
def test_a_call_says_what_it_was_told(reply: Event, words: str) -> None:
    assert words in texts(drawn(told([BORN, get(5), reply], []))[1])


def test_looks_that_were_told_something_else_are_moments_of_their_own() -> None:
    trace = [BORN, get(5), told_of(5, 1, "done"), get(6), told_of(6, 1, "done"), get(7), told_of(7, 1, "idle")]

    assert {"get → 1 done ×2", "get → 1 idle"} <= set(texts(drawn(told(trace, []))[1]))  # noqa: RUF001


def test_the_bar_of_a_child_has_a_piece_for_each_status_one_below_the_other() -> None:
    _, root = drawn()
    pieces = [one for one in root.iter("rect") if (one.get("class") or "").startswith("s-")]
    ends = [int(one.get("y") or 0) + int(one.get("height") or 0) for one in pieces]

    assert [one.get("class") for one in pieces] == ["s-none", "s-working", "s-done", "s-finished"]
    assert [int(one.get("y") or 0) for one in pieces[1:]] == ends[:-1]
    assert len({one.get("x") for one in pieces}) == 1


def test_a_status_that_nobody_knows_is_drawn_as_none() -> None:
    _, root = drawn(told([BORN, state(5, 1, '"><script>')]))

    assert [one.get("class") for one in root.iter("rect")] == ["settled", "s-none"]
    assert 'turn 1 "><script>' in texts(root)


def test_the_moment_of_settling_is_a_band_across_all_lanes() -> None:
    drawing, root = drawn()
    [band] = of_class(root, "settled")

    assert int(band.get("width") or 0) == int(root.get("width") or 1)
    assert "wrong" not in drawing.svg


def test_a_settling_that_was_not_expected_is_marked_as_wrong() -> None:
    _, root = drawn(notes=Notes({1: [Line("✗ settled = true, not false", "differs")]}))

    assert [one.get("class") for one in of_class(root, "settled")] == ["settled wrong"]
    assert [one.text for one in of_class(root, "differs")] == ["✗ settled = true, not false"]


def test_a_step_that_never_came_back_is_an_open_line_to_the_end() -> None:
    _, root = drawn()

    assert len(of_class(root, "open")) == 1
    assert len(of_class(root, "span")) == 3


def test_steps_side_by_side_have_lines_of_their_own() -> None:
    steps = [StepRecord(index=n, do="wait", child="a", started_ms=n, at_ms=50 + n, returned={}) for n in range(1, 4)]
    _, root = drawn(told([BORN], steps))

    assert len({(one.get("d") or "").split(" ")[0] for one in of_class(root, "span")}) == 3


def test_only_calls_that_act_on_a_child_point_at_it() -> None:
    _, root = drawn()

    assert len(of_class(root, "arrow")) == 2


def test_what_a_hazard_lost_is_a_bracket_and_a_number() -> None:
    _, root = drawn(notes=Notes(lost=(2_300, 2_500)))

    assert len(of_class(root, "lost")) == 1
    assert "0.2 s lost" in texts(root)


def test_a_long_pause_is_named() -> None:
    _, root = drawn()

    assert [one.text for one in of_class(root, "pause")] == ["+ 10.1 s"]


def test_of_a_long_run_the_middle_is_counted_and_the_end_is_drawn() -> None:
    many = [BORN, *[state(t, t, "working" if t % 2 else "idle") for t in range(1, 1_000)], state(1_000, 1, "done")]
    drawing, root = drawn(told(many, []))

    assert drawing.left_out == 1_001 - FIRST - LAST
    assert f"… {drawing.left_out} more moments left out …" in texts(root)
    assert "turn 1 done" in texts(root)
    assert len(drawing.svg) < 60_000


def test_of_many_entries_in_one_moment_the_rest_is_counted() -> None:
    _, root = drawn(told([BORN, *[call(5, f"m{n}") for n in range(30)]], []))

    assert f"… {30 - MAX_LINES + 1} more" in texts(root)


def test_of_many_children_the_rest_is_counted() -> None:
    children = {f"c{n}": f"lgl-{n}" for n in range(MAX_CHILDREN + 3)}
    births = [Event(t=n, kind="run", terminal=f"t{n}", name=f"lgl-{n}") for n in range(MAX_CHILDREN + 3)]

    assert drawn(told(births, [], children=children))[0].hidden == 3


def test_no_text_reaches_into_the_next_lane() -> None:
    long = [BORN, Event(t=1, kind="text", terminal="t3", text="word " * 40), call(2, "terminal." + "x" * 90)]
    placed = sheet(told(long), Notes())

    for row in placed.rows:
        for column in placed.columns:
            assert all(len(line.text) <= column.chars for line in row.cells[column.lane])


@pytest.mark.parametrize("text", ["<script>x()</script>", "\"&<>'", "]]>", "\x00\x1b[31m"])
def test_whatever_a_run_says_stays_text(text: str) -> None:
    hostile = [
        BORN,
        Event(t=1, kind="text", terminal="t3", text=text),
        call(2, text),
        Event(t=3, kind="fault", note=text),
    ]
    steps = [StepRecord(index=0, do=text, child=text, at_ms=4, raised={"code": text})]
    svg = draw(told(hostile, steps), Notes({0: [Line(text, "differs")]}), text).svg

    assert "<script" not in svg
    assert "\x00" not in svg
    fromstring(svg)  # noqa: S314 - our own output


def test_a_drawing_is_summed_up_in_words() -> None:
    assert in_words(told(), 12_900) == "1 child, 12 moments in 12.9 s"
