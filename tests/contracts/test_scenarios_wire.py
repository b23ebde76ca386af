"""The wire scenarios: they hold for the supervisor, and clients with one wrong habit turn exactly their clause red."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.judging.judge import judge
from contracts.loading import load_all
from contracts.records import RunVerdict
from contracts.running.one_run import run_scenario
from contracts.scenario import Scenario
from contracts.sut.base import Sut, SutSetup
from contracts.sut.python import PythonSut
from legion_terminal.link import Transport

LAYER = Path(__file__).parents[2] / "contracts" / "scenarios" / "wire"
SCENARIOS = {scenario.id: scenario for scenario in load_all([LAYER]).scenarios}
ON_MEMORY = [name for name, scenario in SCENARIOS.items() if "memory" in scenario.hosts]
ON_SOCKET_ONLY = [name for name, scenario in SCENARIOS.items() if scenario.hosts == ["socket"]]
P0_CASES = ["001", "002", "003", "004", "006", "008", "009", "011", "014", "015", "016", "017", "018", "023", "028"]


def told(verdict: RunVerdict) -> str:
    wrong = [f"{f.clause} {f.where}: expected {f.expected}, got {f.got}" for f in verdict.findings if not f.ok]
    return "\n".join([verdict.errored or "", *wrong])


@pytest.mark.parametrize("name", ON_MEMORY)
def test_a_wire_scenario_holds_on_the_memory_host(name: str) -> None:
    verdict = judge(SCENARIOS[name], run_scenario(SCENARIOS[name], "memory"))
    assert verdict.verdict == "pass", told(verdict)


@pytest.mark.parametrize(
    "name", [*ON_SOCKET_ONLY, "wire-bridge-killed", "wire-cut-at-every-byte", "wire-line-over-the-ceiling"]
)
def test_a_wire_scenario_holds_over_a_real_socket_and_a_real_bridge(name: str) -> None:
    verdict = judge(SCENARIOS[name], run_scenario(SCENARIOS[name], "socket"))
    assert verdict.verdict == "pass", told(verdict)


@pytest.mark.parametrize("case", P0_CASES)
def test_every_urgent_wire_case_has_a_scenario(case: str) -> None:
    assert [name for name, scenario in SCENARIOS.items() if f"BC-{case}" in scenario.source]


def test_a_wire_scenario_that_can_be_short_runs_on_both_hosts() -> None:
    both = [name for name, scenario in SCENARIOS.items() if {"memory", "socket"} <= set(scenario.hosts)]
    assert len(both) >= 30


# --- clients with one wrong habit -------------------------------------------------------------------------------------


class Habit:
    """A transport that treats the bytes of a sound one in a way that bad clients do."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self._connect = connect
        self._inner = connect()

    async def open(self) -> None:
        await self._inner.open()

    async def write(self, data: bytes) -> None:
        await self._inner.write(data)

    async def read(self) -> bytes:
        return await self._inner.read()

    async def close(self) -> None:
        await self._inner.close()

    def tail(self) -> str:
        return self._inner.tail()

    def ended(self) -> str | None:
        return self._inner.ended()


class SplitsLikeText(Habit):
    """Ends a line at every character that a text library calls a line end."""

    async def read(self) -> bytes:
        data = await self._inner.read()
        return re.sub(b"\xe2\x80[\xa8\xa9]", b"\n", data)


class DecodesEachRead(Habit):
    """Turns each read into text by itself, with replacement characters at the seams."""

    async def read(self) -> bytes:
        return (await self._inner.read()).decode("utf-8", "replace").encode()


class Lines(Habit):
    """Works on whole lines; what comes without a line feed is passed on at the end."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        super().__init__(connect)
        self._rest = b""

    async def read(self) -> bytes:
        while True:
            data = await self._inner.read()
            whole, _, rest = (self._rest + data).rpartition(b"\n")
            if not data:
                self._rest = b""
                return rest
            self._rest = rest
            lines = whole.split(b"\n") if whole else []
            if out := b"".join(self.line(line) for line in lines):
                return out

    def line(self, line: bytes) -> bytes:
        return line + b"\n"


class AnswersInTurn(Lines):
    """Gives the next reply to the oldest call, whatever its id says."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        super().__init__(connect)
        self._asked: list[str] = []

    async def write(self, data: bytes) -> None:
        self._asked += [json.loads(line)["id"] for line in data.splitlines()]
        await self._inner.write(data)

    def line(self, line: bytes) -> bytes:
        try:
            message = json.loads(line)
        except ValueError:
            return line + b"\n"
        if "method" not in message and self._asked:
            message["id"] = self._asked.pop(0)
        return json.dumps(message).encode() + b"\n"


