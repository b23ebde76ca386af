"""One trace event as one line for a person; nothing in it can move a cursor, and no value of a variable is shown."""

from typing import Any

from hc_sim.redact import redact
from hc_sim.trace import Event

MAX_TEXT = 72
"""Characters of a text from outside that are shown."""


def show_event(event: Event, *, secrets: bool = False) -> str | None:
    """The line, or None for what a person does not need to see. What looks like a secret is hidden unless asked for."""
    what = _what(event if secrets else redact(event))
    if what is None:
        return None
    link = f"#{event.conn}" if event.conn else ""
    return f"{event.t / 1_000:9.3f} {link:>4}  {what}"


def plain(text: str) -> str:
    """Text from outside, cut to size, with everything unprintable made visible."""
    visible = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[: MAX_TEXT + 1])
    return visible if len(visible) <= MAX_TEXT else visible[: MAX_TEXT - 3] + "..."


def _what(event: Event) -> str | None:
    place = plain(f"{event.terminal} {event.name}".strip())
    match event.kind:
        case "link" | "unlink":
            return "connected" if event.kind == "link" else "disconnected"
        case "call":
            return f"-> {plain(event.method)} {_params(event.params)}".rstrip()
        case "reply":
            return f"<- {plain(event.method)} {_outcome(event)}".rstrip()
        case "run":
            names = " ".join(sorted(event.env))
            return f"   {place} runs: {plain(' '.join(event.argv))}  [{plain(names)}]"
        case "state":
            return f"   {place}: {_state(event)}"
        case "text" | "key":
            return f"   {place} got {event.kind} {plain(event.text)!r}"
        case "file":
            return f"   {place} session file: {plain(event.note)}"
        case "fault":
            return f" ! fault at {plain(event.method)}: {plain(event.note)}"
        case "gone":
            return f"   {place} is gone"
        case "restart" | "clock":
            return f" ! {event.kind}: {plain(event.note)}"
        case "process":
            return f"   {place} process {plain(event.note)}: {plain(event.text)}"
        case "dialog":
            return f"   {place} {plain(event.note)}"
        case _:
            return None


def _params(params: Any) -> str:
    if not isinstance(params, dict):
        return ""
    shown = []
    for name, value in params.items():
        if isinstance(value, dict):
            value = "{" + ", ".join(map(str, sorted(value))) + "}"
        shown.append(f"{plain(str(name))}={plain(str(value))}")
    return " ".join(shown)


def _outcome(event: Event) -> str:
    if isinstance(event.error, dict):
        data = event.error.get("data")
        kind = data.get("kind", "") if isinstance(data, dict) else ""
        return f"error {plain(str(kind))}: {plain(str(event.error.get('message', '')))}"
    result = event.result
    if not isinstance(result, dict):
        return ""
    if "address" in result:
        status = result.get("status")
        word = status.get("state") if isinstance(status, dict) else None
        return f"{result['address']} turn {result.get('turn')} {word or '-'} {result.get('state')}"
    if isinstance(result.get("terminals"), list):
        return f"{len(result['terminals'])} terminals"
    return _params({name: value for name, value in result.items() if isinstance(value, (bool, int, str))})


def _state(event: Event) -> str:
    parts = [f"turn {event.turn}" if event.turn is not None else "", event.status or "", event.state]
    if event.exit_code is not None:
        parts.append(f"exit code {event.exit_code}")
    if event.signal:
        parts.append(event.signal)
    return " ".join(part for part in parts if part)
