"""A system under test that is any program: the calls of `contracts.sut.base` over the protocol of `PROTOCOL.md`.

What the program does to itself (it dies, hangs, floods, talks nonsense) ends it and is told by every call from then on:
an exception that no step of a scenario can have meant. Every wait here is bounded.
"""

import asyncio
import itertools
import math
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import msgspec

from contracts.running.processes import Process, descendants, end, group, still_there
from contracts.sut.base import SutError, SutSetup, SutUnstartedError
from contracts.sut.command import Command
from contracts.sut.messages import CALLS, PROTOCOL_VERSION, InitializeResult, Message
from contracts.sut.program import Program
from contracts.sut.reading import NOT_IMPLEMENTED, Answer, Failure, Notice, without_nulls
from contracts.sut.reading import read as read_line

INITIALIZE_S: Final = 10.0
CALL_S: Final = 15.0
"""How long any call may take; a wait has its own timeout besides."""
WAIT_EXTRA_S: Final = 5.0
"""What a wait may take beyond its timeout."""
RESERVE_S: Final = 1.0
"""A call is given up so long before the scenario's own limit, so that there is time to say why."""
SHUTDOWN_S: Final = 3.0
LEAVE_S: Final = 2.0
TERM_S: Final = 2.0
KILL_S: Final = 1.0
LINGER_S: Final = 1.0
"""How long what a driver has started may take to go after it."""
POLL_S: Final = 0.02


class SutBrokenError(Exception):
    """The driver is of no more use: it ended, hung or broke the protocol. The message says how."""


@dataclass(frozen=True, slots=True)
class StdioFactory:
    """Makes one driver process after another of one command."""

    command: Command

    def __call__(self, setup: SutSetup) -> "StdioSut":
        """A driver that is not started yet."""
        return StdioSut(self.command, setup)


