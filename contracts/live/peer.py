"""One connection to a core, for questions: a call goes out, its reply comes back with the bytes that it was.

Everything that is read is kept apart: replies by id, notifications in order, and what is neither. No wait is endless.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from contracts.live.problem import GoneError, SilentError
from legion_terminal.errors import SupervisorError
from legion_terminal.link import Transport

OPEN_MS: Final = 5_000
CALL_MS: Final = 10_000
"""How long a call may take unless it says otherwise: what clients of a core allow it."""
LAST_WORDS_MS: Final = 1_000
"""How long the end of a connection that takes no more input is waited for: it says why."""
MAX_LINE_BYTES: Final = 16 * 1024 * 1024
MAX_KEPT: Final = 10_000
"""Notifications and strays of one connection that are kept."""
MAX_SHOWN: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSeen:
    """An error object as the core sent it."""

    code: int | None
    message: str
    kind: str
    hint: str
    whole: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply to one call: a result or an error, the line that it was, and how long it took (ms).

    `given` are the names of the parameters of the call.
    """

    method: str
    result: Any = None
    error: ErrorSeen | None = None
    raw: bytes = b""
    took_ms: int = 0
    given: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it is a result."""
        return self.error is None

    @property
    def kind(self) -> str:
        """The kind of the error, "" for a result."""
        return "" if self.error is None else self.error.kind


@dataclass(frozen=True, slots=True)
class _Call:
    """What is known of a call under way: its method, the names of its parameters, when it was sent (loop time)."""

    method: str
    given: tuple[str, ...]
    began: float


@dataclass(slots=True)
class Heard:
    """What came unasked: notifications, and everything that is no reply and no notification either."""

    notices: list[dict[str, Any]] = field(default_factory=list)
    strays: list[bytes] = field(default_factory=list)


class Peer:
    """A connection in line mode. `watch` is told every reply; `words` names the connection in messages."""

    def __init__(
        self, transport: Transport, *, words: str = "the core", watch: Callable[[Reply], None] | None = None
    ) -> None:
        self.heard = Heard()
        self.closed = False
        self._transport = transport
        self._words = words
        self._watch = watch
        self._ids = itertools.count(1)
        self._owed: dict[str, tuple[_Call, asyncio.Future[Reply]]] = {}
        self._rest = b""
        self._heard_of = False
        self._news = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, within `OPEN_MS`. Raises `GoneError`."""
        try:
            async with asyncio.timeout(OPEN_MS / 1_000):
                await self._transport.open()
        except TimeoutError:
            raise GoneError(f"no connection to {self._words} within {OPEN_MS} ms") from None
        except (OSError, SupervisorError) as error:
            words = getattr(error, "message", "") or getattr(error, "strerror", "") or str(error)
            raise GoneError(f"{self._words} cannot be reached: {words}") from error
        self._reader = asyncio.create_task(self._read())

    async def ask(
        self, method: str, params: Mapping[str, Any] | list[Any] | None = None, *, within_ms: int = CALL_MS
    ) -> Reply:
        """Make one call and return its reply, whatever it is. Raises `GoneError`, `SilentError`."""
        return await (await self.begin(method, params)).wait(within_ms)

    async def begin(self, method: str, params: Mapping[str, Any] | list[Any] | None = None) -> "Asked":
        """Send a call whose reply is fetched later. Raises `GoneError`."""
        call_id = f"live-{next(self._ids)}"
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": call_id, "method": method}
        if params is not None:
            body["params"] = params
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        given = tuple(params) if isinstance(params, Mapping) else ()
        self._owed[call_id] = (_Call(method, given, _now()), future)
        await self.send(msgspec.json.encode(body) + b"\n")
        return Asked(self, method, call_id, future)

    async def send(self, data: bytes) -> None:
        """Send bytes as they are. Raises `GoneError`."""
        try:
            async with asyncio.timeout(CALL_MS / 1_000):
                await self._transport.write(data)
        except TimeoutError:
            raise SilentError(f"{self._words} has not read what was sent for {CALL_MS} ms") from None
        except (OSError, SupervisorError):
            await self.until(lambda _: self.closed, LAST_WORDS_MS)
            raise self.lost() from None

    async def until(self, wanted: Callable[[Heard], bool], within_ms: int) -> bool:
        """Wait until what came unasked is as wanted; false when it is not in time, or the connection has ended."""
        try:
            async with asyncio.timeout(within_ms / 1_000):
                while not wanted(self.heard):
                    if self.closed:
                        return False
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return wanted(self.heard)
        return True

    async def close(self) -> None:
        """End the connection; bounded, may be repeated."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
            self._reader = None
        await self._transport.close()
        self._end()

    def unread(self) -> bytes:
        """The bytes of a line that has not ended yet."""
        return self._rest

    def lost(self) -> GoneError:
        """Why there is no connection any more, as an error to raise."""
        tail = " ".join(self._transport.tail().split())[-300:]
        ended = self._transport.ended()
        why = tail or (f"hc connect ended with {ended}" if ended else "it closed the connection")
        return GoneError(f"{self._words} {'is gone' if self._heard_of else 'cannot be reached'}: {why}")

    def forget(self, call_id: str) -> None:
        """Nobody waits for this reply any more."""
        self._owed.pop(call_id, None)

    async def _read(self) -> None:
        while data := await self._transport.read():
            self._heard_of = True
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                if line.strip():
                    self._take(line)
            if len(self._rest) > MAX_LINE_BYTES:
                break
        self._end()

    def _take(self, line: bytes) -> None:
        message = _decoded(line)
        owed = self._owed.pop(message["id"], None) if message and isinstance(message.get("id"), str) else None
        if owed is not None and message is not None:
            call, future = owed
            reply = _reply(call, message, line)
            if not future.done():
                future.set_result(reply)
            if self._watch is not None:
                self._watch(reply)
        elif message is not None and isinstance(message.get("method"), str) and "id" not in message:
            if len(self.heard.notices) < MAX_KEPT:
                self.heard.notices.append(message)
        elif len(self.heard.strays) < MAX_KEPT:
            self.heard.strays.append(line)
        self._news.set()

    def _end(self) -> None:
        self.closed = True
        self._news.set()
        owed, self._owed = self._owed, {}
        for _, future in owed.values():
            if not future.done():
                future.set_exception(self.lost())
                future.exception()


@dataclass(frozen=True, slots=True)
class Asked:
    """A call under way."""

    peer: Peer
    method: str
    id: str
    future: "asyncio.Future[Reply]"

    async def wait(self, within_ms: int = CALL_MS) -> Reply:
        """Its reply. Raises `GoneError`, and `SilentError` when it does not come within `within_ms`."""
        try:
            async with asyncio.timeout(within_ms / 1_000):
                return await asyncio.shield(self.future)
        except TimeoutError:
            self.peer.forget(self.id)
            said = self.peer.heard.strays[-1:]
            words = f"; it said {shown(said[0])}" if said else ""
            raise SilentError(f"no answer to {self.method} within {within_ms} ms{words}") from None


def shown(line: bytes) -> str:
    """Bytes for a message: one line, cut."""
    text = line[:MAX_SHOWN].decode("utf-8", "backslashreplace")
    return repr(text + ("..." if len(line) > MAX_SHOWN else ""))


def error_seen(error: Any) -> ErrorSeen:
    """An error object of the wire as a value, whatever is missing in it."""
    fields = error if isinstance(error, dict) else {}
    data = fields.get("data")
    extra = data if isinstance(data, dict) else {}
    code = fields.get("code")
    return ErrorSeen(
        code=code if isinstance(code, int) else None,
        message=str(fields.get("message", "")),
        kind=str(extra.get("kind", "")),
        hint=str(extra.get("hint", "")),
        whole=error,
    )


def _reply(call: _Call, message: dict[str, Any], line: bytes) -> Reply:
    error = message.get("error")
    return Reply(
        method=call.method,
        result=message.get("result"),
        error=None if error is None else error_seen(error),
        raw=line,
        took_ms=round((_now() - call.began) * 1_000),
        given=call.given,
    )


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _now() -> float:
    return asyncio.get_running_loop().time()
