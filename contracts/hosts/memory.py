"""The memory host: core and supervisor in one event loop on virtual time, with bridges that are no processes."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, NoReturn

from contracts.hosts.starts import in_shell_text, programs
from contracts.hosts.world import Built, WorldError, up_after_ms
from contracts.scenario import Bridge
from hc_sim.clock import VirtualLoop
from hc_sim.driver import MemoryLink

TAIL_BYTES = 4_096
NOISE = b"noise from the bridge, nothing to see\n"
WHY_NOT = {
    "directory": "that is not a socket",
    "regular-file": "that is not a socket",
    "absent": "there is no such socket",
}


class MemoryLoop(VirtualLoop):
    """Virtual time that keeps on record which processes it refused to start: for each, the programs that it named."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[list[str]] = []

    async def subprocess_exec(self, protocol_factory: Any, program: Any, *args: Any, **rest: Any) -> NoReturn:
        """Noted, then refused: a virtual clock cannot see a process at work."""
        self.refused.append(programs("subprocess.Popen", (program, (program, *args))))
        await super().subprocess_exec(protocol_factory, program, *args, **rest)

    async def subprocess_shell(self, protocol_factory: Any, cmd: Any, **rest: Any) -> NoReturn:
        """Noted, then refused: a virtual clock cannot see a process at work."""
        self.refused.append(in_shell_text(os.fsdecode(cmd)))
        await super().subprocess_shell(protocol_factory, cmd, **rest)


class MemoryHost:
    """Makes links to the core of a built world, with the faults that the world gives to its bridges."""

    def __init__(self, built: Built) -> None:
        if built.world.hc != "good":
            raise WorldError(
                f"world.hc = {built.world.hc!r} needs the socket host: the memory host starts no executable"
            )
        if built.world.pi is not None:
            raise WorldError("world.pi needs the socket host: a process cannot run on virtual time")
        self._built = built
        self._made = 0
        self._links: list[MemoryTransport] = []
        self._closed_until = 0

    async def start(self) -> None:
        """Nothing has to be started."""

    def connect(self) -> "MemoryTransport":
        """A fresh bridge, not open yet: the n-th one of this run."""
        self._made += 1
        bridge = next((one for one in self._built.world.bridge if one.nth in (0, self._made)), None)
        link = MemoryTransport(self._enter, bridge)
        self._links.append(link)
        return link

    async def restart(self, ms: int) -> None:
        """Close every link and listen to nobody for so long."""
        self._closed_until = self._built.now() + ms
        for link in self._links:
            link.cut()
        await asyncio.sleep(ms / 1_000)

    async def stop(self) -> None:
        """Close what is left."""
        for link in self._links:
            await link.close()

    def _enter(self) -> "MemoryLink | str":
        """A link to the core, or in words why `hc connect` would not get one."""
        core = self._built.world.core
        up_at = up_after_ms(core)
        listens = self._built.hub.listening(self._built.driver.now())
        if listens and up_at is not None and self._built.now() >= max(up_at, self._closed_until):
            return self._built.driver.open_link()
        why = WHY_NOT.get(core.partition(":")[0], "nobody listens there")
        return f"hc: cannot reach a core at {self._built.folder.socket}: {why}\n"


class MemoryTransport:
    """What `hc connect` is to a supervisor, without a process: bytes, an end with an exit code, a tail of stderr."""

    def __init__(self, enter: Callable[[], "MemoryLink | str"], bridge: Bridge | None) -> None:
        self._enter = enter
        self._bridge = bridge
        self._link: MemoryLink | None = None
        self._ended: str | None = None
        self._tail = b""
        self._requests = 0
        self._passed = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._shut: set[str] = set()
        """Streams that the bridge has let go of while it lives on."""
        self._rest = asyncio.Event()

    async def open(self) -> None:
        """Reach the core, or end as the executable would: with words on stderr and an exit code."""
        bridge = self._bridge
        if bridge is not None:
            noise = NOISE * (min(bridge.stderr_bytes, 2 * TAIL_BYTES) // len(NOISE) + 1)
            self._tail += bridge.stderr.encode() + (noise[-bridge.stderr_bytes :] if bridge.stderr_bytes else b"")
            if bridge.after_ms is not None and self._ends():
                loop = asyncio.get_running_loop()
                self._alarm = loop.call_later(bridge.after_ms / 1_000, lambda: self._end(_ending(bridge)))
            elif bridge.after_requests == 0 and bridge.after_reply_bytes is None:
                if self._ends():
                    self._end(_ending(bridge))
                    return
                self._shut.add(bridge.closes)
        entered = self._enter()
        if isinstance(entered, str):
            self._tail += entered.encode()
            self._end("exit code 1")
        else:
            self._link = entered

    async def write(self, data: bytes) -> None:
        """Hand over bytes. Raises BrokenPipeError once the bridge has ended."""
        if self._link is None:
            raise BrokenPipeError("the bridge takes no more input")
        for line in data.splitlines(keepends=True):
            self._requests += line.endswith(b"\n")
            bridge = self._bridge
            if bridge is not None and bridge.after_requests and self._requests >= bridge.after_requests:
                if self._ends():
                    self._end(_ending(bridge))
                    return
                self._shut.add(bridge.closes)
            if "stdin" in self._shut:
                raise BrokenPipeError("the bridge takes no more input")
            self._link.write(line)

    async def read(self) -> bytes:
        """What has come; b"" once the core or the bridge has ended."""
        link = self._link
        data = await link.read() if link is not None else b""
        if "stdout" in self._shut:
            return b""
        limit = self._bridge.after_reply_bytes if self._bridge is not None and self._ends() else None
        if limit is not None and self._bridge is not None and self._passed + len(data) >= limit:
            self._end(_ending(self._bridge))
            return data[: limit - self._passed]
        self._passed += len(data)
        if not data and self._link is not None:
            self._tail += b"hc: the core closed the connection\n"
            self._end("exit code 1")
        return data

    async def close(self) -> None:
        """End of input: the bridge leaves with exit code 0."""
        self._end("exit code 0")

    def cut(self) -> None:
        """The core goes away."""
        if self._link is not None:
            self._tail += b"hc: the core closed the connection\n"
            self._end("exit code 1")

    def tail(self) -> str:
        """The end of what the bridge wrote on stderr."""
        return self._tail[-TAIL_BYTES:].decode(errors="replace")

    def ended(self) -> str | None:
        """`exit code N` or `signal NAME` once it has ended."""
        return self._ended

    def _ends(self) -> bool:
        return self._bridge is not None and (self._bridge.exit_code is not None or self._bridge.signal is not None)

    def _end(self, how: str) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        if self._ended is None:
            self._ended = how
        link, self._link = self._link, None
        if link is not None:
            link.close()


def _ending(bridge: Bridge) -> str:
    return f"signal {bridge.signal}" if bridge.signal else f"exit code {bridge.exit_code}"
