"""The exit table of headless children: what the document says of each event, and what a run of it gave. Pure.

Each event is acted out by a scenario, whose first wait gives the measured row. The document is written down here once
more, apart from the scenarios, so that neither can bend the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from contracts.judging.match import differences
from contracts.records import RunRecord, RunVerdict

SCHEMA: Final = 1
FIELDS: Final = ("settled", "abnormal", "aborted", "reason", "exitCode", "signal")
"""What a row shows of a settle result; the node's state stands beside it."""
_NO: Final = {"absent": True}


@dataclass(frozen=True, slots=True)
class Event:
    """One event and the row of the document that it belongs to.

    `says`: that row, as the document writes it. `expected`: the same as a pattern over the result of the wait, `node`
    among it. `scenario`: the one that acts the event out.
    """

    name: str
    says: str
    node: str
    expected: Mapping[str, Any]
    scenario: str


@dataclass(frozen=True, slots=True)
class Row:
    """One event as it was measured. `measured`: the result of the wait; None with `why` when there is none."""

    event: Event
    measured: Mapping[str, Any] | None
    differs: tuple[str, ...] = ()
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether what was measured is what the document says."""
        return self.measured is not None and not self.differs


def _settled(name: str, scenario: str, *, aborted: bool) -> Event:
    expected = {"settled": True, "abnormal": False, "aborted": aborted, "reason": _NO, "exitCode": _NO, "signal": _NO}
    return Event(name, "settled:true, abnormal:false (may set aborted)", "settled", expected, scenario)


def _ended(by: int | str) -> dict[str, Any]:
    return {"exitCode": by, "signal": _NO} if isinstance(by, int) else {"exitCode": _NO, "signal": by}


def _retired(name: str, scenario: str, by: int | str) -> Event:
    expected = {"settled": False, "abnormal": False, "reason": {"matches": "retired"}, **_ended(by)}
    says = "settled:false, abnormal:false, reason ≈ retired…, exitCode?, signal?"
    return Event(f"retire, {name}", says, "retired", expected, scenario)


def _failed(name: str, scenario: str, by: int | str) -> Event:
    expected = {"settled": False, "abnormal": True, **_ended(by)}
    what = "signal" if isinstance(by, str) else "exitCode:0" if by == 0 else "exitCode"
    return Event(f"no retire, {name}", f"settled:false, abnormal:true, {what}", "failed", expected, scenario)


def _went_on(name: str, scenario: str, reason: str, node: str) -> Event:
    expected = {"settled": False, "abnormal": False, "reason": reason, "exitCode": _NO, "signal": _NO}
    return Event(name, f'settled:false, abnormal:false, reason:"{reason}"', node, expected, scenario)


EVENTS: Final = (
    _settled("agent_settled", "headless-row-settled", aborted=False),
    _settled("agent_settled of an aborted run", "headless-row-settled-aborted", aborted=True),
    _retired("exit code 143", "headless-retire-ends-143", 143),
    _retired("exit code 129", "headless-retire-ends-129", 129),
    _retired("exit code 1", "headless-retire-ends-1", 1),
    _retired("exit code 0", "headless-retire-ends-0", 0),
    _retired("SIGTERM", "headless-retire-ends-by-sigterm", "SIGTERM"),
    _retired("SIGKILL after the grace", "headless-retire-has-to-kill", "SIGKILL"),
    _failed("exit code 0 in a run", "headless-exit-0-in-a-run", 0),
    _failed("exit code 0 before the task", "headless-exit-0-at-once", 0),
    _failed("exit code 1 in a run", "headless-exit-1-in-a-run", 1),
    _failed("exit code 1 before the task", "headless-exit-1-at-once", 1),
    _failed("exit code 129", "headless-exit-129", 129),
    _failed("exit code 137", "headless-exit-137", 137),
    _failed("exit code 143", "headless-exit-143", 143),
    _failed("SIGINT", "headless-exit-by-sigint", "SIGINT"),
    _failed("SIGTERM", "headless-exit-by-sigterm", "SIGTERM"),
    _failed("SIGKILL", "headless-exit-by-sigkill", "SIGKILL"),
    _went_on("the time of a wait is over", "headless-row-timeout", "timeout", "timeout"),
    _went_on("a wait is called off", "headless-row-called-off", "aborted by parent", "aborted"),
)
"""Every event of the document, with each code and signal that can bring it about, in the document's order."""


def measured(results: Sequence[RunRecord | RunVerdict], events: Sequence[Event] = EVENTS) -> list[Row]:
    """The table as these runs give it, one row an event."""
    by_scenario = {result.scenario: result for result in results}
    return [_row(event, by_scenario.get(event.scenario)) for event in events]


def _row(event: Event, result: RunRecord | RunVerdict | None) -> Row:
    if result is None or isinstance(result, RunVerdict):
        return Row(event, None, why=result.why if result is not None else f"{event.scenario} was not run")
    if result.errored is not None:
        return Row(event, None, why=result.errored)
    came = next((step.returned for step in result.steps if step.do == "wait" and step.returned is not None), None)
    if came is None:
        return Row(event, None, why=next(_raised(result), "no wait came back"))
    wanted = {**event.expected, "node": event.node}
    return Row(event, came, tuple(difference.field for difference in differences(wanted, came)))


def _raised(result: RunRecord) -> Iterator[str]:
    for step in result.steps:
        if step.raised is not None:
            yield f"{step.do} failed: {step.raised.get('message', step.raised.get('code'))}"


def in_words(result: Mapping[str, Any]) -> str:
    """A settle result as the document writes it: `settled:false, abnormal:true, exitCode:0`."""
    told = [(name, result[name]) for name in FIELDS if result.get(name) is not None]
    return ", ".join(f"{name}:{_value(value)}" for name, value in told)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) or str(value).startswith("SIG") else f'"{value}"'


def as_json(rows: Sequence[Row], sut: str) -> dict[str, Any]:
    """The table as plain values, in the order in which programs may rely on it."""
    return {
        "schema": SCHEMA,
        "table": "headless",
        "sut": sut,
        "holds": all(row.holds for row in rows),
        "rows": [_plain(row) for row in rows],
    }


def _plain(row: Row) -> dict[str, Any]:
    came = None if row.measured is None else {name: row.measured.get(name) for name in (*FIELDS, "node")}
    return {
        "event": row.event.name,
        "document": {"result": row.event.says, "node": row.event.node},
        "measured": came,
        "holds": row.holds,
        "differs": list(row.differs),
        "why": row.why,
        "scenario": row.event.scenario,
    }
