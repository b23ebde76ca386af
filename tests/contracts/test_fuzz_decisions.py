"""Random timelines through the settle decision: the oracle agrees, and objects to every planted wrong rule."""

import pytest
from hypothesis import find, given, settings

from contracts.fuzz.decisions import Disagreement, Timeline, decided, judged, search, shrunk
from contracts.fuzz.planted import PLANTED, Planted, planted
from contracts.fuzz.strategies import seeds, timelines
from legion_terminal.settle import Failed, Missing, Observation, Seen

A_SEED = 400
"""Timelines that one drawn seed drives."""
ALONE = [one for one in PLANTED if one.name != "prompt-is-not-heeded"]
"""The wrong rules that show without another prompt during the wait."""
DONE = Seen(Observation(turn=2, status="done", state="running"))
WORKING = Seen(Observation(turn=2, status="working", state="running"))


@given(seeds())
@settings(max_examples=25)
def test_decision_and_oracle_agree_on_many_timelines_of_one_seed(seed: int) -> None:
    assert search(seed, A_SEED) is None


@given(timelines())
def test_decision_and_oracle_agree_on_structured_timelines(one: Timeline) -> None:
    assert judged(one) == []


def test_a_wait_ends_with_the_event_that_settles_it() -> None:
    result, at_ms, used = decided(Timeline(1_000, ((0, WORKING), (250, DONE), (10, WORKING))))

    assert (result.settled, at_ms, used) == (True, 250, 2)


def test_a_wait_ends_at_its_deadline_though_more_would_come() -> None:
    result, at_ms, used = decided(Timeline(400, ((0, WORKING), (250, WORKING), (250, DONE))))

    assert (result.reason, at_ms, used) == ("timeout", 400, 2)


@pytest.mark.parametrize("rule", ALONE, ids=lambda rule: rule.name)
def test_every_wrong_rule_is_found_and_made_small(rule: Planted) -> None:
    found = next(filter(None, (search(seed, 2_000, rule.wait) for seed in range(5))))

    small = shrunk(found, rule.wait)

    assert small.objections
    assert len(small.timeline.events) <= 3
    assert judged(small.timeline) == []


def test_a_seed_that_fails_is_found_again_and_shrunk_by_the_structured_strategy() -> None:
    rule = planted("failed-look-is-a-miss").wait
    assert any(search(seed, A_SEED, rule) for seed in range(5))

    small = find(timelines(), lambda one: bool(judged(one, rule)), settings=settings(max_examples=5_000, database=None))

    assert [type(event) for _, event in small.events] in ([Failed, Failed], [Failed, Missing], [Missing, Failed])


def test_shrinking_keeps_what_is_small_already() -> None:
    rule = planted("timeout-settles").wait
    one = Timeline(0, ((0, WORKING),))

    assert shrunk(Disagreement(one, tuple(judged(one, rule))), rule).timeline == one
