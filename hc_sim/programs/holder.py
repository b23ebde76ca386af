"""Holds the programs of a fake core: starts each in a pseudo-terminal of its own, and sees that none is left behind.

Stand-alone, and run as a process of its own, which has one thread and so may fork. It reads requests, one JSON object
a line, from the socket that is its stdin, and answers a start there, with the terminal's file descriptor beside it:

    {"op": "start", "argv": [...], "cwd": "/", "env": {...}, "cols": 80, "rows": 24}  ->  {"pid": 7} or {"error": ...}
    {"op": "end", "pid": 7, "grace_ms": 1000}                                         (no answer)

Exits are told on its stdout: {"pid": 7, "code": 0, "signal": null}. When the socket ends, however that comes, or when
it is told to end, it ends all programs with their whole sessions, and then itself.
"""

import contextlib
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
import time
from collections.abc import Callable, Collection
from typing import Any, NoReturn

MAX_REQUEST_BYTES = 64 * 1024 * 1024
STEPS = (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL)
LAST_STEPS = (signal.SIGTERM, signal.SIGKILL)
LOOK_AGAIN_S = 1.0
"""How often it is looked whether what a program left behind is still there."""
LOOK_S = 0.01
KILLED_S = 2.0
"""How long a killed process may take to be gone."""


