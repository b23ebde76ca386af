"""A client written with nothing but the standard library: `python external_client.py SOCKET lines|frames`.

It greets a core, subscribes to events, starts a program, looks at it, prompts it, waits for its answer, and leaves the
core as it was. What it saw goes to its standard output as one JSON object. Blocking sockets, no threads.
"""

import json
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

HEADER = struct.Struct("<IBI")
DATA, CREDIT, CLOSE, FACTS = 0, 1, 2, 5


class Core:
    """One connection. `notifications` and `output` hold what came unasked, until it is looked at."""

    def __init__(self, path: str, framed: bool) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.framed = False
        self.buffer = b""
        self.lines: dict[int, bytes] = {}
        self.replies: dict[int, Any] = {}
        self.notifications: list[Any] = []
        self.output = b""
        self.closed: str | None = None
        self.events = self.viewer = -1
        self.number = 0
        self.hello = self.call("hello", {"frames": framed} if framed else {})
        self.framed = framed

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}}
        line = json.dumps(request).encode() + b"\n"
        self.socket.sendall(HEADER.pack(0, DATA, len(line)) + line if self.framed else line)
        while self.number not in self.replies:
            self.read()
        reply = self.replies.pop(self.number)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply["result"]

    def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.read()

    def event(self, method: str, fits: Callable[[Any], bool]) -> Any:
        """The next notification of this name that fits."""
        self.until(lambda: any(one["method"] == method and fits(one["params"]) for one in self.notifications))
        found = next(one for one in self.notifications if one["method"] == method and fits(one["params"]))
        self.notifications.remove(found)
        return found["params"]

    def read(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the core closed the connection")
        self.buffer += data
        if not self.framed:
            *lines, self.buffer = self.buffer.split(b"\n")
            for line in lines:
                self.message(json.loads(line))
            return
        while len(self.buffer) >= HEADER.size:
            channel, kind, length = HEADER.unpack_from(self.buffer)
            if len(self.buffer) < HEADER.size + length:
                return
            payload = self.buffer[HEADER.size : HEADER.size + length]
            self.buffer = self.buffer[HEADER.size + length :]
            self.frame(channel, kind, payload)

    def frame(self, channel: int, kind: int, payload: bytes) -> None:
        if kind == CLOSE:
            self.closed = payload.decode()
        elif kind == DATA and channel in (0, self.events):
            *lines, self.lines[channel] = (self.lines.get(channel, b"") + payload).split(b"\n")
            for line in lines:
                self.message(json.loads(line))
        elif kind == DATA:
            self.output += payload
        if kind == DATA and channel:  # what was read may be sent again
            self.socket.sendall(HEADER.pack(channel, CREDIT, 4) + struct.pack("<I", len(payload)))

    def message(self, message: Any) -> None:
        if "id" in message:
            self.replies[message["id"]] = message
        elif message["method"] == "terminal.output":
            self.output += message["params"]["text"].encode()
        elif message["method"] == "terminal.closed":
            self.closed = message["params"]["reason"]
        else:
            self.notifications.append(message)


def status(params: Any) -> str | None:
    state: str | None = (params["terminal"]["status"] or {}).get("state")
    return state


def main(path: str, mode: str) -> None:
    core = Core(path, mode == "frames")
    core.events = core.call("events.subscribe")["channel"]
    ran = core.call("terminal.run", {"argv": ["pi"], "name": "outsider"})
    created = core.event("terminal.created", lambda params: params["terminal"]["address"] == ran["address"])
    core.viewer = core.call("terminal.attach", {"terminal": "outsider"})["channel"]
    sent = core.call("terminal.send", {"terminal": "outsider", "text": "what is 6 times 7?"})
    done = core.event("terminal.changed", lambda params: status(params) == "done")
    core.until(lambda: b"42" in core.output)
    got = core.call("terminal.get", {"terminal": "outsider"})
    if core.framed:  # a second prompt, typed on the keyboard of the viewer
        keys = b"and 6 times 8?\r"
        core.socket.sendall(HEADER.pack(core.viewer, DATA, len(keys)) + keys)
        core.until(lambda: b"48" in core.output)
    core.call("terminal.kill", {"terminal": "outsider"})
    core.until(lambda: core.closed is not None)
    core.call("terminal.rm", {"terminal": "outsider"})
    core.event("terminal.removed", lambda params: params["terminal"]["address"] == ran["address"])
    seen = {
        "core_id": core.hello["core_id"],
        "created": created["terminal"]["name"],
        "started": sent["started"],
        "turn": done["terminal"]["turn"],
        "state": got["status"]["state"],
        "output": core.output.decode(),
        "closed": core.closed,
        "left": [terminal["name"] for terminal in core.call("terminal.list", {"all": True})["terminals"]],
    }
    core.socket.close()
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
