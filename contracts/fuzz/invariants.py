"""What must hold after every step of every run, whatever the agents do and whatever goes wrong on the way.

consent      a wait ends only as the oracle allows, and says settled only of what the core has really shown  D8
timeout      no call takes longer than its limit, in virtual time                                            D8
text-once    each text reaches an agent at most once, and no other agent than its own                        D10
own-only     nothing is killed, removed, interrupted or prompted that the supervisor did not start           ID1
two-runs     a spawn makes at most two `terminal.run`                                                        A4
claims       what a retirement says of the terminal is so                                                    D11
typed        every failure is a `SupervisorError` with a code of the list                                    D12
hangs        every call comes back                                                                           D8
left-over    after the close no task, no connection and no timer is left                                     D11-finish
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from contracts.fuzz.oracle import Failed, History, Look, Missing, Outcome, Seen, objections, satisfies
from contracts.fuzz.watched import MISSING_KIND, Ask, Incarnation, Touch
from contracts.scenario import Step
from hc_sim.trace import Event
from legion_terminal.errors import Code, SupervisorError
from legion_terminal.settle import SettleResult
from legion_terminal.types import Child, RetireResult

Invariant = Literal[
    "consent", "timeout", "text-once", "own-only", "two-runs", "claims", "typed", "hangs", "left-over", "harness"
]
CLAUSES: Final[Mapping[str, str]] = {
    "consent": "D8",
    "timeout": "D8",
    "text-once": "D10",
    "own-only": "ID1",
    "two-runs": "A4",
    "claims": "D11",
    "typed": "D12",
    "hangs": "D8",
    "left-over": "D11-finish",
    "harness": "",
}
CODES: Final = frozenset(get_args(Code))
LONE_LOOK_MS: Final = 1_000
"""What the one look of a wait without any time may take."""
LONGEST_MS: Final[Mapping[str, int]] = {
    "spawn": 60_000,
    "steer": 600_000,
    "abort": 600_000,
    "status": 20_000,
    "collect": 500,
    "retire": 12_000,
}
"""Limits of the calls that have no timeout of their own: the deadlines of what they do on the wire, added up. A steer
or an abort may have to wait for others of the same child, each as long as a core may hold a message."""
MAX_RUNS: Final = 2
NO_TURN: Final = -(2**31)
"""Stands for a remembered turn that is not known: every turn is above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An invariant that does not hold: at which step of the drive, and how that shows."""

    invariant: Invariant
    words: str
    step: int

    @property
    def clause(self) -> str:
        """The clause that it is about."""
        return CLAUSES[self.invariant]


@dataclass(slots=True)
class Done:
    """One step of the drive that has come back. Times are ms of the run's clock."""

    index: int
    step: Step
    begun_ms: int
    ended_ms: int
    child: Child | None = None
    identity: Incarnation | None = None
    """Which incarnation the child is."""
    prompt_turn: int = 0
    """The turn that was remembered when the step began, and that it still was when it ended."""
    disturbed: bool = False
    """Whether another call that may change what a wait waits for was under way meanwhile."""
    retired: bool = False
    """Whether the child had been retired before."""
    cancelled_ms: int | None = None
    """When a wait was called off."""
    result: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class Watched:
    """What of a run has been looked at so far, kept between two steps."""

    events: int = 0
    touches: int = 0
    runs: dict[str, int] = field(default_factory=dict)
    reached: dict[str, str] = field(default_factory=dict)
    shown: dict[str, list[Event]] = field(default_factory=dict)


def consent(done: Done, asks: list[Ask], shown: Mapping[str, list[Event]]) -> Iterator[Broken]:
    """D8 for one wait: the oracle agrees with it, and what settled it was shown by the core."""
    result, child = done.result, done.child
    if not isinstance(result, SettleResult) or child is None:
        return
    index = done.index
    looks = looks_of(done, asks)
    if done.retired or done.disturbed:
        last = looks[-1] if looks else None
        if result.settled and not (isinstance(last, Seen) and _may_settle(done, last, asks)):
            words = "settled, though its last look showed no answer to the newest prompt"
            yield Broken(invariant="consent", words=words, step=index)
    else:
        outcome = Outcome(
            at_ms=done.ended_ms,
            settled=result.settled,
            abnormal=result.abnormal,
            reason=result.reason,  # type: ignore[arg-type]
            exit_code=result.exit_code,
            signal=result.signal,
            last_turn=result.last_turn,
            last_status=result.last_status,
        )
        wrong = objections(history_of(done, asks, looks), outcome)
        if wrong:
            yield Broken(invariant="consent", words="; ".join(wrong), step=index)
            return
    if result.settled and not _was_shown(result, shown.get(child.address, [])):
        yield Broken(invariant="consent", words="settled on what the core never showed", step=index)