class Holder:
    """The programs that run, and the ends that are under way."""

    def __init__(self, asked: socket.socket, told: int) -> None:
        self.asked = asked
        self.told = told
        self.running: set[int] = set()
        self.left: set[int] = set()
        """Sessions whose first process has ended, and that others have not left yet."""
        self.endings: dict[int, tuple[list[signal.Signals], float, float]] = {}
        """Session to the steps that are still to come, and when the next one is due."""
        self.look_at = 0.0
        self.stopping = False

    # ---------------------------------------------------------------- requests

    def carry_out(self, request: dict[str, Any]) -> None:
        """One request."""
        if request["op"] == "start":
            self.answer(*self.start(request))
        elif request["pid"] in self.running and request["pid"] not in self.endings:
            self.endings[request["pid"]] = (list(STEPS), time.monotonic(), request["grace_ms"] / 1000)

    def start(self, request: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
        """Start a program; returns the answer and the descriptor of its terminal."""
        try:
            argv = [os.fsencode(word) for word in request["argv"]]
            env = {os.fsencode(name): os.fsencode(value) for name, value in request["env"].items()}
            cwd = os.fsencode(request["cwd"])
            terminal, program = os.openpty()
        except ValueError as error:
            return {"error": "encoding", "why": str(error)}, None
        except OSError as error:
            return {"error": "terminal", "why": error.strerror}, None
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", request["rows"], request["cols"], 0, 0))
        failed, fails = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(terminal)
            os.close(failed)
            return {"error": "fork", "why": error.strerror}, None
        else:
            if pid == 0:
                become(program, fails, argv, cwd, env)
        finally:
            os.close(program)
            os.close(fails)
        with os.fdopen(failed, "rb") as report:
            words = report.read()
        if words:
            os.waitpid(pid, 0)
            os.close(terminal)
            return json.loads(words), None
        self.running.add(pid)
        return {"pid": pid}, terminal

    def answer(self, words: dict[str, Any], terminal: int | None) -> None:
        """Answer a start."""
        line = json.dumps(words).encode() + b"\n"
        if terminal is None:
            self.asked.sendall(line)
        else:
            socket.send_fds(self.asked, [line], [terminal])
            os.close(terminal)

    # ---------------------------------------------------------------- ends

    def reap(self) -> None:
        """See who has exited, and say so."""
        ended = []
        for pid in list(self.running):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found == pid:
                self.running.discard(pid)
                ended.append(pid)
                self.tell(pid, os.waitstatus_to_exitcode(status))
        if ended:
            self.left |= there(ended)
            self.forget()

    def tell(self, pid: int, code: int) -> None:
        """One program has exited."""
        name = name_of(-code) if code < 0 else None
        line = json.dumps({"pid": pid, "code": None if code < 0 else code, "signal": name}).encode() + b"\n"
        try:
            os.write(self.told, line)
        except BrokenPipeError:
            self.stopping = True

    def forget(self) -> None:
        """Sessions that nobody is in any more are no longer ended."""
        self.left &= there(self.left)
        for session in self.endings.keys() - self.running - self.left:
            del self.endings[session]

    def go_on(self) -> float | None:
        """Take the steps that are due; returns the seconds until the next one."""
        now = time.monotonic()
        for session, (steps, due, grace) in list(self.endings.items()):
            if due <= now and steps:
                tell_session([session], steps.pop(0))
                self.endings[session] = (steps, now + grace, grace)
            elif not steps:
                del self.endings[session]
        if self.left and now >= self.look_at:
            self.look_at = now + LOOK_AGAIN_S
            self.forget()
        waits = [due - now for _, due, _ in self.endings.values()]
        if self.left:
            waits.append(LOOK_AGAIN_S)
        return max(0.0, min(waits)) if waits else None

    def stop(self, grace_s: float) -> None:
        """End everything: all are asked at once, then killed."""
        for number, limit in zip(LAST_STEPS, (grace_s, KILLED_S), strict=True):
            until = time.monotonic() + limit
            told = False
            while (self.running or self.left) and time.monotonic() < until:
                if number == signal.SIGKILL or not told:  # whoever was just being born heard nothing
                    told = True
                    tell_session(self.running | self.left, number)
                time.sleep(LOOK_S)
                self.reap()
                self.forget()


def name_of(number: int) -> str:
    """The name of a signal, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def become(program: int, fails: int, argv: list[bytes], cwd: bytes, env: dict[bytes, bytes]) -> NoReturn:
    """In the child: take the terminal as one's own and become the program. Never returns."""
    problem: dict[str, Any] = {"error": "terminal"}
    try:
        for ours in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(ours, signal.SIG_DFL)
        os.setsid()
        fcntl.ioctl(program, termios.TIOCSCTTY, 0)
        for number in (0, 1, 2):
            os.dup2(program, number)
        problem = {"error": "cwd"}
        os.chdir(cwd)
        problem = {"error": "program"}
        execute(argv, env)
    except OSError as error:
        problem.update(errno=error.errno, why=error.strerror)
    except BaseException as error:
        problem["why"] = repr(error)
    os.write(fails, json.dumps(problem).encode())
    os._exit(127)


def execute(argv: list[bytes], env: dict[bytes, bytes]) -> NoReturn:
    """Replace this process; a name without a slash is looked for in PATH."""
    places = [argv[0]]
    if b"/" not in argv[0]:
        path = env.get(b"PATH", os.fsencode(os.defpath))
        places = [(folder or b".") + b"/" + argv[0] for folder in path.split(b":")]
    last: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for place in places:
        try:
            os.execve(place, argv, env)  # noqa: S606 - there is no shell, on purpose
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            last = error
    raise last


# -------------------------------------------------------------------- sessions


def members() -> list[tuple[int, int, int]] | None:
    """Every process that is not a zombie, as (pid, group, session); None where the system does not show them."""
    try:
        with os.scandir("/proc") as entries:
            pids = [entry.name for entry in entries if entry.name.isdigit()]
    except OSError:
        return None
    found = []
    for pid in pids:
        fields = stat_of(pid)
        if fields and fields[0] not in b"ZX":
            found.append((int(pid), int(fields[2]), int(fields[3])))
    return found or None


def stat_of(pid: str) -> list[bytes]:
    """State, parent, group, session ... of a process; empty if it is gone."""
    try:
        stat = os.open("/proc/" + pid + "/stat", os.O_RDONLY)
    except OSError:
        return []
    try:
        return os.read(stat, 1_024).rpartition(b")")[2].split()
    except OSError:
        return []
    finally:
        os.close(stat)


def there(sessions: Collection[int]) -> set[int]:
    """Which of these sessions have anybody in them."""
    if not sessions:
        return set()
    known = members()
    if known is not None:
        return {session for _, _, session in known} & set(sessions)
    return {session for session in sessions if send(os.killpg, session, 0)}


def tell_session(sessions: Collection[int], number: signal.Signals) -> None:
    """Send a signal to the groups of these sessions, and to whoever is in them in another group."""
    for session in sessions:
        send(os.killpg, session, number)
    others = [pid for pid, group, session in members() or () if session in sessions and group not in sessions]
    for pid in others:
        send(os.kill, pid, number)
    for session in sessions:
        send(os.killpg, session, signal.SIGCONT)  # whoever is stopped hears nothing
    for pid in others:
        send(os.kill, pid, signal.SIGCONT)


def send(way: Callable[[int, int], None], target: int, number: int) -> bool:
    """Whether there was anybody to get the signal."""
    try:
        way(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


# -------------------------------------------------------------------- the loop


def main() -> None:
    """Serve until the socket ends, or until told to end."""
    asked = socket.socket(fileno=os.dup(0))
    holder = Holder(asked, os.dup(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: setattr(holder, "stopping", True))
    serve(holder, woken)
    holder.stop(int(sys.argv[1]) / 1000)


def serve(holder: Holder, woken: int) -> None:
    """Carry out requests and see to ends."""
    requests, asked = b"", holder.asked.fileno()
    while not holder.stopping:
        ready, _, _ = select.select([asked, woken], [], [], holder.go_on())
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
            holder.reap()
        if asked in ready:
            data = holder.asked.recv(1 << 20)
            requests += data
            if not data or len(requests) > MAX_REQUEST_BYTES:
                return
            *lines, requests = requests.split(b"\n")
            for line in lines:
                holder.carry_out(json.loads(line))


if __name__ == "__main__":
    main()
