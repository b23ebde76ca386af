"""The process: stdin, stdout, signals and timers in one loop, and every way in which it can end."""

from __future__ import annotations

import os
import select
import signal
import time

from .outlet import Outlet
from .streams import flood, hold_pipe, let_go, say_late, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, NoReturn, Protocol

    from .log import Log

    class Actor(Protocol):
        """Who answers the lines."""

        def line(self, line: bytes) -> None:
            """A line of stdin."""

        def batch_end(self) -> None:
            """Everything of one read has been handed over."""

        def stop(self, how: str) -> bool:
            """Told to stop; False: it cannot yet."""

        def begin(self, text: str) -> None:
            """A run that nobody asked for."""

        def end_workers(self) -> None:
            """End the tools that still run."""


MAX_LINE_BYTES = 64 * 1024 * 1024
"""Bytes of one line of stdin."""
STOPPED = {"EOF": 0, "SIGTERM": 143, "SIGHUP": 129}
"""The exit codes of the real program when it is told to stop."""


class Leaving(BaseException):  # not an error: it passes everything that is under way
    """The program has decided to end; only what was said already still leaves."""


class Timer:
    """Something that happens later."""

    def __init__(self, due: float, call: Callable[[], None]) -> None:
        self.due, self.call = due, call


class Process:
    """Runs an actor between real pipes, under real signals, as the script says."""

    def __init__(self, script: dict[str, Any], log: Log) -> None:
        self.log = log
        self.script, self.stop_rules = script, script["stop"]
        self.actor: Actor | None = None
        self._outlet = Outlet(self, script["twist"])
        self._acts: list[dict[str, Any]] = script["act"]
        self._met = [0] * len(self._acts)
        self._timers: list[Timer] = []
        self._reading = self._listening = True
        self._input = bytearray()
        self._searched = 0
        self._wake = os.pipe()
        self._told: list[str] = []
        self._terms = 0
        self._booted = False
        self._waits_to_stop = ""

    # what the actor calls

    def emit(self, record: dict[str, Any]) -> None:
        """Say a record."""
        self._outlet.emit(record)

    def mute(self) -> None:
        """Say nothing from now on."""
        self._outlet.muted = True

    def wall_ms(self) -> int:
        """The time of the wall clock."""
        return int(time.time() * 1000)

    def scaled(self, ms: float) -> float:
        """A time of the script, at the speed that it is played with."""
        return float(ms * self.script["speed"])

    def after(self, ms: float, call: Callable[[], None]) -> Timer:
        """Do this so much later."""
        timer = Timer(time.monotonic() + self.scaled(ms) / 1000, call)
        self._timers.append(timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        """Do not do it, if it has not been done."""
        if timer in self._timers:
            self._timers.remove(timer)

    def blurt(self, entry: dict[str, Any]) -> None:
        """Say what a reply or an act has: records, bytes, words on stderr."""
        if entry["do"] == "say":
            for record in entry["records"] or ():
                self._outlet.emit(record)
            return
        data = bytes.fromhex(entry["hex"] or "") or (entry["text"] or "").encode()
        if entry["do"] == "raw":
            self._outlet.raw(data)
            return
        write_all(2, data)
        flood(entry["bytes"])

    def requested(self, command: str) -> None:
        """A command was read; nothing of it has been done."""
        self.left("request")
        self.left(f"request:{command}")

    def left(self, key: str) -> None:
        """A moment has come: do what the script has for it."""
        for place, act in enumerate(self._acts):
            if act["at"] == key:
                self._met[place] += 1
                if act["nth"] in (0, self._met[place]):
                    self._act(act)

    def dialog_closed(self) -> None:
        """A TERM that came while a dialog was open is obeyed now."""
        if self._waits_to_stop:
            self._terms = 0
            self._told.append(self._waits_to_stop)

    def exit_now(self, code: int | None, by: str | None) -> NoReturn:
        """End by itself, once everything has been taken."""
        self._outlet.when_taken(lambda: self._leave(code or 0, by))
        self.mute()
        raise Leaving

    def crash(self, words: str) -> NoReturn:
        """End as a program does that met an error of its own."""
        self._drain()
        write_all(2, words.encode())
        self._leave(1, None)

    def give_up(self, why: str) -> NoReturn:
        """End because of the world around."""
        write_all(2, f"pi: {why}\n".encode())
        self._leave(1, None)

    # the life of it

    def run(self, actor: Callable[[], Actor]) -> NoReturn:
        """Start as the script says, then serve until the end."""
        for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        write_all(2, self.script["stderr"].encode())
        flood(self.script["stderr_bytes"])
        leaving = self._leaves_at_once()
        if self.script["boot_ms"]:
            time.sleep(self.scaled(self.script["boot_ms"]) / 1000)
        self._listen()
        self._booted = True
        try:
            self.actor = None if leaving else actor()
        except Leaving:
            self._listening = False
        while True:
            try:
                self._step()
            except Leaving:
                self._listening = False
                self._timers.clear()

    def _leaves_at_once(self) -> bool:
        """Do what the script has for the start; whether the program leaves once its words have been taken."""
        try:
            self.left("start")
        except Leaving:
            self._listening = False
            return True
        return False

    def _listen(self) -> None:
        for end in self._wake:
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            if name in self.stop_rules["ignores"] or name != "SIGINT" or self._own_end():
                signal.signal(getattr(signal, name), self._signalled)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def _own_end(self) -> bool:
        return self.stop_rules["code"] is not None or self.stop_rules["signal"] is not None

    def _signalled(self, number: int, _: FrameType | None) -> None:
        self._told.append(signal.Signals(number).name)

    def _step(self) -> None:
        now = time.monotonic()
        for timer in sorted(self._timers, key=lambda one: one.due):
            if timer.due <= now and timer in self._timers:
                self._timers.remove(timer)
                timer.call()
        while self._told:
            self._stop(self._told.pop(0))
        poll = select.poll()
        poll.register(self._wake[0], select.POLLIN)
        if self._reading and self._listening:
            poll.register(0, select.POLLIN)
        writable_in = self._outlet.writable_in(now)
        if writable_in == 0:
            poll.register(1, select.POLLOUT)
        waits = [max(0.0, timer.due - now) for timer in self._timers]
        waits += [writable_in] if writable_in else []
        happened = dict(poll.poll(int(min(waits) * 1000) + 1 if waits else None))
        if happened.get(self._wake[0]):
            os.read(self._wake[0], 4_096)
        if happened.get(1):
            self._write()
        if happened.get(0):
            self._read()

    def _write(self) -> None:
        try:
            self._outlet.write()
        except BlockingIOError:
            return
        except OSError:
            self._leave(1, None)

    def _read(self) -> None:
        try:
            data = os.read(0, 65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._reading = False
            self._told.append("EOF")
            return
        self._input += data
        actor = self.actor
        while actor is not None:
            end = self._input.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(self._input)
                break
            line = bytes(self._input[:end])
            del self._input[: end + 1]
            self._searched = 0
            self.log.write("line", line=line.decode("utf-8", "replace"))
            actor.line(line.removesuffix(b"\r"))
        if len(self._input) > MAX_LINE_BYTES:
            self.give_up(f"a line of stdin is longer than {MAX_LINE_BYTES} bytes")
        if actor is not None:
            actor.batch_end()

    def _stop(self, how: str) -> None:
        self.log.write("told", how=how)
        if how in self.stop_rules["ignores"]:
            return
        if how == "SIGTERM":
            self._terms += 1
        if self.actor is not None and self._terms < 2 and not self.actor.stop(how):
            self._waits_to_stop = how
            return
        rules = self.stop_rules
        code = STOPPED.get(how) if rules["code"] is None and rules["signal"] is None else rules["code"]
        leave: Callable[[], None] = lambda: self._end({**rules, "code": code, "noise": False, "detached": False})  # noqa: E731
        if rules["after_ms"]:
            self.after(rules["after_ms"], leave)
        elif how == "EOF":  # everything that was said is taken first; a signal does not wait for a reader
            self._outlet.when_taken(leave)
        else:
            self._drain()
            leave()

    def _drain(self) -> None:
        """Write what the reader takes at once."""
        poll = select.poll()
        poll.register(1, select.POLLOUT)
        while self._outlet.writable_in(time.monotonic()) == 0 and poll.poll(0):
            self._write()

    def _act(self, act: dict[str, Any]) -> None:
        if act["after_ms"] and not self._booted:
            time.sleep(self.scaled(act["after_ms"]) / 1000)
            self._do(act)
        elif act["after_ms"]:
            self.after(act["after_ms"], lambda: self._do(act))
        else:
            self._do(act)

    def _do(self, act: dict[str, Any]) -> None:
        kind = act["do"]
        if kind == "exit" and act["late_ms"]:
            say_late(self._outlet.rest(), self.scaled(act["late_ms"]))
            self._end(act)
        if kind == "exit":
            self._outlet.when_taken(lambda: self._end(act))
            self.mute()
            raise Leaving
        if kind == "close":
            self._close(act["stream"])
        elif kind == "stop_reading":
            self._listening = False
        elif kind == "stop_writing":
            self._outlet.when_taken(self._outlet.stop)
        elif kind == "run":
            self.after(0, lambda: self.actor.begin(act["text"] or "go on") if self.actor is not None else None)
        elif kind == "grandchild":
            hold_pipe(act, self.scaled(act["holds_pipe_ms"]))
        else:
            self.blurt(act)

    def _close(self, stream: str) -> None:
        if stream == "stdin":
            self._listening = False
            let_go(0)
        elif stream == "stdout":
            self._outlet.when_taken(lambda: let_go(1))
        else:
            let_go(2)

    def _end(self, how: dict[str, Any]) -> None:
        hold_pipe(how, self.scaled(how["holds_pipe_ms"]))
        self._leave(how["code"] or 0, how["signal"])

    def _leave(self, code: int, by: str | None) -> NoReturn:
        self.log.write("end", code=None if by else code, signal=by)
        if by is None and self.actor is not None:
            self.actor.end_workers()
        if by is not None:
            number = getattr(signal, by)
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            time.sleep(5)
        os._exit(code)
