"""A player arms one step at a time; each trigger fires when it should, never twice, and never by what came before."""

from hypothesis import given
from hypothesis import strategies as st

from hc_sim.script.format import Agent, Step
from hc_sim.script.player import Player


def player(*steps: Step, start: int = 0, repeat_from: int | None = None) -> Player:
    return Player(Agent(step=list(steps), repeat_from=repeat_from), start)


def drain(subject: Player, now: int) -> list[int]:
    """Indices of the steps that fire by time up to `now`, each at its own moment."""
    fired = []
    while (due := subject.due()) is not None and due <= now:
        step = subject.timed(due)
        assert step is not None
        fired.append(step[0])
    return fired


def test_at_ms_counts_from_the_start_and_after_ms_from_the_step_before() -> None:
    subject = player(Step(at_ms=100), Step(after_ms=50), Step(at_ms=400), start=1000)
    assert subject.due() == 1100
    assert subject.timed(1099) is None
    assert drain(subject, 1149) == [0]
    assert subject.due() == 1150
    assert drain(subject, 1399) == [1]
    assert drain(subject, 1400) == [2]
    assert (subject.index, subject.due()) == (None, None)


def test_a_step_whose_time_is_past_when_it_is_armed_fires_at_once() -> None:
    subject = player(Step(by_hand="go"), Step(at_ms=10))
    assert subject.named("go", 500) is not None
    assert subject.due() == 500


def test_on_call_counts_calls_of_its_method_from_its_arming() -> None:
    subject = player(Step(by_hand="go"), Step(on_call="terminal.get", nth=2))
    assert subject.called("terminal.get", 1) is None
    subject.named("go", 2)
    assert subject.called("terminal.send", 3) is None
    assert subject.called("terminal.get", 4) is None
    fired = subject.called("terminal.get", 5)
    assert fired is not None
    assert fired[0] == 1


def test_a_call_fires_at_most_one_step() -> None:
    subject = player(Step(on_call="terminal.get"), Step(on_call="terminal.get"))
    assert [subject.called("terminal.get", 0) is not None, subject.index] == [True, 1]


def test_after_observations_fires_with_the_nth_answer() -> None:
    subject = player(Step(after_observations=3))
    assert [subject.seen(t) is not None for t in range(4)] == [False, False, True, False]


def test_after_no_observations_is_at_once() -> None:
    assert player(Step(after_observations=0), start=7).due() == 7


def test_by_hand_fires_by_its_own_name_only_and_only_when_armed() -> None:
    subject = player(Step(by_hand="one"), Step(by_hand="two"))
    assert subject.named("two", 0) is None
    assert subject.named("one", 0) is not None
    assert subject.named("one", 0) is None
    assert subject.named("two", 0) is not None


def test_a_prompt_waits_for_the_step_that_takes_it_and_is_taken_once() -> None:
    subject = player(Step(at_ms=100), Step(on_prompt=True), Step(after_ms=10), repeat_from=1)
    subject.prompted()
    assert subject.due() == 100
    assert drain(subject, 100) == [0, 1]
    assert drain(subject, 1000) == [2]
    assert subject.due() is None
    subject.prompted()
    assert subject.due() is not None


def test_repeat_from_arms_that_step_again_after_the_last() -> None:
    subject = player(Step(at_ms=0), Step(after_ms=10), Step(after_ms=10), repeat_from=1)
    assert drain(subject, 60) == [0, 1, 2, 1, 2, 1, 2]


def test_jump_arms_another_step_from_now() -> None:
    subject = player(Step(after_ms=10), Step(after_ms=10), Step(after_ms=10))
    subject.jump(2, 100)
    assert (subject.index, subject.due()) == (2, 110)


def test_a_stopped_player_plays_nothing() -> None:
    subject = player(Step(after_ms=10), repeat_from=0)
    subject.stop()
    assert (subject.index, subject.due()) == (None, None)
    assert subject.called("terminal.get", 0) is None
    assert subject.seen(0) is None
    assert subject.named("x", 0) is None


def test_an_agent_without_steps_has_nothing_to_do() -> None:
    assert (player().index, player().due()) == (None, None)


steps = st.one_of(
    st.integers(0, 50).map(lambda t: Step(at_ms=t)),
    st.integers(0, 50).map(lambda t: Step(after_ms=t)),
    st.integers(1, 3).map(lambda n: Step(on_call="terminal.get", nth=n)),
    st.integers(1, 3).map(lambda n: Step(after_observations=n)),
    st.just(Step(by_hand="go")),
)
happenings = st.lists(st.sampled_from(["get", "seen", "go", "tick"]), max_size=60)


@given(st.lists(steps, max_size=6), happenings)
def test_steps_fire_in_the_order_written_and_each_once(timeline: list[Step], happened: list[str]) -> None:
    subject = player(*timeline)
    fired = []
    for now, what in enumerate(happened):
        found = {
            "get": lambda now=now: subject.called("terminal.get", now),
            "seen": lambda now=now: subject.seen(now),
            "go": lambda now=now: subject.named("go", now),
            "tick": lambda now=now: subject.timed(now),
        }[what]()
        if found is not None:
            fired.append(found[0])
    assert fired == list(range(len(fired)))
    assert len(fired) <= len(timeline)
