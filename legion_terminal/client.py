"""D3: JSON-RPC calls to the core over one bridge at a time, opened when needed and again after it was lost.

Nothing but the seven methods of the contract can leave this client. Every call has its own deadline and ends in a reply
or in a `SupervisorError` that says what is known: a call that changes something and got no reply may have happened, and
is never made a second time here.
"""

import asyncio
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from legion_terminal.errors import Code, Known, SupervisorError
from legion_terminal.lines import MAX_LINE_BYTES
from legion_terminal.link import Call, Diagnostics, Link, Loss, Transport
from legion_terminal.messages import Reply, WireError, encode, printable

Method = Literal[
    "hello",
    "terminal.run",
    "terminal.get",
    "terminal.send",
    "terminal.interrupt",
    "terminal.kill",
    "terminal.rm",
]
METHODS: frozenset[str] = frozenset(get_args(Method))
READING: frozenset[str] = frozenset({"hello", "terminal.get"})
GENERATION = 1
DEFAULT_DEADLINE_MS = 10_000
DEADLINES_MS: Mapping[str, int] = {"terminal.send": 90_000}
CONNECT_BUDGET_MS = 2_000
OPEN_LIMIT_MS = 5_000
RETRY_FIRST_MS = 50
RETRY_LONGEST_MS = 400
MAX_CALLS_IN_FLIGHT = 1_024

