"""A trace as a small text picture: a lane for each terminal and one for the calls, time going down.

Pure: events in, lines out. Nothing in it can move a cursor, and neither arguments of programs nor variables are shown.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from hc_sim.lanes import Row, folded, page
from hc_sim.show import plain
from hc_sim.trace import Event, redact

WIDTH = 110
"""Columns of a picture, if nothing else is said."""
MAX_LANES = 4
"""Terminals with a lane of their own; the others share one."""
FIRST_ROWS, LAST_ROWS = 20, 100
"""Of a long story the beginning and the end are drawn."""
SHORT = 40
"""Characters of a text from outside that are shown."""


def draw_trace(events: Iterable[Event], width: int = WIDTH, *, secrets: bool = False) -> list[str]:
    """The whole picture as lines of at most `width` columns; one line if nothing happened."""
    seen = list(events) if secrets else [redact(event) for event in events]
    names = _names(seen)
    shown = [address for address, _ in _busiest(seen, names).most_common(MAX_LANES)]
    lanes = {address: lane for lane, address in enumerate(sorted(shown, key=list(names).index))}
    others = len(names) > len(lanes)
    titles = [f"{address} {names[address]}".strip() for address in lanes] + ["others"] * others + ["calls"]
    rows: dict[int, Row] = {}
    for event in seen:
        lane, text = _place(event, lanes, len(titles) - 1, names)
        if text:
            rows.setdefault(event.t, Row(event.t, [[] for _ in titles])).lanes[lane].append(text)
    if not rows:
        return ["nothing happened: no call came, no terminal was started"]
    ordered = [rows[t] for t in sorted(rows)]
    return list(page(titles, folded(ordered), width, first=FIRST_ROWS, last=LAST_ROWS))


def _names(events: Sequence[Event]) -> dict[str, str]:
    """Every terminal that something happened in, with the last name it bore."""
    names: dict[str, str] = {}
    for event in events:
        if event.terminal and event.kind not in ("call", "reply", "fault"):
            names[event.terminal] = plain(event.name or names.get(event.terminal, ""))
    return names


def _busiest(events: Sequence[Event], names: dict[str, str]) -> Counter[str]:
    counts = Counter(dict.fromkeys(names, 0))
    counts.update(event.terminal for event in events if event.terminal in names)
    return counts


def _place(event: Event, lanes: dict[str, int], calls: int, names: dict[str, str]) -> tuple[int, str]:
    """The lane of an event and its words; no words for what a picture leaves out."""
    match event.kind:
        case "call":
            return (
                calls,
                f"{plain(event.method.removeprefix('terminal.'))} {plain(event.terminal or event.name)}".strip(),
            )
        case "reply":
            return calls, f"! {_error(event.error)}" if event.error else ""
        case "fault":
            return calls, f"fault {plain(event.note)}".strip()
    text = _happened(event)
    lane = lanes.get(event.terminal)
    if lane is None and text and event.terminal:
        return calls - 1, f"{plain(names.get(event.terminal) or event.terminal)}: {text}"
    return (calls if lane is None else lane), text


def _happened(event: Event) -> str:
    match event.kind:
        case "run":
            return f"starts, turn {event.turn or 0} {event.status or 'none'}"
        case "state":
            return _state(event)
        case "text":
            return f"<- {_short(event.text)}"
        case "key":
            return f"<- key {_short(event.text)}"
        case "file":
            return f"file {plain(event.note)}"
        case "step":
            return f"({_short(event.note)})" if event.note else ""
        case "gone":
            return "removed"
        case "restart":
            return f"the core restarts: {plain(event.note)}"
        case "clock":
            return plain(event.note)
        case "process" | "dialog" | "view":
            return f"{event.kind} {plain(event.note)} {_short(event.text)}".strip()
        case _:
            return ""


def _state(event: Event) -> str:
    if event.state == "finished":
        return f"finished ({event.signal or f'exit {event.exit_code}'})"
    turn = "" if event.turn is None else f"turn {event.turn} "
    return f"{turn}{event.status or 'none'}"


def _error(error: object) -> str:
    if not isinstance(error, dict):
        return "error"
    data = error.get("data")
    kind = data.get("kind") if isinstance(data, dict) else None
    return plain(str(kind or error.get("message", "error")))


def _short(text: str) -> str:
    shown = plain(text)
    return shown if len(shown) <= SHORT else shown[: SHORT - 3] + "..."
