"""Who called what, seen from both sides: by the supervisor's client as it asks, by the core as it carries out.

The two notebooks are what invariants are judged by. Neither changes anything: the client asks as it would, the core
answers as it would.
"""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from hc_sim.core import Answer, Core, Pending
from legion_terminal.client import Answer as Given
from legion_terminal.client import HcClient, Method
from legion_terminal.errors import SupervisorError

STEP: ContextVar[int] = ContextVar("STEP", default=-1)
"""The step of the drive that the running task works for; tasks that a step starts inherit it."""

Incarnation = tuple[str, int]
"""Address and creation time: one terminal from its start to its end."""

CHANGING = frozenset({"terminal.run", "terminal.send", "terminal.interrupt", "terminal.kill", "terminal.rm"})
MISSING_KIND = "no_such_terminal"


@dataclass(slots=True)
class Ask:
    """One call of the supervisor's. `ended_ms` is None while it is under way, and when it was given up."""

    step: int
    method: str
    target: str
    begun_ms: int
    ended_ms: int | None = None
    result: dict[str, Any] | None = None
    error: SupervisorError | None = None
    core_id: str = ""

    @property
    def shown(self) -> dict[str, Any] | None:
        """The terminal that the answer shows, None if it shows none."""
        if self.result is None:
            return None
        inner = self.result.get("terminal")
        fields = inner if isinstance(inner, dict) else self.result
        return fields if "state" in fields or "turn" in fields else None

    @property
    def incarnation(self) -> Incarnation | None:
        """Which incarnation the answer shows."""
        shown = self.shown
        return None if shown is None else (str(shown.get("address")), int(shown.get("created_ms") or 0))


@dataclass(frozen=True, slots=True)
class Touch:
    """One changing call that the core carried out, and the terminal that it met: None if there was none."""

    method: str
    target: str
    at_ms: int
    met: Incarnation | None
    name: str | None
    live: bool
    applied: bool


class WatchedClient(HcClient):
    """A client that writes down what it is asked and what came of it."""

    asks: list[Ask]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asks = []

    async def ask(
        self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
    ) -> Given:
        """As ever, and noted."""
        loop = asyncio.get_running_loop()
        target = params.get("name") if method == "terminal.run" else params.get("terminal")
        note = Ask(STEP.get(), method, str(target), round(loop.time() * 1_000))
        self.asks.append(note)
        try:
            given = await super().ask(method, params, on_link=on_link, within_ms=within_ms)
        except SupervisorError as error:
            note.ended_ms, note.error = round(loop.time() * 1_000), error
            raise
        note.ended_ms, note.result, note.core_id = round(loop.time() * 1_000), given.result, given.core_id
        return given


class WatchedCore(Core):
    """A core that writes down which terminal each changing call met, and which terminals were started by a call."""

    touches: list[Touch]
    started: dict[Incarnation, str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.touches = []
        self.started = {}

    def call(self, method: str, params: Any, now: int, *, conn: int = 0) -> Answer | Pending:
        """As ever, and noted."""
        if method not in CHANGING or not isinstance(params, dict):
            return super().call(method, params, now, conn=conn)
        target = str(params.get("name") if method == "terminal.run" else params.get("terminal"))
        found = self.find(target)
        answer = super().call(method, params, now, conn=conn)
        applied = isinstance(answer, Pending) or answer.error is None
        if method == "terminal.run" and applied and (new := self.find(target)) is not None:
            self.started[(new.address, new.created_ms)] = target
        met = None if found is None else (found.address, found.created_ms)
        name = None if found is None else found.name
        live = found is not None and found.state == "running"
        self.touches.append(Touch(method, target, now, met, name, live, applied))
        return answer
