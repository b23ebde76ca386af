"""A driver of the Python supervisor: the SUT protocol on standard input and output, over `legion_terminal`."""

import asyncio
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from contracts.sut.base import SutError, SutSetup
from contracts.sut.python import PythonSut

FEATURES = [
    "arbitration",
    "cancel",
    "capabilities",
    "cards",
    "host",
    "inprocess",
    "memory",
    "rpc",
    "terminal",
    "verdict",
]
LIMIT = 16 * 1024 * 1024


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def introduce(params: dict[str, Any]) -> tuple[dict[str, Any], PythonSut]:
    settings = params["settings"]
    setup = SutSetup(env=dict(os.environ), poll_ms=settings["pollMs"], memory_env=settings["memoryEnv"])
    about = {"protocolVersion": 1, "name": "legion_terminal", "version": "", "language": "Python"}
    return {**about, "features": FEATURES}, PythonSut(setup)


async def answer(sut: PythonSut, number: int, method: str, params: dict[str, Any]) -> None:
    if method == "wait" and params.get("timeoutMs", 0) is None:
        params["timeoutMs"] = math.inf
    try:
        say({"id": number, "result": await sut.call(method, params)})
    except SutError as error:
        data = dict(error.error)
        say({"id": number, "error": {"code": -32000, "message": data.pop("message"), "data": data}})
    except Exception as error:
        say({"id": number, "error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}})


async def main() -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    sut: PythonSut | None = None
    answers: set[asyncio.Task[None]] = set()
    while line := await lines.readline():
        message = json.loads(line)
        if message["method"] == "initialize":
            result, sut = introduce(message["params"])
            say({"id": message["id"], "result": result})
        elif sut is not None:
            task = asyncio.create_task(answer(sut, message["id"], message["method"], message["params"]))
            answers.add(task)
            task.add_done_callback(answers.discard)
    if sut is not None:
        await sut.close()


if __name__ == "__main__":
    asyncio.run(main())
