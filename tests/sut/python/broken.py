"""A driver that goes wrong in the way that its first argument names; nothing else of it is real."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

HOW = sys.argv[1]
SLEEPS = ["sleep", f"307.{sys.argv[2]}"]
"""What is left behind: its second argument tells it from what others leave."""


def say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def reply(number: int, **more: Any) -> None:
    say({"jsonrpc": "2.0", "id": number, **more})


def introduce(number: int) -> None:
    match HOW:
        case "hangs-at-once":
            time.sleep(60)
        case "dies-at-once":
            sys.stderr.write("no such module\n")
            raise SystemExit(7)
        case "no-json":
            sys.stdout.write("Welcome to my supervisor!\n")
            sys.stdout.flush()
        case "initialize-fails":
            reply(number, error={"code": -32000, "message": "no licence", "data": {"code": "closed"}})
            return
    version = 9 if HOW == "wrong-version" else 1
    about: dict[str, Any] = {"protocolVersion": version, "name": "broken", "version": "", "language": "Python"}
    if HOW == "no-features":
        reply(number, result=about)
        return
    reply(number, result={**about, "features": [] if HOW == "declares-nothing" else ["terminal", "host"]})


def act(number: int) -> None:
    match HOW:
        case "hangs":
            time.sleep(60)
        case "dies":
            sys.stderr.write("a last word\n")
            raise SystemExit(3)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "closes-its-output":
            os.close(1)
            time.sleep(60)
        case "noise":
            sys.stdout.write("debug: about to answer\n")
        case "floods":
            for _ in range(200):
                sys.stderr.write("x" * 50_000 + "\n")
        case "giant-line":
            sys.stdout.write("x" * 9_000_000)
            sys.stdout.flush()
            time.sleep(60)
        case "unknown-id":
            reply(number + 1000, result={"available": True})
        case "answers-twice":
            reply(number, result={"available": True})
        case "asks":
            say({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {}})
        case "notes":
            say({"jsonrpc": "2.0", "method": "log", "params": {"line": "legal"}})
        case "no-code":
            reply(number, error={"code": -32603, "message": "KeyError: 'x'"})
            return
        case "not-implemented":
            reply(number, error={"code": -32601, "message": "no", "data": {"code": "not-implemented"}})
            return
        case "wrong-type":
            reply(number, result={"available": "yes"})
            return
        case "no-object":
            reply(number, result=[True])
            return
        case "leaves-a-process":
            subprocess.Popen(SLEEPS)
        case "leaves-a-daemon":
            subprocess.run(["/bin/sh", "-c", '"$@" > /dev/null 2>&1 &', "sh", "setsid", *SLEEPS], check=True)
        case "leaves-a-stranger":
            subprocess.Popen(SLEEPS, start_new_session=True)
    reply(number, result={"available": True})


def main() -> None:
    if HOW == "deaf-to-signals":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        match message["method"]:
            case "initialize":
                introduce(message["id"])
            case "shutdown":
                reply(message["id"], result={})
            case _:
                act(message["id"])
    if HOW in ("stays", "deaf-to-signals"):
        time.sleep(60)


if __name__ == "__main__":
    main()
