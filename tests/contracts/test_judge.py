"""The judge: each statement holds, fails, and never holds by accident."""

from typing import Any

import msgspec
import pytest

from contracts.judging.judge import judge
from contracts.records import Aftermath, Finding, RunRecord, RunVerdict, StepRecord
from contracts.scenario import Expect, Scenario, Step, Terminal, World
from hc_sim.trace import Event

NAME = "lgl-run00001-alpha"


def spawned(**more: Any) -> StepRecord:
    return StepRecord(index=0, do="spawn", name="a", at_ms=0, took_ms=0, returned={"mode": "terminal"}, **more)


def call(t: int, method: str, **params: Any) -> Event:
    return Event(t=t, kind="call", method=method, params=params)


def started(t: int = 0, **more: Any) -> Event:
    return Event(t=t, kind="run", terminal="t3", name=NAME, argv=["pi", "task"], env={"PATH": "/x"}, **more)


def scenario(*expect: Expect, drive: list[Step] | None = None, **more: Any) -> Scenario:
    steps = drive if drive is not None else [Step(do="spawn", as_="a")]
    return Scenario(id="s", why="Because.", clauses=["D8", "D10"], drive=steps, expect=list(expect), **more)


def record(*trace: Event, steps: list[StepRecord] | None = None, **more: Any) -> RunRecord:
    children = more.pop("children", {"a": NAME})
    told = [spawned()] if steps is None else steps
    return RunRecord(scenario="s", host="memory", steps=told, trace=list(trace), children=children, **more)


def findings(verdict: RunVerdict) -> list[tuple[str, bool, str]]:
    return [(finding.clause, finding.ok, finding.where) for finding in verdict.findings]


def only(expect: Expect, run: RunRecord, **more: Any) -> Finding:
    [finding] = judge(scenario(expect, **more), run).findings
    return finding


# ---------------------------------------------------------------- the verdict


def test_a_run_that_broke_is_errored_and_has_no_findings() -> None:
    verdict = judge(scenario(Expect(git=0)), record(errored="the core fell over"))

    assert (verdict.verdict, verdict.errored, verdict.findings) == ("errored", "the core fell over", [])


def test_after_a_refused_git_only_the_clause_about_git_speaks() -> None:
    statements = (Expect(clause="I3", git=0), Expect(clause="D11", calls="terminal.rm"))
    verdict = judge(scenario(*statements), record(refused=["git"], aftermath=Aftermath(git_calls=1)))

    assert verdict.verdict == "fail"
    assert findings(verdict) == [("I3", False, "expect[0].git")]


@pytest.mark.parametrize("level", ["must", "hazard"])
def test_after_a_refused_git_a_run_about_other_clauses_is_skipped_and_says_why(level: str) -> None:
    run = record(refused=["git", "sh git"], aftermath=Aftermath(git_calls=2))
    verdict = judge(scenario(Expect(calls="terminal.rm"), level=level), run)

    assert (verdict.verdict, verdict.findings, verdict.errored) == ("skipped", [], None)
    assert "a process was started under virtual time (git, sh git)" in verdict.why


def test_a_run_in_which_nothing_was_checked_is_errored() -> None:
    verdict = judge(scenario(), record())

    assert verdict.verdict == "errored"
    assert verdict.errored == "nothing was checked in this run"


def test_a_verdict_carries_what_reports_need() -> None:
    verdict = judge(scenario(Expect(git=0, clause="I3")), record(real_ms=12))

    assert verdict.clauses == ["D8", "D10", "I3"]
    assert (verdict.verdict, verdict.why, verdict.real_ms, verdict.host) == ("pass", "Because.", 12, "memory")


@pytest.mark.parametrize(("git", "word", "cost"), [(0, "hazard", 400), (1, "avoided", None)])
def test_a_hazard_occurs_when_its_statements_hold_and_costs_the_time_since_the_work_ended(
    git: int, word: str, cost: int | None
) -> None:
    wait = StepRecord(index=0, do="wait", at_ms=1_000, took_ms=1_000, returned={"settled": False})
    run = record(
        Event(t=500, kind="state", status="working"),
        Event(t=600, kind="step", note="work ends"),
        Event(t=700, kind="state", status="idle"),
        steps=[wait],
        aftermath=Aftermath(git_calls=git),
    )
    verdict = judge(scenario(Expect(git=0), drive=[Step(do="wait")], level="hazard"), run)

    assert (verdict.verdict, verdict.cost_ms) == (word, cost)


