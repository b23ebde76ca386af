"""The oracle: where it leaves a choice and where not, and its agreement with the supervisor's own rules."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.fuzz import (
    Failed,
    History,
    Look,
    Missing,
    Outcome,
    Prompt,
    Seen,
    demanded,
    essence,
    objections,
    overdue,
    satisfies,
    watch,
)
from legion_terminal import settle

POLL_MS = 250
LONG_MS = 30_000


def shows(at_ms: int, turn: int, status: str | None, **more: Any) -> Seen:
    return Seen(at_ms=at_ms, turn=turn, status=status, **more)


def polled(
    track: list[Look],
    *,
    prompt_turn: int = 0,
    timeout_ms: float = LONG_MS,
    poll_ms: int = POLL_MS,
    until: int = 60_000,
    started_ms: int = 0,
    prompts: tuple[Prompt, ...] = (),
) -> History:
    """What a supervisor sees that polls at once and then at every interval."""
    last = int(min(started_ms + timeout_ms, until)) if timeout_ms > 0 else started_ms
    looks = watch(track, range(started_ms, last + 1, poll_ms))
    return History(prompt_turn=prompt_turn, timeout_ms=timeout_ms, looks=looks, started_ms=started_ms, prompts=prompts)


def test_a_vanished_terminal_may_end_a_wait_at_the_first_miss_and_must_at_the_second() -> None:
    track: list[Look] = [shows(0, 1, "working"), Missing(at_ms=3000)]
    history = polled(track, timeout_ms=900_000, until=10_000)
    gone = Outcome(at_ms=3000, settled=False, abnormal=True, reason="gone", last_turn=1, last_status="working")
    assert objections(history, gone) == []
    assert objections(history, replace(gone, at_ms=3250)) == []
    assert objections(history, replace(gone, at_ms=3500)) != []
    assert objections(history, replace(gone, at_ms=2750)) != []
    assert objections(history, replace(gone, abnormal=False)) != []


def test_a_failed_look_between_two_misses_neither_adds_nor_breaks() -> None:
    looks: tuple[Look, ...] = (Missing(at_ms=0), Failed(at_ms=250), Missing(at_ms=500), Missing(at_ms=750))
    ends = demanded(History(prompt_turn=0, timeout_ms=LONG_MS, looks=looks))
    assert {end.at_ms for end in ends} == {0, 500}


def test_one_miss_that_is_followed_by_our_terminal_forces_nothing() -> None:
    looks: tuple[Look, ...] = (Missing(at_ms=0), shows(250, 0, None), Missing(at_ms=500), shows(750, 1, "done"))
    ends = demanded(History(prompt_turn=0, timeout_ms=LONG_MS, looks=looks))
    assert [(end.at_ms, end.reason) for end in ends if end.reason != "gone"] == [(750, None)]


def test_another_incarnation_never_settles_a_wait() -> None:
    looks: tuple[Look, ...] = tuple(shows(at, 7, "done", ours=False) for at in (0, 250, 500))
    ends = demanded(History(prompt_turn=0, timeout_ms=LONG_MS, looks=looks))
    assert {(end.settled, end.reason) for end in ends} == {(False, "gone")}


def test_a_timeout_may_come_late_by_the_slack_and_no_more() -> None:
    history = History(prompt_turn=0, timeout_ms=1000, looks=(shows(0, 1, "working"),), slack_ms=40)
    late = Outcome(at_ms=1040, settled=False, reason="timeout", last_turn=1, last_status="working")
    assert objections(history, late) == []
    assert objections(history, replace(late, at_ms=1041)) == ["ended at 1041 ms, not 1000"]


def test_an_answer_in_the_slack_may_settle_and_may_be_ignored() -> None:
    looks = (shows(0, 1, "working"), shows(1020, 1, "done"))
    history = History(prompt_turn=0, timeout_ms=1000, looks=looks, slack_ms=40)
    settled = Outcome(at_ms=1020, settled=True, last_turn=1, last_status="done")
    timeout = Outcome(at_ms=1000, settled=False, reason="timeout", last_turn=1, last_status="working")
    assert objections(history, settled) == objections(history, timeout) == []
    assert objections(replace(history, slack_ms=0), settled) != []


def test_a_settled_wait_cannot_be_called_off_later() -> None:
    history = History(prompt_turn=0, timeout_ms=LONG_MS, looks=(shows(500, 1, "done"),), cancelled_ms=600)
    called_off = Outcome(at_ms=600, settled=False, reason="aborted by parent", last_turn=1, last_status="done")
    assert objections(history, called_off) != []


def test_an_endless_wait_that_saw_nothing_owes_no_end() -> None:
    history = History(prompt_turn=0, timeout_ms=math.inf, looks=(shows(0, 0, "idle"),))
    assert demanded(history) == ()
    assert "nothing in this history ends the wait" in objections(history, Outcome(at_ms=1, settled=True))[0]


def test_what_was_known_before_may_be_the_last_thing_known() -> None:
    history = History(prompt_turn=0, timeout_ms=100, known=shows(0, 3, "working"))
    timeout = Outcome(at_ms=100, settled=False, reason="timeout")
    assert objections(history, timeout) == []
    assert objections(history, replace(timeout, last_turn=3, last_status="working")) == []
    assert objections(history, replace(timeout, last_turn=2, last_status="working")) != []


def test_looks_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="order of their times"):
        History(prompt_turn=0, timeout_ms=1, looks=(shows(5, 0, None), shows(4, 0, None)))
    with pytest.raises(ValueError, match="before the wait began"):
        History(prompt_turn=0, timeout_ms=1, looks=(shows(5, 0, None),), started_ms=6)


def test_a_look_is_held_against_the_newest_prompt_before_it() -> None:
    looks = (shows(1000, 1, "done"), shows(2000, 2, "done"))
    history = History(prompt_turn=0, timeout_ms=LONG_MS, looks=looks, prompts=(Prompt(at_ms=500, turn=1),))
    assert [(end.at_ms, end.last_turn) for end in demanded(history)] == [(2000, 2)]


def test_a_prompt_that_follows_changes_nothing_about_a_look() -> None:
    looks = (shows(1000, 1, "done"), shows(2000, 2, "done"))
    history = History(prompt_turn=0, timeout_ms=LONG_MS, looks=looks, prompts=(Prompt(at_ms=1500, turn=1),))
    assert [(end.at_ms, end.last_turn) for end in demanded(history)] == [(1000, 1)]


def test_a_look_on_the_millisecond_of_a_prompt_may_settle_and_may_be_held_against_it() -> None:
    looks = (shows(1000, 1, "done"), shows(2000, 2, "done"))
    history = History(prompt_turn=0, timeout_ms=LONG_MS, looks=looks, prompts=(Prompt(at_ms=1000, turn=1),))
    assert [(end.at_ms, end.last_turn) for end in demanded(history)] == [(1000, 1), (2000, 2)]


def test_a_finished_program_settles_whatever_was_prompted() -> None:
    looks = (shows(1000, 0, None, state="finished", exit_code=1),)
    history = History(prompt_turn=0, timeout_ms=LONG_MS, looks=looks, prompts=(Prompt(at_ms=500, turn=7),))
    assert [(end.at_ms, end.exit_code) for end in demanded(history)] == [(1000, 1)]


def test_prompts_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="prompts stand in the order"):
        History(prompt_turn=0, timeout_ms=1, prompts=(Prompt(at_ms=5, turn=0), Prompt(at_ms=4, turn=0)))


def test_a_late_answer_after_the_end_changes_nothing() -> None:
    looks = (shows(0, 1, "working"), shows(1000, 1, "done"))
    settled = History(prompt_turn=0, timeout_ms=LONG_MS, looks=looks)
    late = replace(settled, looks=(*looks, shows(1500, 0, "idle"), Missing(at_ms=1600), Missing(at_ms=1700)))
    assert demanded(late) == demanded(settled)


def test_a_wait_that_goes_on_after_its_end_is_overdue() -> None:
    history = History(prompt_turn=0, timeout_ms=1000, looks=(shows(0, 1, "working"), shows(500, 1, "done")))
    assert overdue(history, 499) == overdue(history, 500) == []
    assert overdue(history, 501) == ["still waits at 501 ms, and was bound to end by 500 ms"]
    assert overdue(replace(history, looks=history.looks[:1]), 1000) == []
    assert overdue(replace(history, looks=history.looks[:1]), 1001) != []


def test_an_endless_wait_that_saw_nothing_is_never_overdue() -> None:
    history = History(prompt_turn=0, timeout_ms=math.inf, looks=(shows(0, 0, "idle"), Missing(at_ms=10)))
    assert overdue(history, math.inf) == []


# --- agreement with the supervisor's rules ----------------------------------------------------------------------------

STATUSES = st.sampled_from([None, "idle", "working", "blocked", "done", "error"])


@st.composite
def looks_in_order(draw: st.DrawFn) -> tuple[Look, ...]:
    at_ms = 0
    looks: list[Look] = []
    for gap in draw(st.lists(st.integers(0, 400), max_size=14)):
        at_ms += gap
        kind = draw(st.sampled_from(["seen"] * 4 + ["missing"] * 4 + ["failed"] * 3 + ["finished", "other"]))
        turn, status = draw(st.integers(0, 3)), draw(STATUSES)
        choices: dict[str, Look] = {
            "seen": Seen(at_ms=at_ms, turn=turn, status=status),
            "finished": Seen(
                at_ms=at_ms, turn=turn, status=status, state="finished", exit_code=draw(st.integers(0, 255))
            ),
            "other": Seen(at_ms=at_ms, turn=turn, status=status, ours=False),
            "missing": Missing(at_ms=at_ms),
            "failed": Failed(at_ms=at_ms),
        }
        looks.append(choices[kind])
    return tuple(looks)


HISTORIES = st.builds(
    History,
    prompt_turn=st.integers(0, 3),
    timeout_ms=st.one_of(st.integers(-5, 4_000), st.just(math.inf), st.just(math.nan)),
    looks=looks_in_order(),
    cancelled_ms=st.one_of(st.none(), st.integers(0, 4_000)),
)


def told(look: Look) -> settle.Event:
    match look:
        case Missing():
            return settle.Missing()
        case Failed():
            return settle.Failed()
        case Seen(ours=False):
            return settle.Replaced()
        case _:
            return settle.Seen(
                settle.Observation(
                    turn=look.turn, status=look.status, state=look.state, exit_code=look.exit_code, signal=look.signal
                )
            )


def walked(history: History, *, deadline_wakes: bool = True) -> Outcome | None:
    """The outcome of the supervisor's state machine, fed with the history in the order of its times.

    `deadline_wakes` = false: a look in flight keeps the machine from noticing its deadline until the look is answered.
    """
    wait = settle.Wait(history.prompt_turn, history.timeout_ms, history.started_ms)
    events: list[tuple[float, int, settle.Event]] = [(look.at_ms, 0, told(look)) for look in history.looks]
    if history.cancelled_ms is not None:
        events.append((history.cancelled_ms, 1, settle.Cancelled()))
    deadline = history.deadline_ms
    if not math.isinf(deadline):
        in_flight = next((look.at_ms for look in history.looks if look.at_ms > deadline), math.inf)
        late = not deadline_wakes and in_flight <= deadline + history.slack_ms
        events.append((in_flight if late else deadline, 2, settle.Tick()))
    for now, _, event in sorted(events, key=lambda entry: entry[:2]):
        result = wait.step(event, int(now))
        if isinstance(result, settle.SettleResult):
            fields = {name: getattr(result, name) for name in SAME_NAMES}
            return Outcome(at_ms=now, **fields)
    return None


SAME_NAMES = ("settled", "abnormal", "reason", "exit_code", "signal", "last_turn", "last_status")


@settings(max_examples=400)
@given(HISTORIES)
def test_the_supervisors_state_machine_ends_every_wait_as_the_oracle_demands(history: History) -> None:
    outcome = walked(history)
    if outcome is None:
        assert all(end.reason == "gone" for end in demanded(history)), "only an early gone may be left untaken"
    else:
        assert objections(history, outcome) == []


@given(HISTORIES, st.integers(1, 50))
def test_both_agree_when_a_look_is_in_flight_at_the_deadline(history: History, slack_ms: int) -> None:
    slow = replace(history, slack_ms=slack_ms)
    outcome = walked(slow, deadline_wakes=False)
    if outcome is not None:
        assert objections(slow, outcome) == []


@given(HISTORIES)
def test_what_the_oracle_demands_it_also_accepts(history: History) -> None:
    for outcome in demanded(history):
        assert objections(history, outcome) == []


@given(HISTORIES, st.integers(0, 3), STATUSES)
def test_one_look_is_judged_alike_by_both(history: History, turn: int, status: str | None) -> None:
    observation = settle.Observation(turn=turn, status=status, state="running")
    seen = Seen(at_ms=0, turn=turn, status=status)
    assert satisfies(history.prompt_turn, seen) is bool(settle.decide(history.prompt_turn, observation))


PROMPTED = st.builds(
    lambda history, prompts: replace(history, prompts=tuple(sorted(prompts, key=lambda prompt: prompt.at_ms))),
    HISTORIES,
    st.lists(st.builds(Prompt, at_ms=st.integers(0, 4_000), turn=st.integers(0, 3)), max_size=3),
)


@settings(max_examples=600)
@given(PROMPTED, st.integers(0, 14))
def test_the_essence_of_the_past_demands_what_the_past_does_from_then_on(history: History, at: int) -> None:
    past, rest = history.looks[:at], history.looks[at:]
    now = max([past[-1].at_ms if past else 0, *(prompt.at_ms for prompt in history.prompts)])
    rest = tuple(replace(look, at_ms=look.at_ms + now + 1) for look in rest)
    short = essence(replace(history, looks=past))
    whole = replace(history, looks=past + rest)
    assert after(demanded(replace(short, looks=short.looks + rest)), now) == after(demanded(whole), now)


def after(outcomes: tuple[Outcome, ...], now: int) -> set[Outcome]:
    return {outcome for outcome in outcomes if outcome.at_ms > now}


def test_the_essence_leaves_out_what_nothing_depends_on_any_more() -> None:
    looks: tuple[Look, ...] = (shows(0, 1, "idle"), Failed(at_ms=10), shows(20, 1, "working"), Missing(at_ms=30))
    short = essence(History(prompt_turn=1, timeout_ms=math.inf, looks=looks, prompts=(Prompt(at_ms=5, turn=3),)))
    assert short.looks == (Failed(at_ms=0), shows(20, 1, "working"), Missing(at_ms=30))
    assert (short.prompt_turn, short.prompts) == (3, ())


def test_the_oracle_does_not_look_at_the_supervisor() -> None:
    import ast
    from pathlib import Path

    from contracts.fuzz import oracle

    tree = ast.parse(Path(str(oracle.__file__)).read_text(encoding="utf-8"))
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [
        name
        for name in imported
        if name.split(".")[0] not in ("math", "collections", "dataclasses", "itertools", "typing")
    ] == []
