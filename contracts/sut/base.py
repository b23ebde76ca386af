"""The protocol between the harness and a system under test: named calls with JSON-like parameters and results.

Spelling is camelCase. Every call that concerns a child carries `child`, the token that `spawn` returned. `?` marks
parameters that may be left out; anything else that is not listed here is refused as a mistake of the scenario.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from legion_terminal.link import Transport

SPAWN_PARAMS: frozenset[str] = frozenset(
    (
        "handle",
        "runId",
        "agent",
        "task",
        "cwd",
        "sessionFile",
        "worktree",
        "branch",
        "model",
        "provider",
        "tools",
        "extensions",
        "skills",
        "noExtensions",
        "noSkills",
        "noContextFiles",
        "systemPrompt",
        "env",
        "allowNested",
        "mode",
        "approve",
        "onBlocked",
        "minFreeMb",
    )
)

METHODS: Mapping[str, frozenset[str]] = {
    "host.available": frozenset({"env"}),
    "arbitrate": frozenset({"agent", "worktree", "env"}),
    "card.load": frozenset({"text", "source"}),
    "spawn": SPAWN_PARAMS,
    "steer": frozenset({"child", "text"}),
    "prompt": frozenset({"child", "text"}),  # this and the next four: headless children alone
    "follow_up": frozenset({"child", "text"}),
    "clear_queue": frozenset({"child"}),
    "dialogs": frozenset({"child"}),
    "answer": frozenset({"child", "dialog", "confirmed", "value"}),  # without the last two: a cancel
    "abort": frozenset({"child"}),
    "wait": frozenset({"child", "timeoutMs", "token"}),
    "cancel": frozenset({"token"}),  # calls off the wait that was given this token
    "status": frozenset({"child"}),
    "collect": frozenset({"child"}),
    "capabilities": frozenset({"child"}),
    "retire": frozenset({"child"}),
    "shutdown": frozenset(),  # releases everything; children go on
}
"""Every call and the parameters it takes."""

RESULTS: Mapping[str, frozenset[str]] = {
    "host.available": frozenset({"available"}),
    "arbitrate": frozenset({"mode"}),
    "card.load": frozenset({"name", "source", "body"}),
    "spawn": frozenset({"mode", "name", "child", "promptTurn"}),
    "steer": frozenset({"started", "promptTurn", "disposition"}),
    "prompt": frozenset({"started", "promptTurn", "disposition"}),
    "follow_up": frozenset({"started", "promptTurn", "disposition"}),
    "clear_queue": frozenset({"steering", "followUp"}),
    "dialogs": frozenset({"open"}),
    "answer": frozenset({"answered"}),
    "abort": frozenset({"status", "cleared"}),
    "wait": frozenset(
        (
            *("settled", "abnormal", "reason", "exitCode", "signal", "lastTurn", "lastStatus"),
            *("node", "aborted", "unconfirmed", "detail"),  # headless children alone
        )
    ),
    "cancel": frozenset({"cancelled"}),
    "status": frozenset({"turn", "status", "state", "exitCode", "signal"}),
    "collect": frozenset({"verdict", "text", "stopReason", "reason", "badLines"}),
    "capabilities": frozenset({"promptDisposition", "events"}),
    "retire": frozenset({"ended", "removed", "note"}),
    "shutdown": frozenset(),
}
"""Every call and the keys that its result may have; what is not known is left out of a result."""

ERROR_KEYS: frozenset[str] = frozenset({"code", "message", "child", "known", "kind", "hint"})
"""The keys of a `SutError`."""

DEFAULT_WAIT_MS = 5_000
"""The wait of a `wait` step that names no `timeoutMs`."""


class SutError(Exception):
    """A failure as the system under test reports it: `error` is code, message, child, known, kind, hint."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")) or str(error.get("code", "")))
        self.error = dict(error)


class SutUnstartedError(Exception):
    """There is no system under test: its process could not be started, which is no fault of it."""


class Sut(Protocol):
    """A supervisor, whatever it is written in."""

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Carry out one call of `METHODS`. Raises `SutError` for a failure that the supervisor reports."""

    async def close(self) -> None:
        """Release everything; safe to call twice."""


@runtime_checkable
class OwnProcess(Protocol):
    """A system under test in a process of its own.

    `left`: what it has left behind, in words, known once it closed. `broken`: set when it is of no more use.
    `misspoke`: what it wrote against the protocol, in words, whenever that was; "" for nothing.
    """

    left: list[str]
    misspoke: str
    broken: asyncio.Event

    async def prepare(self) -> None:
        """Start it before the drive begins. Raises nothing: what goes wrong is told by the calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SutSetup:
    """What a host gives to a system under test.

    `env`: the whole environment it may know. `connect`: makes one link to the core (None: start `hc connect` as the
    environment says). `poll_ms`: interval of its polls. `memory_env`: what its memory feature adds to a child (D5).
    `limit_ms`: real time for the whole run.
    """

    env: Mapping[str, str]
    connect: Callable[[], Transport] | None = None
    poll_ms: int = 250
    memory_env: Mapping[str, str] = field(default_factory=dict)
    limit_ms: int = 20_000


SutFactory = Callable[[SutSetup], Sut]
