"""What happened, in order: calls, replies, texts, keys, status changes, files, links."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from hc_sim.model import METHODS, REFUSED
from hc_sim.redact import HIDDEN, redact
from hc_sim.script.toml import nearest

__all__ = ["HIDDEN", "MAX_EVENTS", "Event", "Kind", "Trace", "redact", "weight"]

Kind = Literal[
    "link", "unlink", "call", "reply", "run", "state", "text", "key", "file", "step", "fault", "gone", "view",
    "restart", "clock", "process", "dialog", "socket",
]  # fmt: skip

MAX_EVENTS = 1_000_000
"""A trace grows to this many events; later ones are only counted."""
MAX_TRACE_BYTES = 256 * 1024 * 1024
"""A trace grows to about this many bytes, as its events are long when written down; later ones are only counted."""
EVENT_BYTES = 200
"""What an event counts at least."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One entry of a trace. `t` is in milliseconds since the trace began.

    `link`/`unlink`: a connection was opened/closed (`conn`). `call`: `method`, `params`, `id`. `reply`: `method`,
    `result` or `error`, `id`. `run`: a terminal started: `terminal`, `name`, `argv`, `env` (effective), `labels`,
    `cwd`, `parent`. `state`: turn, status or lifecycle changed. `text`: `text` reached the agent as a prompt. `key`: a
    key press reached it. `file`: bytes went to its session file. `step`: timeline step `step` fired (`note`). `gone`:
    terminal removed. `view`: a viewer did something that is no typing (`note`, and `text` for what it sent). `fault`:
    something went wrong as planned (`note`). `restart`, `clock`: the core restarted, its wall clock was set (`note`).
    `process`: a program exited, was left behind, stays as a zombie or was reaped (`note`, `text`). `dialog`: a dialog
    was answered or ate a text (`note`, `text`). `socket`: the core listens at `text`; `note` has the modes.
    """

    t: int
    kind: Kind
    conn: int = 0
    id: Any = None
    method: str = ""
    terminal: str = ""
    name: str = ""
    params: Any = None
    result: Any = None
    error: Any = None
    argv: list[str] = []
    env: dict[str, str] = {}
    labels: dict[str, str] = {}
    cwd: str = ""
    parent: str | None = None
    turn: int | None = None
    status: str | None = None
    state: str = ""
    exit_code: int | None = None
    signal: str | None = None
    text: str = ""
    step: int | None = None
    note: str = ""


def weight(event: Event) -> int:
    """About how many bytes an event takes: as many as it has when written down, and never nothing."""
    if event.params is None and event.result is None and not event.argv:
        return EVENT_BYTES + len(event.text) + len(event.note)
    try:
        return EVENT_BYTES + len(msgspec.json.encode(event))
    except (OverflowError, TypeError, ValueError, RecursionError):  # what JSON cannot say, or not so deeply
        return EVENT_BYTES + len(repr(event))


class Trace:
    """An append-only list of events with the questions that checks ask of it.

    `dropped` counts the events that were too many. A trace that is not whole proves nothing: `one`, `none` and
    `none_after` then raise `AssertionError`.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.dropped = 0
        self._bytes = 0

    def add(self, event: Event) -> None:
        """Append one event, or count it as dropped when the trace is full."""
        if not self.events:
            self._bytes = 0
        size = weight(event)
        if len(self.events) < MAX_EVENTS and self._bytes + size <= MAX_TRACE_BYTES:
            self.events.append(event)
            self._bytes += size
        else:
            self.dropped += 1

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def of(self, kind: Kind, method: str = "", terminal: str = "") -> list[Event]:
        """Events of one kind, narrowed to a method and a terminal (address or name) when given.

        Raises `ValueError` for a method that there is not and that nobody has called: nothing would ever match it.
        """
        if method and method not in METHODS:
            self._refuse_unknown(method)
        return [
            event
            for event in self.events
            if event.kind == kind
            and (not method or event.method == method)
            and (not terminal or terminal in (event.terminal, event.name))
        ]

    def calls(
        self, method: str = "", terminal: str = "", *, after_ms: int | None = None, before_ms: int | None = None
    ) -> list[Event]:
        """Calls of a method (nothing said: of any), on a terminal, at or after a time, before a time."""
        return [
            event
            for event in self.of("call", "" if method == "*" else method, terminal)
            if (after_ms is None or event.t >= after_ms) and (before_ms is None or event.t < before_ms)
        ]

    def count(self, method: str = "", terminal: str = "") -> int:
        """How many such calls there were: `trace.count("terminal.send") == 1`."""
        return len(self.calls(method, terminal))

    def one(self, method: str, terminal: str = "") -> Event:
        """The only such call. Raises `AssertionError`, saying how many there were, if it is not the only one."""
        found = self._whole().calls(method, terminal)
        if len(found) != 1:
            times = ", ".join(f"{event.t} ms" for event in found[:20]) or "never"
            raise AssertionError(f"{method} was called {len(found)} times, not once: {times}")
        return found[0]

    def none(self, method: str, terminal: str = "") -> bool:
        """Whether there was no such call: `assert trace.none("terminal.kill")`."""
        return not self._whole().calls(method, terminal)

    def none_after(self, method: str, t: int, terminal: str = "") -> bool:
        """Whether there was no such call later than `t` ms: `assert trace.none_after("terminal.get", t)`."""
        return not self._whole().calls(method, terminal, after_ms=t + 1)

    def _refuse_unknown(self, method: str) -> None:
        known = [*METHODS, *REFUSED]
        if method not in known and all(event.method != method for event in self.events):
            whole = f"terminal.{method}"
            hint = f"did you mean {whole!r}?" if whole in known else nearest(method, known)
            raise ValueError(f"no method {method!r}; {hint}")

    def _whole(self) -> "Trace":
        if self.dropped:
            raise AssertionError(f"the trace is full: {self.dropped} later events are not in it")
        return self

    def texts(self, terminal: str = "") -> list[str]:
        """The prompts that reached a terminal, in order."""
        return [event.text for event in self.of("text", terminal=terminal)]

    def keys(self, terminal: str = "") -> list[str]:
        """The keys that reached a terminal, in order."""
        return [event.text for event in self.of("key", terminal=terminal)]

    def left(self) -> list[str]:
        """The programs that have outlived the agents that started them, and the zombies that nobody has reaped."""
        gone = {(event.terminal, event.text) for event in self.of("process") if event.note == "reaped"}
        left = [event for event in self.of("process") if event.note in ("left", "zombie")]
        return [event.text for event in left if (event.terminal, event.text) not in gone]
