import itertools
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from legion_terminal.settle import (
    LONGEST_MS,
    Cancelled,
    Continue,
    Event,
    Failed,
    Missing,
    Observation,
    Replaced,
    Seen,
    SettleResult,
    Tick,
    Wait,
    decide,
)

STATUSES = (None, "idle", "working", "blocked", "done", "error", "unheard-of")


def see(turn: int, status: str | None, state: str = "running", **end: Any) -> Seen:
    return Seen(Observation(turn=turn, status=status, state=state, **end))


def play(prompt_turn: int, timeout_ms: float, *track: tuple[int, Event]) -> tuple[int, SettleResult] | None:
    """When and how the first wait over this track ends; None if it is still waiting after it."""
    wait = Wait(prompt_turn, timeout_ms, 0)
    for at, event in track:
        result = wait.step(event, at)
        if isinstance(result, SettleResult):
            return at, result
    return None


# -- one observation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_running_settles_only_by_done_at_a_later_turn(turn: int, status: str | None) -> None:
    assert decide(1, see(turn, status).observation) is (turn == 2 and status == "done")


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_finished_settles_whatever_turn_and_status_say(turn: int, status: str | None) -> None:
    assert decide(1, see(turn, status, "finished").observation)


def test_a_state_that_nobody_knows_is_not_the_end() -> None:
    assert not decide(0, see(0, "done", "lost").observation)
    assert decide(0, see(1, "done", "lost").observation)


observations = st.builds(
    Observation,
    turn=st.integers(-2, 4),
    status=st.sampled_from(STATUSES),
    state=st.sampled_from(["running", "finished"]),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.just("SIGHUP"),
)


def oracle(prompt_turn: int, history: list[Observation]) -> int | None:
    """Declarative: the first observation of a history that answers the prompt."""
    answers = [
        index
        for index, one in enumerate(history)
        if one.state == "finished" or ({one.status} == {"done"} and one.turn - prompt_turn >= 1)
    ]
    return min(answers, default=None)


@given(st.integers(-1, 3), st.lists(observations, max_size=12))
def test_a_wait_ends_at_the_observation_that_the_oracle_names(prompt_turn: int, history: list[Observation]) -> None:
    ended = play(prompt_turn, math.inf, *[(index, Seen(one)) for index, one in enumerate(history)])
    expected = oracle(prompt_turn, history)
    assert (ended[0] if ended else None) == expected
    if ended and expected is not None:
        last = history[expected]
        assert ended[1] == SettleResult(
            settled=True,
            exit_code=last.exit_code,
            signal=last.signal,
            last_turn=last.turn,
            last_status=last.status,
        )


# -- timelines from the field ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("boot", [(0, None), (0, "idle"), (0, "done"), (0, "error")], ids=str)
def test_the_picture_at_boot_never_settles(boot: tuple[int, str | None]) -> None:
    track: list[tuple[int, Event]] = [(0, see(*boot)), (2_000, see(1, "working")), (5_000, see(1, "done"))]
    assert play(0, 30_000, *track) == (5_000, SettleResult(settled=True, last_turn=1, last_status="done"))


def test_a_turn_that_nobody_saw_working_settles_by_its_number() -> None:
    assert play(0, 1_000, (250, see(1, "done"))) is not None


def test_done_of_the_turn_before_is_not_this_answer() -> None:
    ended = play(1, 9_000, (0, see(1, "done")), (800, see(2, "working")), (3_000, see(2, "done")))
    assert ended is not None
    assert ended[0] == 3_000


@pytest.mark.parametrize("status", [None, "idle", "working", "blocked", "error"], ids=str)
def test_what_is_not_done_waits_out_its_time_and_says_what_was_seen_last(status: str | None) -> None:
    ended = play(0, 10_000, (1_000, see(1, "working")), (9_999, see(1, status)), (10_000, Tick()))
    assert ended == (10_000, SettleResult(settled=False, reason="timeout", last_turn=1, last_status=status))


def test_a_counter_that_went_back_is_not_past_the_prompt() -> None:
    ended = play(5, 15_000, (200, see(0, None)), (4_000, see(1, "done")), (15_000, Tick()))
    assert ended == (15_000, SettleResult(settled=False, reason="timeout", last_turn=1, last_status="done"))


