from typing import Any

import pytest

from hc_sim.show import MAX_TEXT, plain, show_event
from hc_sim.trace import Event


def line(**fields: Any) -> str | None:
    return show_event(Event(t=1_234, **fields))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"kind": "link", "conn": 3}, "    1.234   #3  connected"),
        ({"kind": "unlink", "conn": 3}, "    1.234   #3  disconnected"),
        (
            {"kind": "call", "conn": 1, "method": "terminal.send", "params": {"terminal": "t1", "text": "go"}},
            "    1.234   #1  -> terminal.send terminal=t1 text=go",
        ),
        ({"kind": "call", "conn": 1, "method": "hello"}, "    1.234   #1  -> hello"),
        (
            {"kind": "reply", "conn": 1, "method": "terminal.list", "result": {"terminals": [1, 2]}},
            "    1.234   #1  <- terminal.list 2 terminals",
        ),
        (
            {
                "kind": "reply",
                "conn": 1,
                "method": "terminal.get",
                "result": {"address": "t1", "turn": 2, "status": {"state": "done"}, "state": "running"},
            },
            "    1.234   #1  <- terminal.get t1 turn 2 done running",
        ),
        (
            {"kind": "reply", "conn": 1, "error": {"message": "no", "data": {"kind": "busy"}}},
            "    1.234   #1  <-  error busy: no",
        ),
        (
            {"kind": "state", "terminal": "t1", "name": "a", "turn": 1, "state": "finished", "exit_code": 3},
            "    1.234          t1 a: turn 1 finished exit code 3",
        ),
        ({"kind": "text", "terminal": "t1", "text": "go"}, "    1.234          t1 got text 'go'"),
        ({"kind": "fault", "conn": 1, "method": "hello", "note": "x"}, "    1.234   #1   ! fault at hello: x"),
        ({"kind": "gone", "terminal": "t1"}, "    1.234          t1 is gone"),
        ({"kind": "step", "terminal": "t1"}, None),
    ],
)
def test_an_event_is_one_line(event: dict[str, Any], expected: str | None) -> None:
    assert line(**event) == expected


def test_values_of_variables_are_never_shown() -> None:
    shown = line(kind="run", terminal="t1", argv=["pi"], env={"TOKEN": "hunter2", "A": "b"})
    assert shown is not None
    assert "[A TOKEN]" in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\x00", "\x9b31m", "\u202e", "\r"])
def test_text_from_outside_cannot_move_a_cursor(text: str) -> None:
    assert plain(text).isprintable()


def test_long_text_is_cut_and_says_so() -> None:
    assert plain("x" * 10_000) == "x" * (MAX_TEXT - 3) + "..."
    assert plain("x" * MAX_TEXT) == "x" * MAX_TEXT
    assert len(plain("\x1b" * 10_000)) == MAX_TEXT
