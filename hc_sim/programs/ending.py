"""A headless child of JSON lines that answers each command and ends as its fault plan says; for the exit matrix.

It is stand-alone: `install_ending` writes it with its plan. Each line of input is a command with an `id`; the answer is
a `response`, and an `agent_settled` event belongs to each command, in the order that the plan has.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from hc_sim.faults import ChildExit
from hc_sim.programs.install import write_program

_SOURCE = '''
"""A headless child; written by hc_sim.programs.ending."""
import json
import os
import signal
import sys
import time

PLAN = {plan}
BLANK = {blank}
OWN = next((one for one in PLAN if not one["retiring"]), None)
STOPPED = next((one for one in PLAN if one["retiring"]), BLANK)


def end(how):
    if how["holds_pipe_ms"] and os.fork() == 0:
        time.sleep(how["holds_pipe_ms"] / 1000)
        os._exit(0)
    if how["signal"]:
        number = getattr(signal, how["signal"])
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(how["code"] or 0)


def say(*messages):
    os.write(1, b"".join(json.dumps(one).encode() + b"\\n" for one in messages))


def answer(command):
    response = {{"type": "response", "id": command.get("id"), "success": True}}
    event = {{"type": "agent_settled"}}
    how = OWN or BLANK
    if how["after"] == "request" and OWN:
        end(OWN)
    order = {{"reply-first": [response, event], "event-first": [event, response], "event-only": [event]}}[how["order"]]
    if OWN and how["after"] == "reply":
        say(*order[: order.index(response) + 1 if response in order else 0])
        end(OWN)
    say(*order)
    if OWN and how["after"] == "event":
        end(OWN)


def main():
    if OWN and OWN["after"] == "start":
        end(OWN)
    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        ignored = name in STOPPED["ignores"]
        signal.signal(getattr(signal, name), signal.SIG_IGN if ignored else lambda *_: end(STOPPED))
    for line in sys.stdin.buffer:
        answer(json.loads(line))
    while "EOF" in STOPPED["ignores"]:
        signal.pause()
    end(STOPPED)


main()
'''


def install_ending(directory: Path | str, exits: Sequence[ChildExit], *, name: str = "pi") -> Path:
    """Write a headless child into `directory` that ends as `exits` say; returns its path.

    The first of them that is not `retiring` is its own end, the first that is is how it ends when it is told to.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    plan = [msgspec.structs.asdict(one) for one in exits]
    write_program(folder / name, _SOURCE.format(plan=repr(plan), blank=repr(msgspec.structs.asdict(ChildExit()))))
    return folder / name