class StdioSut:
    """One driver process. It is started by `prepare`, or by the first call."""

    def __init__(self, command: Command, setup: SutSetup) -> None:
        self.declared: InitializeResult | None = None
        self.left: list[str] = []
        """In words, what the driver has left behind; known after `close`."""
        self.broken = asyncio.Event()
        self.misspoke = ""
        self._command = command
        self._setup = setup
        self._program = Program(self._take, self._over)
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[Answer | Failure]] = {}
        self._given_up: set[int] = set()
        self._broken = ""
        self._unstarted = ""
        self._began = 0.0
        self._starting: asyncio.Task[None] | None = None
        self._shut = False
        self._closed = False

    async def prepare(self) -> None:
        """Start it and exchange `initialize`. Raises nothing: what goes wrong is told by the calls."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name="host: a driver starts")
        await asyncio.shield(self._starting)

    async def introduced(self) -> InitializeResult:
        """Start it and say who it is. Raises `SutUnstartedError` and `SutBrokenError`."""
        await self.prepare()
        if self._unstarted:
            raise SutUnstartedError(self._unstarted)
        if self._broken or self.declared is None:
            raise SutBrokenError(self._words())
        return self.declared

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One call. Raises `SutError` for a failure that the driver reports, `SutBrokenError` when it cannot be asked,
        `SutUnstartedError` when there is no process.
        """
        await self.prepare()
        if method == "wait":
            params = {**params, "timeoutMs": _as_json(params.get("timeoutMs"))}
        result = await self._ask(method, params, self._limit_s(method, params))
        if method == "shutdown":
            self._shut = True
        return result

    async def close(self) -> None:
        """End it: `shutdown` if it was not called, end of input, SIGTERM, SIGKILL to its group. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if not self._program.pid:
            return
        if not self._broken and not self._shut:
            try:
                await self._ask("shutdown", {}, SHUTDOWN_S)
            except (SutError, SutBrokenError):
                self._broken = self._broken or "it refused to shut down"
        if self._broken:
            self.left.append(f"the driver broke: {self._broken}")
        self._program.deaf()
        known = {process.pid: process for process in descendants(self._program.pid)}
        try:
            self._program.end_input()
            await self._leave()
            await self._sweep(known)
        finally:
            if not self._program.exited.is_set():  # cut short
                self._program.signal(signal.SIGKILL)
                await self._program.exits_within(KILL_S)
            self._program.close()

    # ------------------------------------------------------------------ the start

    async def _start(self) -> None:
        self._began = asyncio.get_running_loop().time()
        try:
            await self._program.start(self._command, self._setup.env)
        except (OSError, ValueError) as error:
            self._unstarted = f"{self._command.text}: cannot be started: {getattr(error, 'strerror', None) or error}"
            return
        try:
            told = await self._ask("initialize", _introduction(self._setup), INITIALIZE_S)
        except SutError as error:
            self._break(f"answered initialize with an error: {error}")
            return
        except SutBrokenError as error:
            if not self._broken:
                self._break(str(error).removeprefix("the driver "))
            return
        self.declared = msgspec.convert(told, InitializeResult)
        if self.declared.protocol_version != PROTOCOL_VERSION:
            spoken = self.declared.protocol_version
            self._break(f"speaks version {spoken} of the protocol, and this suite version {PROTOCOL_VERSION}")

    # ------------------------------------------------------------------ the calls

    def _limit_s(self, method: str, params: Mapping[str, Any]) -> float:
        own = CALL_S
        if method == "wait":
            timeout_ms = params["timeoutMs"]
            own = math.inf if timeout_ms is None else max(0.0, timeout_ms) / 1_000 + WAIT_EXTRA_S
        spent = asyncio.get_running_loop().time() - self._began
        return max(RESERVE_S, min(own, self._setup.limit_ms / 1_000 - spent - RESERVE_S))

    async def _ask(self, method: str, params: dict[str, Any], limit_s: float) -> dict[str, Any]:
        if self._unstarted:
            raise SutUnstartedError(self._unstarted)
        if self._broken:
            raise SutBrokenError(self._words())
        number = next(self._ids)
        reply: asyncio.Future[Answer | Failure] = asyncio.get_running_loop().create_future()
        self._open[number] = reply
        try:
            self._program.write(_request(number, method, params))
            await asyncio.wait({reply}, timeout=limit_s)
            if not reply.done():
                self._break(f"gave no answer to {method} within {limit_s:.3g} s")
        finally:
            if self._open.pop(number, None) is not None and not reply.done():
                self._given_up.add(number)
        if not reply.done() or reply.cancelled():
            raise SutBrokenError(self._words())
        return _result(method, reply.result())

    def _take(self, line: bytes) -> None:
        heard = read_line(line)
        if isinstance(heard, str):
            self._misspeak(heard)
        elif isinstance(heard, Notice) or heard.id in self._given_up:
            self._given_up.discard(getattr(heard, "id", 0))
        elif heard.id in self._open and not self._open[heard.id].done():
            self._open[heard.id].set_result(heard)
        else:
            self._misspeak(f"answered {heard.id}, which is not the id of an open call")

    def _misspeak(self, why: str) -> None:
        self.misspoke = self.misspoke or why
        self._break(why)

    def _over(self, why: str) -> None:
        self._break(why)

    def _break(self, why: str) -> None:
        """It is of no more use: end it, and let every open call know."""
        if not self._broken:
            self._broken = why
        self.broken.set()
        self._program.deaf()
        for reply in self._open.values():
            if not reply.done():
                reply.cancel()
        self._program.signal(signal.SIGTERM)

    def _words(self) -> str:
        tail = self._program.tail()
        return f"the driver {self._broken}" + (f"; its error output ends: {tail}" if tail else "")

    # ------------------------------------------------------------------ the end

    async def _leave(self) -> None:
        if await self._program.exits_within(0.0 if self._broken else LEAVE_S):
            return
        if not self._broken:
            self.left.append("the driver did not leave at the end of its input, and was ended")
            self._program.signal(signal.SIGTERM)
        if not await self._program.exits_within(TERM_S):
            self._program.signal(signal.SIGKILL)
            await self._program.exits_within(KILL_S)

    async def _sweep(self, known: Mapping[int, Process]) -> None:
        """End whatever the driver has started and left alive, and say so."""
        until = asyncio.get_running_loop().time() + LINGER_S
        while found := [*still_there(known.values()), *group(self._program.pid)]:
            if asyncio.get_running_loop().time() >= until or self._broken:
                break
            await asyncio.sleep(POLL_S)
        alive = {one.pid: one for one in found}.values()
        self.left += [f"process still runs: {process.command or process.pid}" for process in alive]
        end(*alive)


def _introduction(setup: SutSetup) -> dict[str, Any]:
    settings = {"pollMs": setup.poll_ms, "memoryEnv": dict(setup.memory_env)}
    client = {"name": "legion-contracts", "version": _version()}
    return {"protocolVersion": PROTOCOL_VERSION, "client": client, "settings": settings}


def _version() -> str:
    try:
        return version("legion-contracts")
    except PackageNotFoundError:
        return "unknown"


def _as_json(timeout_ms: float | None) -> float | None:
    return None if timeout_ms is None or timeout_ms == math.inf else timeout_ms


def _request(number: int, method: str, params: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def _result(method: str, reply: Answer | Failure) -> dict[str, Any]:
    if isinstance(reply, Failure):
        if reply.code == NOT_IMPLEMENTED:
            raise SutBrokenError(f"the driver has no call {method}: {reply.error['message']}")
        if not reply.error["code"]:
            raise SutBrokenError(f"the driver answered {method} with an error without data.code: {reply.error}")
        raise SutError(reply.error)
    kind: type[Message] = CALLS[method][1]
    result = without_nulls(reply.result, kind)
    try:
        msgspec.convert(result, kind)
    except msgspec.ValidationError as error:
        raise SutBrokenError(f"the driver gave an answer to {method} that is not as agreed: {error}") from error
    return result
