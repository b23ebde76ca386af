"""The truth table of arbitration, written down once as data, and the checks that hold it against the supervisor."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from contracts.checks.base import Check, Subject, check, found
from contracts.hosts.environment import decoys, surrounded
from contracts.records import Finding
from legion_terminal import host, routing
from legion_terminal.errors import SupervisorError
from legion_terminal.settle import Observation, SettleResult
from legion_terminal.types import (
    SPAWN_MODES,
    AbortResult,
    Cancel,
    Capabilities,
    Child,
    RetireResult,
    SpawnMode,
    SpawnRequest,
    SteerResult,
    Supervisor,
    Verdict,
)

SOCKET = "/nowhere/core.sock"

MARKERS: Mapping[str, tuple[dict[str, str], bool]] = {
    "no marker": ({}, False),
    "socket only": ({"HC_TERMINAL_SOCKET": SOCKET}, False),
    "id only": ({"HC_TERMINAL_ID": "t7"}, False),
    "empty socket": ({"HC_TERMINAL_SOCKET": "", "HC_TERMINAL_ID": "t7"}, False),
    "empty id": ({"HC_TERMINAL_SOCKET": SOCKET, "HC_TERMINAL_ID": ""}, False),
    "other variables": ({"HC_BIN": "/bin/hc", "HC_SOCKET": SOCKET, "HC_SESSION": "x", "HERDR_ENV": "1"}, False),
    "both markers": ({"HC_TERMINAL_SOCKET": SOCKET, "HC_TERMINAL_ID": "t7"}, True),
}
"""Environments, and whether they are the inside of an hc terminal (D2)."""

STAND_INS: Mapping[str, tuple[dict[str, str], bool]] = {
    "HC_SOCKET for the socket": ({"HC_SOCKET": SOCKET, "HC_TERMINAL_ID": "t7"}, False),
    "HC_SESSION for the id": ({"HC_TERMINAL_SOCKET": SOCKET, "HC_SESSION": "t7"}, False),
    "both markers, TERM=dumb": ({"HC_TERMINAL_SOCKET": SOCKET, "HC_TERMINAL_ID": "t7", "TERM": "dumb"}, True),
    "both markers, a subagent": (
        {"HC_TERMINAL_SOCKET": SOCKET, "HC_TERMINAL_ID": "t7", "PI_SUBAGENT_DEPTH": "2", "CI": "1"},
        True,
    ),
    "markers of white space": ({"HC_TERMINAL_SOCKET": " ", "HC_TERMINAL_ID": "\t"}, True),
    "white space and nothing": ({"HC_TERMINAL_SOCKET": " ", "HC_TERMINAL_ID": ""}, False),
}
"""Further environments for D2 alone: what stands in for no marker, and what takes none away."""

TRUTHY: Final[tuple[Any, ...]] = (1, "yes", "true", "false", [0], None, 0, "")
"""Values of `worktree` that are not true itself."""

OTHER_ROLES = ("worker", "scout", "vexillatio", "utility", "legatus", "Centurion", "CENTURION", " centurion", "")
"""Roles that hold no worktree; some of them only look like the one that does."""

REFUSED: Final = "refused"
IN_PROCESS_REFUSAL: Final = "an in-process agent cannot hold a worktree"
"""The words with which a worktree in process is refused; they are not to change."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what arbitration answers, and what a spawn then does."""

    agent: str
    worktree: bool
    markers: str
    mode: SpawnMode
    spawn: Literal["inprocess", "rpc", "terminal", "refused"]

    @property
    def env(self) -> dict[str, str]:
        """The environment of the row."""
        return dict(MARKERS[self.markers][0])

    @property
    def where(self) -> str:
        """The row in words."""
        return f"{self.agent!r}, {'with' if self.worktree else 'without'} worktree, {self.markers}"


def table() -> Iterator[Row]:
    """The whole table: D1, D2, I5 and I6 as rows."""
    for markers, (_, inside) in MARKERS.items():
        hosted: SpawnMode = "terminal" if inside else "rpc"
        yield Row("centurion", True, markers, hosted, hosted)
        yield Row("centurion", False, markers, "inprocess", "inprocess")
        for role in OTHER_ROLES:
            yield Row(role, False, markers, "inprocess", "inprocess")
            yield Row(role, True, markers, "rpc", REFUSED)


def _arbitrated(rows: Iterator[Row], clause: str) -> list[Finding]:
    return [
        found(clause, row.where, expected=row.mode, got=routing.arbitrate(row.agent, row.worktree, row.env))
        for row in rows
    ]


@check("d1-scope", "D1", "only a centurion with a worktree inside hc reaches the terminal mode")
def scope(_: Subject) -> list[Finding]:
    """Inside hc: every row of the table; and what only looks like a worktree."""
    env = MARKERS["both markers"][0]
    like = [
        found("D1", f"worktree = {value!r}", expected="inprocess", got=routing.arbitrate("centurion", value, env))
        for value in TRUTHY
    ]
    return _arbitrated((row for row in table() if MARKERS[row.markers][1]), "D1") + like