class DropsWhatHasNoId(Lines):
    """Throws away every message whose id is not that of a call."""

    def line(self, line: bytes) -> bytes:
        try:
            known = bool(json.loads(line).get("id"))
        except ValueError:
            known = True
        return line + b"\n" if known else b""


class DropsNoisyLines(Lines):
    """Throws away every line that does not begin like a message, with the reply that may be glued to it."""

    def line(self, line: bytes) -> bytes:
        return line + b"\n" if line.startswith(b"{") else b""


class SendsAgain(Habit):
    """Opens a new bridge by itself when the old one ends, and repeats the calls that are unanswered."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        super().__init__(connect)
        self._open: dict[str, bytes] = {}

    async def write(self, data: bytes) -> None:
        self._open |= {json.loads(line)["id"]: line + b"\n" for line in data.splitlines()}
        await self._inner.write(data)

    async def read(self) -> bytes:
        data = await self._inner.read()
        for line in data.splitlines():
            with_id = re.search(rb'"id": ?"(\d+)"', line)
            if with_id:
                self._open.pop(with_id[1].decode(), None)
        if data or not any(b"terminal.send" in line for line in self._open.values()):
            return data
        self._inner = self._connect()
        await self._inner.open()
        await self._inner.write(b"".join(self._open.values()))
        return await self._inner.read()


class ShortLines(Habit):
    """Ends the connection at a line of more than 64 KiB, as a stream reader with its default limit does."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        super().__init__(connect)
        self._length = 0

    async def read(self) -> bytes:
        data = await self._inner.read()
        for piece in data.split(b"\n"):
            self._length += len(piece)
            if self._length > 65_536:
                return b""
            self._length = 0 if b"\n" in data else self._length
        return data


class WaitsForEver(Habit):
    """Never ends: a stream that was closed looks like one on which nothing has come yet."""

    async def read(self) -> bytes:
        data = await self._inner.read()
        if not data:
            await asyncio.Event().wait()
        return data


def with_habit(habit: type[Habit]) -> Callable[[SutSetup], Sut]:
    def factory(setup: SutSetup) -> Sut:
        connect = setup.connect
        assert connect is not None, "the memory host makes its own links"
        return PythonSut(replace(setup, connect=lambda: habit(connect)))

    return factory


def red_clauses(scenario: Scenario, habit: type[Habit]) -> set[str]:
    verdict = judge(scenario, run_scenario(scenario, "memory", with_habit(habit)))
    return {finding.clause for finding in verdict.findings if not finding.ok}


@pytest.mark.parametrize(
    "name", ["wire-replies-out-of-order", "wire-send-applied-answer-lost", "wire-noise-around-frames"]
)
def test_a_client_without_a_bad_habit_turns_nothing_red(name: str) -> None:
    assert red_clauses(SCENARIOS[name], Habit) == set()


@pytest.mark.parametrize(
    ("habit", "clause", "name"),
    [
        (SplitsLikeText, "W1", "wire-unicode-separators"),
        (DecodesEachRead, "W1", "wire-cut-at-every-byte"),
        (AnswersInTurn, "W2", "wire-replies-out-of-order"),
        (AnswersInTurn, "W2", "wire-id-inside-a-result"),
        (DropsWhatHasNoId, "W2", "wire-error-without-id"),
        (DropsNoisyLines, "W3", "wire-noise-around-frames"),
        (DropsNoisyLines, "W3", "wire-byte-order-mark"),
        (SendsAgain, "W4", "wire-send-applied-answer-lost"),
        (SendsAgain, "W4", "wire-closed-without-an-answer"),
        (WaitsForEver, "W4", "wire-bridge-exits"),
        (WaitsForEver, "W4", "wire-closed-inside-a-frame"),
        (ShortLines, "W5", "wire-large-reply"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else value,
)
def test_a_bad_habit_turns_its_clause_red_and_no_other(habit: type[Habit], clause: str, name: str) -> None:
    assert red_clauses(SCENARIOS[name], habit) == {clause}


def test_a_client_that_sends_again_is_seen_to_have_delivered_twice() -> None:
    scenario = SCENARIOS["wire-send-applied-answer-lost"]
    verdict = judge(scenario, run_scenario(scenario, "memory", with_habit(SendsAgain)))
    assert ["go", "go"] in [finding.got for finding in verdict.findings if not finding.ok]