def history_of(done: Done, asks: list[Ask], looks: tuple[Look, ...]) -> History:
    """What one wait saw, for the oracle."""
    timeout = float(done.step.args.get("timeoutMs", 0))
    return History(
        prompt_turn=done.prompt_turn,
        timeout_ms=timeout,
        looks=looks,
        started_ms=done.begun_ms,
        cancelled_ms=done.cancelled_ms,
        slack_ms=LONE_LOOK_MS if timeout <= 0 else 0,
    )


def looks_of(done: Done, asks: list[Ask]) -> tuple[Look, ...]:
    """The looks of one wait, as the oracle has them."""
    mine = [ask for ask in asks if ask.step == done.index and ask.method == "terminal.get" and ask.ended_ms is not None]
    return tuple(_look(ask, done) for ask in mine)


def in_time(done: Done) -> Iterator[Broken]:
    """No call takes longer than it may."""
    took = done.ended_ms - done.begun_ms
    if done.step.do == "wait":
        timeout = float(done.step.args.get("timeoutMs", 0))
        limit = timeout if timeout > 0 else LONE_LOOK_MS
    else:
        limit = LONGEST_MS.get(done.step.do, took)
    if took > limit:
        yield Broken(
            invariant="timeout", words=f"{done.step.do} took {took} ms, and may take {limit:g}", step=done.index
        )


def typed(done: Done) -> Iterator[Broken]:
    """A failure is one of the contract's own."""
    error = done.error
    if error is None or (isinstance(error, SupervisorError) and error.code in CODES):
        return
    yield Broken(invariant="typed", words=f"{done.step.do} raised {type(error).__name__}: {error}", step=done.index)


def few_runs(done: Done, runs: Mapping[str, int]) -> Iterator[Broken]:
    """A spawn starts at most two programs; `runs` counts the `terminal.run` since it began, by name."""
    for name, count in runs.items():
        if done.step.do == "spawn" and count > MAX_RUNS:
            yield Broken(invariant="two-runs", words=f"{count} terminal.run for {name}", step=done.index)


def claims(done: Done, asks: list[Ask], standing: Mapping[Incarnation, str]) -> Iterator[Broken]:
    """What a retirement says is so, unless the core has said it. `asks`: the calls of all retirements of this child.

    `standing`: the terminals that there are, with their states.
    """
    result = done.result
    if not isinstance(result, RetireResult) or done.identity is None:
        return
    if any(_says_gone(ask, done.identity) for ask in asks):
        return
    state = standing.get(done.identity)
    if result.ended and state == "running":
        yield Broken(invariant="claims", words="said to have ended, and its program runs", step=done.index)
    if result.removed and state is not None:
        yield Broken(invariant="claims", words=f"said to be removed, and is there, {state}", step=done.index)


def reached_once(event: Event, kept: Watched, step: int, texts: Mapping[str, Incarnation | None]) -> Iterator[Broken]:
    """A text that reaches an agent: not for the second time, and its own. `texts`: the texts sent so far, for whom."""
    for text, meant in texts.items():
        if text not in event.text:
            continue
        if text in kept.reached:
            yield Broken(invariant="text-once", words=f"{text!r} reached an agent twice", step=step)
        elif meant is not None and event.terminal != meant[0]:
            yield Broken(invariant="text-once", words=f"{text!r} reached terminal {event.terminal}", step=step)
        kept.reached[text] = event.terminal


