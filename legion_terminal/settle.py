"""D8: an observation goes in, "settled / not yet" comes out. No I/O, no clock.

The theory. A prompt is answered when the terminal's turn counter has passed the turn remembered before the prompt
(`prompt_turn`) and the program says `done`; or when the program has ended. Nothing else is an answer. In particular
`idle` is what a freshly booted agent shows, and `done` at the remembered turn is what an earlier prompt has left.

One observation is judged by the first row of `SETTLE_ROWS` that fits it:

    state       turn            status      settled
    finished    any             any         yes, with exit code or signal
    any         > prompt_turn   done        yes
    any         any             any         not yet

A wait is a series of events, judged by `Wait.step`:

    event       what happened                                   what it does
    Seen        an observation arrived                          settles or not by the rows above; forgets misses
    Missing     the core knows no such terminal                 the second in a row (`GONE_AFTER`) ends it: gone
    Replaced    another incarnation answers to the name         ends it: gone
    Failed      no answer, or one that says nothing             decides nothing, extends nothing
    Cancelled   the parent called the wait off                  ends it: aborted by parent
    Tick        only time went by                               nothing
    (any)       and the deadline has passed, nothing decided    ends it: timeout

A wait that has ended stays ended: every later event gets the same answer.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, assert_never

POLL_MS: Final = 250
"""How long a wait rests between two polls, unless told otherwise."""
GONE_AFTER: Final = 2
"""How many misses in a row mean that the terminal is gone."""
LONGEST_MS: Final = 2**53
"""A timeout from here on (about 285,000 years) is no deadline at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one `terminal.get` showed. `status` is `status.state`, None when nothing is reported."""

    turn: int
    status: str | None
    state: str
    exit_code: int | None = None
    signal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleResult:
    """How a wait ended (D8). `reason`: None when settled, else `timeout`, `gone` or `aborted by parent`.

    `exit_code`/`signal` come with a finished terminal. `last_turn` and `last_status` are the newest observation.
    The rest comes from headless children alone: `node` is the state of the orchestrator's node, `aborted` what the end
    of the run said of itself, `unconfirmed` how many queued texts were not taken up, `detail` a sentence for people.
    """

    settled: bool
    abnormal: bool = False
    reason: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    last_turn: int | None = None
    last_status: str | None = None
    node: str | None = None
    aborted: bool | None = None
    unconfirmed: int | None = None
    detail: str | None = None


SETTLE_ROWS: Final[tuple[tuple[str, Literal["any", "new"], str, bool], ...]] = (
    # state, turn, status, settled: the first row that fits decides
    ("finished", "any", "any", True),
    ("any", "new", "done", True),
    ("any", "any", "any", False),
)


def decide(prompt_turn: int, observation: Observation) -> bool:
    """Whether this one observation settles a wait for the prompt sent at `prompt_turn` (D8)."""
    for state, turn, status, settled in SETTLE_ROWS:
        if state not in ("any", observation.state):
            continue
        if turn == "new" and not observation.turn > prompt_turn:
            continue
        if status in ("any", observation.status):
            return settled
    raise AssertionError("the last row fits everything")


@dataclass(frozen=True, slots=True)
class Seen:
    """An observation of the child arrived."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class Missing:
    """The core answered that it knows no such terminal."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The name is now held by another incarnation: other core, other creation time or other program."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The observation failed: no answer, a lost bridge, or an error that says nothing about the child."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The parent called the wait off."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing happened but time."""


Event = Seen | Missing | Replaced | Failed | Cancelled | Tick


@dataclass(frozen=True, slots=True)
class Continue:
    """Not yet: poll again after `poll_in_ms`, which is at least 1 and never reaches past the deadline."""

    poll_in_ms: int


class Wait:
    """One wait for one prompt, without a clock of its own: `now` is milliseconds on any monotonic scale.

    `timeout_ms` may be any number. Zero, a negative one and NaN allow one look and then end as a timeout; infinity and
    whatever is above `LONGEST_MS` never end by time.
    """

    __slots__ = ("_deadline_ms", "_ended", "_last", "_misses", "_poll_ms", "_prompt_turn")

    def __init__(self, prompt_turn: int, timeout_ms: float, now: int, *, poll_ms: int = POLL_MS) -> None:
        self._prompt_turn = prompt_turn
        self._deadline_ms = _deadline(timeout_ms, now)
        self._poll_ms = max(1, poll_ms)
        self._misses = 0
        self._last: Observation | None = None
        self._ended: SettleResult | None = None

    @property
    def last(self) -> Observation | None:
        """The newest observation, None before the first."""
        return self._last

    def prompted(self, prompt_turn: int) -> None:
        """Another prompt went out while this wait ran: only what comes after `prompt_turn` settles it from now on."""
        self._prompt_turn = prompt_turn

    def remaining_ms(self, now: int) -> int | None:
        """How long a poll begun now may take: 0 when the time is over, None when it never is."""
        if self._deadline_ms is None:
            return None
        return max(0, self._deadline_ms - now)

    def step(self, event: Event, now: int) -> Continue | SettleResult:
        """Take one event in. A settled child wins over a deadline that has passed meanwhile."""
        if self._ended is None:
            self._ended = self._judge(event) or self._overdue(now)
        if self._ended is not None:
            return self._ended
        remaining = self.remaining_ms(now)
        return Continue(self._poll_ms if remaining is None else max(1, min(self._poll_ms, remaining)))

    def _judge(self, event: Event) -> SettleResult | None:
        match event:
            case Seen(observation):
                self._last = observation
                self._misses = 0
                return self._end(settled=True) if decide(self._prompt_turn, observation) else None
            case Missing():
                self._misses += 1
                return self._end(abnormal=True, reason="gone") if self._misses >= GONE_AFTER else None
            case Replaced():
                return self._end(abnormal=True, reason="gone")
            case Cancelled():
                return self._end(reason="aborted by parent")
            case Failed() | Tick():
                return None
            case _:  # pragma: no cover
                assert_never(event)

    def _overdue(self, now: int) -> SettleResult | None:
        return self._end(reason="timeout") if self.remaining_ms(now) == 0 else None

    def _end(self, *, settled: bool = False, abnormal: bool = False, reason: str | None = None) -> SettleResult:
        last = self._last
        finished = settled and last is not None
        return SettleResult(
            settled=settled,
            abnormal=abnormal,
            reason=reason,
            exit_code=last.exit_code if finished and last else None,
            signal=last.signal if finished and last else None,
            last_turn=last.turn if last else None,
            last_status=last.status if last else None,
        )


def _deadline(timeout_ms: float, now: int) -> int | None:
    if math.isnan(timeout_ms) or timeout_ms <= 0:
        return now
    return None if timeout_ms >= LONGEST_MS else now + math.ceil(timeout_ms)
