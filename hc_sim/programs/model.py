"""A model on this machine alone: streams chat completions in the form of OpenAI, for agents without any net.

`python -m hc_sim.programs.model` prints where it listens, one line of JSON, and serves until it is told to stop.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hc_sim.programs.model_words import HELP, Reply, reply_to

HOST = "127.0.0.1"
MODEL_ID = "fake-1"
MAX_HEAD_BYTES = 65_536
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_CONNECTIONS = 128
MAX_REQUESTS = 10_000
"""Requests that are remembered."""
HANG_S = 3_600.0
"""How long nothing comes where nothing ever comes."""
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 413: "Too Large", 429: "Too Many", 500: "Server Error"}


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked of the model: the last words of the user, the roles in order, the system's words, the tools."""

    user: str
    roles: tuple[str, ...]
    system: str
    tools: tuple[str, ...]


@dataclass(slots=True)
class Model:
    """A model that listens: its port, and what it was asked, in order."""

    port: int
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The base that an agent is given."""
        return f"http://{HOST}:{self.port}/v1"


Decide = Callable[..., Reply]


@asynccontextmanager
async def serve_model(port: int = 0, *, decide: Decide = reply_to) -> AsyncIterator[Model]:
    """Listen on the loopback while the block runs; `port` 0: a free one. Afterwards no connection is left.

    `decide` is called as `reply_to` is. Raises `OSError` when the port is taken.
    """
    model = Model(port)
    tasks: set[asyncio.Task[None]] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(tasks) >= MAX_CONNECTIONS:
            writer.close()
            return
        tasks.add(task)
        try:
            await _Connection(model, decide, reader, writer).serve()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connection, HOST, port, limit=MAX_HEAD_BYTES)
    try:
        model.port = server.sockets[0].getsockname()[1]
        yield model
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


class _Connection:
    """One client: requests one after the other until it goes."""

    def __init__(
        self, model: Model, decide: Decide, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._model, self._decide, self._reader, self._writer = model, decide, reader, writer

    async def serve(self) -> None:
        while True:
            head = await self._reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            method, path = [*lines[0].split(" "), "", ""][:2]
            headers = {name.strip().lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
            size = headers.get("content-length", "0")
            if not size.isdigit() or int(size) > MAX_BODY_BYTES:
                await self._json(413, _error(f"a body has at most {MAX_BODY_BYTES} bytes"))
                return
            body = await self._reader.readexactly(int(size))
            if (method, path) == ("GET", "/v1/models"):
                await self._json(200, {"object": "list", "data": [{"id": MODEL_ID, "object": "model"}]})
            elif (method, path) == ("POST", "/v1/chat/completions"):
                await self._complete(body)
            else:
                await self._json(404, _error(f"this model has no {method} {path}; it has POST /v1/chat/completions"))

    async def _complete(self, body: bytes) -> None:
        try:
            asked = json.loads(body)
            request, after_tool = _understood(asked)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError):
            await self._json(400, _error("the body is no request for a chat completion"))
            return
        before = sum(
            one.user == request.user and one.roles.count("user") == request.roles.count("user")
            for one in self._model.requests
        )
        if len(self._model.requests) < MAX_REQUESTS:
            self._model.requests.append(request)
        reply = self._decide(request.user, after_tool=after_tool, asked_before=before)
        if reply.status != 200:
            await self._json(reply.status, _error(f"fake failure {reply.status}"))
        elif reply.ends == "never":
            await asyncio.wait_for(self._reader.read(), HANG_S)  # until the client goes
            raise ConnectionResetError
        elif asked.get("stream"):
            await self._stream(reply)
        else:
            await self._json(200, _whole(reply))

    async def _stream(self, reply: Reply) -> None:
        self._head(200, "text/event-stream", "transfer-encoding: chunked")
        await self._event(_delta({"role": "assistant", "content": ""}))
        for place, word in enumerate(reply.words):
            if place and reply.gap_ms:
                await asyncio.sleep(reply.gap_ms / 1000)
            await self._event(_delta({"content": word}))
        if reply.ends == "cut":
            await self._writer.drain()
            raise ConnectionResetError
        for call in _call_deltas(reply):
            await self._event(_delta(call))
        await self._event(_delta({}, "tool_calls" if reply.command is not None else "stop"))
        await self._event({**_base(), "choices": [], "usage": _USAGE})
        await self._chunk(b"data: [DONE]\n\n")
        await self._chunk(b"")

    async def _event(self, event: dict[str, Any]) -> None:
        await self._chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    async def _chunk(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def _json(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self._head(status, "application/json", f"content-length: {len(data)}")
        self._writer.write(data)
        await self._writer.drain()

    def _head(self, status: int, kind: str, more: str) -> None:
        head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\ncontent-type: {kind}\r\n{more}\r\n\r\n"
        self._writer.write(head.encode())


_USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


def _understood(asked: Any) -> tuple[Request, bool]:
    messages = asked["messages"]
    roles = tuple(str(message["role"]) for message in messages)
    users = [_text(message) for message in messages if message["role"] == "user"]
    system = "\n".join(_text(message) for message in messages if message["role"] in ("system", "developer"))
    tools = tuple(str(tool["function"]["name"]) for tool in asked.get("tools") or ())
    return Request(users[-1] if users else "", roles, system, tools), roles[-1] == "tool"


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


def _base() -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL_ID}


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {**_base(), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _call_deltas(reply: Reply) -> list[dict[str, Any]]:
    if reply.command is None:
        return []
    name = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "bash", "arguments": ""}}
    arguments = {"index": 0, "function": {"arguments": json.dumps({"command": reply.command})}}
    return [{"tool_calls": [name]}, {"tool_calls": [arguments]}]


def _whole(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.words)}
    if reply.command is not None:
        function = {"name": "bash", "arguments": json.dumps({"command": reply.command})}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    finish = "tool_calls" if reply.command is not None else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**_base(), "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "fake"}}


async def _until_stopped(port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(name, stopped.set)
    async with serve_model(port) as model:
        sys.stdout.write(json.dumps({"schema": 1, "port": model.port, "url": model.url, "model": MODEL_ID}) + "\n")
        sys.stdout.flush()
        await stopped.wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code: 0 when told to stop, 1 when it cannot listen, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m hc_sim.programs.model",
        description="A model on 127.0.0.1 that says what a word in the prompt tells it to.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="where to listen (default: a free port)")
    port = parser.parse_args(argv).port
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_until_stopped(port))
    except (OSError, OverflowError) as error:
        sys.stderr.write(f"cannot listen on {HOST}:{port}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
