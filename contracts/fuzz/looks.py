"""Random lives that go on by looks alone, and what a supervisor owes for each: exact whatever a machine's speed. Pure.

A driver runs in real time, where nothing can be said about moments. So the agents of these lives change after a number
of looks and at nothing else, and the drive makes its calls one after the other. Which look shows what follows from the
contract, and so does every answer: a start makes no look, a status one, a steer one before its send, a wait one after
the other until it has settled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from contracts.scenario import Expect, Scenario, Step, World
from hc_sim.script.format import Agent, Finish, StatusWord
from hc_sim.script.format import Step as Change

POLL_MS: Final = 20
SETTLES_MS: Final = 9_000
"""The timeout of a wait that has to settle: never the reason why it ends."""
TIMES_OUT_MS: Final = 400
"""The timeout of a wait that cannot settle."""
LIMIT_MS: Final = 30_000
MAX_CHANGES: Final = 9
MAX_ACTS: Final = 6
WORDS: Final[tuple[StatusWord, ...]] = ("idle", "working", "working", "done", "done", "error", "blocked")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a look shows."""

    turn: int = 0
    status: StatusWord = "idle"
    code: int | None = None
    """The exit code of a program that has ended."""


@dataclass(frozen=True, slots=True)
class Turn:
    """After so many looks it is so."""

    looks: int
    then: Shown


@dataclass(frozen=True, slots=True)
class Life:
    """What an agent does, and what is asked about it: `status`, `steer` and `wait`, in this order."""

    turns: tuple[Turn, ...]
    acts: tuple[str, ...]


def drawn(seed: int) -> Life:
    """The life of this seed."""
    random = Random(seed)  # noqa: S311 - a life to repeat, and no secret
    shown = Shown()
    turns = []
    for _ in range(random.randint(1, MAX_CHANGES)):
        shown = _next(shown, random)
        turns.append(Turn(random.choice((1, 1, 1, 2, 3)), shown))
        if shown.code is not None:
            break
    acts = [random.choice(("status", "steer", "wait", "wait")) for _ in range(random.randint(0, MAX_ACTS))]
    return Life(tuple(turns), (*acts, "wait"))


def _next(shown: Shown, random: Random) -> Shown:
    chance = random.random()
    if chance < 0.06:
        return replace(shown, code=random.choice((0, 1, 70)))
    if chance < 0.16:
        return replace(shown, turn=shown.turn + 1)  # torn: the turn before the status
    word = random.choice(WORDS)
    begins = word == "working" and shown.status != "working" and random.random() < 0.8
    return Shown(shown.turn + (1 if begins else 0), word)


def smaller(life: Life) -> Iterator[Life]:
    """Lives that are one piece smaller, the largest cuts first."""
    for at in range(len(life.acts) - 1):
        yield replace(life, acts=life.acts[:at] + life.acts[at + 1 :])
    for at in range(len(life.turns)):
        yield replace(life, turns=life.turns[:at] + life.turns[at + 1 :])
    for at, turn in enumerate(life.turns):
        if turn.looks > 1:
            yield replace(life, turns=(*life.turns[:at], replace(turn, looks=1), *life.turns[at + 1 :]))


class _Model:
    """The agent as the contract's looks move it."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.shown = Shown()
        self.prompt_turn = 0
        self._turns = list(turns)
        self._seen = 0

    @property
    def over(self) -> bool:
        """Whether no look changes anything any more."""
        return not self._turns

    def look(self) -> Shown:
        """What one look shows; what follows from it is there for the next."""
        shown = self.shown
        self._seen += 1
        if self._turns and self._seen >= self._turns[0].looks:
            self.shown = self._turns.pop(0).then
            self._seen = 0
        return shown

    def settled(self, shown: Shown) -> bool:
        """D8."""
        return shown.code is not None or (shown.turn > self.prompt_turn and shown.status == "done")

    def may_be_steered(self) -> bool:
        """Whether a steer is certain to arrive, by what its look shows and by what follows from that."""
        shown = self.shown
        then = self._turns[0].then if self._turns and self._seen + 1 >= self._turns[0].looks else shown
        begun = shown.turn > 0 or shown.status == "working"
        return begun and all(one.code is None and one.status != "blocked" for one in (shown, then))


def as_scenario(life: Life, name: str) -> Scenario:
    """The life with everything that a supervisor owes for it. Acts that the contract does not decide are left out."""
    model = _Model(life.turns)
    drive = [Step(do="spawn", as_="a", returns={"mode": "terminal", "promptTurn": 0})]
    texts: list[str] = []
    for act in life.acts:
        if act == "status":
            drive.append(_status(model))
        elif act == "steer" and model.may_be_steered():
            texts.append(f"text {len(texts) + 1}")
            drive.append(_steer(model, texts[-1]))
        elif act == "wait":
            step, goes_on = _wait(model)
            drive.append(step)
            if not goes_on:
                break
    return Scenario(
        id=name,
        why="Each answer follows from what the looks have shown.",
        clauses=["D8"],
        hosts=["socket"],
        poll_ms=POLL_MS,
        limit_ms=LIMIT_MS,
        world=World(agent=[_agent(life)]),
        drive=[*drive, Step(do="retire", child="a", clause="D11", returns={"removed": True})],
        expect=[Expect(clause="D10", child="a", received=texts)],
    )


def _agent(life: Life) -> Agent:
    steps = []
    before = Shown()
    for one in life.turns:
        then = one.then
        if then.code is not None:
            steps.append(Change(after_observations=one.looks, finish=Finish(code=then.code)))
        else:
            turn = then.turn if then.turn != before.turn else None
            steps.append(Change(after_observations=one.looks, turn=turn, status=then.status))
        before = then
    return Agent(status="idle", step=steps)


def _status(model: _Model) -> Step:
    shown = model.look()
    if shown.code is not None:
        return Step(do="status", child="a", returns={"state": "finished", "exitCode": shown.code})
    return Step(do="status", child="a", returns={"state": "running", "turn": shown.turn, "status": shown.status})


def _steer(model: _Model, text: str) -> Step:
    model.prompt_turn = model.look().turn
    returns = {"promptTurn": model.prompt_turn}
    return Step(do="steer", child="a", clause="D10", args={"text": text}, returns=returns)


def _wait(model: _Model) -> tuple[Step, bool]:
    """The wait, and whether what comes after it is decided: how many looks one makes that times out is not."""
    while True:
        ends, shown = model.over, model.look()
        if model.settled(shown):
            returns = _settled(shown)
            return Step(do="wait", child="a", args={"timeoutMs": SETTLES_MS}, returns=returns), True
        if ends:
            returns = {"settled": False, "abnormal": False, "reason": "timeout"}
            return Step(do="wait", child="a", args={"timeoutMs": TIMES_OUT_MS}, returns=returns), False


def _settled(shown: Shown) -> dict[str, Any]:
    told: dict[str, Any] = {"settled": True, "abnormal": False, "reason": {"absent": True}}
    if shown.code is not None:
        return {**told, "exitCode": shown.code}
    return {**told, "lastTurn": shown.turn, "lastStatus": shown.status, "exitCode": {"absent": True}}
