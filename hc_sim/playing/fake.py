"""A fake core in the test's own process: `FakeCore` on a virtual clock, `AsyncFakeCore` in an event loop.

    core = FakeCore()
    link = core.connect()
    child = link.call("terminal.run", {"argv": ["pi"], "name": "alpha"})
    core.agent("alpha").working()
    core.advance(60_000)                 # a minute that takes no time
    core.agent("alpha").done()

How an agent is played is in `hc_sim.playing.stage`; what a link carries are the bytes of the real wire.
"""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from hc_sim.clock import VirtualClock, VirtualDeadlock
from hc_sim.core import Core
from hc_sim.core.machine import always
from hc_sim.driver import Driver, MemoryLink
from hc_sim.faults import Faults
from hc_sim.hosting import Programs
from hc_sim.hub.connection import Delivery, Hub
from hc_sim.playing.stage import Stage
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent
from hc_sim.session_files import apply_file
from hc_sim.trace import Event, Kind, Trace

__all__ = ["AsyncFakeCore", "CallError", "DrivenStage", "FakeCore", "FakeLink"]

T = TypeVar("T")

MAX_MOMENTS = 1_000_000
"""Moments at which something happens within one `advance` or `read`; more is a core that never rests."""
REPLY_MS = 600_000
"""How long a call or a wait is waited for if nothing else is said."""


class CallError(Exception):
    """A call was answered with an error: its `code`, `message` and `data` (with `kind` and `hint`)."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message")))
        self.code: Any = error.get("code")
        self.message: Any = error.get("message")
        self.data: Any = error.get("data")

    @property
    def kind(self) -> Any:
        """The kind of the error as spelt on the wire, None if it has none."""
        return self.data.get("kind") if isinstance(self.data, dict) else None


class FakeCore(Stage):
    """A fake core without event loop, thread or socket, on a `VirtualClock` that moves only when it is told to.

    `agents` and `faults` (a `FaultPlan`, or faults of calls alone) as in a script; without agents, terminals report
    nothing until they are played by hand. The same calls give the same trace in every run.
    """

    def __init__(
        self,
        *,
        agents: Sequence[Agent] = (),
        faults: Faults = (),
        profile: WireProfile | None = None,
        env: Mapping[str, str] | None = None,
        core_id: str = "core-1",
        clock: VirtualClock | None = None,
    ) -> None:
        self.clock = VirtualClock() if clock is None else clock
        self._hub = Hub(Core(profile, agents=agents, env=env, core_id=core_id), faults)
        self._links: dict[int, FakeLink] = {}

    @property
    def trace(self) -> Trace:
        """What happened so far: a list that grows as the core runs."""
        return self._hub.core.trace

    def connect(self) -> "FakeLink":
        """A new connection, in memory."""
        link = FakeLink(self)

        def enter(hub: Hub, now: int) -> None:
            link.conn = hub.connect(now)
            self._links[link.conn] = link

        self._do(enter)
        return link

    def advance(self, ms: int) -> None:
        """Let so much virtual time pass; everything that is due in it happens, in order."""
        self._run_to(self.clock.now() + ms)

    def wait_for(
        self, kind: Kind, method: str = "", *, terminal: str = "", nth: int = 1, timeout_ms: int = REPLY_MS
    ) -> Event:
        """Let time pass until the trace has the n-th event of this kind; `TimeoutError` if it does not come."""
        end = self.clock.now() + timeout_ms
        while len(found := self.trace.of(kind, method, terminal)) < nth:
            if not self._step(end):
                raise TimeoutError(f"no {kind} {method} {terminal} number {nth} in {timeout_ms} virtual ms")
        return found[nth - 1]

    def _do(self, work: Callable[[Hub, int], T]) -> T:
        result = work(self._hub, self.clock.now())
        self._settle()
        return result

    def _settle(self) -> None:
        """Let everything happen that is due now."""
        now = self.clock.now()
        self._hub.advance(now)
        deliveries = self._hub.outgoing(now)
        for effect in self._hub.core.drain_files():
            apply_file(effect)
        for delivery in deliveries:
            link = self._links.get(delivery.conn)
            if link is not None:
                link.take(delivery)

    def _run_to(self, end: int) -> None:
        for _ in range(MAX_MOMENTS):
            if not self._step(end):
                return
        raise VirtualDeadlock(f"the core never rests: {MAX_MOMENTS} moments before {end} virtual ms")

    def _step(self, end: int) -> bool:
        """Go to the next moment at which something happens, at most to `end`; false if there was none."""
        due = self._hub.next_due()
        missed = due is None or due > end
        to = end if due is None else min(due, end)
        self.clock.jump(max(0, to * 1_000 - self.clock.micros))
        self._settle()
        return not missed


class FakeLink:
    """The client's end of a connection to a `FakeCore`: the bytes of the real wire, without a socket.

    A `read` that finds nothing lets virtual time pass until something comes.
    """

    def __init__(self, core: FakeCore) -> None:
        self.conn = 0
        self._core = core
        self._chunks: deque[bytes] = deque()
        self._ended = False
        self._closed = False
        self._line = b""
        self._ids = 0

    def write(self, data: bytes) -> None:
        """Send bytes. Raises `BrokenPipeError` when the connection has ended."""
        if self._closed:
            raise BrokenPipeError("the core closed the connection")
        self._core._do(lambda hub, now: hub.receive(self.conn, data, now))

    def write_eof(self) -> None:
        """Say that no more will be sent; replies still come."""
        self._core._do(lambda hub, now: hub.eof(self.conn, now))

    def read(self, timeout_ms: int | None = None) -> bytes:
        """The next bytes, in the pieces in which the core sent them; b"" at the end.

        Raises `TimeoutError` when nothing came in `timeout_ms` of virtual time, and `VirtualDeadlock` when, without
        a timeout, nothing can ever come.
        """
        end = None if timeout_ms is None else self._core.clock.now() + timeout_ms
        for _ in range(MAX_MOMENTS):
            if self._chunks:
                return self._chunks.popleft()
            if self._ended:
                return b""
            limit = self._core._hub.next_due() if end is None else end
            if limit is None:
                raise VirtualDeadlock("nothing is planned in the core: a read would wait for ever")
            if not self._core._step(limit):
                raise TimeoutError(f"nothing came in {timeout_ms} virtual ms")
        raise VirtualDeadlock(f"nothing came in {MAX_MOMENTS} moments")

    def read_line(self, timeout_ms: int | None = None) -> bytes:
        """The next whole line without its end, or the unfinished rest at the end of the connection."""
        while b"\n" not in self._line:
            data = self.read(timeout_ms)
            if not data:
                rest, self._line = self._line, b""
                return rest
            self._line += data
        line, _, self._line = self._line.partition(b"\n")
        return line

    def call(self, method: str, params: Any = None, *, timeout_ms: int = REPLY_MS) -> Any:
        """One JSON-RPC call and the result in its reply; other messages that come before it are passed over.

        Raises `CallError` for an error, `TimeoutError` when the reply is late, `EOFError` when there will be none.
        """
        self._ids += 1
        request = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": {} if params is None else params}
        self.write(msgspec.json.encode(request) + b"\n")
        end = self._core.clock.now() + timeout_ms
        while line := self.read_line(max(0, end - self._core.clock.now())):
            reply = msgspec.json.decode(line)
            if isinstance(reply, dict) and reply.get("id") == self._ids:
                if "error" in reply:
                    raise CallError(reply["error"])
                return reply.get("result")
        raise EOFError(f"the connection ended before the reply to {method}")

    def close(self) -> None:
        """Leave; unread replies are dropped."""
        self._ended = self._closed = True
        self._chunks.clear()
        self._core._links.pop(self.conn, None)
        self._core._do(lambda hub, now: hub.disconnect(self.conn, now))

    def take(self, delivery: Delivery) -> None:
        """Called by the core: bytes for the reader, or the end of the connection."""
        if delivery.data:
            self._chunks.append(delivery.data)
        self._closed = self._closed or delivery.close
        self._ended = self._closed or delivery.half or self._ended


class DrivenStage(Stage):
    """The means to play on a core that a `Driver` runs, used in the driver's own event loop.

    What follows from a move goes out when the loop comes round. `trace` is empty if the driver does not keep it.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    @property
    def trace(self) -> Trace:
        """What happened so far: a list that grows as the core runs."""
        return self.driver.hub.core.trace

    def _do(self, work: Callable[[Hub, int], T]) -> T:
        try:
            return work(self.driver.hub, self.driver.now())
        finally:
            self.driver.kick()


