"""The measured exit table: what is read from a run, when a row differs, and what the command says and ends with."""

import json

import pytest
from click.testing import CliRunner

from contracts.cli import main
from contracts.judging.exit_rows import EVENTS, as_json, in_words, measured
from contracts.loading import SCENARIOS, load_all
from contracts.records import RunRecord, RunVerdict, StepRecord
from contracts.running.one_run import run_scenario
from legion_terminal.rpc import exit_table

SETTLED = EVENTS[0]
RETIRED = next(event for event in EVENTS if event.node == "retired")
GOOD = {"settled": True, "abnormal": False, "aborted": False, "node": "settled"}


def run_of(returned: dict[str, object] | None, **rest: object) -> RunRecord:
    step = StepRecord(index=1, do="wait", returned=returned)
    return RunRecord(scenario=SETTLED.scenario, host="socket", steps=[step], **rest)  # type: ignore[arg-type]


def test_each_event_has_a_scenario_of_its_own() -> None:
    known = {one.id for one in load_all([SCENARIOS / "headless"]).scenarios}

    assert {event.scenario for event in EVENTS} <= known
    assert len({event.scenario for event in EVENTS}) == len(EVENTS)


def test_the_document_knows_the_nodes_of_the_supervisor() -> None:
    assert {event.node for event in EVENTS} == {row.node for row in exit_table.EXIT_ROWS.values()}


def test_a_row_holds_when_the_wait_gave_what_the_document_says() -> None:
    [row] = measured([run_of(GOOD)], [SETTLED])

    assert row.holds
    assert as_json([row], "mine")["rows"][0]["measured"]["settled"] is True


@pytest.mark.parametrize(
    ("change", "field"),
    [({"settled": False}, "settled"), ({"node": "failed"}, "node"), ({"exitCode": 0}, "exitCode")],
)
def test_a_row_that_differs_names_the_field(change: dict[str, object], field: str) -> None:
    [row] = measured([run_of(GOOD | change)], [SETTLED])

    assert (row.holds, row.differs) == (False, (field,))


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (run_of(None), "no wait came back"),
        (run_of(None, errored="the run broke"), "the run broke"),
        (RunVerdict(scenario=SETTLED.scenario, host="socket", verdict="skipped", why="not declared"), "not declared"),
    ],
)
def test_a_row_without_a_result_does_not_hold_and_says_why(result: RunRecord | RunVerdict, says: str) -> None:
    [row] = measured([result], [SETTLED])

    assert (row.holds, row.measured, row.why) == (False, None, says)
    assert measured([], [SETTLED])[0].why == f"{SETTLED.scenario} was not run"


def test_a_result_is_shown_as_the_document_writes_it() -> None:
    words = in_words({"settled": False, "abnormal": True, "reason": "gone", "signal": "SIGKILL", "node": "failed"})

    assert words == 'settled:false, abnormal:true, reason:"gone", signal:SIGKILL'


def test_a_planted_row_differs_where_it_was_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(exit_table.EXIT_ROWS, "exit-retiring", exit_table.EXIT_ROWS["exit-other"])
    [scenario] = load_all([SCENARIOS / "headless" / f"{RETIRED.scenario}.toml"]).scenarios

    [row] = measured([run_scenario(scenario, "socket")], [RETIRED])

    assert row.differs == ("abnormal", "reason", "node")


def test_the_command_measures_every_row_and_ends_with_zero() -> None:
    done = CliRunner().invoke(main, ["table", "headless", "--format", "json"])

    told = json.loads(done.output)
    assert (done.exit_code, told["schema"], told["holds"]) == (0, 1, True)
    assert [row["event"] for row in told["rows"]] == [event.name for event in EVENTS]


def test_a_table_that_nobody_knows_is_bad_usage() -> None:
    assert CliRunner().invoke(main, ["table", "bodies"]).exit_code == 2
