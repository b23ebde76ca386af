"""What a run has been through, in short words: the pairs of settle state, status and fault that a search goes after."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from contracts.fuzz.faulty import KNOBS
from contracts.fuzz.invariants import Done
from contracts.fuzz.watched import MISSING_KIND, Ask
from hc_sim.trace import Event
from legion_terminal.errors import SupervisorError
from legion_terminal.settle import SettleResult
from legion_terminal.types import RetireResult, SteerResult, Verdict

NO_FAULT = "well"


def features_of(done: Done, asks: Sequence[Ask], events: Sequence[Event]) -> Iterator[str]:
    """For a wait one word for each of its looks and one for its end; for any other call one for how it came out.

    `asks`: the calls of this step. `events`: the trace of the run so far.
    """
    faults = {} if not asks else _faults(events, asks[0].begun_ms)
    state = "first"
    for ask in asks:
        fault = _fault_of(ask, faults)
        if done.step.do == "wait":
            shown = _shown(ask, done)
            yield f"look/{state}/{shown}/{fault}"
            state = _next(state, shown)
        elif fault != NO_FAULT:
            yield f"call/{done.step.do}/{ask.method}/{fault}/{_came(ask)}"
    yield f"end/{done.step.do}/{_outcome(done)}/{state}"


def faults_in(features: Iterable[str]) -> set[str]:
    """The faults that occur in features."""
    found = {part for feature in features for part in feature.split("/")}
    return found & set(KNOBS)


def pairs_in(features: Iterable[str]) -> set[str]:
    """The (settle state, status, fault) pairs that occur in features."""
    return {feature for feature in features if feature.startswith("look/")}


def _faults(events: Sequence[Event], since_ms: int) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in reversed(events):
        if event.t < since_ms:
            break
        if event.kind == "fault":
            found.setdefault(event.method, []).append(event)
    return found


def _fault_of(ask: Ask, faults: Mapping[str, Sequence[Event]]) -> str:
    for event in faults.get(ask.method, ()):
        if ask.begun_ms <= event.t and (ask.ended_ms is None or event.t <= ask.ended_ms):
            return event.note.partition("=")[0]
    return NO_FAULT


def _shown(ask: Ask, done: Done) -> str:
    """What a look showed, as far as it matters to a wait."""
    if ask.ended_ms is None:
        return "given-up"
    if ask.error is not None:
        return "missing" if ask.error.kind == MISSING_KIND else "failed"
    shown = ask.shown
    if shown is None:
        return "failed"
    if done.identity is not None and ask.incarnation != done.identity:
        return "replaced"
    if shown.get("state") != "running":
        return "finished"
    turn = int(shown.get("turn") or 0)
    status = shown.get("status")
    word = status.get("state") if isinstance(status, dict) else "none"
    return f"{'new' if turn > done.prompt_turn else 'same' if turn == done.prompt_turn else 'back'}-{word}"


def _next(state: str, shown: str) -> str:
    """Where a wait stands after a look: nothing yet, missed once, failed, or by the last thing that it saw."""
    if shown in ("missing", "failed", "given-up"):
        return f"{shown}-after-{state.rpartition('-')[2]}"
    return shown


def _came(ask: Ask) -> str:
    if ask.ended_ms is None:
        return "open"
    return "answered" if ask.error is None else f"{ask.error.code}.{ask.error.known}"


def _outcome(done: Done) -> str:
    error, result = done.error, done.result
    if isinstance(error, SupervisorError):
        return f"{error.code}.{error.known}"
    if error is not None:
        return type(error).__name__
    if isinstance(result, SettleResult):
        return "settled" if result.settled else str(result.reason)
    if isinstance(result, RetireResult):
        return f"{'ended' if result.ended else 'runs'}-{'removed' if result.removed else 'left'}"
    if isinstance(result, SteerResult):
        return f"started-{result.started}"
    return result.outcome if isinstance(result, Verdict) else "ok"
