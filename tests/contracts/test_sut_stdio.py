"""A driver over standard input and output: what it says is taken, and what it does to itself costs its own run only."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from contracts.judging.judge import judge
from contracts.records import RunRecord, RunVerdict
from contracts.running.one_run import run_scenario
from contracts.running.processes import processes
from contracts.scenario import Expect, Scenario, Step
from contracts.sut import stdio
from contracts.sut.base import OwnProcess, SutSetup, SutUnstartedError
from contracts.sut.command import Command
from contracts.sut.introduction import BadDriverError, NoDriverError, introduce
from contracts.sut.stdio import StdioFactory, StdioSut

SUT = Path(__file__).parents[1] / "sut" / "python"
PROMPT_S = 12.0
"""What every run here has to come back in, however wrong the driver is; its own sleeps are of a minute."""

ASKS = Scenario(
    id="asks",
    why="One question.",
    clauses=["D2"],
    hosts=["socket"],
    drive=[Step(do="host.available", returns={"available": True})],
)
ASKS_TWICE = Scenario(
    id="asks-twice",
    why="Two questions.",
    clauses=["D2"],
    hosts=["socket"],
    drive=[Step(do="host.available", raises={"code": {"any": True}}), Step(do="host.available")],
)
LEAVES = Scenario(
    id="leaves",
    why="Nothing is left.",
    clauses=["D3"],
    hosts=["socket"],
    drive=ASKS.drive,
    expect=[Expect(left="nothing")],
)


MARK = f"{os.getpid()}"
"""Tells the processes of this test process from those of others that run at the same time."""


def factory(script: str, *words: str) -> StdioFactory:
    return StdioFactory(Command((sys.executable, str(SUT / script), *words), str(SUT), f"python {script}"))


def run(how: str, scenario: Scenario = ASKS) -> tuple[RunRecord, RunVerdict]:
    begun = time.monotonic()
    record = run_scenario(scenario, "socket", factory("broken.py", how, MARK))
    assert time.monotonic() - begun < PROMPT_S
    return record, judge(scenario, record)


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"INITIALIZE_S": 1.5, "CALL_S": 1.0, "LEAVE_S": 0.3, "TERM_S": 0.3, "LINGER_S": 0.2}.items():
        monkeypatch.setattr(stdio, name, seconds)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    yield
    commands = [one.command for one in processes()]
    assert [one for one in commands if one.endswith(f" {MARK}") or one == f"sleep 307.{MARK}"] == []


@pytest.mark.usefixtures("nothing_left")
class TestWhatADriverDoesToItself:
    @pytest.mark.parametrize(
        ("how", "words"),
        [
            ("hangs", "gave no answer to host.available within 1 s"),
            ("dies", "ended with exit code 3; its error output ends: a last word"),
            ("killed", "ended with signal SIGKILL"),
            ("closes-its-output", "closed its standard output"),
            ("noise", "no JSON on its standard output: 'debug: about to answer'"),
            ("giant-line", "wrote a line of more than 8388608 bytes"),
            ("unknown-id", "which is not the id of an open call"),
            ("asks", "made a request of its own"),
            ("no-code", "an error without data.code"),
            ("not-implemented", "the driver has no call host.available: no"),
            ("wrong-type", "not as agreed: Expected `bool`, got `str` - at `$.available`"),
            ("no-object", "a result that is no object"),
            ("hangs-at-once", "gave no answer to initialize within 1.5 s"),
            ("dies-at-once", "ended with exit code 7; its error output ends: no such module"),
            ("no-json", "no JSON on its standard output: 'Welcome to my supervisor!'"),
            ("wrong-version", "speaks version 9 of the protocol, and this suite version 1"),
            ("initialize-fails", "answered initialize with an error: no licence"),
        ],
    )
    def test_fails_its_scenario_in_words_that_say_what_it_did(self, how: str, words: str) -> None:
        record, verdict = run(how)
        assert (record.errored, verdict.verdict) == (None, "fail")
        [finding] = verdict.findings
        assert words in finding.got["message"]

    def test_is_no_failure_that_a_step_could_have_meant(self) -> None:
        _, verdict = run("dies", ASKS_TWICE)
        assert [finding.ok for finding in verdict.findings] == [False, False]

    def test_is_told_by_every_later_call_at_once(self) -> None:
        record, _ = run("hangs", ASKS_TWICE)
        assert [step.raised and step.raised["type"] for step in record.steps] == ["SutBrokenError"] * 2
        assert record.steps[1].took_ms is not None
        assert record.steps[1].took_ms < 500

    def test_is_not_waited_for_by_a_step_that_counts_its_calls(self) -> None:
        step = Step(do="until", args={"calls": "terminal.get", "count": 3})
        record, verdict = run("dies", msgspec.structs.replace(ASKS, drive=[*ASKS.drive, step]))
        assert [finding.ok for finding in verdict.findings] == [False, False]
        assert record.steps[1].raised is not None
        assert "broke before it made these calls" in record.steps[1].raised["message"]

    @pytest.mark.parametrize("how", ["floods", "notes"])
    def test_is_no_fault_where_the_protocol_allows_it(self, how: str) -> None:
        assert run(how)[1].verdict == "pass"

    def test_an_answer_too_many_after_the_last_call_is_laid_on_it(self) -> None:
        record, verdict = run("answers-twice")
        assert (record.errored, verdict.verdict) == (None, "fail")
        [finding] = verdict.findings
        assert finding.got["message"] == "afterwards the driver answered 2, which is not the id of an open call"

    def test_an_answer_too_many_is_seen_by_the_next_call(self) -> None:
        record, _ = run("answers-twice", ASKS_TWICE)
        assert record.steps[1].raised is not None


@pytest.mark.usefixtures("nothing_left")
class TestWhatADriverLeaves:
    @pytest.mark.parametrize("how", ["leaves-a-process", "leaves-a-stranger", "leaves-a-daemon"])
    def test_a_process_is_seen_and_ended(self, how: str) -> None:
        record, verdict = run(how, LEAVES)
        assert verdict.verdict == "fail"
        assert record.aftermath.left == [f"process still runs: sleep 307.{MARK}"]

    @pytest.mark.parametrize("how", ["stays", "deaf-to-signals"])
    def test_a_driver_that_does_not_leave_is_ended_and_that_is_told(self, how: str) -> None:
        record, _ = run(how, LEAVES)
        assert record.aftermath.left == ["the driver did not leave at the end of its input, and was ended"]

    def test_a_driver_that_is_cut_short_as_it_leaves_has_not_left_in_order(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stdio, "LEAVE_S", 60.0)
        record, verdict = run("stays", msgspec.structs.replace(LEAVES, limit_ms=2_500))
        assert verdict.verdict == "fail"
        assert record.aftermath.left == ["it had not ended when the run was over its limit of 2500 ms"]

    def test_a_driver_that_leaves_in_order_leaves_nothing(self) -> None:
        assert run("good", LEAVES)[1].verdict == "pass"


def test_a_driver_is_a_system_under_test_in_a_process_of_its_own() -> None:
    assert isinstance(factory("broken.py", "good", MARK)(SutSetup(env={})), OwnProcess)


def test_a_program_that_cannot_be_started_breaks_the_run_and_fails_nobody(tmp_path: Path) -> None:
    program = tmp_path / "no-program"
    program.write_text("neither a script nor a binary")
    program.chmod(0o755)
    none = StdioFactory(Command((str(program),), str(tmp_path), "./no-program"))
    record = run_scenario(ASKS, "socket", none)
    assert record.errored == "./no-program: cannot be started: Exec format error"
    with pytest.raises(NoDriverError, match="cannot be started"):
        introduce(none)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("wrong-version", "version 9"),
        ("no-json", "no JSON"),
        ("dies-at-once", "exit code 7"),
        ("no-features", "missing required field `features`"),
    ],
)
def test_an_introduction_that_fails_is_one_sentence(how: str, words: str) -> None:
    with pytest.raises(BadDriverError, match=words):
        introduce(factory("broken.py", how, MARK))


def test_an_introduction_says_who_it_is() -> None:
    declared = introduce(factory("driver.py"))
    assert (declared.name, declared.language) == ("legion_terminal", "Python")
    assert {"terminal", "verdict", "cancel"} <= set(declared.features)


async def with_sut(sut: StdioSut, *calls: tuple[str, dict[str, object]]) -> list[object]:
    try:
        return list(
            await asyncio.gather(*(sut.call(method, params) for method, params in calls), return_exceptions=True)
        )
    finally:
        await sut.close()
        await sut.close()


def test_calls_run_side_by_side_and_each_gets_its_own_answer() -> None:
    inside = {"HC_TERMINAL_SOCKET": "/run/x.sock", "HC_TERMINAL_ID": "t1"}
    sut = factory("driver.py")(SutSetup(env={"PATH": os.defpath}))
    asks: list[tuple[str, dict[str, object]]] = [
        ("host.available", {"env": inside if number % 2 else {}}) for number in range(20)
    ]
    answers = asyncio.run(with_sut(sut, *asks))
    assert answers == [{"available": bool(number % 2)} for number in range(20)]
    assert sut.left == []


def test_a_driver_lives_in_exactly_the_environment_of_its_world() -> None:
    sut = factory("driver.py")(SutSetup(env={"HC_TERMINAL_SOCKET": "/run/x.sock", "HC_TERMINAL_ID": "t1"}))
    os.environ["HC_TERMINAL_ID"] = ""
    try:
        assert asyncio.run(with_sut(sut, ("host.available", {}))) == [{"available": True}]
    finally:
        del os.environ["HC_TERMINAL_ID"]


def test_a_program_that_is_not_there_is_no_fault_of_the_system() -> None:
    sut = StdioFactory(Command(("/no/such/program",), "/", "x"))(SutSetup(env={}))
    [error] = asyncio.run(with_sut(sut, ("host.available", {})))
    assert isinstance(error, SutUnstartedError)


def test_a_program_that_speaks_before_it_is_known_never_costs_the_suite_its_own_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words").write_text("Welcome!\n" * 3)
    signalled: list[int] = []
    real = os.killpg

    def noted(group: int, number: int) -> None:
        signalled.append(group)
        if group:
            real(group, number)

    monkeypatch.setattr(os, "killpg", noted)
    cat = Command(("/bin/cat", str(tmp_path / "words")), str(tmp_path), "cat words")

    for _ in range(10):
        with pytest.raises(BadDriverError, match=r"no JSON on its standard output|closed|ended"):
            introduce(StdioFactory(cat))

    assert 0 not in signalled