def test_without_a_mark_the_cost_counts_from_the_last_change_of_state() -> None:
    wait = StepRecord(index=0, do="wait", at_ms=1_000, took_ms=1_000, returned={"settled": False})
    run = record(Event(t=700, kind="state"), Event(t=1_500, kind="state"), steps=[wait])

    assert judge(scenario(Expect(git=0), drive=[Step(do="wait")], level="hazard"), run).cost_ms == 300


# ------------------------------------------------------------------ the drive


def wait_step(**more: Any) -> Step:
    return Step(do="wait", child="a", **more)


def waited(returned: dict[str, Any] | None = None, raised: dict[str, Any] | None = None, at_ms: int = 750) -> RunRecord:
    told = StepRecord(
        index=0, do="wait", child="a", started_ms=50, at_ms=at_ms, took_ms=at_ms - 50, returned=returned, raised=raised
    )
    return record(steps=[told])


def test_a_result_that_matches_is_one_finding_for_the_whole() -> None:
    verdict = judge(scenario(drive=[wait_step(returns={"settled": True})]), waited({"settled": True, "lastTurn": 1}))

    assert findings(verdict) == [("D8", True, "drive[0].returns")]


def test_a_result_that_differs_is_one_finding_a_field_with_the_steps_clause() -> None:
    step = wait_step(returns={"settled": True, "lastTurn": {"min": 2}}, clause="D10")
    verdict = judge(scenario(drive=[step]), waited({"settled": False, "lastTurn": 1}))

    assert verdict.verdict == "fail"
    assert [(one.clause, one.where, one.expected, one.got) for one in verdict.findings] == [
        ("D10", "drive[0].returns.settled", True, False),
        ("D10", "drive[0].returns.lastTurn", {"min": 2}, 1),
    ]


def test_a_key_that_is_missing_came_as_nothing() -> None:
    verdict = judge(scenario(drive=[wait_step(returns={"reason": "gone"})]), waited({"settled": True}))

    assert [(one.where, one.got) for one in verdict.findings] == [("drive[0].returns.reason", None)]


def test_an_error_that_nobody_stated_is_a_failure_of_the_steps_clause() -> None:
    error = {"code": "gone", "message": "it is gone", "child": "", "kind": None}
    verdict = judge(scenario(drive=[wait_step(clause="D10")]), waited(raised=error))

    assert findings(verdict) == [("D10", False, "drive[0]")]
    assert verdict.findings[0].got == {"code": "gone", "message": "it is gone"}


def test_a_stated_error_is_compared_field_by_field() -> None:
    step = wait_step(raises={"code": "gone", "known": "unknown"})
    verdict = judge(scenario(drive=[step]), waited(raised={"code": "gone", "known": "applied"}))

    assert findings(verdict) == [("D8", False, "drive[0].raises.known")]


def test_a_stated_error_that_did_not_come_fails() -> None:
    verdict = judge(scenario(drive=[wait_step(raises={})]), waited({"settled": True}))

    assert findings(verdict) == [("D8", False, "drive[0].raises")]
    assert verdict.findings[0].got == {"returned": {"settled": True}}


def test_times_are_compared_as_numbers_or_operators() -> None:
    verdict = judge(scenario(drive=[wait_step(at=750, took={"max": 600})]), waited({}))

    assert findings(verdict) == [("D8", True, "drive[0].at"), ("D8", False, "drive[0].took")]


@pytest.mark.parametrize("told", [[], [StepRecord(index=0, do="wait", started_ms=5)]])
def test_a_step_that_never_came_back_fails_even_without_statements(told: list[StepRecord]) -> None:
    verdict = judge(scenario(drive=[wait_step()]), record(steps=told))

    assert findings(verdict) == [("D8", False, "drive[0]")]
    assert "never came back" in str(verdict.findings[0].got)


