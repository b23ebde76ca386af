"""The `hc` executable: `hc connect` bridges stdin and stdout to a core's socket; other verbs are one call each.

Stand-alone: standard library only, and `connect` imports nothing but C modules, because a supervisor starts one for
every child it owns. Everything else lives in `hc_verbs.py`, found beside this file, and is loaded only when asked for.

The bridge is two pipes that know nothing of each other. Each reads only while it holds less than `ROOM` bytes, so that
memory is bounded; neither ever waits for the other, so a peer that is slow in one direction cannot stop the other one.
"""

import errno
import os
import select
import sys

try:
    import _socket as socket  # the C module alone: `socket` itself would double the time to the first reply
except ImportError:  # pragma: no cover - an interpreter built otherwise
    import socket  # type: ignore[no-redef]

PATH_LIMIT = 107
"""Bytes of a Unix socket path that the operating system takes."""
ROOM = 262_144
"""Bytes that one direction holds at most."""
CHUNK = 4_096
"""Bytes written to stdout at once: a pipe that polls writable takes as many without blocking (PIPE_BUF)."""
CONNECT_S = 10.0
"""How long a core may take to accept."""
DRAIN_MS = 240_000
"""After the end of stdin: how long the core may stay silent (a wait takes 180 s by itself) before we stop listening."""


class Failure(Exception):  # noqa: N818 - one line for a person, and nothing else
    """What is told on stderr, in one line, before ending with code 1."""


def endpoint(env: "os._Environ[str] | dict[str, str]") -> str:
    """The socket path: HC_SOCKET, else HC_TERMINAL_SOCKET, else the session's own place in the runtime folder.

    Raises `Failure` when the path cannot be one.
    """
    path = env.get("HC_SOCKET") or env.get("HC_TERMINAL_SOCKET")
    if not path:
        folder = env.get("XDG_RUNTIME_DIR") or f"{env.get('HOME') or ''}/.local/state"
        path = f"{folder}/hc/{env.get('HC_SESSION') or 'default'}.sock"
    size = len(os.fsencode(path))
    if size > PATH_LIMIT:
        raise Failure(f"the socket path is {size} bytes long and the limit is {PATH_LIMIT}: {path}")
    return path


def open_socket(path: str) -> "socket.socket":
    """A connection to the core that listens at `path`; raises `Failure` when nobody does."""
    try:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(CONNECT_S)
        link.connect(path)
    except (OSError, ValueError) as error:
        why = {
            errno.ENOENT: "there is no such socket",
            errno.ECONNREFUSED: "nobody listens there" if _is_socket(path) else "that is not a socket",
            errno.ENOTSOCK: "that is not a socket",
            errno.EACCES: "permission denied",
        }.get(getattr(error, "errno", None) or 0) or str(error)
        raise Failure(f"cannot reach a core at {path}: {why}") from None
    return link


def _is_socket(path: str) -> bool:
    """Linux refuses a connection to a folder or a file with the same word as one to a socket that nobody serves."""
    try:
        return os.stat(path).st_mode & 0o170000 == 0o140000  # noqa: PTH116 - pathlib would double the start
    except OSError:
        return True


class Bridge:
    """The two directions between stdin/stdout (`source`, `sink`) and the core (`link`), one `step` at a time.

    `ended()` once the core has ended and its last byte is written. `half_closed` says that stdin ended first and all of
    it reached the core: only then is the end of the core a good end.
    """

    def __init__(self, link: "socket.socket", source: int, sink: int) -> None:
        link.settimeout(0)
        self.link, self.peer, self.source, self.sink = link, link.fileno(), source, sink
        self.up, self.down = bytearray(), bytearray()
        self.reading = self.listening = True
        self.half_closed = self.broken = False

    def ended(self) -> bool:
        """Whether there is nothing left to carry."""
        return not self.listening and not self.down

    def step(self) -> None:
        """Wait until some direction can move, and move it; raises `Failure` when nobody is left to serve."""
        poll = select.poll()
        poll.register(self.sink, select.POLLOUT if self.down else 0)
        if self.reading and self.listening and len(self.up) < ROOM:
            poll.register(self.source, select.POLLIN)
        wanted = (select.POLLIN if len(self.down) < ROOM else 0) | (select.POLLOUT if self.up else 0)
        if self.listening and wanted:
            poll.register(self.peer, wanted)
        happened = dict(poll.poll(None if self.reading else DRAIN_MS))
        if not happened:
            raise Failure("the core stayed silent for too long after the end of stdin")
        if happened.get(self.sink, 0) & (select.POLLERR | select.POLLNVAL):
            raise Failure("nobody reads stdout")
        if happened.get(self.sink, 0) and self.down:
            self._write()
        if happened.get(self.source, 0):
            self._read()
        if happened.get(self.peer, 0):
            self._exchange()

    def _read(self) -> None:
        try:
            data = os.read(self.source, 65_536)
        except BlockingIOError:
            return
        except OSError:  # stdin was never open, or its terminal hung up: an end like any other
            data = b""
        self.up += data
        self.reading = bool(data)
        self._finish_up()

    def _write(self) -> None:
        try:
            del self.down[: os.write(self.sink, self.down[:CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            raise Failure("nobody reads stdout") from None

    def _exchange(self) -> None:
        if self.up and not self.broken:
            try:
                del self.up[: self.link.send(self.up[:65_536])]
            except BlockingIOError:
                pass
            except OSError:  # the core does not read any more; what it said before may still wait for us
                self.broken = True
                self.up.clear()
            self._finish_up()
        if len(self.down) < ROOM:
            try:
                data = self.link.recv(65_536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self.down += data
            self.listening = bool(data)

    def _finish_up(self) -> None:
        if self.reading or self.up or self.broken or self.half_closed:
            return
        self.half_closed = True
        try:
            self.link.shutdown(socket.SHUT_WR)
        except OSError:  # the core has gone already; reading it says so
            self.broken = True


def connect() -> None:
    """`hc connect`: returns when stdin ended and the last reply is written; raises `Failure` if the core goes first."""
    _fill_standard_places()
    bridge = Bridge(open_socket(endpoint(os.environ)), 0, 1)
    while not bridge.ended():
        bridge.step()
    if not bridge.half_closed:
        raise Failure("the core closed the connection")


def _fill_standard_places() -> None:
    """Started with a closed stdin, our own socket would be given its number and be taken for it."""
    place = 0
    while place <= 2:
        place = os.open(os.devnull, os.O_RDWR)
    os.close(place)


def main(argv: "list[str]") -> int:
    """Run one command line; returns the exit code: 0, 1 with one line on stderr, 2 for wrong usage."""
    try:
        if argv in (["connect"], ["connect", "--json"]):
            connect()
            return 0
        sys.dont_write_bytecode = True
        sys.path.insert(0, os.path.realpath(__file__).rpartition("/")[0])
        code: int = __import__("hc_verbs").main(argv, lambda: open_socket(endpoint(os.environ)))
    except Failure as failure:
        os.write(2, f"hc: {failure}\n".encode(errors="replace"))
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def run(argv: "list[str]") -> None:
    """`main`, then the end of the process: nothing is left to tidy, and the interpreter's own farewell takes longer."""
    code = main(argv)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        code = code or 1
    os._exit(code)


if __name__ == "__main__":
    run(sys.argv[1:])
