"""The control socket beside a core's own: one command a connection, for `hc-sim ctl` in another shell.

    -> ["move", "t1", "done"]\\n
    <- {"line": "t1  alpha  running  turn 1  done  pi"}\\n     as many as there are
    <- {"ok": true}\\n                                         or {"ok": false, "error": "why"}, then the end

`["watch"]` answers with a line for each event until somebody hangs up, `["watch", "5"]` until there were five.
"""

import asyncio
import contextlib
import errno
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from hc_sim.control.commands import Control, ControlError
from hc_sim.server import PATH_LIMIT, UnixListener, same_user
from hc_sim.trace import Event

SUFFIX = ".ctl"
MAX_PEERS = 32
MAX_REQUEST_BYTES = 65_536
MAX_BACKLOG_BYTES = 1_048_576
"""Lines that a watcher may leave unread before it is hung up on."""
REQUEST_S = 10.0
"""How long a peer may take to say its command."""
ANSWER_S = 30.0
"""How long a client waits for the next line, unless it watches."""
MAX_ANSWER_BYTES = 64 * 1024 * 1024


def control_path(core_socket: Path | str) -> Path:
    """Where the control socket of a core is; too long a path for a socket is the caller's to notice."""
    return Path(f"{core_socket}{SUFFIX}")


class ControlServer(UnixListener):
    """Listens at `path` for commands, as private as the core's own socket."""

    def __init__(self, path: Path | str, control: Control) -> None:
        super().__init__(path)
        self._control = control

    def _accept(self) -> asyncio.Protocol:
        return _Peer(self, self._control)

    def enter(self, peer: "_Peer") -> bool:
        """Whether there is room for one more peer; it is counted from now on."""
        if len(self._peers) >= MAX_PEERS:
            return False
        self._peers.add(peer)
        return True

    def leave(self, peer: "_Peer") -> None:
        """A peer is gone."""
        self._peers.discard(peer)


class _Peer(asyncio.Protocol):
    """One connection: reads a command, answers, ends."""

    def __init__(self, server: ControlServer, control: Control) -> None:
        self._server = server
        self._control = control
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._request = b""
        self._stop: Callable[[], None] | None = None
        self._left: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not same_user(transport.get_extra_info("socket")) or not self._server.enter(self):
            self.abort()
            return
        self._deadline = asyncio.get_running_loop().call_later(REQUEST_S, self.abort)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            return  # the command has been said; nothing else is listened to
        self._request += data
        if len(self._request) > MAX_REQUEST_BYTES:
            self.abort()
        elif b"\n" in self._request:
            self._deadline.cancel()
            self._deadline = None
            self._carry_out(self._request.partition(b"\n")[0])

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.leave(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._stop is not None:
            self._stop()
        self._transport = None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _carry_out(self, line: bytes) -> None:
        try:
            words = _words(line)
            if words[:1] == ["watch"]:
                self._left = _count(words[1:])
                self._stop = self._control.feed.watch(self._show)
                return
            for answer in self._control.do(words):
                self._say({"line": answer})
        except ControlError as error:
            self._end({"ok": False, "error": str(error)})
        except Exception as error:  # a defect of ours: said to the one who met it, and the core goes on
            self._end({"ok": False, "error": f"the command failed: {error!r}"})
        else:
            self._end({"ok": True})

    def _show(self, event: Event) -> None:
        line = self._control.show(event)
        if line is None or self._transport is None:
            return
        if self._transport.get_write_buffer_size() > MAX_BACKLOG_BYTES:
            self.abort()
            return
        self._say({"line": line})
        if self._left is not None:
            self._left -= 1
            if self._left == 0 and self._stop is not None:
                self._stop()
                self._end({"ok": True})

    def _say(self, message: dict[str, Any]) -> None:
        if self._transport is not None:
            self._transport.write(json.dumps(message).encode() + b"\n")

    def _end(self, message: dict[str, Any]) -> None:
        self._say(message)
        if self._transport is not None:
            self._transport.close()


def ask(path: Path | str, words: Sequence[str], *, watch: bool = False) -> Iterator[str]:
    """Say one command to a core's control socket and give the lines of its answer as they come.

    Raises `ControlError` when it is refused, `ConnectionError` (in words) when nobody is there or the answer breaks
    off.
    """
    with _connected(path) as sock, sock.makefile("rb") as answers:
        with contextlib.suppress(OSError):  # if it has hung up already, reading tells
            sock.sendall(json.dumps(list(words)).encode() + b"\n")
        sock.settimeout(None if watch else ANSWER_S)
        try:
            while line := answers.readline(MAX_ANSWER_BYTES):
                message = _message(line)
                if "ok" in message:
                    if message["ok"]:
                        return
                    raise ControlError(str(message.get("error")))
                yield str(message.get("line", ""))
        except (OSError, ValueError) as error:
            raise ConnectionError(f"the answer from {path} broke off: {error}") from None
        raise ConnectionError(f"the answer from {path} broke off")


def _message(line: bytes) -> dict[str, Any]:
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("not an object")
    return message


@contextlib.contextmanager
def _connected(path: Path | str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(ANSWER_S)
        try:
            if len(str(path).encode()) > PATH_LIMIT:
                raise OSError(errno.ENAMETOOLONG, "the path is too long for a socket")
            sock.connect(str(path))
            if not same_user(sock):
                raise OSError(errno.EPERM, "another user listens there")
        except OSError as error:
            why = error.strerror or error
            raise ConnectionError(f"no fake core takes commands at {path}: {why}") from None
        yield sock


def _words(line: bytes) -> list[str]:
    try:
        words = json.loads(line)
    except ValueError:
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ControlError("a command is a JSON list of words")
    return words


def _count(words: list[str]) -> int | None:
    if not words:
        return None
    if len(words) > 1 or not words[0].isdecimal() or int(words[0][:9]) < 1:
        raise ControlError("watch [N]: how many lines, from 1")
    return int(words[0][:9])
