"""The exhaustive search: the true count, merging that changes nothing, and no planted rule that goes unseen."""

from dataclasses import replace

import pytest

from contracts.fuzz import oracle
from contracts.fuzz.alphabet import ALPHABET, NUMBERS, START_TURN, World
from contracts.fuzz.bench import find
from contracts.fuzz.exhaustive import Tally, count, explore, total
from contracts.fuzz.planted import PLANTED, installed, planted
from contracts.fuzz.schedule import PHASES, Case, cases
from contracts.fuzz.shrink import shrunk, tried
from contracts.fuzz.walk import Course, Subject, told, walked
from legion_terminal import settle, waiting

EARLY, LATE, TWICE, SPARSE, SLOW = PHASES
RULES = {one.name: one.wait for one in PLANTED}


def steps(*names: str) -> tuple[int, ...]:
    return tuple(NUMBERS[name] for name in names)


def same(one: Tally, other: Tally) -> bool:
    """Whether both found the same, however they went about it."""
    return replace(one, judged=0, seconds=0) == replace(other, judged=0, seconds=0)


# --- the count --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_history_is_counted_once_in_every_case(length: int) -> None:
    found = total(explore(case, length) for case in cases(length))
    alphabet = 3 * 6 + 3 + 1 + 1 + 1 + 1 + 2
    phases, timeouts = 5, 3 if length == 1 else 4
    assert found.histories == count(length) == alphabet**length * phases * timeouts
    assert found.disagreements == 0


def test_the_count_of_six_steps_is_that_of_all_words_in_all_cases() -> None:
    assert count(6) == 27**6 * 20 == 7_748_409_780


def test_one_by_one_judges_each_alone() -> None:
    found = explore(Case(EARLY, 2_500), 2, unmerged=True)
    assert found.judged == found.histories == len(ALPHABET) ** 2
    assert found.merged == 0


def test_merging_leaves_little_to_judge() -> None:
    found = explore(Case(EARLY, 4_500), 4)
    assert found.histories == 27**4
    assert found.judged < found.histories / 100


# --- merged and unmerged are the same ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases(2), ids=lambda case: case.name)
def test_merging_two_steps_changes_nothing(case: Case) -> None:
    assert same(explore(case, 2), explore(case, 2, unmerged=True))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("case", [case for case in cases(2) if case.timeout_ms > 2_000], ids=lambda case: case.name)
def test_merging_changes_neither_the_disagreements_nor_the_first(name: str, case: Case) -> None:
    wait = RULES[name]
    assert same(explore(case, 2, wait), explore(case, 2, wait, unmerged=True))


@pytest.mark.parametrize("name", ["", "looks-are-mixed", "prompt-is-not-heeded"])
@pytest.mark.parametrize("case", [Case(TWICE, 3_500), Case(SLOW, 2_000)], ids=lambda case: case.name)
def test_merging_three_steps_changes_nothing(name: str, case: Case) -> None:
    wait = RULES.get(name, Subject)
    assert same(explore(case, 3, wait), explore(case, 3, wait, unmerged=True))


class CountsFailures(settle.Wait):
    """Remembers in an attribute of its own what the searched state has to hold."""

    def step(self, event: settle.Event, now: int) -> settle.Continue | settle.SettleResult:
        self.failures = getattr(self, "failures", 0) + isinstance(event, settle.Failed)
        return super().step(settle.Cancelled() if self.failures == 2 else event, now)


def test_a_state_of_the_decision_code_that_only_it_knows_is_not_merged_away() -> None:
    case = Case(EARLY, 4_500)
    merged, alone = explore(case, 3, CountsFailures), explore(case, 3, CountsFailures, unmerged=True)
    assert same(merged, alone)
    assert merged.disagreements > 0


class KeepsAList(settle.Wait):
    """Keeps what cannot be compared."""

    def step(self, event: settle.Event, now: int) -> settle.Continue | settle.SettleResult:
        self.events = [*getattr(self, "events", []), event]
        return super().step(event, now)


def test_a_state_that_cannot_be_compared_is_an_error_and_no_merging() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        explore(Case(EARLY, 2_500), 2, KeepsAList)
    assert explore(Case(EARLY, 2_500), 2, KeepsAList, unmerged=True).disagreements == 0


