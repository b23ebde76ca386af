"""A driver for `legion-contracts check --sut "python driver.py"`: the SUT protocol on standard input and output.

Fill in the calls below with your supervisor, declare the features you have, and ask `legion-contracts sut doctor`.
What each call takes and gives: `legion-contracts sut protocol`.
"""

import asyncio
import json
import sys
import traceback
from typing import Any

NAME = "my supervisor"
VERSION = "0.0.0"

# The features whose calls work: "terminal" first (spawn, steer, abort, wait, status, retire), then as you like
# "verdict", "host", "arbitration", "cards", "capabilities", "cancel", "inprocess", "memory", "rpc".
FEATURES: list[str] = []

LONGEST_LINE = 16 * 1024 * 1024


class ReportedError(Exception):
    """What your supervisor reports: a code of the protocol document, and what is known (child, known, kind, hint)."""

    def __init__(self, code: str, message: str, **data: str) -> None:
        super().__init__(message)
        self.data = {"code": code, **data}


class Calls:
    """Each call: its parameters in, its result out. The dots of a name are underscores here."""

    async def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """Say who you are. `params["settings"]`: pollMs, memoryEnv."""
        self.settings = params["settings"]
        about = {"protocolVersion": 1, "name": NAME, "version": VERSION, "language": "Python"}
        return {**about, "features": FEATURES}

    async def shutdown(self, params: dict[str, Any]) -> dict[str, Any]:
        """End your bridges here; children go on."""
        return {}

    # async def spawn(self, params: dict[str, Any]) -> dict[str, Any]:
    #     return {"mode": "terminal", "child": "child-1", "name": "lgl-...", "promptTurn": 0}

    # async def host_available(self, params: dict[str, Any]) -> dict[str, Any]:
    #     return {"available": False}


def say(message: dict[str, Any]) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


async def answer(calls: Calls, request: dict[str, Any]) -> None:
    """Carry out one request and answer it."""
    method, number = request["method"], request["id"]
    call = getattr(calls, method.replace(".", "_"), None)
    if call is None:
        missing = {"code": -32601, "message": f"this driver has no {method}", "data": {"code": "not-implemented"}}
        say({"id": number, "error": missing})
        return
    try:
        say({"id": number, "result": await call(request["params"])})
    except ReportedError as error:
        say({"id": number, "error": {"code": -32000, "message": str(error), "data": error.data}})
    except Exception as error:
        traceback.print_exc()  # standard error is shown when a scenario fails
        say({"id": number, "error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}})


async def main() -> None:
    """Read a line, begin its call, read the next: calls run side by side."""
    lines = asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    calls = Calls()
    running = set()
    while line := await lines.readline():
        task = asyncio.create_task(answer(calls, json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    await calls.shutdown({})


if __name__ == "__main__":
    asyncio.run(main())
