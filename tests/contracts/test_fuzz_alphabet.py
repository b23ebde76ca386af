"""The alphabet and the schedule: what a step makes of a world, and when a wait looks at it."""

import pytest

from contracts.fuzz.alphabet import (
    ALPHABET,
    NUMBERS,
    START_TURN,
    STATUSES,
    STEP_MS,
    TEAR_MS,
    Effect,
    World,
    effect,
    promptable,
    spelled,
)
from contracts.fuzz.schedule import LONE_LOOK_MS, PHASES, Case, Op, cases, schedule, timeouts
from legion_terminal import waiting

WORKING = World(turn=3, status="working")
ENDED = World(turn=3, status="done", state="finished", exit_code=0)


def after(world: World, name: str) -> Effect:
    return effect(world, NUMBERS[name])


def test_the_alphabet_has_every_turn_with_every_status_and_all_else_once() -> None:
    kinds = [symbol.kind for symbol in ALPHABET]
    assert len(ALPHABET) == 3 * len(STATUSES) + 3 + 6 == 27
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "shows": 18, "finished": 3, "vanished": 1, "fails": 1, "prompt": 1, "interrupt": 1, "torn": 2,
    }  # fmt: skip
    assert len(NUMBERS) == len(ALPHABET)


@pytest.mark.parametrize(("word", "turn"), [("same", 3), ("+1", 4), ("back", 2)])
def test_a_turn_moves_and_the_status_is_new(word: str, turn: int) -> None:
    made = after(WORKING, f"{word} done")
    assert made.early == made.late == World(turn=turn, status="done")


def test_a_turn_never_falls_below_none() -> None:
    assert after(World(turn=0), "back idle").late.turn == 0


def test_a_program_that_has_finished_stays_finished() -> None:
    assert after(ENDED, "+1 working").late == ENDED
    assert after(ENDED, "killed").late == ENDED
    assert after(WORKING, "finished 3").late == World(turn=3, status="working", state="finished", exit_code=3)


def test_a_terminal_that_vanished_may_show_again() -> None:
    gone = after(WORKING, "vanished").late
    assert not gone.there
    assert after(gone, "same idle").late == World(turn=3, status="idle")
    assert after(gone, "torn turn first").early == after(gone, "torn turn first").late


def test_a_look_that_fails_changes_nothing() -> None:
    assert after(WORKING, "look fails") == Effect(WORKING, WORKING, fails=True)


def test_a_torn_pair_shows_half_of_itself_in_either_order() -> None:
    done = World(turn=3, status="done")
    turn_first, status_first = after(done, "torn turn first"), after(WORKING, "torn status first")
    assert (turn_first.early, turn_first.late) == (World(turn=4, status="done"), World(turn=4, status="working"))
    assert (status_first.early, status_first.late) == (World(turn=3, status="done"), World(turn=4, status="done"))


def test_a_prompt_remembers_the_turn_that_shows() -> None:
    assert after(WORKING, "prompt").prompt == 3
    assert after(WORKING, "prompt").late == WORKING


@pytest.mark.parametrize(
    "world",
    [World(turn=3, status="blocked"), ENDED, World(turn=3, there=False), World(turn=0, status="idle")],
    ids=["a question", "finished", "vanished", "before the first turn"],
)
def test_a_prompt_is_not_sent_where_a_supervisor_must_not(world: World) -> None:
    assert not promptable(world)
    assert after(world, "prompt").prompt is None


def test_an_interrupt_ends_work_in_idle_and_denies_a_question() -> None:
    assert after(WORKING, "interrupt").late.status == "idle"
    assert after(World(status="blocked"), "interrupt").late.status == "working"
    assert after(World(status="done"), "interrupt").late.status == "done"
    assert not after(ENDED, "interrupt").interrupted


def test_a_history_is_spelled_in_words() -> None:
    assert spelled((NUMBERS["+1 done"], NUMBERS["killed"])) == ["+1 done", "killed"]


# --- the schedule -----------------------------------------------------------------------------------------------------


def phase(name: str) -> int:
    return [one.name for one in PHASES].index(name)


def asks(case: Case, steps: int) -> list[int]:
    return [op.at_ms for ops in schedule(case, steps) for op in ops if op.do == "ask"]


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("early", [100, 1100, 2100]),
        ("late", [700, 1700, 2700]),
        ("twice", [100, 600, 1100, 1600, 2100, 2600]),
        ("sparse", [100, 2100]),
        ("slow", [700, 1700, 2700]),
    ],
)
def test_a_wait_looks_at_once_and_then_after_each_rest(name: str, times: list[int]) -> None:
    assert asks(Case(PHASES[phase(name)], 2_999 - PHASES[phase(name)].begin_ms), 3) == times


def test_a_wait_does_not_rest_beyond_its_deadline() -> None:
    ops = [op for step in schedule(Case(PHASES[0], 1_250), 3) for op in step]
    assert ops[-2:] == [Op("answer", 1_100, poll_ms=250), Op("tick", 1_350)]


def test_a_wait_without_any_time_looks_once() -> None:
    ops = [op for step in schedule(Case(PHASES[phase("slow")], 0), 2) for op in step]
    assert [op.do for op in ops] == ["ask", "answer"]
    assert LONE_LOOK_MS == waiting.LONE_LOOK_MS


def test_a_look_in_flight_is_given_up_at_the_deadline() -> None:
    ops = [op for step in schedule(Case(PHASES[phase("slow")], 1_250), 3) for op in step]
    assert ops[-2:] == [Op("ask", 1_700, late=True), Op("tick", 1_950)]


def test_each_look_stands_in_the_step_in_which_it_leaves_or_is_answered() -> None:
    for case in cases(4):
        for at, ops in enumerate(schedule(case, 4)[:-1]):
            assert all(at * STEP_MS <= op.at_ms < (at + 1) * STEP_MS for op in ops)
            assert all(op.late == (op.at_ms % STEP_MS >= TEAR_MS) for op in ops if op.do == "ask")


def test_timeouts_end_at_once_in_the_middle_with_a_look_and_after_all_steps() -> None:
    assert timeouts(6) == (0, 3_250, 5_000, 6_500)
    assert [case.timeout_ms for case in cases(6)] == [0, 3_250, 5_000, 6_500] * len(PHASES)


def test_the_wait_begins_with_the_turn_that_it_was_prompted_at() -> None:
    assert World().turn == START_TURN > 0
