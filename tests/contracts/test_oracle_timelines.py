"""The oracle over worked timelines: what each of them demands, and that no other outcome and no hasty rule passes."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from contracts.fuzz import Failed, History, Look, Outcome, Prompt, Seen, objections, satisfies, watch

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


BOOT = shows(0, 0, "idle")
TIMELINES: dict[str, tuple[History, Outcome]] = {
    "BC-032 start-up idle": (
        polled([BOOT, shows(2000, 1, "working"), shows(5000, 1, "done")]),
        Outcome(at_ms=5000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-032 done at the remembered turn": (
        polled([shows(0, 0, "done"), shows(2000, 1, "working"), shows(5100, 1, "done")]),
        Outcome(at_ms=5250, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-033 a turn between two polls": (
        polled([shows(0, 0, None), shows(50, 1, "working"), shows(80, 1, "done")]),
        Outcome(at_ms=250, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-034 the old done": (
        polled([shows(0, 1, "done"), shows(800, 2, "working"), shows(3000, 2, "done")], prompt_turn=1),
        Outcome(at_ms=3000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-035 done withdrawn before a poll": (
        polled(
            [BOOT, shows(1000, 1, "working"), shows(1600, 1, "done"), shows(1800, 1, "idle")],
            timeout_ms=10_000,
            poll_ms=500,
        ),
        Outcome(at_ms=10_000, settled=False, reason="timeout", last_turn=1, last_status="idle"),
    ),
    "BC-036 straight to idle": (
        polled([BOOT, shows(1200, 1, "working"), shows(3000, 1, "idle")]),
        Outcome(at_ms=30_000, settled=False, reason="timeout", last_turn=1, last_status="idle"),
    ),
    "BC-037 stuck on working": (
        polled([BOOT, shows(1000, 1, "working")], timeout_ms=20_000),
        Outcome(at_ms=20_000, settled=False, reason="timeout", last_turn=1, last_status="working"),
    ),
    "BC-038 blocked to the end": (
        polled([BOOT, shows(1000, 1, "working"), shows(2000, 1, "blocked")], timeout_ms=15_000),
        Outcome(at_ms=15_000, settled=False, reason="timeout", last_turn=1, last_status="blocked"),
    ),
    "BC-039 error": (
        polled([BOOT, shows(1000, 1, "working"), shows(2000, 1, "error")], timeout_ms=10_000),
        Outcome(at_ms=10_000, settled=False, reason="timeout", last_turn=1, last_status="error"),
    ),
    "BC-043 steer absorbed": (
        polled([shows(0, 1, "working"), shows(7000, 1, "done")], prompt_turn=1),
        Outcome(at_ms=30_000, settled=False, reason="timeout", last_turn=1, last_status="done"),
    ),
    "BC-046 the counter falls": (
        polled(
            [shows(0, 5, "done"), shows(200, 0, None), shows(1000, 1, "working"), shows(4000, 1, "done")], prompt_turn=5
        ),
        Outcome(at_ms=30_000, settled=False, reason="timeout", last_turn=1, last_status="done"),
    ),
    "BC-048 failed looks": (
        polled(
            [BOOT, shows(1000, 1, "working"), Failed(at_ms=2000), shows(4100, 1, "working"), shows(6000, 1, "done")]
        ),
        Outcome(at_ms=6000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-050 dead at start": (
        polled([shows(0, 0, None), shows(300, 0, None, state="finished", exit_code=127)], timeout_ms=60_000),
        Outcome(at_ms=500, settled=True, exit_code=127, last_turn=0),
    ),
    "BC-051 an endless timeout": (
        polled([BOOT, shows(5000, 1, "done")], timeout_ms=math.inf),
        Outcome(at_ms=5000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-051 no time at all": (
        polled([shows(0, 1, "working")], timeout_ms=-1),
        Outcome(at_ms=0, settled=False, reason="timeout", last_turn=1, last_status="working"),
    ),
    "BC-051 no number, but done": (
        polled([shows(0, 1, "done")], timeout_ms=math.nan),
        Outcome(at_ms=0, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-057 called off": (
        replace(polled([BOOT, shows(1000, 1, "working"), shows(5000, 1, "done")], until=2999), cancelled_ms=3000),
        Outcome(at_ms=3000, settled=False, reason="aborted by parent", last_turn=1, last_status="working"),
    ),
    "BC-032 done at the start-up": (
        polled([shows(0, 0, None), shows(500, 0, "done"), shows(2000, 1, "working"), shows(5000, 1, "done")]),
        Outcome(at_ms=5000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-035 done for over a poll": (
        polled(
            [BOOT, shows(1000, 1, "working"), shows(1600, 1, "done"), shows(2200, 1, "idle")],
            timeout_ms=10_000,
            poll_ms=500,
        ),
        Outcome(at_ms=2000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-036 reset without an answer": (
        polled([shows(0, 1, "working"), shows(2000, 1, "idle")]),
        Outcome(at_ms=30_000, settled=False, reason="timeout", last_turn=1, last_status="idle"),
    ),
    "BC-038 answered after all": (
        polled(
            [
                BOOT,
                shows(1000, 1, "working"),
                shows(2000, 1, "blocked"),
                shows(9000, 1, "working"),
                shows(12_000, 1, "done"),
            ],
            timeout_ms=15_000,
        ),
        Outcome(at_ms=12_000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-038 blocked sticks until done": (
        polled(
            [BOOT, shows(1000, 1, "working"), shows(2000, 1, "blocked"), shows(12_000, 2, "done")], timeout_ms=15_000
        ),
        Outcome(at_ms=12_000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-040 the helper's done is seen": (
        polled(
            [BOOT, shows(1000, 1, "working"), shows(3000, 1, "done"), shows(3100, 1, "working"), shows(9000, 1, "done")]
        ),
        Outcome(at_ms=3000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-040 the helper's done is not seen": (
        polled(
            [BOOT, shows(1000, 1, "working"), shows(2900, 1, "done"), shows(2999, 1, "working"), shows(9000, 1, "done")]
        ),
        Outcome(at_ms=9000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-041 left in the composer": (
        polled([shows(0, 1, "done")], prompt_turn=1, timeout_ms=20_000),
        Outcome(at_ms=20_000, settled=False, reason="timeout", last_turn=1, last_status="done"),
    ),
    "BC-041 submitted by somebody": (
        polled([shows(0, 1, "done"), shows(8000, 2, "working"), shows(11_000, 2, "done")], prompt_turn=1),
        Outcome(at_ms=11_000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-042 slow to start": (
        polled([BOOT, shows(9000, 1, "working"), shows(12_000, 1, "done")]),
        Outcome(at_ms=12_000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-043 steer at the boundary": (
        polled(
            [
                BOOT,
                shows(1000, 1, "working"),
                shows(4000, 1, "done"),
                shows(4100, 2, "working"),
                shows(7000, 2, "done"),
            ],
            prompts=(Prompt(at_ms=2010, turn=1),),
        ),
        Outcome(at_ms=7000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-043 steer absorbed while the wait runs": (
        polled([BOOT, shows(1000, 1, "working"), shows(7000, 1, "done")], prompts=(Prompt(at_ms=2010, turn=1),)),
        Outcome(at_ms=30_000, settled=False, reason="timeout", last_turn=1, last_status="done"),
    ),
    "BC-044 somebody else's done": (
        polled([shows(0, 2, "done"), shows(1000, 3, "working"), shows(4000, 3, "done")], prompt_turn=2),
        Outcome(at_ms=4000, settled=True, last_turn=3, last_status="done"),
    ),
    "BC-045 a person goes on": (
        polled(
            [shows(0, 1, "working"), shows(3010, 1, "done"), shows(3050, 2, "working"), shows(5000, 2, "done")],
            poll_ms=1300,
        ),
        Outcome(at_ms=5200, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-046 the next prompt reads the turn again": (
        polled([shows(16_000, 1, "done"), shows(17_000, 2, "done")], prompt_turn=1, started_ms=16_000),
        Outcome(at_ms=17_000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-047 an old answer comes after the end": (
        History(prompt_turn=0, timeout_ms=LONG_MS, looks=(shows(1100, 1, "done"), shows(3000, 0, "idle"))),
        Outcome(at_ms=1100, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-052 the time is not the wall's": (
        polled([shows(0, 1, "working")], timeout_ms=120_000, until=119_999),
        Outcome(at_ms=120_000, settled=False, reason="timeout", last_turn=1, last_status="working"),
    ),
    "BC-054 interrupted": (
        polled([shows(1000, 1, "working"), shows(2200, 1, "idle")], timeout_ms=8000, started_ms=1000),
        Outcome(at_ms=9000, settled=False, reason="timeout", last_turn=1, last_status="idle"),
    ),
    "BC-054 prompted after the interrupt": (
        polled(
            [shows(12_000, 1, "idle"), shows(12_500, 2, "working"), shows(15_000, 2, "done")],
            prompt_turn=1,
            started_ms=12_000,
        ),
        Outcome(at_ms=15_000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-057 a new wait": (
        polled([shows(5000, 1, "done")], started_ms=6000, timeout_ms=60_000),
        Outcome(at_ms=6000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-058 turn first, between two polls": (
        polled(
            [shows(0, 1, "done"), shows(300, 2, "done"), shows(350, 2, "working"), shows(4000, 2, "done")],
            prompt_turn=1,
        ),
        Outcome(at_ms=4000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-058 turn first, and a poll sees the half of it": (
        polled(
            [shows(0, 1, "done"), shows(240, 2, "done"), shows(290, 2, "working"), shows(4000, 2, "done")],
            prompt_turn=1,
        ),
        Outcome(at_ms=250, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-058 status first": (
        polled(
            [shows(0, 1, "done"), shows(240, 1, "working"), shows(290, 2, "working"), shows(4000, 2, "done")],
            prompt_turn=1,
        ),
        Outcome(at_ms=4000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-059 a prompt into a turn of its own": (
        polled(
            [shows(6000, 2, "working"), shows(9000, 2, "done"), shows(9200, 3, "working"), shows(12_000, 3, "done")],
            prompt_turn=2,
            started_ms=6000,
        ),
        Outcome(at_ms=12_000, settled=True, last_turn=3, last_status="done"),
    ),
    "BC-061 not confirmed, and taken in": (
        polled(
            [
                BOOT,
                shows(1000, 1, "working"),
                shows(5000, 1, "done"),
                shows(5100, 2, "working"),
                shows(8000, 2, "done"),
            ],
            prompts=(Prompt(at_ms=2010, turn=1),),
        ),
        Outcome(at_ms=8000, settled=True, last_turn=2, last_status="done"),
    ),
    "BC-062 ten silent minutes": (
        polled([BOOT, shows(1000, 1, "working"), shows(601_000, 1, "done")], timeout_ms=900_000, until=700_000),
        Outcome(at_ms=601_000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-062 the report is aged out": (
        polled(
            [BOOT, shows(1000, 1, "working"), shows(31_000, 1, None), shows(601_000, 1, "done")],
            timeout_ms=900_000,
            until=700_000,
        ),
        Outcome(at_ms=601_000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-063 the link ends during a poll": (
        polled(
            [shows(0, 1, "working"), Failed(at_ms=3600), shows(3800, 1, "working"), shows(4000, 1, "done")],
            timeout_ms=7_200_000,
        ),
        Outcome(at_ms=4000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-065 work goes on in the background": (
        polled([BOOT, shows(3000, 1, "working"), shows(4000, 1, "done"), shows(30_000, 2, "working")]),
        Outcome(at_ms=4000, settled=True, last_turn=1, last_status="done"),
    ),
    "BC-065 waited for again": (
        polled(
            [shows(5000, 1, "done"), shows(30_000, 2, "working"), shows(33_000, 2, "done")],
            prompt_turn=1,
            started_ms=5000,
            timeout_ms=60_000,
        ),
        Outcome(at_ms=33_000, settled=True, last_turn=2, last_status="done"),
    ),
}


ELSEWHERE = {
    "BC-049": "either of two misses may end it: see the tests of the oracle's choices",
    "BC-053": "about the number of polls",
    "BC-055": "about keys, and no wait",
    "BC-056": "about the text that is sent, and no wait",
    "BC-060": "about the text that is sent, and no wait",
    "BC-064": "about the text that is sent, and no wait",
}


def test_every_case_of_the_settle_layer_is_here_or_says_nothing_about_the_end_of_a_wait() -> None:
    here = {name.split()[0] for name in TIMELINES}
    assert here | set(ELSEWHERE) == {f"BC-{number:03}" for number in range(32, 66)}
    assert not here & set(ELSEWHERE)


@pytest.mark.parametrize("name", TIMELINES)
def test_a_worked_timeline_has_the_outcome_that_the_case_demands(name: str) -> None:
    history, outcome = TIMELINES[name]
    assert objections(history, outcome) == []


@pytest.mark.parametrize("name", TIMELINES)
def test_no_other_time_and_no_other_shape_is_right(name: str) -> None:
    history, outcome = TIMELINES[name]
    wrong = [
        replace(outcome, at_ms=outcome.at_ms + POLL_MS),
        replace(outcome, at_ms=outcome.at_ms - POLL_MS),
        replace(outcome, abnormal=True),
        replace(outcome, settled=not outcome.settled),
        replace(outcome, reason=None if outcome.reason else "timeout"),
        replace(outcome, exit_code=3),
        replace(outcome, signal="SIGKILL"),
        replace(outcome, last_turn=99),
        replace(outcome, last_status="nothing such"),
    ]
    assert [objections(history, one) for one in wrong if not objections(history, one)] == []


def broken(rule: Callable[[int, Seen], bool]) -> Callable[[History], Outcome | None]:
    """The end that a supervisor with another rule would give to a wait, None when it would wait on."""

    def end(history: History) -> Outcome | None:
        for look in history.looks:
            if isinstance(look, Seen) and rule(history.prompt_turn, look):
                return Outcome(
                    at_ms=look.at_ms,
                    settled=True,
                    exit_code=look.exit_code,
                    signal=look.signal,
                    last_turn=look.turn,
                    last_status=look.status,
                )
        return None

    return end


@pytest.mark.parametrize(
    "rule",
    [
        lambda turn, seen: satisfies(turn, seen) or seen.status == "idle",
        lambda turn, seen: satisfies(turn, seen) or (seen.turn > turn and seen.status == "idle"),
        lambda turn, seen: satisfies(turn, seen) or (seen.turn > turn and seen.status == "error"),
        lambda turn, seen: satisfies(turn, seen) or (seen.turn > turn and seen.status == "blocked"),
        lambda turn, seen: satisfies(turn, seen) or seen.turn > turn,
        lambda turn, seen: satisfies(turn, seen) or (seen.turn != turn and seen.status == "done"),
        lambda turn, seen: satisfies(turn, seen) or (seen.turn >= turn and seen.status == "done"),
    ],
    ids=["idle", "idle at a new turn", "error", "blocked", "turn alone", "another turn", "same turn"],
)
def test_a_rule_that_settles_too_early_is_refused_by_some_timeline(rule: Callable[[int, Seen], bool]) -> None:
    ends = [(history, broken(rule)(history)) for history, _ in TIMELINES.values()]
    assert any(end is not None and objections(history, end) for history, end in ends)
