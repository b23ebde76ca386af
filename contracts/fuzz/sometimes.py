"""What a campaign must have seen sometimes: interesting states, each with the clause that it puts to the test.

A search that never gets there proves nothing about it. So each is named, counted, and listed when it was never reached.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.fuzz.features import NO_FAULT, features_of
from contracts.fuzz.invariants import Done
from contracts.fuzz.watched import MISSING_KIND, Ask
from hc_sim.trace import Event
from legion_terminal.errors import SupervisorError
from legion_terminal.settle import SettleResult
from legion_terminal.types import AbortResult, Child, RetireResult, SteerResult, Verdict


@dataclass(frozen=True, slots=True)
class _Scene:
    """One step that came back, with the calls it made and the trace so far."""

    done: Done
    asks: Sequence[Ask]
    events: Sequence[Event]

    @property
    def do(self) -> str:
        return self.done.step.do

    @property
    def settle(self) -> SettleResult | None:
        result = self.done.result
        return result if isinstance(result, SettleResult) else None

    @property
    def looks(self) -> list[Ask]:
        return [ask for ask in self.asks if ask.method == "terminal.get" and ask.ended_ms is not None]

    def fails(self, do: str, code: str) -> bool:
        error = self.done.error
        return self.do == do and isinstance(error, SupervisorError) and error.code == code

    def made(self, method: str) -> list[Ask]:
        return [ask for ask in self.asks if ask.method == method]


@dataclass(frozen=True, slots=True)
class Sometimes:
    """One state: the call that may get there, the clause behind it, and how to tell that a step was in it."""

    do: str
    clause: str
    holds: Callable[[_Scene], bool]


def noticed(done: Done, asks: Sequence[Ask], events: Sequence[Event]) -> Iterator[str]:
    """The states that this step was in."""
    scene = _Scene(done, asks, events)
    return (name for name, state in _BY_CALL.get(done.step.do, ()) if state.holds(scene))


def _settled(scene: _Scene) -> bool:
    return scene.settle is not None and scene.settle.settled


def _ends(scene: _Scene, reason: str, status: str | None = None) -> bool:
    result = scene.settle
    return result is not None and result.reason == reason and status in (None, result.last_status)


def _in_the_poll_of_done(scene: _Scene) -> bool:
    """The look that settled was answered in the millisecond in which the agent said done."""
    child, at = scene.done.child, scene.done.ended_ms
    if not _settled(scene) or child is None:
        return False
    said = (event for event in reversed(scene.events) if event.kind == "state" and event.terminal == child.address)
    last = next(said, None)
    return last is not None and last.status == "done" and last.t == at


def _turns(scene: _Scene) -> tuple[int, int]:
    result = scene.settle
    return (result.last_turn or 0 if result else 0, scene.done.prompt_turn)


def _old_done(scene: _Scene) -> bool:
    last, prompt = _turns(scene)
    return _ends(scene, "timeout", "done") and last <= prompt


def _new_turn(scene: _Scene, status: str) -> bool:
    last, prompt = _turns(scene)
    return _ends(scene, "timeout", status) and last > prompt


def _after(scene: _Scene, first: Callable[[Ask], bool]) -> bool:
    """It settled although a look before had shown something else."""
    return _settled(scene) and any(first(ask) for ask in scene.looks[:-1])


def _withdrawn(scene: _Scene) -> bool:
    """The agent said done in a new turn and took it back, and no look saw it."""
    child = scene.done.child
    if child is None or not _ends(scene, "timeout"):
        return False
    return any(
        event.kind == "state" and event.terminal == child.address and event.status == "done"
        and (event.turn or 0) > scene.done.prompt_turn and event.t >= scene.done.begun_ms
        for event in scene.events
    )  # fmt: skip


def _cleared(scene: _Scene) -> bool:
    return isinstance(scene.done.result, Child) and len(scene.made("terminal.run")) == 2


def _lost_but_applied(scene: _Scene, method: str) -> bool:
    """The call got no answer, and the core has done it."""
    asked = [ask for ask in scene.made(method) if ask.error is not None and ask.error.known == "unknown"]
    event = {"terminal.run": "run", "terminal.send": "text", "terminal.interrupt": "key"}[method]
    return any(one.kind == event and one.t >= asked[0].begun_ms for one in scene.events) if asked else False


def _faulty(scene: _Scene, do: str) -> bool:
    if scene.do != do:
        return False
    words = [feature.split("/") for feature in features_of(scene.done, scene.asks, scene.events)]
    return any(word[0] in ("look", "call") and word[-1 if word[0] == "look" else 3] != NO_FAULT for word in words)


def _retired(scene: _Scene, *, ended: bool, removed: bool) -> bool:
    result = scene.done.result
    return isinstance(result, RetireResult) and (result.ended, result.removed) == (ended, removed)


def _verdict(scene: _Scene, outcome: str) -> bool:
    return isinstance(scene.done.result, Verdict) and scene.done.result.outcome == outcome


def _missing(ask: Ask) -> bool:
    return ask.error is not None and ask.error.kind == MISSING_KIND


def _failed(ask: Ask) -> bool:
    return ask.error is not None and ask.error.kind != MISSING_KIND


SOMETIMES: Final[Mapping[str, Sometimes]] = {
    "settled in the very poll of done": Sometimes("wait", "D8", _in_the_poll_of_done),
    "settled by exit code 0": Sometimes(
        "wait", "D8", lambda s: _settled(s) and s.settle is not None and s.settle.exit_code == 0
    ),
    "settled by another exit code": Sometimes(
        "wait", "D8", lambda s: _settled(s) and bool(s.settle and s.settle.exit_code)
    ),
    "settled by a signal": Sometimes("wait", "D8", lambda s: _settled(s) and bool(s.settle and s.settle.signal)),
    "settled on the first look": Sometimes("wait", "D8", lambda s: _settled(s) and len(s.looks) == 1),
    "settled after a failed look": Sometimes("wait", "D8", lambda s: _after(s, _failed)),
    "settled after one miss": Sometimes("wait", "D8-gone", lambda s: _after(s, _missing)),
    "timeout with blocked": Sometimes("wait", "D8", lambda s: _ends(s, "timeout", "blocked")),
    "timeout with working": Sometimes("wait", "D8", lambda s: _ends(s, "timeout", "working")),
    "timeout with an old done": Sometimes("wait", "D8", _old_done),
    "timeout with idle in a new turn": Sometimes("wait", "D8-idle-end", lambda s: _new_turn(s, "idle")),
    "timeout with error in a new turn": Sometimes("wait", "D8-error-end", lambda s: _new_turn(s, "error")),
    "timeout although done came and went": Sometimes("wait", "D8-done-withdrawn", _withdrawn),
    "timeout with a look in flight": Sometimes(
        "wait", "D8", lambda s: _ends(s, "timeout") and any(ask.ended_ms is None for ask in s.asks)
    ),
    "gone after two misses": Sometimes(
        "wait", "D8-gone", lambda s: _ends(s, "gone") and sum(map(_missing, s.looks)) >= 2
    ),
    "gone because another incarnation answers": Sometimes(
        "wait", "ID1", lambda s: _ends(s, "gone") and not any(map(_missing, s.looks)) and bool(s.looks)
    ),
    "a wait called off": Sometimes("wait", "D8", lambda s: _ends(s, "aborted by parent")),
    "a wait with a steer in its middle": Sometimes("wait", "D10", lambda s: s.do == "wait" and s.done.disturbed),
    "a wait through a fault": Sometimes("wait", "W4", lambda s: _faulty(s, "wait")),
    "NAME_TAKEN with a finished holder": Sometimes("spawn", "A4", _cleared),
    "NAME_TAKEN with a live holder": Sometimes(
        "spawn", "A4", lambda s: s.fails("spawn", "name-taken") and bool(s.made("terminal.run"))
    ),
    "the name of another child": Sometimes("spawn", "A4", lambda s: s.fails("spawn", "name-taken") and not s.asks),
    "a start whose reply was lost, adopted": Sometimes(
        "spawn",
        "W4",
        lambda s: (
            isinstance(s.done.result, Child)
            and any(a.error for a in s.made("terminal.run")[:1])
            and len(s.made("terminal.run")) == 1
        ),
    ),
    "a start of unknown outcome": Sometimes("spawn", "W4", lambda s: s.fails("spawn", "outcome-unknown")),
    "a start lost with its effect applied": Sometimes("spawn", "W4", lambda s: _lost_but_applied(s, "terminal.run")),
    "a steer lost with its effect applied": Sometimes("steer", "W4", lambda s: _lost_but_applied(s, "terminal.send")),
    "an interrupt lost with its effect applied": Sometimes(
        "abort", "W4", lambda s: _lost_but_applied(s, "terminal.interrupt")
    ),
    "a steer that was taken": Sometimes("steer", "D10", lambda s: isinstance(s.done.result, SteerResult)),
    "a steer that was not confirmed": Sometimes(
        "steer", "D10", lambda s: isinstance(s.done.result, SteerResult) and s.done.result.started is False
    ),
    "a steer refused while blocked": Sometimes("steer", "D10-blocked", lambda s: s.fails("steer", "blocked")),
    "a steer refused before the first turn": Sometimes("steer", "D10-early", lambda s: s.fails("steer", "not-started")),
    "a steer at a child that is gone": Sometimes("steer", "ID1", lambda s: s.fails("steer", "gone")),
    "an abort that pressed the key": Sometimes(
        "abort", "D10", lambda s: isinstance(s.done.result, AbortResult) and bool(s.made("terminal.interrupt"))
    ),
    "an abort that pressed no second key": Sometimes(
        "abort", "D10-esc-once", lambda s: isinstance(s.done.result, AbortResult) and not s.made("terminal.interrupt")
    ),
    "retired": Sometimes("retire", "D11", lambda s: _retired(s, ended=True, removed=True)),
    "a program that no kill ends": Sometimes("retire", "D11", lambda s: _retired(s, ended=False, removed=False)),
    "ended and not removed": Sometimes("retire", "D11-finish", lambda s: _retired(s, ended=True, removed=False)),
    "a retirement through a fault": Sometimes("retire", "D11-finish", lambda s: _faulty(s, "retire")),
    "verdict accept": Sometimes("collect", "D9", lambda s: _verdict(s, "accept")),
    "verdict reject": Sometimes("collect", "D9", lambda s: _verdict(s, "reject")),
    "verdict unknown": Sometimes("collect", "D9", lambda s: _verdict(s, "unknown")),
    "a verdict that came while it was waited for": Sometimes(
        "collect", "D9-reread", lambda s: isinstance(s.done.result, Verdict) and s.done.ended_ms > s.done.begun_ms
    ),
}
"""Every state by its name."""

_BY_CALL: Final[Mapping[str, tuple[tuple[str, Sometimes], ...]]] = {
    do: tuple((name, state) for name, state in SOMETIMES.items() if state.do == do)
    for do in {state.do for state in SOMETIMES.values()}
}