# --- one walk ---------------------------------------------------------------------------------------------------------


def test_a_walk_shows_the_oracle_what_the_decision_code_was_shown() -> None:
    walk = walked(Course(Case(TWICE, 1_600), 2), steps("torn turn first", "vanished"))
    assert walk.looks == (
        oracle.Seen(at_ms=100, turn=START_TURN + 1, status=None),
        oracle.Seen(at_ms=600, turn=START_TURN + 1, status="working"),
        oracle.Missing(at_ms=1_100),
        oracle.Missing(at_ms=1_600),
    )
    assert told(walk) == oracle.Outcome(
        at_ms=1_600, settled=False, abnormal=True, reason="gone", last_turn=3, last_status="working"
    )


def test_a_prompt_in_flight_holds_the_old_look_against_the_new_turn() -> None:
    course = Course(Case(SLOW, 3_500), 2)
    walk = walked(course, steps("+1 done", "prompt"))
    assert walk.prompts == (oracle.Prompt(at_ms=1_000, turn=START_TURN + 1),)
    assert told(walk).reason == "timeout"
    assert course.objections(walk) == []


def test_extending_a_walk_leaves_it_as_it_was() -> None:
    course = Course(Case(EARLY, 2_500), 2)
    walk = course.begin()
    before = course.identity(walk)
    course.extend(walk, 0, NUMBERS["+1 done"])
    assert course.identity(walk) == before
    assert (walk.looks, walk.world, walk.over) == ((), World(), False)


class EndsTwice(settle.Wait):
    """Gives another answer once it has ended."""

    def step(self, event: settle.Event, now: int) -> settle.Continue | settle.SettleResult:
        had = self._ended
        result = super().step(event, now)
        return settle.Continue(1) if had is not None else result


class RestsTooLong(settle.Wait):
    """Polls at half the pace."""

    def step(self, event: settle.Event, now: int) -> settle.Continue | settle.SettleResult:
        result = super().step(event, now)
        return result if isinstance(result, settle.SettleResult) else settle.Continue(2 * result.poll_in_ms)


class NeverEnds(settle.Wait):
    """Waits on, whatever happens."""

    def step(self, event: settle.Event, now: int) -> settle.Continue | settle.SettleResult:
        return settle.Continue(max(1, min(self._poll_ms, self.remaining_ms(now) or 1)))


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (EndsTwice, "ended at 100 ms, and goes on at"),
        (RestsTooLong, "rests 2000 ms after 100 ms, not 1000"),
        (NeverEnds, "still waits at inf ms, and was bound to end by"),
    ],
)
def test_more_than_the_outcome_is_judged(wait: type[Subject], words: str) -> None:
    symbol = "+1 done" if wait is EndsTwice else "same idle"
    found = tried(steps(symbol, "same none"), Case(EARLY, 2_500), wait)
    assert found is not None
    assert found.objections[0].startswith(words)


# --- planted rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_a_planted_rule_is_found_and_shrunk_to_a_few_steps(name: str) -> None:
    found = find(planted(name))
    assert found is not None
    assert 1 <= len(found.steps) <= 3
    assert tried(found.steps, found.case, RULES[name]) is not None
    assert tried(found.steps, found.case) is None, "the supervisor's own rule is right about it"


def test_there_are_enough_planted_rules_and_each_says_what_it_is() -> None:
    assert len(PLANTED) >= 8
    assert len({one.name for one in PLANTED}) == len({one.says for one in PLANTED}) == len(PLANTED)
    with pytest.raises(KeyError, match="idle-settles"):
        planted("no-such-rule")


def test_shrinking_a_long_history_finds_the_step_that_matters() -> None:
    wait = RULES["error-settles"]
    long = steps("same idle", "look fails", "torn turn first", "+1 error", "same working", "killed")
    found = tried(long, Case(TWICE, 6_500), wait)
    assert found is not None
    small = shrunk(found, wait)
    assert (small.steps, small.case.phase) == (steps("+1 error"), EARLY)


def test_a_rule_is_planted_into_the_whole_supervisor_and_taken_out_again() -> None:
    before = vars(waiting)["Wait"]
    with installed(planted("idle-settles")):
        assert vars(waiting)["Wait"] is RULES["idle-settles"]
    assert vars(waiting)["Wait"] is before