_REFUSED = re.compile(
    r"connection refused|ECONNREFUSED|nobody listens|temporarily unavailable|EAGAIN|no such (file|socket)|ENOENT",
    re.IGNORECASE,
)
_TRANSIENT = (ConnectionRefusedError, FileNotFoundError, BlockingIOError, InterruptedError)
_UNCERTAIN_KINDS = frozenset({"internal", "internal_error", "timeout", "timed_out"})
_MISMATCH_KINDS = frozenset({"protocol_mismatch", "generation_mismatch", "unsupported_generation", "other_generation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Who answered: the permanent id of the core ("" when it gave none), its version, its protocol generation."""

    core_id: str = ""
    version: str = ""
    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of one call, with the core that gave it and the number of the link it came over."""

    result: dict[str, Any]
    core_id: str
    link: int


class HcClient:
    """Calls to one core. `connect` makes a fresh transport each time a bridge is needed.

    `deadlines` (method to ms) replaces single entries of the defaults: 10 s, and 90 s for `terminal.send`, since a core
    may hold a message for a minute. `connect_ms`: how long refused connections are tried again.
    """

    def __init__(
        self,
        connect: Callable[[], Transport],
        *,
        deadlines: Mapping[str, int] | None = None,
        connect_ms: int = CONNECT_BUDGET_MS,
        line_limit: int = MAX_LINE_BYTES,
    ) -> None:
        self.diagnostics = Diagnostics()
        self._connect = connect
        self._deadlines = {**DEADLINES_MS, **(deadlines or {})}
        self._connect_ms = connect_ms
        self._line_limit = line_limit
        self._ids = itertools.count(1)
        self._numbers = itertools.count(1)
        self._in_flight = 0
        self._link: Link | None = None
        self._hello: tuple[int, Hello] = (0, Hello())
        self._opening: asyncio.Task[Link] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    async def call(
        self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
    ) -> dict[str, Any]:
        """Make one call and return its result ({} for null). As `ask`."""
        return (await self.ask(method, params, on_link=on_link, within_ms=within_ms)).result

    async def ask(
        self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
    ) -> Answer:
        """Make one call and say who answered it.

        `on_link`: make it only on the link with this number, so that it reaches the very core that was looked at
        before. `within_ms` shortens the deadline. Raises SupervisorError.
        """
        if method not in METHODS:
            raise SupervisorError("bad-request", f"{method!r} is not one of the methods this client may call")
        self._check_room()
        until = self._until(method, within_ms)
        call = self._prepare(method, params)
        self._in_flight += 1
        try:
            link = await self._linked(method, until)
            if on_link and link.number != on_link:
                raise SupervisorError("host-unreachable", f"{method}: the connection changed before it was sent")
            reply = await link.exchange(call, until)
        finally:
            self._in_flight -= 1
        return Answer(result=_result(method, reply), core_id=self._hello_of(link).core_id, link=link.number)

    async def hello(self) -> Hello:
        """Open a link if there is none, and say who answered its `hello`. Raises SupervisorError."""
        return self._hello_of(await self._linked("hello", self._until("hello", None)))

    async def close(self) -> None:
        """End the bridge. Calls in flight fail; later calls are refused. Bounded, never raises, may be repeated."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._link is not None:
            self._release(self._link)
            self._link = None
        await asyncio.gather(*self._leaving, return_exceptions=True)

    def _hello_of(self, link: Link) -> Hello:
        number, hello = self._hello
        return hello if number == link.number else Hello()

    def _until(self, method: str, within_ms: float | None) -> float:
        limit = float(self._deadlines.get(method, DEFAULT_DEADLINE_MS))
        if within_ms is not None:
            limit = min(limit, within_ms)
        return asyncio.get_running_loop().time() + limit / 1000

    def _check_room(self) -> None:
        if self._closed:
            raise SupervisorError("closed", "the client was closed")
        if self._in_flight >= MAX_CALLS_IN_FLIGHT:
            raise SupervisorError("bad-request", f"more than {MAX_CALLS_IN_FLIGHT} calls in flight")

    def _prepare(self, method: str, params: Mapping[str, Any]) -> Call:
        call_id = str(next(self._ids))
        try:
            frame = encode(call_id, method, dict(params))
        except ValueError as error:
            raise SupervisorError("bad-request", f"{method}: cannot be sent as JSON: {printable(str(error))}") from None
        reply: asyncio.Future[Reply | Loss] = asyncio.get_running_loop().create_future()
        return Call(call_id, method, frame, method not in READING, reply)

    async def _linked(self, method: str, until: float) -> Link:
        if self._closed:
            raise SupervisorError("closed", "the client was closed")
        if self._link is not None and self._link.loss is None:
            return self._link
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._opened)
        try:
            async with asyncio.timeout_at(until):
                return await asyncio.shield(self._opening)
        except TimeoutError:
            raise SupervisorError("host-unreachable", f"{method}: no connection before its deadline") from None
        except asyncio.CancelledError:
            if self._closed and self._cancelled_from_outside() is False:
                raise SupervisorError("closed", "the client was closed") from None
            raise

    def _cancelled_from_outside(self) -> bool:
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0

    def _opened(self, task: "asyncio.Task[Link]") -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()

    async def _open(self) -> Link:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._connect_ms / 1000
        pause = RETRY_FIRST_MS / 1000
        self._link = None
        while True:
            try:
                self._link, hello = await self._attempt()
                self._hello = (self._link.number, hello)
            except _TRANSIENT as error:
                if loop.time() + pause > until:
                    raise _unreachable(error) from error
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_LONGEST_MS / 1000)
            else:
                return self._link

    async def _attempt(self) -> tuple[Link, Hello]:
        link = Link(
            self._connect(),
            next(self._numbers),
            self.diagnostics,
            line_limit=self._line_limit,
            on_loss=self._release,
        )
        try:
            await _open_transport(link.transport)
            link.start()
            return link, await self._say_hello(link)
        except BaseException:
            self._release(link)
            raise

    async def _say_hello(self, link: Link) -> Hello:
        """Introduce this client. When that fails, none of the calls that wait for this link was sent."""
        try:
            reply = await link.exchange(self._prepare("hello", {"generation": GENERATION}), self._until("hello", None))
            hello = _read_hello(_result("hello", reply))
        except SupervisorError as error:
            if link.loss is not None and not link.answered and _REFUSED.search(link.transport.tail()):
                raise ConnectionRefusedError(error.message) from error
            raise SupervisorError(error.code, error.message, kind=error.kind, hint=error.hint) from error
        if hello.generation not in (None, GENERATION):
            raise SupervisorError(
                "protocol",
                f"the core speaks protocol generation {hello.generation}, this client {GENERATION}",
                hint="update the one or the other",
            )
        return hello

    def _release(self, link: Link) -> None:
        if link.released:
            return
        link.released = True
        task = asyncio.create_task(link.close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


async def _open_transport(transport: Transport) -> None:
    try:
        async with asyncio.timeout(OPEN_LIMIT_MS / 1000):
            await transport.open()
    except TimeoutError:
        raise SupervisorError("host-unreachable", f"no connection within {OPEN_LIMIT_MS} ms") from None
    except _TRANSIENT:
        raise
    except OSError as error:
        raise _unreachable(error) from error


def _unreachable(error: OSError) -> SupervisorError:
    cause = printable(str(error), 400) or type(error).__name__
    return SupervisorError(
        "host-unreachable", f"no core could be reached: {cause}", hint="is the core running, and is this its socket?"
    )


def _result(method: str, reply: Reply) -> dict[str, Any]:
    changes = method not in READING
    if reply.broken:
        code: Code = "outcome-unknown" if changes else "protocol"
        raise SupervisorError(code, f"{method}: {reply.broken}", known="unknown" if changes else "not-applied")
    if reply.error is not None:
        raise _answered(method, reply.error, changes)
    if reply.result is None:
        return {}
    return reply.result if isinstance(reply.result, dict) else {"value": reply.result}


def _answered(method: str, error: WireError, changes: bool) -> SupervisorError:
    uncertain = changes and (error.kind in _UNCERTAIN_KINDS or error.code == -32603)
    known: Known = "unknown" if uncertain else "not-applied"
    code: Code = "protocol" if error.kind in _MISMATCH_KINDS else "call-failed"
    return SupervisorError(
        code, f"{method}: {error.message or error.kind}", known=known, kind=error.kind, hint=error.hint
    )


def _read_hello(result: Mapping[str, Any]) -> Hello:
    core = result.get("core")
    fields = {**core, **result} if isinstance(core, dict) else result
    core_id = next((fields[key] for key in ("core_id", "coreId", "core", "id") if isinstance(fields.get(key), str)), "")
    generation = fields.get("generation")
    return Hello(
        core_id=core_id,
        version=str(fields.get("version") or ""),
        generation=generation if isinstance(generation, int) and not isinstance(generation, bool) else None,
    )
