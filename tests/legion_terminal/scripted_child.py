"""A small program in the place of pi: it acts out the lines of STORY, one after the other.

say JSON · raw TEXT · err TEXT · read (one command; its id is {id} from then on) · exit N · kill SIGNAL · sleep S ·
ignore SIGNAL · on SIGNAL CODE · close FD · hold S (a grandchild keeps the pipes) · tool S (so does one in a session of
its own) · late JSON (a grandchild says it when the child may have ended) · flood FD BYTES in short lines · giant FD
BYTES in one · idle (read until the end of input) · stay (read nothing, for a minute) · echo (answer every command) ·
many N LINE (that line N times). What it reads goes to the file LOG as well.
"""

import contextlib
import json
import os
import signal
import sys
import time
from typing import Any

identity = ""


def put(text: str) -> None:
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()


def read() -> dict[str, Any] | None:
    line = sys.stdin.buffer.readline()
    if line and "LOG" in os.environ:
        with open(os.environ["LOG"], "ab") as log:  # noqa: PTH123  (pathlib is slow to import)
            log.write(line)
    return json.loads(line) if line else None


def answer(command: dict[str, Any], **data: str) -> None:
    head = {"id": command.get("id"), "type": "response", "command": command["type"], "success": True}
    put(json.dumps({**head, "data": data}))


def echo() -> None:
    while (command := read()) is not None:
        if command["type"] == "prompt":
            answer(command, disposition="started")
            put('{"type":"agent_start"}')
            put('{"type":"agent_settled","aborted":false}')
        elif command["type"] != "extension_ui_response":
            answer(command)
    os._exit(0)


def hold(seconds: float, *, apart: bool = False) -> None:
    if os.fork() == 0:
        if apart:
            os.setsid()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.05)
            with contextlib.suppress(OSError):
                os.write(1, b"noise\n")
        os._exit(0)


def flood(fd: int, size: int, line_end: bytes) -> None:
    while size > 0:
        size -= os.write(fd, b"x" * min(size, 60_000) + line_end)


def act(word: str, rest: str) -> None:
    global identity
    match word:
        case "say":
            put(rest.replace("{id}", identity))
        case "raw":
            sys.stdout.buffer.write(rest.encode("latin-1").decode("unicode_escape").encode("latin-1"))
            sys.stdout.buffer.flush()
        case "err":
            sys.stderr.write(rest + "\n")
            sys.stderr.flush()
        case "read":
            identity = str((read() or {}).get("id", ""))
        case "exit":
            os._exit(int(rest))
        case "kill":
            os.kill(os.getpid(), signal.Signals[rest])
            time.sleep(60)
        case "sleep":
            time.sleep(float(rest))
        case "ignore":
            signal.signal(signal.Signals[rest], signal.SIG_IGN)
        case "on":
            name, code = rest.split()
            signal.signal(signal.Signals[name], lambda *_: os._exit(int(code)))
        case "close":
            os.close(int(rest))
        case "hold":
            hold(float(rest))
        case "late":
            if os.fork() == 0:
                time.sleep(0.15)
                put(rest)
                os._exit(0)
        case "tool":
            hold(float(rest), apart=True)
        case "flood" | "giant":
            fd, size = map(int, rest.split())
            flood(fd, size, b"\n" if word == "flood" else b"")
            os.write(fd, b"\n")
        case "idle":
            while read() is not None:
                pass
            os._exit(0)
        case "stay":
            time.sleep(60)  # whatever becomes of the test
            os._exit(0)
        case "echo":
            echo()


for line in os.environ.get("STORY", "").split("\n"):
    many, rest = line[5:].split(" ", 1) if line.startswith("many ") else ("1", line)
    for _ in range(int(many)):
        act(*rest.partition(" ")[::2])