def test_a_program_that_died_at_its_start_settles_at_once_with_its_exit_code() -> None:
    ended = play(0, 60_000, (300, see(0, None, "finished", exit_code=127)))
    assert ended == (300, SettleResult(settled=True, exit_code=127, last_turn=0))


def test_the_end_by_a_signal_is_told() -> None:
    ended = play(0, 60_000, (300, see(1, "working", "finished", signal="SIGKILL")))
    assert ended is not None
    assert (ended[1].settled, ended[1].exit_code, ended[1].signal) == (True, None, "SIGKILL")


def test_ten_quiet_minutes_are_no_evidence() -> None:
    quiet: list[tuple[int, Event]] = [(at * 1_000, see(1, "working")) for at in range(1, 601)]
    ended = play(0, 900_000, *quiet, (601_000, see(1, "done")))
    assert ended is not None
    assert ended[0] == 601_000


# -- failed looks ----------------------------------------------------------------------------------------------------


def test_failed_observations_decide_nothing() -> None:
    track: list[tuple[int, Event]] = [
        (1_000, see(1, "working")),
        *[(at, Failed()) for at in (2_000, 3_000, 4_000)],
        (6_000, see(1, "done")),
    ]
    assert play(0, 30_000, *track) == (6_000, SettleResult(settled=True, last_turn=1, last_status="done"))


def test_failed_observations_extend_nothing() -> None:
    assert play(0, 3_000, (1_000, Failed()), (3_000, Failed())) == (
        3_000,
        SettleResult(settled=False, reason="timeout"),
    )


def test_two_misses_in_a_row_mean_gone() -> None:
    gone = SettleResult(settled=False, abnormal=True, reason="gone", last_turn=1, last_status="working")
    assert play(0, 900_000, (1_000, see(1, "working")), (3_000, Missing()), (3_250, Missing())) == (3_250, gone)


def test_a_terminal_that_is_seen_again_was_not_gone() -> None:
    track: list[tuple[int, Event]] = [(0, Missing()), (250, see(1, "working")), (500, Missing()), (750, see(1, "done"))]
    assert play(0, 9_000, *track) == (750, SettleResult(settled=True, last_turn=1, last_status="done"))


def test_a_failed_look_between_two_misses_is_no_sighting() -> None:
    assert play(0, 9_000, (0, Missing()), (250, Failed()), (500, Missing())) == (
        500,
        SettleResult(settled=False, abnormal=True, reason="gone"),
    )


def test_another_incarnation_is_the_end_at_once() -> None:
    gone = SettleResult(settled=False, abnormal=True, reason="gone", last_turn=2, last_status="done")
    assert play(2, 9_000, (0, see(2, "done")), (250, Replaced())) == (250, gone)


def test_a_parent_that_calls_off_gets_its_answer_and_no_blame_falls_on_the_child() -> None:
    called_off = SettleResult(settled=False, reason="aborted by parent", last_turn=1, last_status="working")
    assert play(0, 60_000, (1_000, see(1, "working")), (3_000, Cancelled())) == (3_000, called_off)


def test_a_prompt_sent_during_the_wait_moves_what_it_waits_for() -> None:
    wait = Wait(0, math.inf, 0)
    wait.prompted(1)
    assert isinstance(wait.step(see(1, "done"), 1), Continue)
    assert wait.step(see(2, "done"), 2) == SettleResult(settled=True, last_turn=2, last_status="done")


# -- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout_ms", [2**31, 2.0**63, 1.7976931348623157e308, math.inf])
def test_a_very_long_timeout_does_not_fire_early(timeout_ms: float) -> None:
    wait = Wait(0, timeout_ms, 0)
    assert isinstance(wait.step(Tick(), 5_000), Continue)
    assert wait.step(see(1, "done"), 5_001) == SettleResult(settled=True, last_turn=1, last_status="done")


@pytest.mark.parametrize("timeout_ms", [0, -1, -math.inf, math.nan], ids=str)
def test_a_timeout_of_nothing_allows_one_look(timeout_ms: float) -> None:
    assert play(0, timeout_ms, (0, see(1, "done"))) == (0, SettleResult(settled=True, last_turn=1, last_status="done"))
    assert play(0, timeout_ms, (0, see(1, "working"))) == (
        0,
        SettleResult(settled=False, reason="timeout", last_turn=1, last_status="working"),
    )