class AsyncFakeCore(DrivenStage):
    """A fake core in the running event loop, virtual (`hc_sim.clock.run_virtual`) or real, with links in memory.

    Use it as `async with AsyncFakeCore() as core`, or call `close` at the end. With `programs`, inside of such a block,
    what no agent plays is really started; on virtual time that is a `VirtualTimeError`.
    """

    def __init__(
        self,
        *,
        agents: Sequence[Agent] = (),
        faults: Faults = (),
        profile: WireProfile | None = None,
        env: Mapping[str, str] | None = None,
        core_id: str = "core-1",
        programs: bool = False,
    ) -> None:
        self._programs = Programs(profile) if programs else None
        start = None if self._programs is None else self._programs.start
        cwd_exists = always if self._programs is None else os.path.isdir
        core = Core(profile, agents=agents, env=env, core_id=core_id, start_program=start, cwd_exists=cwd_exists)
        super().__init__(Driver(Hub(core, faults), asyncio.get_running_loop(), on_event=self._happened))
        self._waiting: list[asyncio.Future[None]] = []
        self._hosting = contextlib.AsyncExitStack()

    def open_link(self) -> MemoryLink:
        """A new connection: `write(data)`, `await read()`, `close()`."""
        return self.driver.open_link()

    async def wait_for(
        self, kind: Kind, method: str = "", *, terminal: str = "", nth: int = 1, timeout_ms: int = REPLY_MS
    ) -> Event:
        """Wait until the trace has the n-th event of this kind; `TimeoutError` if it does not come."""
        async with asyncio.timeout(timeout_ms / 1_000):
            while len(found := self.trace.of(kind, method, terminal)) < nth:
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(future)
                await future
        return found[nth - 1]

    def close(self) -> None:
        """End every link; nothing is scheduled afterwards."""
        self.driver.close()

    async def __aenter__(self) -> "AsyncFakeCore":
        if self._programs is not None:
            await self._hosting.enter_async_context(self._programs.running(self.driver))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._hosting.aclose()
        self.close()

    def _happened(self, _: Event) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