def test_placeholders_in_what_is_expected_are_filled_in() -> None:
    step = wait_step(returns={"name": "{name}", "file": "{session}"})
    run = msgspec.structs.replace(
        waited({"name": NAME, "file": "/tmp/s.jsonl"}), fills={"name": NAME, "session": "/tmp/s.jsonl"}
    )

    assert judge(scenario(drive=[step]), run).verdict == "pass"


# ----------------------------------------------------------- the expectations


@pytest.mark.parametrize(
    ("bounds", "times", "ok"),
    [
        ({}, 1, True),
        ({}, 0, False),
        ({"count": 0}, 0, True),
        ({"count": 0}, 1, False),
        ({"count": 2}, 2, True),
        ({"count": 2}, 3, False),
        ({"at_least": 2}, 2, True),
        ({"at_least": 2}, 1, False),
        ({"at_most": 2}, 2, True),
        ({"at_most": 2}, 3, False),
        ({"at_least": 1, "at_most": 2}, 0, False),
    ],
)
def test_calls_are_counted(bounds: dict[str, int], times: int, ok: bool) -> None:
    run = record(*(call(n, "terminal.rm", terminal=NAME) for n in range(times)), call(9, "terminal.get", terminal=NAME))

    assert only(Expect(calls="terminal.rm", **bounds), run).ok is ok  # type: ignore[arg-type]


def test_a_count_that_is_wrong_says_how_many_came_and_when() -> None:
    run = record(call(5, "terminal.send", terminal=NAME, text="x"), call(9, "terminal.send", terminal=NAME, text="x"))
    finding = only(Expect(calls="terminal.send", count=1, clause="D10", say="once"), run)

    assert (finding.where, finding.expected, finding.got, finding.say) == (
        "expect[0].calls(terminal.send)",
        "1 call",
        "2 calls at 5, 9 ms",
        "once",
    )


@pytest.mark.parametrize(
    ("narrowed", "count"),
    [
        ({"where": {"text": "b"}}, 1),
        ({"where": {"text": {"one_of": ["a", "b"]}}}, 2),
        ({"where": {"text": "{name}"}}, 0),
        ({"after_ms": 20}, 2),
        ({"before_ms": 20}, 2),
        ({"after_ms": 15, "before_ms": 25}, 1),
        ({"child": "a"}, 2),
        ({"child": "other"}, 1),
    ],
)
def test_calls_are_narrowed_by_parameters_time_and_child(narrowed: dict[str, Any], count: int) -> None:
    run = record(
        started(),
        call(10, "terminal.send", terminal=NAME, text="a"),
        call(20, "terminal.send", terminal="t3", text="b"),
        call(30, "terminal.send", terminal="other", text="c"),
        fills={"name": NAME},
    )
    world = World(terminal=[Terminal(name="other")])

    assert only(Expect(calls="terminal.send", count=count, **narrowed), run, world=world).ok


def test_a_star_counts_every_call() -> None:
    run = record(call(1, "hello"), call(2, "terminal.get"), Event(t=3, kind="reply", method="hello"))

    assert only(Expect(calls="*", count=2), run).ok


@pytest.mark.parametrize(
    "expect",
    [
        Expect(child="ghost", calls="terminal.kill", count=0),
        Expect(child="ghost", received=[]),
        Expect(child="ghost", keys=[]),
        Expect(child="ghost", order=["hello"]),
        Expect(child="ghost", run=True, with_={}),
    ],
)
def test_a_statement_about_a_child_that_is_not_there_fails(expect: Expect) -> None:
    finding = only(expect, record())

    assert not finding.ok
    assert finding.got == "no such child was started"


@pytest.mark.parametrize(
    ("came", "ok"),
    [
        (["kill", "rm"], True),
        (["kill", "get", "rm"], True),
        (["kill", "rm", "rm"], True),
        (["rm", "kill"], False),
        (["rm", "kill", "rm"], False),
        (["kill"], False),
        ([], False),
    ],
)
def test_an_order_holds_only_when_nothing_comes_too_early(came: list[str], ok: bool) -> None:
    run = record(*(call(n, f"terminal.{word}", terminal=NAME) for n, word in enumerate(came)))

    assert only(Expect(order=["terminal.kill", "terminal.rm"]), run).ok is ok


