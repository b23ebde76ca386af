"""Signals that end a run as Ctrl-C does: the work is called off, and cleans up on its way out."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
ENDING = (signal.SIGTERM, signal.SIGHUP)


SWEEP_S = 2.0


class CalledOffError(Exception):
    """A signal ended the run; everything was removed first. `code` is the exit code that says so."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.code = 128 + number


def run_until_ended(work: Coroutine[Any, Any, T]) -> T:
    """Run the work in a loop of its own. Raises `CalledOffError` when TERM or HUP came, `KeyboardInterrupt`."""
    came: list[int] = []

    async def around() -> T:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()

        def end(number: int) -> None:
            came.append(number)
            if task is not None and len(came) == 1:
                task.cancel()

        mine = threading.current_thread() is threading.main_thread()
        for number in ENDING if mine else ():
            loop.add_signal_handler(number, end, number)
        try:
            return await work
        finally:
            for number in ENDING if mine else ():
                loop.remove_signal_handler(number)

    try:
        return asyncio.run(around())
    except asyncio.CancelledError:
        if came:
            raise CalledOffError(came[0]) from None
        raise


def sweep(folder: Path) -> None:
    """Kill every process that works below this folder: a tool outlives an agent that was killed. Bounded."""
    until = time.monotonic() + SWEEP_S
    while (found := list(_working_below(folder))) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _working_below(folder: Path) -> Iterator[int]:
    try:
        processes = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    except OSError:
        return
    for process in processes:
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder) and int(process.name) != os.getpid():
                yield int(process.name)