def test_an_answer_that_came_after_the_deadline_still_is_the_answer() -> None:
    ended = play(0, 1_000, (5_000, see(1, "done")))
    assert ended is not None
    assert ended[1].settled


def test_part_of_a_millisecond_is_rounded_up() -> None:
    assert Wait(0, 0.2, 10).remaining_ms(10) == 1


def test_the_remaining_time_runs_down_to_zero_and_is_none_without_a_deadline() -> None:
    wait = Wait(0, 1_000, 500)
    assert [wait.remaining_ms(now) for now in (500, 1_499, 1_500, 9_000)] == [1_000, 1, 0, 0]
    assert Wait(0, math.inf, 0).remaining_ms(10**12) is None


def test_the_next_poll_never_reaches_past_the_deadline() -> None:
    wait = Wait(0, 1_000, 0, poll_ms=400)
    assert [wait.step(Tick(), now) for now in (0, 400, 800, 999)] == [
        Continue(400),
        Continue(400),
        Continue(200),
        Continue(1),
    ]


@pytest.mark.parametrize("poll_ms", [0, -5])
def test_no_poll_interval_makes_a_wait_spin(poll_ms: int) -> None:
    assert Wait(0, math.inf, 0, poll_ms=poll_ms).step(Tick(), 0) == Continue(1)


# -- every order -----------------------------------------------------------------------------------------------------

EVENTS: tuple[Event, ...] = (
    see(0, "idle"),
    see(1, "working"),
    see(1, "done"),
    see(1, "done", "finished", exit_code=0),
    Missing(),
    Replaced(),
    Failed(),
    Cancelled(),
    Tick(),
)


@pytest.mark.parametrize("order", list(itertools.permutations(EVENTS, 3)), ids=lambda order: None)
def test_a_wait_that_has_ended_stays_ended(order: tuple[Event, ...]) -> None:
    wait = Wait(0, 1_000, 0)
    results = [wait.step(event, at) for at, event in enumerate(order)]
    ended = [result for result in results if isinstance(result, SettleResult)]
    assert len(set(ended)) <= 1
    assert results[len(results) - len(ended) :] == ended


@given(st.integers(0, 2), st.floats(0, 5_000), st.lists(st.sampled_from(EVENTS), min_size=1, max_size=30))
@example(0, 0.0, [Failed()])
def test_a_wait_never_outlives_its_deadline_and_settles_only_for_a_reason(
    prompt_turn: int, timeout_ms: float, events: list[Event]
) -> None:
    ended = play(prompt_turn, timeout_ms, *[(at * 500, event) for at, event in enumerate(events)])
    if ended is None:
        assert (len(events) - 1) * 500 < timeout_ms
        return
    at, result = ended
    event = events[at // 500]
    assert result.settled == (isinstance(event, Seen) and decide(prompt_turn, event.observation))
    assert result.settled == (result.reason is None)
    assert result.abnormal == (result.reason == "gone")
    if result.reason == "timeout":
        assert timeout_ms <= at <= math.ceil(timeout_ms) + 499


@given(st.lists(st.sampled_from(EVENTS), max_size=20))
def test_the_last_observation_is_what_was_seen_last(events: list[Event]) -> None:
    wait = Wait(9, math.inf, 0)
    seen: Observation | None = None
    for at, event in enumerate(events):
        if isinstance(wait.step(event, at), SettleResult):
            break
        seen = event.observation if isinstance(event, Seen) else seen
        assert wait.last == seen


def test_an_exit_code_that_a_running_terminal_shows_is_no_end_and_is_not_passed_on() -> None:
    odd = see(1, "working", exit_code=3, signal="SIGHUP")
    ended = play(0, 100, (10, odd), (100, Tick()))
    assert ended == (100, SettleResult(settled=False, reason="timeout", last_turn=1, last_status="working"))


def test_the_longest_timeout_never_ends_and_the_one_below_does() -> None:
    assert Wait(0, LONGEST_MS, 0).remaining_ms(0) is None
    assert Wait(0, LONGEST_MS - 1, 0).remaining_ms(0) == LONGEST_MS - 1
