"""The cheapest world in which a whole supervisor can run: real core, hub and wire, no folder, no process, one loop.

Everything that the supervisor and the core say to each other goes over the same bytes as on the memory host, faults
included. What is left out is what a run does not need: temporary folders, witnesses, a bridge's process. Session files
are real, and only there when an agent of the run writes one.
"""

import asyncio
import heapq
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from contracts.fuzz.watched import WatchedClient, WatchedCore
from contracts.scenario import Terminal, World
from hc_sim.clock import VirtualLoop
from hc_sim.driver import Driver, MemoryLink
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from legion_terminal.client import HcClient
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import Supervisor

NOWHERE = "/nonexistent"
"""Stands for every folder of a run that has no files."""
LIMIT_MS = 1_200_000
"""Virtual time that one run may take; a run that needs more never ends."""
DOWN = b"hc: cannot reach a core: nobody listens there\n"

Make = Callable[[HcClient, Mapping[str, str], int], Supervisor]
"""Makes the supervisor under test from its client, its environment and its poll interval in ms."""


def correct(client: HcClient, env: Mapping[str, str], poll_ms: int) -> Supervisor:
    """The terminal supervisor of this project."""
    return TerminalSupervisor(client, env, poll_ms=poll_ms)


class LeanWorld:
    """A core with everything that a `World` puts into it, and a supervisor beside it. Raises `ValueError`."""

    def __init__(self, world: World, loop: VirtualLoop, *, make: Make, poll_ms: int, folder: str = NOWHERE) -> None:
        self.folder = folder
        self.core = WatchedCore(_profile(world.profile), agents=world.agent)
        self.parent = self.core.add_terminal(argv=("/bin/bash",), labels=world.parent.labels)
        for terminal in world.terminal:
            _stand(self.core, terminal)
        self.hub = Hub(self.core, world.fault)
        self.driver = Driver(self.hub, loop)
        self.client = WatchedClient(lambda: LeanTransport(self))
        env = {
            "HOME": folder,
            "PATH": "/usr/bin",
            "HC_TERMINAL_SOCKET": f"{folder}/core.sock",
            "HC_TERMINAL_ID": self.parent,
        }
        self.supervisor = make(self.client, env, poll_ms)

    def now(self) -> int:
        """Milliseconds since this world was made."""
        return self.driver.now()

    def session(self, handle: str) -> str:
        """Path of the session file of a child; it need not be there."""
        return f"{self.folder}/session-{handle}.jsonl"


class LeanTransport:
    """What `hc connect` is to a supervisor, without the process: requests are carried out in the call that brings them.

    When nobody listens it ends as the executable would: with words and an exit code.
    """

    def __init__(self, world: LeanWorld) -> None:
        self._world = world
        self._link: MemoryLink | None = None
        self._tail = b""
        self._ended: str | None = None

    async def open(self) -> None:
        """Reach the core, if it listens."""
        if self._world.hub.listening(self._world.now()):
            self._link = self._world.driver.open_link()
        else:
            self._tail, self._ended = DOWN, "exit code 1"

    async def write(self, data: bytes) -> None:
        """Hand over bytes. Raises BrokenPipeError once the bridge has ended."""
        if self._link is None:
            raise BrokenPipeError("the bridge takes no more input")
        self._world.driver.received_now(self._link.conn, data)

    async def read(self) -> bytes:
        """What has come; b"" at the end."""
        data = await self._link.read() if self._link is not None else b""
        if not data and self._ended is None:
            self._ended = "exit code 1"
        return data

    async def close(self) -> None:
        """Leave."""
        self._ended = self._ended or "exit code 0"
        if self._link is not None:
            self._link.close()

    def tail(self) -> str:
        """The end of what the bridge wrote on stderr."""
        return self._tail.decode()

    def ended(self) -> str | None:
        """How it ended, None while it has not."""
        return self._ended


class LeanLoop(VirtualLoop):
    """A virtual loop that asks its selector only when nothing else is to be done: no file descriptor is ever watched.

    The order of callbacks and timers is that of every other loop.
    """

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        if not ready:
            super()._run_once()  # type: ignore[misc]
            return
        if scheduled:
            end = self.time() + self._clock_resolution  # type: ignore[attr-defined]
            while scheduled and scheduled[0]._when < end:
                handle = heapq.heappop(scheduled)
                handle._scheduled = False
                ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()


def fresh_loop() -> LeanLoop:
    """A loop for many runs, one after the other."""
    loop = LeanLoop(limit_ms=LIMIT_MS)
    loop.set_exception_handler(lambda _loop, _context: None)
    return loop


def timers(loop: asyncio.AbstractEventLoop) -> list[asyncio.TimerHandle]:
    """Timers that are still set. The loop's own list is the only place where they stand."""
    scheduled: list[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return [handle for handle in scheduled if not handle.cancelled()]


def _stand(core: WatchedCore, terminal: Terminal) -> None:
    core.add_terminal(
        name=terminal.name,
        argv=tuple(terminal.argv),
        labels=terminal.labels,
        turn=terminal.turn,
        status=terminal.status,
        finished=terminal.finished,
        played=terminal.played,
    )


def _profile(overrides: Mapping[str, Any]) -> WireProfile:
    return msgspec.convert(dict(overrides), WireProfile) if overrides else _PLAIN


_PLAIN = WireProfile()
