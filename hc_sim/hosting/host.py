"""The programs of one core: started and held by a process of their own, so that none outlives the core."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from hc_sim import programs
from hc_sim.clock import need_real_time
from hc_sim.core.programs import Launch, StartError
from hc_sim.driver import Driver
from hc_sim.hosting.hearing import Heard, Printed, Reported
from hc_sim.hosting.program import HostedProgram, Said
from hc_sim.profile import WireProfile

MAX_PROGRAMS = 256
"""Programs that run at once."""
COLS, ROWS = 80, 24
"""The window of a program until somebody looks at it."""
START_S = 10.0
"""How long a start may take; the core waits for it, as it has to say whether it went well."""
CLOSE_S = 10.0
"""How long the holder may take to end beyond the grace of its programs."""
MAX_ANSWER_BYTES = 65_536
HOLDER = Path(programs.__file__).with_name("holder.py")

_WHY = {
    "cwd": ("the folder cannot be entered", "choose another folder"),
    "program": ("the program cannot be started", "look at argv[0], and at PATH as the program would have it"),
    "terminal": ("there is no terminal for it", "end some programs"),
    "fork": ("there can be no more processes", "end some programs"),
    "encoding": ("argv, env or cwd cannot be given to a program", "send text that is valid UTF-8"),
}


class Programs:
    """Starts programs for a core (`Core(start_program=programs.start)`), between the ends of `running`.

    Raises `hc_sim.clock.VirtualTimeError` from `running` where the loop's time is virtual.
    """

    def __init__(self, profile: WireProfile | None = None, *, limit: int = MAX_PROGRAMS) -> None:
        self._profile = WireProfile() if profile is None else profile
        self._limit = limit
        self._driver: Driver | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._asks: socket.socket | None = None
        self._hears = -1
        self._news = b""
        self._running: dict[int, HostedProgram] = {}

    def __len__(self) -> int:
        return len(self._running)

    @contextlib.asynccontextmanager
    async def running(self, driver: Driver) -> AsyncIterator["Programs"]:
        """Programs can be started for the core of this driver; at the end all of them are ended, with their groups."""
        self._open(driver)
        try:
            yield self
        finally:
            await self._close()

    def start(self, launch: Launch) -> HostedProgram:
        """Start a program, now. Raises `StartError`."""
        if self._asks is None or self._loop is None:
            raise StartError("no programs can be started now", "start the core first")
        if len(self._running) >= self._limit:
            raise StartError(f"{self._limit} programs run already", "end some of them first")
        wanted = {
            "op": "start", "argv": list(launch.argv), "cwd": launch.cwd, "env": launch.env, "cols": COLS, "rows": ROWS,
        }  # fmt: skip
        answer, terminal = self._ask(wanted)
        if terminal is None:
            raise _refused(answer, launch)
        program = HostedProgram(
            launch.address, answer["pid"], terminal, self._profile.program_status, self._loop,
            Said(self._heard, self._ended, self._end),
        )  # fmt: skip
        self._running[program.pid] = program
        return program

    # ------------------------------------------------------------------ the process that holds them

    def _open(self, driver: Driver) -> None:
        loop = asyncio.get_running_loop()
        need_real_time(loop, "a real program")
        ours, theirs = socket.socketpair()
        hears, tells = os.pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-IS", str(HOLDER), str(self._profile.program_grace_ms)],
                stdin=theirs.fileno(),
                stdout=tells,
                start_new_session=True,  # a Ctrl-C at our own terminal is for us, and not for the programs
            )
        os.close(tells)
        os.set_blocking(hears, False)
        ours.settimeout(START_S)
        self._driver, self._loop, self._asks, self._hears = driver, loop, ours, hears
        loop.add_reader(hears, self._hear)

    def _ask(self, wanted: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
        """Ask for a start and wait for the answer; with it comes the terminal, if there is one."""
        assert self._asks is not None  # noqa: S101 - `start` has seen to it
        terminals: list[int] = []
        try:
            self._asks.sendall(json.dumps(wanted).encode() + b"\n")
            line = b""
            while not line.endswith(b"\n"):
                data, fds, _, _ = socket.recv_fds(self._asks, MAX_ANSWER_BYTES, 1, _CLOSE_ON_EXEC)
                terminals += fds
                line += data
                if not data or len(line) > MAX_ANSWER_BYTES:
                    raise ConnectionError("it ended")
            return json.loads(line), terminals[0] if terminals else None
        except OSError as error:
            for terminal in terminals:
                os.close(terminal)
            self._lose(f"the process that holds the programs does not answer: {error or type(error).__name__}")
            raise StartError("the process that holds the programs is gone", "start the core again") from None

    def _end(self, pid: int, grace_ms: int) -> None:
        if self._asks is not None and pid in self._running:
            line = json.dumps({"op": "end", "pid": pid, "grace_ms": grace_ms})
            with contextlib.suppress(OSError):  # it is gone, and its programs with it; that is told by its own way
                self._asks.sendall(line.encode() + b"\n")

    def _hear(self) -> None:
        """The holder tells who has exited, or is gone itself."""
        try:
            data = os.read(self._hears, MAX_ANSWER_BYTES)
        except BlockingIOError:
            return
        *lines, self._news = (self._news + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            program = self._running.get(told["pid"])
            if program is not None:
                program.has_exited(told["code"], told["signal"])
        if not data:
            self._lose("the process that holds the programs is gone")

    def _lose(self, problem: str) -> None:
        """The holder is gone or does not answer: its programs are hung up on, and no more can be started."""
        if self._process is None or self._driver is None or self._loop is None:
            return
        self._driver.problems.append(problem)
        self._process.kill()
        self._shut()
        for program in list(self._running.values()):
            with contextlib.suppress(OSError):
                os.killpg(program.pid, 9)
            program.close()
            program.has_exited(None, "SIGKILL")

    def _shut(self) -> None:
        if self._asks is not None and self._loop is not None:
            self._loop.remove_reader(self._hears)
            os.close(self._hears)
            self._asks.close()
            self._asks, self._hears = None, -1

    async def _close(self) -> None:
        process, loop = self._process, self._loop
        if process is None or loop is None:
            return
        self._shut()
        wait_s = self._profile.program_grace_ms / 1_000 + CLOSE_S
        try:
            await loop.run_in_executor(None, process.wait, wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for program in list(self._running.values()):
            program.close()
        self._running.clear()
        self._process = self._driver = self._loop = None

    # ------------------------------------------------------------------ what the programs do

    def _heard(self, program: HostedProgram, heard: Heard) -> None:
        if self._driver is None or program.heard_no_more:
            return
        core, now = self._driver.hub.core, self._driver.now()
        if isinstance(heard, Reported):
            core.reported(program.address, program, heard.status, now)
        elif isinstance(heard, Printed):
            core.printed(program.address, program, heard.data, heard.lines, now)
        self._driver.kick()

    def _ended(self, program: HostedProgram, code: int | None, signal: str | None) -> None:
        self._running.pop(program.pid, None)
        if self._driver is not None and not program.heard_no_more:
            self._driver.hub.core.exited(program.address, program, code, signal, self._driver.now())
            self._driver.kick()


_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def _refused(answer: dict[str, Any], launch: Launch) -> StartError:
    why, hint = _WHY[answer["error"]]
    what = {"cwd": launch.cwd, "program": launch.argv[0]}.get(answer["error"], "")
    place = f'"{what[:200]}": ' if what else ""
    return StartError(f"{why}: {place}{answer.get('why')}", hint)
