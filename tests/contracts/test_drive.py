"""The drive: steps in order, in the background, cancelled, never reached; and what goes wrong in it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from contracts.running.drive import DEFAULT_RUN_ID, Drive, DriveError
from contracts.scenario import Scenario, Step
from contracts.sut.base import SutError
from hc_sim.clock import VirtualTimeError, run_virtual

Answer = Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]


class FakeStage:
    """A world that only takes notes."""

    def __init__(self) -> None:
        self.fills = {"dir": "/d", "cwd": "/d/work", "session": "/d/session-alpha.jsonl"}
        self.moves: list[tuple[Any, ...]] = []
        self._begin = asyncio.get_running_loop().time()

    def now(self) -> int:
        return round((asyncio.get_running_loop().time() - self._begin) * 1_000)

    def session(self, handle: str) -> str:
        return f"/d/session-{handle}.jsonl"

    def fire(self, name: str) -> int:
        self.moves.append(("fire", name))
        return 2

    def write(self, file: str, text: str, *, append: bool) -> None:
        self.moves.append(("write", file, text, append))

    async def calls(self, method: str, count: int) -> None:
        self.moves.append(("until", method, count))

    async def restart(self, ms: int) -> None:
        self.moves.append(("restart", ms))


class FakeSut:
    """A system that answers what it is told, and remembers what it was asked."""

    def __init__(self, **answers: Answer) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._answers = answers

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((method, params))
        if method in self._answers:
            return await self._answers[method](params)
        return {"child": "c1", "name": "lgl-run00001-alpha"} if method == "spawn" else {}

    async def close(self) -> None:
        return None


def driven(*steps: Step, sut: FakeSut | None = None) -> tuple[Drive, FakeStage, FakeSut]:
    """Run steps on virtual time; the drive, its stage and its system afterwards."""
    system = sut or FakeSut()
    scenario = Scenario(id="x", why="x", clauses=["D8"], drive=list(steps))

    async def go() -> tuple[Drive, FakeStage]:
        stage = FakeStage()
        drive = Drive(scenario, stage, system)
        await drive.run()
        return drive, stage

    drive, stage = run_virtual(go())
    return drive, stage, system


async def refuses(_: dict[str, Any]) -> dict[str, Any]:
    raise SutError({"code": "name-taken", "message": "taken"})


async def takes_a_second(_: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(1)
    return {"settled": True}


def test_a_spawn_gets_the_defaults_it_does_not_name() -> None:
    _, _, sut = driven(Step(do="spawn", args={"model": "m"}))

    assert sut.asked == [
        (
            "spawn",
            {
                "handle": "alpha",
                "runId": DEFAULT_RUN_ID,
                "agent": "centurion",
                "worktree": True,
                "task": "do the work",
                "cwd": "/d/work",
                "sessionFile": "/d/session-alpha.jsonl",
                "model": "m",
            },
        )
    ]


def test_what_a_spawn_names_itself_is_kept() -> None:
    given = {"handle": "b", "task": "t", "cwd": "/else", "sessionFile": "/else/s", "worktree": False, "agent": "scout"}
    _, _, sut = driven(Step(do="spawn", args={**given, "runId": "r2"}))

    assert sut.asked[0][1] == {**given, "runId": "r2"}


def test_later_calls_carry_the_token_of_the_child() -> None:
    drive, _, sut = driven(Step(do="spawn", as_="a"), Step(do="retire", child="a"))

    assert sut.asked[1] == ("retire", {"child": "c1"})
    assert drive.children == {"a": "lgl-run00001-alpha"}


def test_placeholders_in_arguments_are_filled_also_with_what_a_spawn_made_known() -> None:
    _, stage, sut = driven(
        Step(do="spawn", as_="a", args={"handle": "odd"}),
        Step(do="steer", child="a", args={"text": "{name} in {dir}, {unknown}"}),
        Step(do="write", args={"file": "{session:a}", "text": "{cwd}"}),
    )

    assert sut.asked[1][1]["text"] == "lgl-run00001-alpha in /d, {unknown}"
    assert stage.moves == [("write", "/d/session-odd.jsonl", "/d/work", False)]


def test_a_step_waits_for_its_time_and_records_when_it_came_back() -> None:
    sut = FakeSut(wait=takes_a_second)
    drive, _, _ = driven(Step(do="spawn", as_="a"), Step(do="wait", child="a", at_ms=500), sut=sut)

    record = drive.records[1]
    assert (record.started_ms, record.at_ms, record.took_ms) == (500, 1_500, 1_000)
    assert record.returned == {"settled": True}


def test_a_time_that_has_passed_delays_nothing() -> None:
    drive, _, _ = driven(Step(do="pause", args={"ms": 900}), Step(do="fire", args={"name": "x"}, at_ms=100))

    assert drive.records[1].started_ms == 900


def test_a_failure_that_the_system_reports_is_a_result() -> None:
    drive, _, _ = driven(Step(do="spawn", as_="a"), sut=FakeSut(spawn=refuses))

    assert drive.records[0].raised == {"code": "name-taken", "message": "taken"}
    assert drive.records[0].returned is None
    assert drive.children == {}


def test_steps_on_a_child_that_was_never_started_are_not_reached_and_the_rest_goes_on() -> None:
    drive, stage, sut = driven(
        Step(do="spawn", as_="a"),
        Step(do="wait", child="a"),
        Step(do="fire", args={"name": "x"}),
        sut=FakeSut(spawn=refuses),
    )

    assert [method for method, _ in sut.asked] == ["spawn"]
    assert (drive.records[1].returned, drive.records[1].raised, drive.records[1].at_ms) == (None, None, None)
    assert stage.moves == [("fire", "x")]


def test_a_background_step_lets_the_next_one_begin_and_join_waits_for_it() -> None:
    drive, _, _ = driven(
        Step(do="spawn", as_="a"),
        Step(do="wait", child="a", as_="w", background=True),
        Step(do="pause", args={"ms": 100}),
        Step(do="join", of=["w"]),
        sut=FakeSut(wait=takes_a_second),
    )

    assert [record.at_ms for record in drive.records] == [0, 1_000, 100, 1_000]
    assert drive.records[3].returned == {"settled": True}


def test_a_background_step_that_nobody_joins_is_waited_for_at_the_end() -> None:
    drive, _, _ = driven(
        Step(do="spawn", as_="a"), Step(do="wait", child="a", background=True), sut=FakeSut(wait=takes_a_second)
    )

    assert drive.records[1].at_ms == 1_000


def test_cancel_calls_off_the_wait_by_its_token() -> None:
    _, _, sut = driven(
        Step(do="spawn", as_="a"),
        Step(do="wait", child="a", as_="w", background=True, args={"timeoutMs": 9}),
        Step(do="cancel", of=["w"]),
    )

    assert sut.asked[1:] == [
        ("wait", {"timeoutMs": 9, "token": "w", "child": "c1"}),
        ("cancel", {"token": "w"}),
    ]


def test_moves_of_the_world_reach_the_stage() -> None:
    drive, stage, _ = driven(
        Step(do="fire", args={"name": "boom"}),
        Step(do="until", args={"calls": "terminal.get", "count": 3}),
        Step(do="write", args={"file": "f", "text": "t", "append": True}),
        Step(do="restart", args={"ms": 5}),
    )

    assert stage.moves == [("fire", "boom"), ("until", "terminal.get", 3), ("write", "f", "t", True), ("restart", 5)]
    assert drive.records[0].returned == {"fired": 2}


def test_an_argument_that_a_step_does_not_have_ends_the_drive() -> None:
    with pytest.raises(DriveError, match="takes no argument 'timeout_ms'; it takes child, timeoutMs, token"):
        driven(Step(do="spawn", as_="a"), Step(do="wait", child="a", args={"timeout_ms": 5}))


def test_an_unknown_step_ends_the_drive() -> None:
    with pytest.raises(DriveError, match="no step 'spwan'"):
        driven(Step(do="spwan"))


@pytest.mark.parametrize(
    "error", [TypeError("not a number"), TimeoutError("late"), asyncio.CancelledError("by itself")]
)
def test_an_exception_that_the_system_lets_out_is_on_record_at_its_step(error: BaseException) -> None:
    async def breaks(_: dict[str, Any]) -> dict[str, Any]:
        raise error

    drive, _, _ = driven(Step(do="spawn", as_="a"), Step(do="status", child="a"), sut=FakeSut(status=breaks))

    assert drive.records[1].raised == {"code": "unexpected", "message": str(error), "type": type(error).__name__}


def test_an_exception_in_the_background_is_on_record_too() -> None:
    async def breaks(_: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.5)
        raise KeyError("x")

    steps = (Step(do="spawn", as_="a"), Step(do="wait", child="a", as_="w", background=True))
    drive, _, _ = driven(*steps, Step(do="join", of=["w"]), sut=FakeSut(wait=breaks))

    assert (drive.records[1].raised or {}).get("type") == "KeyError"


def test_a_clock_that_refuses_ends_the_drive() -> None:
    async def breaks(_: dict[str, Any]) -> dict[str, Any]:
        raise VirtualTimeError("no process here")

    with pytest.raises(DriveError, match=r"step 0 \(spawn\) broke with VirtualTimeError: no process here"):
        driven(Step(do="spawn"), sut=FakeSut(spawn=breaks))


def test_a_result_without_its_child_ends_the_drive() -> None:
    async def empty(_: dict[str, Any]) -> dict[str, Any]:
        return {}

    with pytest.raises(DriveError, match=r"step 0 \(spawn\) broke with KeyError"):
        driven(Step(do="spawn"), sut=FakeSut(spawn=empty))


def test_a_drive_that_is_cut_short_says_what_had_not_come_back() -> None:
    async def go() -> Drive:
        sut = FakeSut(wait=takes_a_second)
        scenario = Scenario(
            id="x", why="x", clauses=["D8"], drive=[Step(do="spawn", as_="a"), Step(do="wait", child="a")]
        )
        drive = Drive(scenario, FakeStage(), sut)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(drive.run(), 0.3)
        return drive

    drive = run_virtual(go())

    assert drive.waiting() == "step 1 (wait)"
    assert [record.returned is None for record in drive.records] == [False, True]


def test_no_background_task_outlives_a_drive_that_failed() -> None:
    async def go() -> int:
        scenario = Scenario(
            id="x",
            why="x",
            clauses=["D8"],
            drive=[
                Step(do="spawn", as_="a"),
                Step(do="wait", child="a", background=True),
                Step(do="spawn", args={"nonsense": 1}),
            ],
        )
        with pytest.raises(DriveError):
            await Drive(scenario, FakeStage(), FakeSut(wait=takes_a_second)).run()
        return len(asyncio.all_tasks())

    assert run_virtual(go()) == 1
