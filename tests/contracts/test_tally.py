"""From verdicts to rows and exit codes: attribution, levels, and nothing green by absence."""

from typing import Any, get_args

from contracts.clauses import Clause, Clauses
from contracts.judging.tally import ClauseRow, clause_table, effective_level, exit_code, outcome, totals
from contracts.records import Finding, RunVerdict
from contracts.scenario import Level


def clause(name: str, level: Level = "must") -> Clause:
    return Clause(id=name, title=name, statement="x", source="x", proof=["x"], level=level)


CLAUSES: Clauses = {one.id: one for one in (clause("D1"), clause("D2"), clause("W1", "should"), clause("H1", "hazard"))}


def run(name: str, *findings: tuple[str, bool], **more: Any) -> RunVerdict:
    told = [Finding(clause=clause, ok=ok, where="drive[0]") for clause, ok in findings]
    verdict = "pass" if all(ok for _, ok in findings) else "fail"
    fields: dict[str, Any] = {
        "host": "memory",
        "verdict": verdict,
        "clauses": [clause for clause, _ in findings],
        **more,
    }
    return RunVerdict(scenario=name, findings=told, **fields)


def row(name: str, *verdicts: RunVerdict) -> ClauseRow:
    return next(one for one in clause_table(CLAUSES, verdicts) if one.id == name)


def test_a_clause_without_evidence_is_unproven() -> None:
    assert [one.verdict for one in clause_table(CLAUSES, [])] == ["unproven"] * 4


def test_a_clause_that_a_scenario_lists_but_never_states_is_unproven() -> None:
    assert row("D2", run("s", ("D1", True), clauses=["D1", "D2"])).verdict == "unproven"


def test_evidence_is_counted_by_scenario_host_and_check() -> None:
    found = row(
        "D1",
        run("s", ("D1", True)),
        run("s", ("D1", True), ("D1", True), host="socket"),
        run("t", ("D1", True)),
        run("c", ("D1", True), host="check"),
    )

    assert (found.verdict, found.scenarios, found.socket, found.checks, found.statements) == ("pass", 2, 1, 1, 5)


def test_a_failure_falls_on_its_own_clause_alone() -> None:
    verdicts = [run("s", ("D1", True), ("D2", False))]

    assert [one.verdict for one in clause_table(CLAUSES, verdicts)][:2] == ["pass", "fail"]


def test_a_failure_names_its_run_and_level() -> None:
    found = row("D1", run("s", ("D1", False), host="socket"))

    assert [(one.scenario, one.host, one.level) for one in found.failed] == [("s", "socket", "must")]
    assert found.failed_level == "must"


def test_a_must_that_fails_in_a_should_scenario_is_a_warning_and_the_clause_holds() -> None:
    verdicts = [run("s", ("D1", True)), run("t", ("D1", False), level="should")]
    found = row("D1", *verdicts)

    assert (found.verdict, found.failed, found.failed_level) == ("pass", [], None)
    assert [(one.scenario, one.level) for one in found.warnings] == [("t", "should")]


def test_a_must_that_fails_in_a_should_scenario_fails_under_strict() -> None:
    [found, *_] = clause_table(CLAUSES, [run("t", ("D1", False), level="should")], strict=True)

    assert (found.verdict, found.failed_level, found.warnings) == ("fail", "should", [])


def test_a_failure_as_heavy_as_the_clause_fails_it_beside_a_warning() -> None:
    found = row("D1", run("s", ("D1", False)), run("t", ("D1", False), level="should"))

    assert (found.verdict, found.failed_level, len(found.failed), len(found.warnings)) == ("fail", "must", 1, 1)


def test_the_lighter_of_two_levels_counts() -> None:
    levels = get_args(Level)

    assert [[effective_level(run, one) for one in levels] for run in levels] == [
        ["must", "should", "hazard"],
        ["should", "should", "hazard"],
        ["hazard", "hazard", "hazard"],
    ]


def test_a_hazard_is_shown_with_its_greatest_cost_and_never_as_a_failure() -> None:
    found = row(
        "H1",
        run("a", ("H1", True), level="hazard", verdict="hazard", cost_ms=100),
        run("b", ("H1", True), level="hazard", verdict="hazard", cost_ms=900),
        run("c", ("H1", False), level="hazard", verdict="avoided"),
    )

    assert (found.verdict, found.cost_ms, found.avoided, found.failed) == ("hazard", 900, 1, [])


