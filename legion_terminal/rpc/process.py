"""The process of a headless child: three pipes, a process group of its own, and how it ended. No meaning here.

Both outputs are read all the time. The exit is seen without being collected (the process stays a zombie for that long),
so the number of its group can belong to nobody else while the group is signalled. It is judged when standard output has
ended too, or, where a grandchild holds the pipe, a bound later; then whatever is left of the group is killed, the
process collected, and every descriptor closed.
"""

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from legion_terminal.errors import SupervisorError
from legion_terminal.rpc.exit_table import Exit

MAX_TAIL_BYTES: Final = 8 * 1024
READ_BYTES: Final = 64 * 1024
MAX_LAST_READS: Final = 32
PROC: Final = Path("/proc")
LOOK_MS: Final = 50
"""How often the exit is looked for where the system cannot report it."""


class ChildProcess:
    """One started program. `on_output` gets what it writes, and b"" at the end; `on_end` its exit, once, last."""

    def __init__(self, on_output: Callable[[bytes], None], on_end: Callable[[Exit], None], *, drain_ms: int) -> None:
        self._on_output = on_output
        self._on_end = on_end
        self._drain_ms = drain_ms
        self._loop = asyncio.get_running_loop()
        self._child: subprocess.Popen[bytes] | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._outputs: list[asyncio.ReadTransport] = []
        self._tail = bytearray()
        self._pidfd: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._exit: Exit | None = None
        self._over = asyncio.Event()
        self.output_ended = False
        self.input_closed = False

    @property
    def pid(self) -> int | None:
        """The process id, also the number of its group and session; None before the start."""
        return self._child.pid if self._child is not None else None

    @property
    def over(self) -> bool:
        """Whether it was collected and every descriptor closed."""
        return self._over.is_set()

    @property
    def exited(self) -> bool:
        """Whether the process itself has ended, judged or not."""
        return self._exit is not None

    async def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        """Start the program, without a shell. Raises SupervisorError `program-missing` or `bad-request`."""
        try:
            self._child = subprocess.Popen(  # noqa: ASYNC220  (as the loop itself does; it is back after the exec)
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _not_started(argv[0], cwd, error) from error
        try:
            await self._attach(self._child)
        except BaseException:
            self.signal(signal.SIGKILL)
            self._watch(self._child.pid)
            raise
        self._watch(self._child.pid)  # not before: its end closes the pipes, attached or not

    def unread(self) -> int:
        """How many bytes wait because the input pipe is full."""
        return self._stdin.get_write_buffer_size() if self._stdin is not None else 0

    def put(self, data: bytes) -> None:
        """Hand over one line without waiting. Raises BrokenPipeError when it takes no more."""
        if self._stdin is None or self.input_closed or self._stdin.is_closing():
            raise BrokenPipeError("it reads no more input")
        self._stdin.write(data)

    def signal(self, number: signal.Signals) -> str | None:
        """Signal the whole group; returns in words what could not be done. One that was collected gets nothing."""
        if self._child is None or self.over:
            return None
        try:
            os.killpg(self._child.pid, number)
        except OSError as group:
            if self.exited:
                return None
            try:
                os.kill(self._child.pid, number)
            except OSError as error:
                return f"it could not be sent {number.name}: {error.strerror}"
            return f"its group could not be sent {number.name} ({group.strerror}), the process itself was"
        return None

    def group_lives(self) -> bool:
        """Whether a process of the group still runs; one that has ended and waits for its parent does not count."""
        if self._child is None:
            return False
        try:
            os.killpg(self._child.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return _members_run(self._child.pid)

    async def wait_over(self, ms: float) -> bool:
        """Wait until it is over, at most so long; whether it is."""
        try:
            async with asyncio.timeout(ms / 1000):
                await self._over.wait()
        except TimeoutError:
            return False
        return True

    def tail(self) -> str:
        """The end of the error output, at most 8 KiB."""
        return self._tail.decode("utf-8", "replace")

    async def _attach(self, child: "subprocess.Popen[bytes]") -> None:
        if child.stdin is None or child.stdout is None or child.stderr is None:
            raise RuntimeError("three pipes were asked for")
        reading = [(child.stdout, self._on_output, self._stdout_ended), (child.stderr, self._keep_tail, _nothing)]
        for pipe, on_data, on_end in reading:
            transport, _ = await self._loop.connect_read_pipe(lambda d=on_data, e=on_end: _Output(d, e), pipe)  # type: ignore[misc]
            self._outputs.append(transport)
        self._stdin, _ = await self._loop.connect_write_pipe(lambda: _Input(self), child.stdin)

    def _watch(self, pid: int) -> None:
        try:
            self._pidfd = os.pidfd_open(pid)
        except (AttributeError, OSError):
            self._timer = self._loop.call_later(LOOK_MS / 1000, self._look)
        else:
            self._loop.add_reader(self._pidfd, self._look)

    def _look(self) -> None:
        """Has it ended? If so, how; it is not collected yet."""
        if self._child is None or self._exit is not None:
            return
        exit_ = _peek(self._child)
        if exit_ is None:
            if self._pidfd is None:
                self._timer = self._loop.call_later(LOOK_MS / 1000, self._look)
            return
        self._exit = exit_
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self.output_ended:
            self._timer = self._loop.call_later(0, self._finish)
        else:
            self._timer = self._loop.call_later(self._drain_ms / 1000, self._finish)

    def _stdout_ended(self) -> None:
        self.output_ended = True
        if not self.over:
            self._on_output(b"")
        if self._exit is not None and not self.over:
            if self._timer is not None:
                self._timer.cancel()
            self._finish()

    def _finish(self) -> None:
        """Kill what is left of the group, collect the process, close everything, tell."""
        if self._child is None or self._exit is None or self.over:
            return
        self._read_last_words()
        self.signal(signal.SIGKILL)
        self._child.poll()
        self._over.set()
        for output in self._outputs:
            output.close()
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.abort()
        pipes = (self._child.stdout, self._child.stderr)[len(self._outputs) :]  # not reached by a start that was cut
        for pipe in (*pipes, None if self._stdin is not None else self._child.stdin):
            if pipe is not None:
                pipe.close()
        self._on_end(self._exit)

    def _read_last_words(self) -> None:
        """What the dead process wrote to its error output is all in the pipe, even when a grandchild holds it open."""
        stderr = self._child.stderr if self._child is not None else None
        if stderr is None or stderr.closed:
            return
        for _ in range(MAX_LAST_READS):
            try:
                data = os.read(stderr.fileno(), READ_BYTES)
            except OSError:
                return
            if not data:
                return
            self._keep_tail(data)

    def _keep_tail(self, data: bytes) -> None:
        self._tail += data
        del self._tail[:-MAX_TAIL_BYTES]


class _Output(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class _Input(asyncio.Protocol):
    """Never pauses anybody: how much may wait is asked before each command (`unread`)."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process

    def connection_lost(self, exc: Exception | None) -> None:
        self._process.input_closed = True


def _members_run(group: int) -> bool:
    """Whether any process of a group is more than a zombie, as far as the system tells."""
    try:
        entries = [entry for entry in PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return True
    return any(_state(entry, group) not in ("", "Z", "X") for entry in entries)


def _state(entry: Path, group: int) -> str:
    """The state of a process, "" when it is not of this group or is gone."""
    try:
        state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return ""
    return state if its_group == str(group) else ""


def _nothing() -> None:
    return None


def _peek(child: "subprocess.Popen[bytes]") -> Exit | None:
    """How the process ended, without collecting it where the system can; None while it lives."""
    if not hasattr(os, "waitid"):
        code = child.poll()
        return None if code is None else _exit(code)
    try:
        seen = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return Exit()  # somebody else of this process collected it
    if seen is None:
        return None
    return _exit(seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status)


def _exit(code: int) -> Exit:
    if code >= 0:
        return Exit(code=code)
    try:
        return Exit(signal=signal.Signals(-code).name)
    except ValueError:
        return Exit(signal=f"SIG{-code}")


def _not_started(program: str, cwd: str, error: Exception) -> SupervisorError:
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, OSError) and error.filename == cwd != program:
        return SupervisorError("bad-request", f"the working folder {cwd!r} cannot be entered: {reason}")
    if isinstance(error, ValueError) or getattr(error, "errno", None) == errno.E2BIG:
        return SupervisorError("bad-request", f"{program!r} cannot be started: {reason}")
    return SupervisorError(
        "program-missing",
        f"{program!r} cannot be started: {reason}",
        hint="install pi, or put the folder it is in on the PATH of the child",
    )
