import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import pytest
from click.testing import CliRunner

from hc_sim.bench import TARGETS, BenchError, Effort, Figure, Report, judge, run_bench
from hc_sim.bench.client import check_reply, echo_lines, get_lines, lines_of, name_of, process, rate
from hc_sim.bench.fake import fill
from hc_sim.bench.figures import steepest
from hc_sim.bench.hour import HOUR_MS, TURNS, an_hour, live_an_hour
from hc_sim.bench.seats import Side, processor, seated
from hc_sim.commands import bench as command
from hc_sim.core import Core
from hc_sim.profile import WireProfile
from hc_sim.script.load import POLITE

SMALL = Effort(slices=3, seconds=0.01, lists=2, hours=1, starts=1, connections=20, laps=1, rounds=1, terminals=50)
MEMBERS = {"name", "value", "floor", "ratio", "target", "holds"}

ISSUED = {
    "sequential_get": (0.70, True),
    "pipelined_get": (0.30, True),
    "many_terminals": (0.90, True),
    "list_10000": (0.5, True),
    "terminal_bytes": (4096, False),
    "hour_ms": (5, False),
    "hc_connect": (2.0, False),
    "thousand_connections": (20, False),
    "no_cliff": (0.5, True),
}


def test_the_targets_are_the_ones_that_were_promised() -> None:
    assert {name: (target.bound, target.least) for name, target in TARGETS.items()} == ISSUED


@pytest.mark.parametrize(
    ("name", "value", "floor", "holds"),
    [
        ("sequential_get", 70.0, 100.0, True),
        ("sequential_get", 69.0, 100.0, False),
        ("hc_connect", 200.0, 100.0, True),
        ("hc_connect", 201.0, 100.0, False),
        ("terminal_bytes", 4096.0, None, True),
        ("terminal_bytes", 4097.0, None, False),
        ("hour_ms", 5.1, None, False),
    ],
)
def test_a_figure_holds_from_its_bound_on(name: str, value: float, floor: float | None, holds: bool) -> None:
    figure = judge(name, value, floor)  # type: ignore[arg-type]

    assert figure.holds is holds
    assert figure.ratio == (None if floor is None else value / floor)


def test_a_report_holds_when_every_figure_does() -> None:
    good, bad = judge("hour_ms", 1.0), judge("hour_ms", 9.0)

    assert Report(figures=[good, good]).holds
    assert not Report(figures=[good, bad]).holds


@pytest.fixture(scope="module")
def report() -> Report:
    return run_bench(SMALL)


def test_one_run_takes_every_figure_beside_its_floor(report: Report) -> None:
    assert [figure.name for figure in report.figures] == list(TARGETS)
    for figure in report.figures:
        assert figure.value > 0 or figure.name == "terminal_bytes"  # a handful of terminals may fit into free memory
        assert (figure.floor is not None) == bool(TARGETS[figure.name].floor)


def test_the_curve_goes_from_one_call_in_flight_to_a_thousand(report: Report) -> None:
    assert [in_flight for in_flight, _ in report.curve][:: len(report.curve) - 1] == [1, 1_000]
    assert all(rate > 0 for _, rate in report.curve)


def test_a_curve_that_falls_by_more_than_half_from_one_step_to_the_next_is_a_cliff() -> None:
    assert steepest([(1, 10.0), (2, 8.0), (4, 20.0)]).holds
    assert not steepest([(1, 10.0), (2, 20.0), (4, 9.0)]).holds


