"""Recordings become scenarios: faithful, repeatable, with outcomes that D8 gives and the supervisor meets."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.clauses import load_clauses
from contracts.importing import timelines as importing
from contracts.importing.timelines import RecordingError, import_recording, render, write
from contracts.judging.judge import judge
from contracts.loading import load_scenario
from contracts.running.one_run import run_scenario
from contracts.scenario import Scenario, Step

RECORDINGS = Path(importing.__file__).parents[1] / "recordings"
TIMELINES = RECORDINGS / "osc7501-timelines.json"
COMMITTED = Path(importing.__file__).parents[1] / "scenarios" / "recorded"
QUERY = [0.1, "osc7501", "?"]


@pytest.fixture(scope="module")
def imported() -> dict[str, Scenario]:
    return {scenario.id: scenario for scenario in import_recording(TIMELINES)}


def one(tmp_path: Path, *events: list[Any], exit_code: int = 0) -> Scenario:
    """The scenario of one made-up run."""
    path = tmp_path / "timelines.json"
    path.write_text(json.dumps({"made-up": {"events": list(events), "exit": exit_code}}))
    (scenario,) = import_recording(path)
    return scenario


def said(at: float, state: str, extra: str = ":app=pi") -> list[Any]:
    return [at, "osc7501", f"state={state}{extra}"]


def typed(at: float, keys: str) -> list[Any]:
    return [at, "in", keys]


def calls(scenario: Scenario) -> list[str]:
    return [step.do for step in scenario.drive]


def waits(scenario: Scenario) -> list[Step]:
    return [step for step in scenario.drive if step.do == "wait"]


def returned(step: Step) -> dict[str, Any]:
    assert step.returns is not None
    return step.returns


# the committed files


def test_every_recorded_run_is_a_scenario(imported: dict[str, Scenario]) -> None:
    assert set(imported) == {f"recorded-{name}" for name in json.loads(TIMELINES.read_text())}


def test_importing_again_changes_no_committed_byte(tmp_path: Path) -> None:
    files = write(import_recording(TIMELINES), tmp_path)
    assert {file.name: file.read_bytes() for file in files} == {
        file.name: file.read_bytes() for file in COMMITTED.glob("*.toml")
    }


def test_every_written_file_is_a_good_scenario_and_reads_back_the_same(
    tmp_path: Path, imported: dict[str, Scenario]
) -> None:
    clauses = load_clauses()
    for file in write(list(imported.values()), tmp_path / "new" / "folder"):
        assert load_scenario(file, clauses) == imported[file.stem]


def test_the_written_text_says_where_it_comes_from(imported: dict[str, Scenario]) -> None:
    text = render(imported["recorded-second-turn"])
    assert "import-recording" in text.splitlines()[0]
    assert tomllib.loads(text)["source"] == "osc7501-timelines.json: second-turn"


@pytest.mark.parametrize("name", sorted(json.loads(TIMELINES.read_text())))
def test_the_supervisor_meets_what_d8_makes_of_the_recording(imported: dict[str, Scenario], name: str) -> None:
    scenario = imported[f"recorded-{name}"]
    verdict = judge(scenario, run_scenario(scenario, "memory"))
    assert verdict.verdict == "pass", [finding for finding in verdict.findings if not finding.ok]


# what a recording says


def test_states_become_steps_at_their_times(tmp_path: Path) -> None:
    steps = one(tmp_path, QUERY, said(0.502, "idle"), said(0.6, "working"), said(0.9, "done")).world.agent[0].step
    assert [(step.at_ms, step.turn, step.status) for step in steps[:3]] == [
        (502, 0, "idle"),
        (600, 1, "working"),
        (900, 1, "done"),
    ]


def test_work_after_a_dialog_is_the_same_turn(tmp_path: Path) -> None:
    scenario = one(
        tmp_path,
        said(0.1, "working"),
        said(0.2, "blocked"),
        said(0.3, "working"),
        said(0.4, "done"),
        said(0.5, "working"),
    )
    assert [step.turn for step in scenario.world.agent[0].step[:-1]] == [1, 1, 1, 1, 2]


def test_a_report_keeps_its_kind_message_and_program(tmp_path: Path) -> None:
    steps = one(tmp_path, said(0.2, "blocked", ":app=other:kind=question:msg=V2hpY2g/")).world.agent[0].step
    assert (steps[0].kind, steps[0].msg, steps[0].app) == ("question", "Which?", "other")


def test_clear_shows_no_status(tmp_path: Path) -> None:
    steps = one(tmp_path, said(0.2, "idle"), said(0.9, "clear", "")).world.agent[0].step
    assert steps[1].status == "none"


@pytest.mark.parametrize(
    ("code", "code_or_signal"),
    [(0, {"exitCode": 0}), (1, {"exitCode": 1}), (-15, {"signal": "SIGTERM"}), (-9, {"signal": "SIGKILL"})],
)
def test_the_exit_becomes_the_end(tmp_path: Path, code: int, code_or_signal: dict[str, Any]) -> None:
    scenario = one(tmp_path, QUERY, exit_code=code)
    assert returned(waits(scenario)[-1]) == {"settled": True, **code_or_signal}


def test_a_run_that_reported_nothing_is_waited_for_to_its_end(tmp_path: Path) -> None:
    scenario = one(tmp_path, exit_code=1)
    assert calls(scenario) == ["spawn", "wait"]
    assert waits(scenario)[0].at == {"min": importing.END_AFTER_MS, "max": importing.END_AFTER_MS + importing.POLL_MS}


# whose keys they were


def test_answers_of_the_host_are_nobodys_keys(tmp_path: Path) -> None:
    scenario = one(
        tmp_path, QUERY, typed(0.1, "\x1b]7501;?\x1b\\"), typed(0.1, "\x1b[?62;22c"), said(0.2, "idle"),
        said(0.3, "working"), typed(0.5, "\x1b[?7u"), said(1.3, "done"), said(3, "clear", ""),
    )  # fmt: skip
    assert calls(scenario) == ["spawn", "wait", "wait"]


@pytest.mark.parametrize("keys", ["\x1b", "\x1b[27u"])
def test_a_lone_esc_is_an_abort_and_its_effect_hangs_on_the_call(tmp_path: Path, keys: str) -> None:
    scenario = one(tmp_path, said(0.1, "working"), typed(1, keys), said(1.02, "idle"), said(3, "clear", ""))
    assert calls(scenario) == ["spawn", "wait", "abort", "wait", "wait"]
    steps = scenario.world.agent[0].step
    assert [(step.on_call, step.after_ms, step.status) for step in steps[1:4]] == [
        ("terminal.interrupt", None, None),
        (None, 20, "idle"),
        (None, 1_980, "none"),
    ]
    assert scenario.world.agent[0].interrupt == "no-effect", "only the recorded effect happens"


def test_a_second_esc_shortly_after_is_a_persons(tmp_path: Path) -> None:
    scenario = one(
        tmp_path, said(0.1, "working"), typed(1, "\x1b"), typed(1.6, "\x1b"), said(1.7, "idle"), said(4, "clear", "")
    )
    assert calls(scenario).count("abort") == 1


def test_an_esc_before_the_first_report_is_a_persons(tmp_path: Path) -> None:
    assert "abort" not in calls(one(tmp_path, typed(0.2, "\x1b"), said(0.4, "working"), said(4, "clear", "")))


@pytest.mark.parametrize("pieces", [["go on\r"], ["go on", "\r"]])
def test_text_and_enter_is_one_steer(tmp_path: Path, pieces: list[str]) -> None:
    keys = [typed(2 + at / 10, piece) for at, piece in enumerate(pieces)]
    scenario = one(
        tmp_path,
        said(0.1, "working"),
        said(1, "done"),
        *keys,
        said(2.2, "working"),
        said(3, "done"),
        said(5, "clear", ""),
    )
    (steer,) = [step for step in scenario.drive if step.do == "steer"]
    assert steer.args == {"text": "go on"}
    assert steer.at_ms == 2_000 + 100 * (len(pieces) - 1)
    assert steer.returns == {"promptTurn": 1}
    assert scenario.world.agent[0].step[2].on_call == "terminal.send"


def test_a_steer_into_a_running_turn_starts_no_turn(tmp_path: Path) -> None:
    scenario = one(tmp_path, said(0.1, "working"), typed(1, "also this\r"), said(2, "done"), said(4, "clear", ""))
    steps = scenario.world.agent[0].step
    assert [(step.on_call, step.after_ms, step.turn, step.status) for step in steps[1:3]] == [
        ("terminal.send", None, None, None),
        (None, 1_000, 1, "done"),
    ]
    assert returned(waits(scenario)[1])["settled"] is False, "the remembered turn was raised to 1"


def test_text_into_a_dialog_must_be_refused_and_its_effect_stays_timed(tmp_path: Path) -> None:
    scenario = one(
        tmp_path, said(0.1, "working"), said(0.2, "blocked"), typed(1, "yes\r"), said(1.01, "working"), said(2, "done"),
        said(4, "clear", ""),
    )  # fmt: skip
    (steer,) = [step for step in scenario.drive if step.do == "steer"]
    assert (steer.raises, steer.clause) == ({"code": "blocked"}, "D10-blocked")
    assert all(step.on_call is None for step in scenario.world.agent[0].step)


@pytest.mark.parametrize(
    "keys", ["\x03", "\x04", "\x1a", "\r", "/quit\r", "\x1b[200~pasted\x1b[201~", "a\nb\r", "no enter"]
)
def test_other_keys_are_a_persons(tmp_path: Path, keys: str) -> None:
    scenario = one(
        tmp_path, said(0.1, "working"), said(1, "done"), typed(2, keys), said(2.1, "working"), said(4, "clear", "")
    )
    assert calls(scenario) == ["spawn", "wait", "wait"]
    assert scenario.world.agent[0].step[2].at_ms == 2_100


def test_text_before_the_first_turn_is_a_persons(tmp_path: Path) -> None:
    scenario = one(
        tmp_path, said(0.1, "idle"), typed(1, "hello\r"), said(1.1, "working"), said(2, "done"), said(4, "clear", "")
    )
    assert "steer" not in calls(scenario)


# what D8 makes of it


def test_a_wait_settles_at_the_first_poll_that_shows_done(tmp_path: Path) -> None:
    scenario = one(tmp_path, said(0.1, "working"), said(0.6, "done"), said(3, "clear", ""))
    assert returned(waits(scenario)[0]) == {"settled": True, "lastTurn": 1, "lastStatus": "done"}
    assert waits(scenario)[0].at == {"min": 600, "max": 1_000}


@pytest.mark.parametrize("state", ["idle", "blocked", "error"])
def test_other_states_are_a_timeout_that_shows_them(tmp_path: Path, state: str) -> None:
    scenario = one(tmp_path, said(0.1, "working"), said(0.6, state), said(3, "clear", ""))
    assert returned(waits(scenario)[0]) == {
        "settled": False, "abnormal": False, "reason": "timeout", "lastStatus": state, "lastTurn": 1,
    }  # fmt: skip


def test_a_done_that_no_poll_can_see_settles_nothing(tmp_path: Path) -> None:
    scenario = one(tmp_path, said(0.1, "working"), said(0.51, "done"), said(0.6, "working"), said(3, "clear", ""))
    assert returned(waits(scenario)[0])["settled"] is False


def test_a_done_at_the_very_deadline_is_left_open(tmp_path: Path) -> None:
    scenario = one(tmp_path, said(0.1, "working"), said(1.1, "done"), said(1.2, "clear", ""))
    assert waits(scenario)[0].returns is None


STATES = st.sampled_from(["idle", "working", "blocked", "done", "error", "clear"])
KEYS = st.sampled_from(["\x1b", "go on\r", "\x03", "\r", "/quit\r"])
EVENTS = st.lists(st.tuples(st.integers(1, 1_500), st.one_of(STATES, KEYS)), max_size=12)
BOOT_MS = 300


@settings(max_examples=40)
@given(events=EVENTS, exit_code=st.sampled_from([0, 1, 143, -9]))
def test_rule_and_supervisor_agree_on_any_recording(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[int, str]], exit_code: int
) -> None:
    """Two ways to the same answer: the importer's reading of D8, and the supervisor on the fake core."""
    now, recorded = BOOT_MS, []
    for gap, what in events:
        now += gap
        word = what.isalpha()
        recorded.append(
            said(now / 1000, what, "" if what == "clear" else ":app=pi") if word else typed(now / 1000, what)
        )
    scenario = one(tmp_path_factory.mktemp("any"), *recorded, exit_code=exit_code)
    verdict = judge(scenario, run_scenario(scenario, "memory"))
    assert verdict.verdict == "pass", [finding for finding in verdict.findings if not finding.ok]