def own_only(touch: Touch, asks: list[Ask], own: Mapping[Incarnation, int | None], step: int) -> Iterator[Broken]:
    """A changing call met a terminal that it may change, or the supervisor had just seen that it might.

    `own`: what the supervisor started, with the step of the spawn that returned it as a child (None: none did).
    Between a look and the change that follows it the world may move; that is nobody's fault.
    """
    if touch.met is None or touch.method == "terminal.run":
        return
    ask = _behind(touch, asks)
    look = _look_before(ask, asks) if ask is not None else None
    seen = look.incarnation if look is not None else None
    clears_name = touch.method == "terminal.rm" and touch.target == touch.met[0]
    if clears_name:
        finished = not touch.live or (look is not None and (look.shown or {}).get("state") == "finished")
        if not finished:
            yield Broken(invariant="own-only", words=f"removed {touch.target}, which runs", step=step)
    elif touch.met not in own and (seen is None or seen not in own):
        words = f"{touch.method} met {touch.target} at {touch.met[0]}, which it did not start"
        yield Broken(invariant="own-only", words=words, step=step)


def _says_gone(ask: Ask, identity: Incarnation) -> bool:
    """Whether the core answered that the terminal is removed, not there, or another one by now."""
    if ask.error is not None:
        return ask.error.kind == MISSING_KIND
    if ask.method == "terminal.rm":
        return ask.result is not None
    return ask.method == "terminal.get" and ask.result is not None and ask.incarnation not in (None, identity)


def _behind(touch: Touch, asks: list[Ask]) -> Ask | None:
    """The newest call of the supervisor's that may have led to this one."""
    same = (ask for ask in reversed(asks) if (ask.method, ask.target) == (touch.method, touch.target))
    return next(same, None)


def _look_before(ask: Ask, asks: list[Ask]) -> Ask | None:
    """The newest look that the same step had an answer to before it made this call."""
    at = next(index for index, one in enumerate(asks) if one is ask)
    mine = (one for one in reversed(asks[:at]) if one.step == ask.step and one.method == "terminal.get")
    return next((one for one in mine if one.result is not None), None)


def _look(ask: Ask, done: Done) -> Look:
    at_ms = ask.ended_ms or 0
    if ask.error is not None:
        return Missing(at_ms=at_ms) if ask.error.kind == MISSING_KIND else Failed(at_ms=at_ms)
    shown = ask.shown
    if shown is None:
        return Failed(at_ms=at_ms)
    status = shown.get("status")
    return Seen(
        at_ms=at_ms,
        turn=int(shown["turn"]),
        status=status.get("state") if isinstance(status, dict) else None,
        state=str(shown["state"]),
        exit_code=shown.get("exit_code"),
        signal=shown.get("signal"),
        ours=_is_ours(ask, shown, done),
    )


def _is_ours(ask: Ask, shown: Mapping[str, Any], done: Done) -> bool:
    child = done.child
    if child is None:
        return False
    ours = (child.address, child.created_ms, list(child.argv), child.name)
    theirs = (shown.get("address"), shown.get("created_ms"), shown.get("argv"), shown.get("name") or child.name)
    return ours == theirs and child.core_id in ("", ask.core_id)


def _may_settle(done: Done, look: Seen, asks: list[Ask]) -> bool:
    """Whether a look answers a prompt that was the newest one in the millisecond of the look."""
    changes = [(done.begun_ms, done.prompt_turn), *_prompts(done, asks)]
    until = [at_ms for at_ms, _ in changes[1:]] + [look.at_ms]
    return any(
        satisfies(turn, look)
        for (from_ms, turn), to_ms in zip(changes, until, strict=True)
        if from_ms <= look.at_ms <= to_ms
    )


def _prompts(done: Done, asks: list[Ask]) -> Iterator[tuple[int, int]]:
    """When the turn that is remembered for the child changed during a wait, and to what."""
    name = done.child.name if done.child is not None else ""
    remembered = done.prompt_turn
    for ask in asks:
        if ask.method != "terminal.send" or ask.target != name or (ask.ended_ms or done.ended_ms) < done.begun_ms:
            continue
        look = _look_before(ask, asks)
        if ask.begun_ms >= done.begun_ms and ask.begun_ms <= done.ended_ms and look is not None:
            yield ask.begun_ms, int((look.shown or {}).get("turn") or 0)
        if ask.error is not None and ask.error.known != "unknown" and ask.ended_ms is not None:
            yield max(ask.ended_ms, done.begun_ms), remembered if ask.begun_ms >= done.begun_ms else NO_TURN


def _was_shown(result: SettleResult, states: list[Event]) -> bool:
    """Whether the core has ever been in the state that settled the wait."""
    if result.last_status == "done":
        return any(event.turn == result.last_turn and event.status == "done" for event in states)
    return any(event.state == "finished" for event in states)
