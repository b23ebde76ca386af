"""The standard streams as bytes: floods, ends that are let go of, and a grandchild that holds them."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOISE = b"noise: nothing to see here\n"


def fill_standard_places() -> None:
    """Started with a closed stream, a file of our own would be given its number and be taken for it."""
    place = 0
    while place <= 2:
        place = os.open(os.devnull, os.O_RDWR)
    os.close(place)


def hold_pipe(how: dict[str, Any], ms: float) -> None:
    """Leave a grandchild that holds stdout and stderr so long. `noise`: it talks on; `detached`: its own group."""
    if not ms or os.fork():
        return
    try:
        if how["detached"]:
            os.setsid()
        for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        let_go(0)
        end = time.monotonic() + ms / 1000
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1 if how["noise"] else left))
            if how["noise"]:
                write_all(1, b'{"type":"noise"}\n')
    finally:
        os._exit(0)


def say_late(data: bytes, ms: float) -> None:
    """Leave a grandchild that writes the last words so much later: the exit is seen before they are read."""
    if os.fork():
        return
    try:
        for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        time.sleep(ms / 1000)
        write_all(1, data)
    finally:
        os._exit(0)


def flood(size: int) -> None:
    """So many bytes of noise on stderr; blocks while nobody reads them, as the real program would."""
    while size > 0:
        piece = (NOISE * 512)[: min(size, 8_192)]
        write_all(2, piece)
        size -= len(piece)


def let_go(fd: int) -> None:
    """The other end sees the end of this stream; the number stays taken."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)


def write_all(fd: int, data: bytes) -> None:
    """Write all of it; nobody who reads is no error."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        return
