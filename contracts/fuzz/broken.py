"""Supervisors with one fault each, to prove that every invariant of the random search can fail."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from contracts.fuzz.lean import Make, correct
from contracts.fuzz.planted import PLANTED, installed, planted
from legion_terminal.client import HcClient
from legion_terminal.errors import SupervisorError
from legion_terminal.settle import Observation, SettleResult
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import Cancel, Child, RetireResult, SpawnRequest, SteerResult, Supervisor


@dataclass(frozen=True, slots=True)
class Violation:
    """A fault: what it gets wrong, the invariant that it breaks, and the supervisor that has it."""

    says: str
    invariant: str
    kind: "Callable[..., Supervisor]"


class _Plain(TerminalSupervisor):
    """A supervisor that still has its client at hand."""

    def __init__(self, client: HcClient, env: Mapping[str, str], *, poll_ms: int) -> None:
        super().__init__(client, env, poll_ms=poll_ms)
        self.client = client


class _SendsAgain(_Plain):
    async def steer(self, child: Child, text: str) -> SteerResult:
        """When the outcome is not known, once more."""
        try:
            return await super().steer(child, text)
        except SupervisorError as error:
            if error.known != "unknown":
                raise
            return await super().steer(child, text)


class _RemovesByName(_Plain):
    async def retire(self, child: Child) -> RetireResult:
        """Whoever has the name is killed and removed."""
        for method in ("terminal.kill", "terminal.rm"):
            try:
                await self.client.ask(method, {"terminal": child.name})
            except SupervisorError:
                continue
        child.retired = True
        return RetireResult(ended=False, removed=False)


class _StartsAgain(_Plain):
    async def spawn(self, request: SpawnRequest) -> Child:
        """A start that failed is tried twice more."""
        for _ in range(2):
            try:
                return await super().spawn(request)
            except SupervisorError:
                continue
        return await super().spawn(request)


class _WaitsLonger(_Plain):
    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        """One poll more than there is time for."""
        return await super().wait_settled(child, max(0, timeout_ms) + 1, cancelled)


class _RaisesAnything(_Plain):
    async def status(self, child: Child) -> Observation:
        """A child that is gone is a key that is not there."""
        try:
            return await super().status(child)
        except SupervisorError as error:
            raise KeyError(child.name) from error


class _LeavesATask(_Plain):
    async def abort(self, child: Child) -> Any:
        """Something goes on in the background."""
        self._more = asyncio.create_task(asyncio.sleep(100_000))
        return await super().abort(child)


class _ClaimsTooMuch(_Plain):
    async def retire(self, child: Child) -> RetireResult:
        """Everything always went well."""
        await super().retire(child)
        return RetireResult(ended=True, removed=True)


class _NeverComesBack(_Plain):
    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        """A wait for a child that is gone goes on for ever."""
        result = await super().wait_settled(child, timeout_ms, cancelled)
        if result.reason == "gone":
            await asyncio.get_running_loop().create_future()
        return result


VIOLATIONS: Final[Mapping[str, Violation]] = {
    "sends-again": Violation("a steer of unknown outcome is sent again", "text-once", _SendsAgain),
    "removes-by-name": Violation("whatever has the child's name is ended and removed", "own-only", _RemovesByName),
    "starts-again": Violation("a start that failed is tried three times", "two-runs", _StartsAgain),
    "waits-longer": Violation("a wait takes a millisecond more than it may", "timeout", _WaitsLonger),
    "raises-anything": Violation("a failure is whatever Python raises", "typed", _RaisesAnything),
    "leaves-a-task": Violation("an abort leaves a task behind", "left-over", _LeavesATask),
    "claims-too-much": Violation("a retirement always says that it went well", "claims", _ClaimsTooMuch),
    "never-comes-back": Violation("a wait for a child that is gone never ends", "hangs", _NeverComesBack),
}
"""Every violation by its name."""

NAMES: Final = (*VIOLATIONS, *(one.name for one in PLANTED))
"""Whatever `supervisor` can make wrong."""


@contextmanager
def supervisor(name: str = "") -> Iterator[Make]:
    """How to make the supervisor under test: the correct one, or the one with this fault. Raises KeyError."""
    if name == "":
        yield correct
    elif name in VIOLATIONS:
        kind = VIOLATIONS[name].kind
        yield lambda client, env, poll_ms: kind(client, env, poll_ms=poll_ms)
    else:
        with installed(planted(name)):
            yield correct