def test_the_json_has_the_promised_members(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hc_sim.bench.run_bench", lambda say: report)

    done = CliRunner().invoke(command.bench, ["--format", "json"])

    found = json.loads(done.stdout)
    assert found["schema"] == 1
    assert all(set(figure) == MEMBERS for figure in found["figures"])
    assert done.exit_code == (0 if report.holds else 1)


@pytest.mark.parametrize(("value", "code", "word"), [(1.0, 0, "yes"), (9.0, 1, "NO")])
def test_the_table_says_what_holds_and_the_exit_code_too(
    monkeypatch: pytest.MonkeyPatch, value: float, code: int, word: str
) -> None:
    made = Report(figures=[judge("hour_ms", value)], curve=[(1, 10.0), (1_000, 20.0)])
    monkeypatch.setattr("hc_sim.bench.run_bench", lambda say: made)

    done = CliRunner().invoke(command.bench, [])

    assert done.exit_code == code
    assert word in done.stdout
    assert "1000" in done.stdout


def test_what_cannot_be_measured_ends_in_one_line_and_code_3(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(say: Callable[[str], None]) -> Report:
        raise BenchError("no sockets today")

    monkeypatch.setattr("hc_sim.bench.run_bench", fails)

    done = CliRunner().invoke(command.bench, [])

    assert (done.exit_code, done.stderr) == (3, "hc-sim: no sockets today\n")


def test_a_report_can_be_read_back(report: Report) -> None:
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def test_an_hour_is_an_hour_with_all_its_turns() -> None:
    last = live_an_hour(an_hour())

    assert (last["state"], last["turn"], last["exit_code"]) == ("finished", TURNS, 0)
    assert sum(step.after_ms or 0 for step in an_hour().step) < HOUR_MS


def test_terminals_that_are_weighed_have_agents_with_timelines() -> None:
    core = Core(WireProfile(), agents=[POLITE])
    fill(core, 3)

    assert [terminal.name for terminal in core.terminals()] == [name_of(0), name_of(1), name_of(2)]
    core.advance(10_000)
    assert {terminal.turn for terminal in core.terminals()} == {1}


def test_requests_are_all_of_one_size_with_ids_of_their_own() -> None:
    lines = get_lines([name_of(1), name_of(2)], 100)

    calls = [json.loads(line) for line in lines.text.splitlines()]
    assert len({call["id"] for call in calls}) == 100
    assert {call["params"]["terminal"] for call in calls} == {name_of(1), name_of(2)}
    assert len(lines.text) == 2 * 100 * lines.size


def test_requests_of_different_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="one size"):
        lines_of([b"a\n", b"bc\n"])


def test_a_reply_without_a_result_is_no_measurement() -> None:
    with pytest.raises(BenchError, match="not a result"):
        check_reply(b'{"error":{}}')


@contextmanager
def peer(answer: Callable[[bytes], bytes]) -> Iterator[socket.socket]:
    """A connection to somebody who answers each read."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        while data := theirs.recv(65_536):
            theirs.sendall(answer(data))
        theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield ours
    ours.close()
    thread.join()


@pytest.mark.parametrize("in_flight", [1, 7, 10])
def test_the_client_keeps_so_many_in_flight_and_leaves_nothing_unread(in_flight: int) -> None:
    most = 0

    def echo(data: bytes) -> bytes:
        nonlocal most
        most = max(most, data.count(b"\n"))
        return data

    with peer(echo) as link:
        assert rate(link, echo_lines(20, 10), in_flight=in_flight, seconds=0.01) > 0
        assert most <= in_flight
        link.setblocking(False)
        with pytest.raises(BlockingIOError):
            link.recv(1)


def test_a_connection_that_ends_is_no_measurement() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()

    with ours, pytest.raises((BenchError, BrokenPipeError, ConnectionResetError)):
        rate(ours, echo_lines(20, 10), in_flight=1, seconds=0.01)


def test_a_process_that_says_nothing_is_no_measurement() -> None:
    with pytest.raises(BenchError, match="did not start"), process("hc_sim.bench.figures"):
        pass


def test_a_figure_is_a_value() -> None:
    assert judge("hour_ms", 1.0) == Figure(
        name="hour_ms", value=1.0, floor=None, ratio=None, target=5.0, holds=True
    )  # fmt: skip


@pytest.mark.parametrize(("side", "seat"), [("client", {1}), ("server", {6})])
def test_each_side_has_a_seat_of_its_own_where_there_are_two(side: Side, seat: set[int]) -> None:
    assert processor(side, {6, 1, 4}) == seat
    assert processor(side, {3}) == {3}


def test_a_seat_is_given_back() -> None:
    before = os.sched_getaffinity(0)
    with seated("client"):
        assert os.sched_getaffinity(0) == processor("client", before)
    assert os.sched_getaffinity(0) == before
