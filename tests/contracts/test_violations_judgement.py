"""What is said of planted violations: caught by the clause they break, honest about everything else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.violations.entries import Edit, Target, Violation
from contracts.violations.judgement import (
    Control,
    Judged,
    Matrix,
    as_json,
    judged,
    judged_control,
    judged_suite,
)
from contracts.violations.plans import Looked
from contracts.violations.showing import WIDTH, as_lines, summary


def violation(
    name: str = "early", *breaks: str, target: Target = "supervisor", also: Mapping[str, str] | None = None
) -> Violation:
    edit = Edit(file="hc_sim/x.py", old="a", new="b")
    return Violation(name, target, breaks or ("D8",), "x", (edit,), also or {}, ("memory",), (), Path("x.toml"), 0)


def matrix(*planted: Judged, controls: tuple[Control, ...] = ()) -> Matrix:
    return Matrix(planted, controls, 1.25)


def test_a_violation_is_caught_when_its_clause_turned_red() -> None:
    word = judged(violation(), Looked(red={"D8": ["settle-boot-idle", "settle-boot-done"]}))

    assert (word.caught, word.caught_by, word.also) == (True, ("settle-boot-idle", "settle-boot-done"), ())
    assert matrix(word).holds


def test_a_violation_that_turns_nothing_red_is_missed() -> None:
    word = judged(violation(), Looked(runs=300))

    assert (word.caught, word.caught_by) == (False, ())
    assert (matrix(word).missed, matrix(word).holds) == (1, False)


def test_another_clause_is_no_catch_and_without_a_reason_a_false_alarm() -> None:
    word = judged(violation(), Looked(red={"D9": ["session-fork"], "D10": ["abort-twice"]}))

    assert (word.caught, word.also, word.unexplained) == (False, ("D9", "D10"), ("D9", "D10"))
    assert (matrix(word).missed, matrix(word).false_alarms) == (1, 2)


def test_a_clause_that_turns_red_for_a_written_reason_is_no_false_alarm() -> None:
    one = violation(also={"D9": "the answer is read by the same turn"})
    word = judged(one, Looked(red={"D8": ["a"], "D9": ["b"]}))

    assert (word.also, word.unexplained) == (("D9",), ())
    assert (matrix(word).false_alarms, matrix(word).holds) == (0, True)


def test_a_reason_for_what_did_not_turn_red_is_stale_and_no_pass() -> None:
    word = judged(violation(also={"D9": "once upon a time"}), Looked(red={"D8": ["a"]}))

    assert matrix(word).problems == ["early: the reason written for D9 is stale: it did not turn red"]
    assert not matrix(word).holds


def test_a_look_that_never_was_is_no_catch() -> None:
    word = judged(violation(), Looked(red={"D8": ["a"]}, why="the look ended with exit code 1"))

    assert (word.caught, matrix(word).missed) == (False, 1)
    assert matrix(word).problems == ["early: not planted: the look ended with exit code 1"]


def test_runs_that_broke_are_a_problem_though_the_violation_was_caught() -> None:
    word = judged(violation(), Looked(red={"D8": ["a"]}, errored=["one", "two", "three", "four"]))

    assert word.caught
    assert matrix(word).problems == ["early: 4 runs broke: one; two; three and 1 more"]
    assert not matrix(word).holds


def test_a_drift_of_the_core_is_caught_by_the_difference_that_names_it() -> None:
    one = violation("drift", "exit.code", target="core", also={"exit.signal": "both come from one field"})
    word = judged(one, Looked(differences=["exit.code", "exit.signal", "hello"]))

    assert (word.caught, word.caught_by) == (True, ("live: exit.code",))
    assert (word.also, word.unexplained) == (("exit.signal", "hello"), ("hello",))


PLANTED = {"early": violation("early"), "late": violation("late")}
SEEN, UNSEEN = Looked(red={"D8": ["a"]}), Looked()


@pytest.mark.parametrize(
    ("looks", "caught", "by"),
    [
        ({"early": UNSEEN, "late": UNSEEN, "probe": Looked(probes=["probe"])}, True, ("early", "late", "probe")),
        ({"early": SEEN, "late": UNSEEN, "probe": Looked(probes=["probe"])}, False, ("late", "probe")),
        ({"early": UNSEEN, "late": UNSEEN, "probe": Looked()}, False, ("early", "late")),
        (
            {"early": Looked(red={"D8": ["a"], "D9": ["b"]}), "late": UNSEEN, "probe": Looked()},
            False,
            ("early", "late"),
        ),
    ],
    ids=["all go unseen", "one is still seen", "the probe holds", "an alarm tells on it"],
)
def test_a_break_of_the_suite_is_noticed_by_what_goes_unseen(
    looks: dict[str, Looked], caught: bool, by: tuple[str, ...]
) -> None:
    word = judged_suite(violation("blind", "early", "late", "probe", target="suite"), PLANTED, looks)

    assert (word.caught, word.caught_by, word.also) == (caught, by, ())


def test_a_suite_too_broken_to_look_has_not_been_noticed_by_anything() -> None:
    looks = {"early": Looked(why="ImportError: no judge")}
    word = judged_suite(violation("blind", "early", target="suite"), PLANTED, looks)

    assert (word.caught, word.error) == (False, "not planted: ImportError: no judge")


@pytest.mark.parametrize(
    ("looked", "alarms"),
    [
        (Looked(runs=500), 0),
        (Looked(runs=500, red={"D8": ["a", "b"], "D9": ["c"]}), 2),
        (Looked(runs=500, errored=["a (memory): it broke"]), 1),
        (Looked(runs=500, probes=["unproven"]), 1),
        (Looked(runs=1, differences=["exit.code"]), 1),
        (Looked(why="it never came back"), 1),
    ],
    ids=["nothing", "clauses", "a broken run", "a probe", "a difference", "no run at all"],
)
def test_whatever_a_control_complains_of_is_a_false_alarm(looked: Looked, alarms: int) -> None:
    whole = matrix(controls=(judged_control("whole run", looked),))

    assert (whole.false_alarms, whole.holds) == (alarms, alarms == 0)


def test_the_json_begins_as_it_was_agreed() -> None:
    told: dict[str, Any] = as_json(
        matrix(
            judged(violation(), Looked(red={"D8": ["a"], "D9": ["b"]})),
            controls=(Control("whole run", 540, ("D8: a",)),),
        )
    )

    assert json.loads(json.dumps(told)) == {
        "schema": 1,
        "planted": [
            {
                "id": "early",
                "target": "supervisor",
                "breaks": ["D8"],
                "caught_by": ["a"],
                "also": ["D9"],
                "caught": True,
            }
        ],
        "missed": 0,
        "false_alarms": 2,
        "controls": [{"name": "whole run", "runs": 540, "failed": ["D8: a"], "errored": []}],
        "problems": [],
        "seconds": 1.2,
    }
    assert list(told)[:4] == ["schema", "planted", "missed", "false_alarms"]


def test_the_table_lines_up_in_a_hundred_columns() -> None:
    long = judged(violation("x" * 60, "D10"), Looked(red={"D10": ["y" * 90, "z"], "D9": ["a"]}))
    missed = judged(violation("missed"), Looked())
    suite = judged_suite(violation("blind", "early", target="suite"), PLANTED, {"early": UNSEEN})
    lines = list(as_lines(matrix(long, missed, suite, controls=(Control("whole run", 9, ("D8: a",)),))))

    assert max(map(len, lines)) <= WIDTH
    rows = [line for line in lines[:3] if line]
    assert rows[0].index("breaks") == rows[1].index("D10") == rows[2].index("D8")
    assert rows[0].index("caught by") == rows[1].index("2: yyy") == rows[2].index("MISSED")
    assert rows[0].index("also red") == rows[1].index("D9!")
    assert "control, whole run: 9 runs, FALSE ALARM" in lines


def test_the_summary_counts_by_target() -> None:
    caught = judged(violation(), Looked(red={"D8": ["a"]}))
    suite = judged_suite(violation("blind", "early", target="suite"), PLANTED, {"early": SEEN})

    assert summary(matrix(caught, suite)) == (
        "2 planted (1 supervisor, 1 suite), 1 missed, 0 false alarms; 0 controls; 1 s"
    )
