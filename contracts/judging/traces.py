"""The questions that a judge asks of a run's trace: which calls, which starts, what reached a child."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from contracts.records import RunRecord
from contracts.scenario import Scenario
from hc_sim.trace import Event

WORK_ENDS = "work ends"
"""The note of the timeline step from which the cost of a hazard is counted."""


class Who(frozenset[str]):
    """The names and addresses under which one terminal appears in a trace."""


def find_child(scenario: Scenario, record: RunRecord, child: str) -> Who | None:
    """Everything that names this child (the `as` of a spawn, or a terminal of the world); None if there is none."""
    name = record.children.get(child, "")
    if not name and any(terminal.name == child for terminal in scenario.world.terminal):
        name = child
    if not name:
        return None
    return Who([name, *(event.terminal for event in record.trace if event.kind == "run" and event.name == name)])


def calls(trace: Iterable[Event], method: str, who: Who | None = None) -> list[Event]:
    """Calls of a method (exact, or a glob), narrowed to one terminal."""
    return [
        event
        for event in trace
        if event.kind == "call" and fnmatchcase(event.method, method) and (who is None or is_about(event, who))
    ]


def is_about(event: Event, who: Who) -> bool:
    """Whether an event concerns the terminal: by its own marks, or by what its parameters name."""
    if event.terminal in who or event.name in who:
        return True
    params = event.params if isinstance(event.params, dict) else {}
    return any(params.get(key) in who for key in ("terminal", "name") if isinstance(params.get(key), str))


def starts(trace: Sequence[Event], who: Who | None = None) -> list[dict[str, Any]]:
    """Every terminal that was started, as name, argv, effective env, overlay, labels, cwd and parent."""
    found = []
    asked: dict[str, Any] = {}
    for event in trace:
        if event.kind == "call" and event.method == "terminal.run" and isinstance(event.params, dict):
            asked[str(event.params.get("name"))] = event.params
        if event.kind == "run" and (who is None or is_about(event, who)):
            found.append(_start(event, asked.get(event.name, {})))
    return found


def _start(event: Event, params: dict[str, Any]) -> dict[str, Any]:
    told = event.params if isinstance(event.params, dict) else {}
    asked = {**params, **told}
    return {
        "terminal": event.terminal,
        "name": event.name,
        "argv": event.argv,
        "env": event.env,
        "overlay": asked.get("env", {}),
        "labels": event.labels,
        "cwd": asked.get("cwd"),
        "parent": asked.get("parent", asked.get("caller")),
        "t": event.t,
    }


def received(trace: Iterable[Event], kind: str, who: Who | None) -> list[str]:
    """The texts (`kind` = text) or keys (`kind` = key) that reached a terminal, in order."""
    return [event.text for event in trace if event.kind == kind and (who is None or is_about(event, who))]


def in_order(trace: Iterable[Event], methods: Sequence[str], who: Who | None) -> tuple[bool, list[str]]:
    """Whether calls came in this relative order, and the order in which they came (only methods that are asked about).

    The methods must appear one after the other, and none of them may make its first appearance before one that the list
    names earlier.
    """
    came = [event.method for event in calls(trace, "*", who) if event.method in methods]
    rest = iter(came)
    is_subsequence = all(method in rest for method in methods)
    return is_subsequence and list(dict.fromkeys(came)) == list(dict.fromkeys(methods)), came


def cost_ms(record: RunRecord) -> int | None:
    """The time between the end of the work and the end of the last wait; None when no wait came back."""
    ends = [step.at_ms for step in record.steps if step.do == "wait" and step.at_ms is not None]
    if not ends:
        return None
    end = max(ends)
    marked = [event.t for event in record.trace if event.note == WORK_ENDS and event.t <= end]
    changed = [event.t for event in record.trace if event.kind == "state" and event.t <= end]
    since = marked or changed
    return end - since[-1] if since else None
