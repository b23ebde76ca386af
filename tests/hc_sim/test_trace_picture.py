from typing import Any, get_args

import pytest

from hc_sim.faults import Fault
from hc_sim.lanes import Row, folded, page
from hc_sim.picture import FIRST_ROWS, LAST_ROWS, MAX_LANES, draw_trace
from hc_sim.playing.fake import FakeCore
from hc_sim.trace import Event, Kind


def state(t: int, terminal: str, **what: Any) -> Event:
    return Event(t=t, kind="state", terminal=terminal, **{"turn": 1, "status": "working", "state": "running", **what})


def get(t: int) -> Event:
    return Event(t=t, kind="call", method="terminal.get", terminal="alpha")


def test_a_story_is_drawn_as_lanes_with_time_going_down() -> None:
    core = FakeCore()
    link = core.connect()
    link.call("terminal.run", {"argv": ["pi", "secret task"], "name": "alpha", "env": {"X_TOKEN": "hunter2"}})
    core.advance(250)
    core.agent("alpha").working()
    for _ in range(3):
        link.call("terminal.get", {"terminal": "alpha"})
        core.advance(100)
    core.agent("alpha").done()
    link.call("terminal.send", {"terminal": "alpha", "text": "and\nmore"})
    core.advance(1)
    core.agent("alpha").finish(signal="SIGKILL")
    link.write(b'{"jsonrpc":"2.0","id":9,"method":"terminal.kill","params":{"terminal":"beta"}}\n')

    assert draw_trace(core.trace) == [
        "     ms | t1 alpha                  | calls",
        "--------+---------------------------+------------------------------",
        "      0 | starts, turn 0 none       | run alpha",
        "    250 | turn 1 working            | get alpha",
        "350-450 |                           | get alpha x2",
        "    550 | turn 1 done, <- and\\nmore | send alpha",
        "    551 | finished (SIGKILL)        | kill beta, ! no_such_terminal",
    ]


def test_a_fault_is_drawn_beside_the_call_that_it_met() -> None:
    core = FakeCore(faults=[Fault(method="terminal.list", reply=False)])
    core.connect().write(b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{}}\n')
    assert draw_trace(core.trace)[-1].startswith(" 0 | list, fault reply")


def test_a_refused_call_shows_the_kind_of_its_error() -> None:
    core = FakeCore()
    core.connect().write(b'{"jsonrpc":"2.0","id":1,"method":"terminal.get","params":{"terminal":"x"}}\n')
    assert draw_trace(core.trace)[-1] == " 0 | get x, ! no_such_terminal"


@pytest.mark.parametrize("error", ["text", {"message": "m"}, {"data": []}])
def test_an_error_of_any_shape_can_be_drawn(error: Any) -> None:
    assert draw_trace([Event(t=1, kind="reply", error=error)])[-1].startswith(" 1 | ! ")


def test_a_restart_of_the_core_stands_among_the_calls() -> None:
    core = FakeCore()
    core.add_terminal("alpha")
    core.advance(5)
    core.restart()
    lines = draw_trace(core.trace)
    assert lines[-1].split("|")[-1].strip().startswith("the core restarts")


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_of_event_can_be_drawn(kind: Kind) -> None:
    assert draw_trace([Event(t=1, kind=kind, terminal="t1", note="note", text="text")])


def test_nothing_is_a_picture_too() -> None:
    assert draw_trace([]) == ["nothing happened: no call came, no terminal was started"]


def test_of_many_terminals_the_busiest_have_lanes_and_the_others_share_one() -> None:
    events = [state(1, f"t{number}", name=f"n{number}") for number in range(10)]
    events += [state(2, f"t{number}", status="done") for number in (3, 5, 7, 9)]

    lines = draw_trace(events, 200)

    assert [title.strip() for title in lines[0].split("|")] == [
        "ms",
        "t3 n3",
        "t5 n5",
        "t7 n7",
        "t9 n9",
        "others",
        "calls",
    ]
    assert len(lines[0].split("|")) == MAX_LANES + 3
    assert "n0: turn 1 working" in lines[2]
    assert "t5" not in "".join(lines[2:])


def test_of_a_long_story_the_beginning_and_the_end_are_drawn() -> None:
    lines = draw_trace([state(t, "t1", turn=t) for t in range(1_000)])
    assert len(lines) == 2 + FIRST_ROWS + 1 + LAST_ROWS
    assert f"... {1_000 - FIRST_ROWS - LAST_ROWS} more moments ..." in lines
    assert "turn 0 working" in lines[2]
    assert "turn 999 working" in lines[-1]


def test_no_secret_and_no_control_character_gets_into_a_picture() -> None:
    run = Event(
        t=1, kind="run", terminal="t1", name="a\x1b[2J", argv=["pi", "--key", "hunter2"], env={"MY_TOKEN": "hunter2"}
    )
    call = Event(t=1, kind="call", method="terminal.run\x07", params={"env": {"MY_TOKEN": "hunter2"}})
    text = Event(t=1, kind="text", terminal="t1", text="x\x1b[31m" + "y" * 500)

    drawn = "\n".join(draw_trace([run, call, text]))

    assert "hunter2" not in drawn
    assert all(letter.isprintable() or letter == "\n" for letter in drawn)
    assert "y" * 100 not in drawn


def test_a_picture_keeps_to_its_width_where_its_lanes_allow_it() -> None:
    events = [state(t, f"t{t}", name="n" * 40) for t in range(4)]
    assert max(map(len, draw_trace(events, 100))) <= 100


def test_only_moments_with_the_same_calls_and_nothing_else_are_folded() -> None:
    rows = [Row(1, [[], ["get"]]), Row(2, [[], ["get"]]), Row(3, [["done"], ["get"]]), Row(4, [[], ["list"]])]
    kept = folded(rows)
    assert [(row.t, row.until, row.times) for row in kept] == [(1, 2, 2), (3, 0, 1), (4, 0, 1)]


def test_a_long_cell_is_wrapped_at_spaces_without_losing_a_word() -> None:
    lines = list(page(["a", "calls"], [Row(1, [["one two three four five six"], ["c"]])], 40, first=9, last=9))
    words = " ".join(line.split("|")[1] for line in lines[2:]).split()
    assert words == ["one", "two", "three", "four", "five", "six"]
    assert max(map(len, lines)) <= 40
    assert all(line.count("|") == 2 for line in lines[2:])
