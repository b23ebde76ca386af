"""A driver that starts a child and waits for it over the core's socket, watching in the way that its argument names.

`get`, `list`, `wait` and `events` are calls on the socket; `hc` is the command line. It is just enough of a supervisor
for a scenario of one spawn and one wait.
"""

import asyncio
import itertools
import json
import os
import sys
from typing import Any

HOW = sys.argv[1]
PAUSE_S = 0.02


class Link:
    """One connection to the core: calls, and the notifications that come in between."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.news: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._writer = writer
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def open(cls) -> "Link":
        return cls(*await asyncio.open_unix_connection(os.environ["HC_TERMINAL_SOCKET"]))

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        self._open[number] = asyncio.get_running_loop().create_future()
        line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._writer.write(json.dumps(line).encode() + b"\n")
        return await self._open[number]

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            message = json.loads(line)
            if "id" in message:
                self._open.pop(message["id"]).set_result(message["result"])
            else:
                self.news.put_nowait(message["params"])


async def look(link: Link, name: str) -> dict[str, Any]:
    match HOW:
        case "list":
            found = await link.call("terminal.list", all=True)
            return next(one for one in found["terminals"] if one["name"] == name)
        case "wait":
            return (await link.call("terminal.wait", terminal=name))["terminal"]  # type: ignore[no-any-return]
        case "events":
            while True:
                told = await link.news.get()
                if told.get("terminal", {}).get("name") == name:
                    return told["terminal"]  # type: ignore[no-any-return]
        case "hc":
            asked = await asyncio.create_subprocess_exec(
                os.environ["HC_BIN"], "get", name, "--json", stdout=asyncio.subprocess.PIPE
            )
            return json.loads((await asked.communicate())[0])  # type: ignore[no-any-return]
        case _:
            return await link.call("terminal.get", terminal=name)


async def wait(link: Link, name: str) -> dict[str, Any]:
    while True:
        seen = await look(link, name)
        status = (seen["status"] or {}).get("state", "")
        if seen["turn"] > 0 and status == "done":
            return {"settled": True, "abnormal": False, "lastTurn": seen["turn"], "lastStatus": status}
        await asyncio.sleep(PAUSE_S)


async def act(link: Link, method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "spawn":
        if HOW == "events":
            await link.call("events.subscribe")
        name = f"lgl-{params['runId']}-{params['handle']}"
        started = await link.call("terminal.run", argv=["pi"], name=name, cwd=params["cwd"])
        return {"mode": "terminal", "child": name, "name": name, "promptTurn": started["turn"]}
    if method == "wait":
        return await wait(link, params["child"])
    return {}


async def main() -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    link: Link | None = None
    while line := await lines.readline():
        message = json.loads(line)
        result: dict[str, Any] = {}
        if message["method"] == "initialize":
            about = {"protocolVersion": 1, "name": "watcher", "version": "", "language": "Python"}
            result = {**about, "features": ["terminal"]}
        else:
            link = link or await Link.open()
            result = await act(link, message["method"], message["params"])
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
