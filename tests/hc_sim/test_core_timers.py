"""Timers run in order of time, then of arrival, and cancelled ones do not pile up."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from hc_sim.core.timers import MIN_SWEEP, Timers


def run_to(timers: Timers, now: int) -> None:
    while (due := timers.next_due()) is not None and due <= now:
        timers.run_one()


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=30), st.integers(0, 20))
def test_what_is_due_runs_in_order_and_cancelled_never(wanted: list[tuple[int, bool]], now: int) -> None:
    timers = Timers()
    ran: list[tuple[int, int]] = []

    def note(number: int) -> Callable[[int], None]:
        return lambda at: ran.append((at, number))

    for number, (due, cancelled) in enumerate(wanted):
        timer = timers.at(due, note(number))
        if cancelled:
            timer.cancel()
    run_to(timers, now)
    assert ran == sorted((due, n) for n, (due, cancelled) in enumerate(wanted) if due <= now and not cancelled)


def test_a_timer_set_by_a_timer_runs_in_the_same_sweep_if_it_is_due() -> None:
    timers = Timers()
    ran: list[int] = []
    timers.at(5, lambda at: timers.at(at + 5, ran.append))
    timers.at(7, ran.append)
    run_to(timers, 10)
    assert ran == [7, 10]


def test_next_due_skips_cancelled_timers() -> None:
    timers = Timers()
    timers.at(1, lambda _: None).cancel()
    timers.at(3, lambda _: None)
    assert timers.next_due() == 3


def test_nothing_is_due_when_nothing_is_there() -> None:
    timers = Timers()
    timers.run_one()
    assert timers.next_due() is None


def test_cancelled_timers_are_swept_out_long_before_they_are_due() -> None:
    timers = Timers()
    for _ in range(10_000):
        timers.at(10**9, lambda _: None).cancel()
    assert len(timers) <= 2 * MIN_SWEEP