def test_a_started_terminal_is_compared_field_by_field() -> None:
    run = record(
        call(1, "terminal.run", name=NAME, cwd="/work", caller="t1", env={"A": "1"}),
        started(2, labels={"legion.role": "centurion"}),
    )
    expect = Expect(
        run=True,
        child="a",
        with_={
            "name": {"starts": "lgl-"},
            "cwd": "/work",
            "parent": "t1",
            "overlay": {"A": "2"},
            "env": {"PATH": "/x"},
            "labels": {"herdr.tab": {"absent": True}},
        },
    )
    finding = only(expect, run)

    assert (finding.where, finding.expected, finding.got) == ("expect[0].run.with.overlay.A", "2", "1")


def test_the_nth_start_has_to_be_there() -> None:
    assert not only(Expect(run=True, nth=2, with_={"name": NAME}), record(started())).ok
    assert only(Expect(run=True, nth=2, with_={"name": NAME}), record(started(), started(5))).ok


def test_exactly_the_texts_and_keys_that_reached_the_child_are_compared() -> None:
    run = record(
        started(),
        Event(t=1, kind="text", terminal="t3", text="one"),
        Event(t=2, kind="text", terminal="t9", text="to another"),
        Event(t=3, kind="key", terminal="t3", text="esc"),
    )

    assert only(Expect(child="a", received=["one"]), run).ok
    assert not only(Expect(child="a", received=[]), run).ok
    assert not only(Expect(received=["one"]), run).ok
    assert only(Expect(child="a", keys=["esc"]), run).ok
    assert not only(Expect(child="a", keys=["esc", "esc"]), run).ok


@pytest.mark.parametrize(
    ("expect", "holds", "fails"),
    [
        (Expect(terminals={NAME: {"absent": True}}), Aftermath(), Aftermath(terminals={NAME: "finished"})),
        (Expect(terminals={"{name}": "running"}), Aftermath(terminals={NAME: "running"}), Aftermath()),
        (Expect(left="nothing"), Aftermath(), Aftermath(left=["process hc connect"])),
        (Expect(repo="unchanged"), Aftermath(), Aftermath(repo_changed=["refs"])),
        (Expect(git=0), Aftermath(), Aftermath(git_calls=1)),
        (Expect(file="s", mode="0600"), Aftermath(files={"s": ("0600", "")}), Aftermath(files={"s": ("0644", "")})),
        (Expect(file="s", text="x"), Aftermath(files={"s": ("0600", "x")}), Aftermath(files={"s": ("0600", "y")})),
        (Expect(file="s", text="x"), Aftermath(files={"s": ("0600", "x")}), Aftermath()),
    ],
)
def test_the_world_afterwards_is_compared(expect: Expect, holds: Aftermath, fails: Aftermath) -> None:
    assert only(expect, record(aftermath=holds, fills={"name": NAME})).ok
    assert not only(expect, record(aftermath=fails, fills={"name": NAME})).ok


def test_only_the_named_methods_may_appear_and_something_has_to() -> None:
    run = record(call(1, "hello"), call(2, "terminal.get"))

    assert only(Expect(methods=["hello", "terminal.get", "terminal.rm"]), run).ok
    assert only(Expect(methods=["hello"]), run).got == ["terminal.get"]
    assert not only(Expect(methods=["hello"]), record()).ok
    assert only(Expect(methods=[]), record()).ok


# ------------------------------------------------------------- what was let out


@pytest.mark.parametrize(
    ("raises", "where"), [(None, "drive[0]"), ({}, "drive[0].raises"), ({"message": "late"}, "drive[0].raises")]
)
def test_an_exception_that_was_let_out_fails_the_clause_of_its_step(raises: dict[str, Any] | None, where: str) -> None:
    told = StepRecord(
        index=0, do="spawn", at_ms=0, raised={"code": "unexpected", "message": "late", "type": "TimeoutError"}
    )
    verdict = judge(scenario(drive=[Step(do="spawn", raises=raises, clause="D11")]), record(steps=[told]))

    assert (verdict.verdict, findings(verdict)) == ("fail", [("D11", False, where)])