@check("d2-markers", "D2", "two variables that are not empty decide, and nothing else in the environment does")
def markers(_: Subject) -> list[Finding]:
    """Every environment of the table and of D2's own, while this process's environment says something else."""
    with surrounded(decoys(Path("/nowhere"))):
        return [
            found("D2", name, expected=inside, got=host.terminal_host_available(env))
            for name, (env, inside) in {**MARKERS, **STAND_INS}.items()
        ]


@check("i1-truth-table", "I1", "without both markers every role gets the mode that it always had")
def outside(_: Subject) -> list[Finding]:
    """Outside hc: every row of the table."""
    return _arbitrated((row for row in table() if not MARKERS[row.markers][1]), "I1")


@check("i5-defaults", "I5", "inprocess without a worktree, inside and outside; rpc for a centurion outside")
def defaults(_: Subject) -> list[Finding]:
    """Rows without a worktree, and the centurion outside hc, as they are really routed."""
    rows = [row for row in table() if not row.worktree or (row.agent == "centurion" and row.mode == "rpc")]
    return [found("I5", row.where, expected=row.spawn, got=_spawned(row)) for row in rows]


@check("i6-one-role", "I6", "a worktree is refused to every other role before anything is started")
def one_role(_: Subject) -> list[Finding]:
    """Rows with a worktree, as they are really routed; and the guard by itself, in each mode."""
    rows = [found("I6", row.where, expected=row.spawn, got=_spawned(row)) for row in table() if row.worktree]
    guard = [
        found("I6", f"guard, {role!r}, {mode}", expected=_guarded(role, mode), got=_guard(role, mode))
        for role in ("centurion", "scout", "")
        for mode in SPAWN_MODES
    ]
    return rows + guard


@check("a2-unreachable", "A2", "no role but centurion ever arrives at the mode whose overlay cannot delete")
def unreachable(_: Subject) -> list[Finding]:
    """Arbitration and routing of every other role."""
    rows = [row for row in table() if row.agent != "centurion"]
    return [
        found(
            "A2",
            row.where,
            expected=False,
            got="terminal" in (routing.arbitrate(row.agent, row.worktree, row.env), _spawned(row)),
        )
        for row in rows
    ]


def _guarded(role: str, mode: SpawnMode) -> str:
    if role != "centurion":
        return REFUSED
    return IN_PROCESS_REFUSAL if mode == "inprocess" else "allowed"


def _guard(role: str, mode: SpawnMode) -> str:
    """What the spawn guard says to a worktree: its code for another role, its frozen words for an in-process child."""
    try:
        routing.check_spawn(mode, request(role, worktree=True))
    except SupervisorError as error:
        return error.message if role == "centurion" else REFUSED if error.code == "worktree-refused" else error.code
    return "allowed"


CHECKS: tuple[Check, ...] = (scope, markers, outside, defaults, one_role, unreachable)


def request(agent: str, *, worktree: bool) -> SpawnRequest:
    """A request of a role, all else being ordinary."""
    return SpawnRequest(
        agent=agent,
        run_id="run00001",
        handle="alpha",
        task="do the work",
        cwd="/nowhere",
        session_file="/nowhere/session.jsonl",
        worktree=worktree,
    )


class _Probe:
    """A backend that only notes that a spawn arrived."""

    capabilities = Capabilities()

    def __init__(self, mode: SpawnMode, reached: list[str]) -> None:
        self._mode = mode
        self._reached = reached

    async def spawn(self, request: SpawnRequest) -> Child:
        self._reached.append(self._mode)
        session = request.session_file
        return Child(id="1", mode=self._mode, handle=request.handle, run_id=request.run_id, session_file=session)

    async def steer(self, child: Child, text: str) -> SteerResult:
        raise NotImplementedError

    async def abort(self, child: Child) -> AbortResult:
        raise NotImplementedError

    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        raise NotImplementedError

    async def status(self, child: Child) -> Observation:
        raise NotImplementedError

    async def collect(self, child: Child) -> Verdict:
        raise NotImplementedError

    async def retire(self, child: Child) -> RetireResult:
        raise NotImplementedError

    async def close(self) -> None:
        return None


def _spawned(row: Row) -> str:
    """Where a spawn of this row arrives: the mode whose backend was asked, or `refused` when none was."""
    reached: list[str] = []

    async def go() -> None:
        probes: dict[SpawnMode, Supervisor] = {mode: _Probe(mode, reached) for mode in SPAWN_MODES}
        router = routing.RoutingSupervisor(probes, row.env)
        try:
            await router.spawn(request(row.agent, worktree=row.worktree))
        except SupervisorError as error:
            reached.append(REFUSED if error.code == "worktree-refused" else error.code)
        finally:
            await router.close()

    asyncio.run(go())
    return " then ".join(reached)
