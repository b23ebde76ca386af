"""Which backend an agent gets (D1, D2, I5, I6), and which backend owns a child that was started."""

from collections.abc import Mapping
from typing import assert_never
from weakref import WeakKeyDictionary

from legion_terminal.errors import SupervisorError
from legion_terminal.host import terminal_host_available
from legion_terminal.settle import Observation, SettleResult
from legion_terminal.types import (
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

WORKTREE_ROLE = "centurion"
INPROCESS_WORKTREE = "an in-process agent cannot hold a worktree"


def arbitrate(agent: str, worktree: bool, env: Mapping[str, str]) -> SpawnMode:
    """The mode of an agent: a truth table over three facts, and nothing else is looked at (D1, D2, I1, I5).

    =========  =========  ==========  =========
    worktree   role       inside hc   mode
    =========  =========  ==========  =========
    no         any        any         inprocess
    yes        any        no          rpc
    yes        centurion  yes         terminal
    yes        other      yes         rpc
    =========  =========  ==========  =========

    `worktree` counts as yes only when it is True itself. Whether the role may hold a worktree at all is asked at the
    start (`check_spawn`), not here.
    """
    if worktree is not True:
        return "inprocess"
    if agent == WORKTREE_ROLE and terminal_host_available(env):
        return "terminal"
    return "rpc"


def mode_label(mode: SpawnMode) -> str:
    """How a mode is shown (I4)."""
    match mode:
        case "inprocess":
            return "in process"
        case "rpc":
            return "headless"
        case "terminal":
            return "terminal"
        case _:  # pragma: no cover
            assert_never(mode)


def may_hold_worktree(mode: SpawnMode) -> bool:
    """Whether an agent in this mode can work in a worktree of its own (I4)."""
    match mode:
        case "inprocess":
            return False
        case "rpc" | "terminal":
            return True
        case _:  # pragma: no cover
            assert_never(mode)


def check_spawn(mode: SpawnMode, request: SpawnRequest) -> None:
    """Refuse what must not start (I6): a worktree for another role, and a worktree in process.

    Raises SupervisorError `worktree-refused`.
    """
    if not request.worktree:
        return
    if request.agent != WORKTREE_ROLE:
        raise SupervisorError(
            "worktree-refused",
            f"only a {WORKTREE_ROLE} can hold a worktree, and this is {request.agent!r}",
            child=request.handle,
            hint=f"start it without a worktree, or as a {WORKTREE_ROLE}",
        )
    if not may_hold_worktree(mode):
        raise SupervisorError("worktree-refused", INPROCESS_WORKTREE, child=request.handle)


class RoutingSupervisor:
    """A `Supervisor` over the backends of the three modes; each call on a child goes to the backend that started it.

    A mode without a backend is an empty slot: choosing it says so, and starts nothing elsewhere.
    """

    def __init__(self, backends: Mapping[SpawnMode, Supervisor], env: Mapping[str, str]) -> None:
        self._backends = dict(backends)
        self._env = dict(env)
        self._owners: WeakKeyDictionary[Child, SpawnMode] = WeakKeyDictionary()

    @property
    def capabilities(self) -> Capabilities:
        """What every backend here can do; ask `backend_for(child).capabilities` for one child."""
        claims = [backend.capabilities for backend in self._backends.values()]
        return Capabilities(
            prompt_disposition=bool(claims) and all(claim.prompt_disposition for claim in claims),
            events=bool(claims) and all(claim.events for claim in claims),
        )

    async def spawn(self, request: SpawnRequest) -> Child:
        """Start an agent on the backend that `arbitrate` names. Raises SupervisorError."""
        mode = arbitrate(request.agent, request.worktree, self._env)
        check_spawn(mode, request)
        child = await self._backend(mode, request.handle).spawn(request)
        self._owners[child] = mode
        return child

    def owner(self, child: Child) -> SpawnMode | None:
        """The mode whose backend started this child, None when it was not started here."""
        return self._owners.get(child)

    def backend_for(self, child: Child) -> Supervisor:
        """The backend that started this child. Raises SupervisorError `bad-request` for a stranger's."""
        mode = self._owners.get(child)
        if mode is None:
            raise SupervisorError(
                "bad-request", "it was not started by this supervisor", child=child.name or child.handle
            )
        return self._backend(mode, child.handle)

    async def steer(self, child: Child, text: str) -> SteerResult:
        """As the backend of this child."""
        return await self.backend_for(child).steer(child, text)

    async def abort(self, child: Child) -> AbortResult:
        """As the backend of this child."""
        return await self.backend_for(child).abort(child)

    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        """As the backend of this child."""
        return await self.backend_for(child).wait_settled(child, timeout_ms, cancelled)

    async def status(self, child: Child) -> Observation:
        """As the backend of this child."""
        return await self.backend_for(child).status(child)

    async def collect(self, child: Child) -> Verdict:
        """As the backend of this child."""
        return await self.backend_for(child).collect(child)

    async def retire(self, child: Child) -> RetireResult:
        """As the backend of this child. Never raises: a stranger's child is left alone, and the note says so."""
        try:
            backend = self.backend_for(child)
        except SupervisorError as error:
            return RetireResult(ended=False, removed=False, note=error.message)
        return await backend.retire(child)

    async def close(self) -> None:
        """Close every backend, each whether or not the one before failed; the first failure is raised at the end."""
        failure: Exception | None = None
        for backend in self._backends.values():
            try:
                await backend.close()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _backend(self, mode: SpawnMode, handle: str) -> Supervisor:
        backend = self._backends.get(mode)
        if backend is None:
            raise SupervisorError(
                "mode-unavailable",
                f"there is no backend for {mode_label(mode)} agents (mode {mode}) here",
                child=handle,
                hint="give one to the RoutingSupervisor",
            )
        return backend