# bad files

GOOD: dict[str, Any] = {"events": [[0.1, "osc7501", "?"]], "exit": 0}


@pytest.mark.parametrize(
    ("document", "key", "words"),
    [
        ([], "", "expected an object"),
        ({}, "", "expected an object"),
        ({"Up": GOOD}, "Up", "name"),
        ({"../x": GOOD}, "../x", "name"),
        ({"a": 5}, "a", "`events` and `exit`"),
        ({"a": {"events": []}}, "a", "`events` and `exit`"),
        ({"a": {**GOOD, "more": 1}}, "a", "`events` and `exit`"),
        ({"a": {**GOOD, "exit": "0"}}, "a.exit", "exit code"),
        ({"a": {**GOOD, "exit": True}}, "a.exit", "exit code"),
        ({"a": {**GOOD, "exit": 256}}, "a.exit", "exit code"),
        ({"a": {**GOOD, "exit": -999}}, "a.exit", "signal number"),
        ({"a": {**GOOD, "events": {}}}, "a.events", "list"),
        ({"good": GOOD, "a": {**GOOD, "events": [[1, "in"]]}}, "a.events[0]", "[seconds, kind, text]"),
        ({"a": {**GOOD, "events": [["1", "in", ""]]}}, "a.events[0]", "seconds"),
        ({"a": {**GOOD, "events": [[-1, "in", ""]]}}, "a.events[0]", "seconds"),
        ({"a": {**GOOD, "events": [[1, "out", ""]]}}, "a.events[0]", "kind"),
        ({"a": {**GOOD, "events": [[1, "in", 5]]}}, "a.events[0]", "text"),
        ({"a": {**GOOD, "events": [[2, "in", ""], [1, "in", ""]]}}, "a.events[1]", "earlier"),
        ({"a": {**GOOD, "events": [[1, "osc7501", "app=pi"]]}}, "a.events[0]", "unknown state"),
        ({"a": {**GOOD, "events": [[1, "osc7501", "state=busy"]]}}, "a.events[0]", "busy"),
        ({"a": {**GOOD, "events": [[1, "osc7501", "state=idle:msg=%%"]]}}, "a.events[0]", "base64"),
    ],
)  # fmt: skip
def test_a_bad_recording_is_one_error_with_file_and_key(tmp_path: Path, document: Any, key: str, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    with pytest.raises(RecordingError) as caught:
        import_recording(path)
    assert (caught.value.path, caught.value.key) == (str(path), key)
    assert words in caught.value.message
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"a": 1, "a": 2}', "given twice"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": {"events": [[NaN, "in", ""]], "exit": 0}}', "seconds"),
    ],
)
def test_a_file_that_is_no_json_is_one_error(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=words):
        import_recording(path)


def test_a_file_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        import_recording(tmp_path / "nowhere.json")


def test_a_folder_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="directory"):
        import_recording(tmp_path)