def test_a_hazard_that_never_occurred_passes() -> None:
    assert row("H1", run("c", ("H1", False), level="hazard", verdict="avoided")).verdict == "pass"


def test_a_hazard_scenario_is_no_evidence_of_a_must() -> None:
    verdict = run("a", ("H1", True), ("D1", False), level="hazard", verdict="avoided")

    assert row("D1", verdict).verdict == "unproven"


def test_an_errored_run_makes_its_clauses_errored_but_does_not_hide_a_failure() -> None:
    broken = run("s", clauses=["D1", "D2"], verdict="errored", errored="x")

    assert row("D1", broken, run("t", ("D1", True))).verdict == "errored"
    assert row("D1", broken, run("t", ("D1", False))).verdict == "fail"
    assert row("D1", broken).errored == ["s (memory)"]


def test_a_clause_whose_only_check_was_skipped_is_skipped() -> None:
    skipped = run("c", host="check", clauses=["D1"], verdict="skipped", why="mypy is missing")

    assert row("D1", skipped).verdict == "skipped"
    assert row("D1", skipped, run("s", ("D1", True))).verdict == "pass"
    assert row("D1", skipped).skipped == ["c: mypy is missing"]


ALL_PASS = [
    run("s", ("D1", True), ("D2", True), ("W1", True)),
    run("h", ("H1", True), level="hazard", verdict="hazard", cost_ms=1),
]


def code(*verdicts: RunVerdict, **options: bool) -> int:
    return exit_code(outcome(clause_table(CLAUSES, verdicts), verdicts, **options))


def test_a_run_in_which_all_was_skipped_holds_nothing() -> None:
    skipped = run("s", clauses=["D1"], verdict="skipped", why="the SUT does not declare host")

    assert code(skipped, whole=False) == 1
    assert code(skipped, run("t", ("D1", True)), whole=False) == 0


def test_everything_proved_is_zero() -> None:
    assert code(*ALL_PASS) == 0


def test_a_must_that_fails_is_one() -> None:
    assert code(*ALL_PASS, run("t", ("D1", False))) == 1


def test_a_should_that_fails_is_one_only_under_strict() -> None:
    bad = run("t", ("W1", False))

    assert (code(*ALL_PASS, bad), code(*ALL_PASS, bad, strict=True)) == (0, 1)


def test_a_warning_is_one_only_under_strict() -> None:
    bad = run("t", ("D1", False), level="should")

    assert (code(*ALL_PASS, bad), code(*ALL_PASS, bad, strict=True)) == (0, 1)


def test_an_unproven_must_fails_a_whole_run_and_not_a_filtered_one() -> None:
    verdicts = [run("s", ("D1", True), ("W1", True)), ALL_PASS[1]]

    assert (code(*verdicts), code(*verdicts, whole=False)) == (1, 0)


def test_an_unproven_should_fails_only_under_strict() -> None:
    verdicts = [run("s", ("D1", True), ("D2", True)), ALL_PASS[1]]

    assert (code(*verdicts), code(*verdicts, strict=True)) == (0, 1)


def test_something_that_broke_is_three_unless_a_must_fails_too() -> None:
    broken = run("b", clauses=["D1"], verdict="errored", errored="x")

    assert code(*ALL_PASS, broken) == 3
    assert code(*ALL_PASS, broken, run("t", ("D1", False))) == 1
    assert code(*ALL_PASS, broken, run("t", ("W1", False))) == 3


def test_what_was_skipped_fails_only_when_it_is_required() -> None:
    skipped = run("c", host="check", clauses=["D1"], verdict="skipped", why="no mypy")

    assert (code(*ALL_PASS, skipped), code(*ALL_PASS, skipped, require=True)) == (0, 1)


def test_totals_count_runs_checks_and_words() -> None:
    verdicts = [*ALL_PASS, run("s", ("D1", True), host="socket", real_ms=5), run("c", ("D1", True), host="check")]
    counted = totals(clause_table(CLAUSES, verdicts), verdicts)

    assert (counted.scenarios, counted.runs, counted.checks, counted.statements, counted.real_ms) == (2, 3, 1, 6, 5)
    assert counted.run_verdicts == {"pass": 3, "hazard": 1}
    assert counted.clauses == {"pass": 3, "hazard": 1}
