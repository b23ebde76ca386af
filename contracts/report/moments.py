"""What happened in one run, as moments in lanes: the drive, each child, the calls. Both the text and the page draw it.

Pure: values in, values out. Moments at which nothing but the same calls happened again become one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from contracts.judging.traces import Who, find_child, is_about
from contracts.records import RunRecord, StepRecord
from contracts.report.content import show
from contracts.scenario import Scenario
from hc_sim.trace import Event

MarkKind = Literal["drive", "call", "error", "fault", "start", "state", "text", "key", "file", "step", "gone", "core"]

SHORT: Final = 40
"""Texts and results are cut at so many characters."""
DRIVE: Final = 0
"""The lane of the drive; children follow, and the calls are last."""
ACTS: Final = frozenset(f"terminal.{word}" for word in ("run", "send", "interrupt", "kill", "rm"))
"""Calls that do something to a child, and do not only look at it."""
LATE_MS: Final = 100
"""A reply that takes longer says how long it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One entry in a lane, at `t` (ms).

    `settled`: the look at a child after which a wait settled. `status`, `state`, `turn`: what a child shows from here
    on. `step`: the index of the step in the drive, and `ends` whether this is its end (of a step that took time both
    ends are marks). `bad`: the step raised, the call was refused. `to`: the lane of the child that a call acts on.
    `reply`: what came back to a call, in words.
    """

    t: int
    lane: int
    kind: MarkKind
    text: str
    settled: bool = False
    status: str | None = None
    state: str = ""
    turn: int | None = None
    step: int | None = None
    ends: bool = False
    bad: bool = False
    to: int = 0
    reply: str = ""


@dataclass(slots=True)
class Moment:
    """Everything at one time (ms). `times` counts the moments that became one, the last of them at `until`."""

    t: int
    marks: list[Mark] = field(default_factory=list)
    until: int = 0
    times: int = 1

    def lane(self, lane: int) -> list[Mark]:
        """The marks of one lane, in order."""
        return [mark for mark in self.marks if mark.lane == lane]


@dataclass(frozen=True, slots=True)
class Story:
    """One run: its children (the `as` of a spawn or the name of a terminal, then the name in the core), its moments."""

    children: Sequence[tuple[str, str]]
    moments: Sequence[Moment]

    @property
    def calls(self) -> int:
        """The number of the lane of the calls."""
        return len(self.children) + 1


def story(scenario: Scenario, record: RunRecord) -> Story:
    """What happened, in order of time; at the same time, in order of the trace and then of the drive."""
    children = _children(scenario, record)
    moments: dict[int, Moment] = {}
    for mark in (*_marks(record, children), *_steps(record)):
        moments.setdefault(mark.t, Moment(mark.t)).marks.append(mark)
    ordered = [moments[t] for t in sorted(moments)]
    named = [(name, record.children.get(name) or "terminal") for name, _ in children]
    return Story(named, _folded(ordered, len(children) + 1))


def _children(scenario: Scenario, record: RunRecord) -> list[tuple[str, Who]]:
    names = [*record.children, *(one.name for one in scenario.world.terminal if one.name)]
    found = [(name, find_child(scenario, record, name)) for name in dict.fromkeys(names)]
    return [(name, who) for name, who in found if who is not None]


def _folded(moments: Sequence[Moment], calls: int) -> list[Moment]:
    kept: list[Moment] = []
    for moment in moments:
        before = kept[-1] if kept else None
        if before is not None and _repeats(moment, before, calls):
            before.until, before.times = moment.t, before.times + 1
        else:
            kept.append(moment)
    return kept


def _repeats(moment: Moment, before: Moment, calls: int) -> bool:
    if any(mark.lane != calls or mark.settled for mark in (*moment.marks, *before.marks)):
        return False
    return [(mark.text, mark.reply) for mark in moment.marks] == [(mark.text, mark.reply) for mark in before.marks]


# ------------------------------------------------------------------- the drive


def _steps(record: RunRecord) -> Iterator[Mark]:
    for step in record.steps:
        if not step.started_ms and step.at_ms is None:
            continue
        name = f"{step.do} {step.child or step.name}".strip()
        bad = step.raised is not None
        if step.at_ms != step.started_ms:
            yield Mark(t=step.started_ms, lane=DRIVE, kind="drive", text=f"{name} ...", step=step.index)
        if step.at_ms is not None:
            text = f"{name}{_ended(step)}"
            settled = step.do == "wait" and bool((step.returned or {}).get("settled"))
            yield Mark(
                t=step.at_ms, lane=DRIVE, kind="drive", text=text, step=step.index, ends=True, bad=bad, settled=settled
            )


def _ended(step: StepRecord) -> str:
    if step.raised is not None:
        return f" ! {step.raised.get('code', 'error')}"
    told = step.returned or {}
    if step.do == "wait":
        return " = settled" if told.get("settled") else f" = {told.get('reason') or 'not settled'}"
    word = next((told[key] for key in ("mode", "verdict", "status", "available") if key in told), None)
    return f" = {show(word, SHORT)}" if word is not None else ""


# ------------------------------------------------------------------- the trace


def _marks(record: RunRecord, children: Sequence[tuple[str, Who]]) -> Iterator[Mark]:
    settling, replies = _settling(record, children), _replies(record.trace)
    calls = len(children) + 1
    for event in record.trace:
        mark = (
            _call(event, children, id(event) in settling, replies.get(id(event)))
            or _wire(event, calls)
            or _happened(event, children)
        )
        if mark is not None:
            yield mark


def _replies(trace: Sequence[Event]) -> dict[int, Event]:
    """The reply to each call that has one, by the identity of the call."""
    waiting: dict[tuple[int, str], list[Event]] = {}
    replies: dict[int, Event] = {}
    for event in trace:
        key = (event.conn, str(event.id))
        if event.kind == "call":
            waiting.setdefault(key, []).append(event)
        elif event.kind == "reply" and waiting.get(key):
            replies[id(waiting[key].pop(0))] = event
    return replies


def _reply(call: Event, reply: Event | None) -> str:
    """What a call was told: turn and status of the terminal that it asked about, and whether it had to wait."""
    if reply is None:
        return "no reply"
    told = reply.result if isinstance(reply.result, dict) else {}
    words = []
    if "turn" in told and not reply.error and call.method == "terminal.get":
        status = told.get("status")
        word = told.get("state") if told.get("state") == "finished" else None
        words = [
            str(told["turn"]),
            str(word or (status.get("state") if isinstance(status, dict) else status) or "none"),
        ]
    late = reply.t - call.t
    return " ".join([*words, *([f"after {late} ms"] if late >= LATE_MS else [])])


def _call(event: Event, children: Sequence[tuple[str, Who]], settled: bool, reply: Event | None) -> Mark | None:
    if event.kind != "call":
        return None
    to = _lane(event, children) if event.method in ACTS else 0
    name = event.method.removeprefix("terminal.")
    told = _reply(event, reply)
    return Mark(t=event.t, lane=len(children) + 1, kind="call", text=name, settled=settled, to=to, reply=told)


def _lane(event: Event, children: Sequence[tuple[str, Who]]) -> int:
    """The lane of the child that an event is about; 0 if it is about none."""
    return next((number for number, (_, who) in enumerate(children, 1) if is_about(event, who)), 0)


def _wire(event: Event, calls: int) -> Mark | None:
    if event.kind == "reply" and event.error:
        return Mark(t=event.t, lane=calls, kind="error", text=f"! {_error(event)}", bad=True)
    if event.kind in ("restart", "clock"):
        return Mark(t=event.t, lane=calls, kind="core", text=f"{event.kind}: {event.note}")
    if event.kind == "fault":
        return Mark(t=event.t, lane=calls, kind="fault", text=f"fault {event.note}".strip())
    return None


def _happened(event: Event, children: Sequence[tuple[str, Who]]) -> Mark | None:
    """What happened to a terminal, in the lane of the child that it is; what a picture leaves out is None."""
    kind, text = _said(event)
    if kind is None or not text:
        return None
    lane = _lane(event, children) or len(children) + 1
    return Mark(t=event.t, lane=lane, kind=kind, text=text, status=event.status, state=event.state, turn=event.turn)


def _said(event: Event) -> tuple[MarkKind | None, str]:
    match event.kind:
        case "run":
            return "start", "starts"
        case "gone":
            return "gone", "removed"
        case "text":
            return "text", f"<- {show(event.text, SHORT)}"
        case "key":
            return "key", f"<- key {event.text}"
        case "file":
            return "file", f"file {event.note}".strip()
        case "step":
            return "step", f"({event.note})" if event.note else ""
        case "state":
            return "state", _state(event)
        case _:
            return None, ""


def _state(event: Event) -> str:
    if event.state == "finished":
        end = event.signal or f"exit {event.exit_code}"
        return f"finished ({end})"
    turn = "" if event.turn is None else f"turn {event.turn} "
    return f"{turn}{event.status or 'none'}"


def _error(event: Event) -> str:
    error = event.error if isinstance(event.error, dict) else {}
    data = error.get("data")
    return str(data.get("kind") if isinstance(data, dict) else error.get("message", "error"))


def _settling(record: RunRecord, children: Sequence[tuple[str, Who]]) -> set[int]:
    """The last look at its child before each wait that settled came back (the first one of its millisecond)."""
    named = dict(children)
    marked: set[int] = set()
    for step in record.steps:
        if step.do != "wait" or step.at_ms is None or not (step.returned or {}).get("settled"):
            continue
        who = named.get(step.child)
        looks = [
            event
            for event in record.trace
            if event.kind == "call" and event.method == "terminal.get" and step.started_ms <= event.t <= step.at_ms
            and (who is None or is_about(event, who))
        ]  # fmt: skip
        last = [event for event in looks if event.t == looks[-1].t and id(event) not in marked]
        marked |= {id(event) for event in last[:1]}
    return marked
