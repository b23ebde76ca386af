"""Choices: the same from the same seed, changed a little by a neighbour, and never outside what was asked for."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.fuzz.dice import MOST, Dice, Replay, chance, neighbour, pick


def test_a_seed_gives_the_same_choices_on_every_machine() -> None:
    dice = Dice(7, 1)

    assert [dice.below(100) for _ in range(8)] == [33, 68, 87, 66, 1, 36, 96, 82]


def test_seeds_and_streams_have_choices_of_their_own() -> None:
    first = [Dice(seed, stream).below(MOST) for seed in range(20) for stream in range(3)]

    assert len(set(first)) > 55


@given(st.integers(0, 2**64), st.lists(st.integers(1, MOST), min_size=1, max_size=100))
def test_a_choice_is_below_what_was_asked_for_and_is_kept(seed: int, sizes: list[int]) -> None:
    dice = Dice(seed)

    made = [dice.below(n) for n in sizes]

    assert made == dice.choices
    assert all(0 <= value < n for value, n in zip(made, sizes, strict=True))


@given(st.integers(0, 2**32), st.lists(st.integers(1, 50), min_size=1, max_size=50))
def test_a_replay_makes_the_choices_again(seed: int, sizes: list[int]) -> None:
    dice = Dice(seed)
    made = [dice.below(n) for n in sizes]
    replay = Replay(dice.choices)

    assert [replay.below(n) for n in sizes] == made


def test_a_replay_folds_what_does_not_fit_and_ends_in_the_plainest_choice() -> None:
    replay = Replay([17])

    assert [replay.below(5), replay.below(5)] == [2, 0]
    assert replay.choices == [2, 0]


def test_the_plainest_choice_is_no_chance() -> None:
    assert not chance(Replay([]), 6)
    assert chance(Replay([5]), 6)


def test_an_option_that_stands_there_twice_comes_twice_as_often() -> None:
    dice = Dice(1)
    picked = [pick(dice, ("rare", "frequent", "frequent")) for _ in range(3_000)]

    assert 1_800 < picked.count("frequent") < 2_200


@given(st.lists(st.integers(0, MOST - 1), max_size=60), st.integers(0, 2**32))
def test_a_neighbour_is_made_of_choices_that_can_be_made(choices: list[int], seed: int) -> None:
    near = neighbour(choices, Dice(seed), other=[1, 2, 3])

    assert all(0 <= choice < MOST for choice in near)
    assert len(near) <= len(choices) + 16


def test_most_neighbours_share_a_beginning_with_what_they_come_from() -> None:
    choices = list(range(100))
    near = [neighbour(choices, Dice(seed)) for seed in range(200)]

    assert sum(one[:10] == choices[:10] for one in near) > 140
    assert sum(one == choices for one in near) < 10


def test_a_neighbour_may_end_as_another_run() -> None:
    near = [neighbour([0] * 50, Dice(seed), other=[7] * 50) for seed in range(200)]

    assert any(set(one) == {0, 7} for one in near)
