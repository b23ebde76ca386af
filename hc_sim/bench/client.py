"""The measuring end: a blocking client that keeps a given number of lines in flight and counts what comes back."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

READ_BYTES = 65_536
PATIENCE_S = 30.0
"""How long one reply, or the start of a process, may take before the measurement is given up."""


def name_of(number: int) -> str:
    """The name of the n-th terminal of a measured core; all are equally long."""
    return f"bench-{number:05}"


class BenchError(Exception):
    """The measurement could not be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Requests of one size, ready to be sent from any place on: twice in a row, so that a slice never wraps."""

    text: bytes
    size: int
    count: int


def lines_of(requests: Sequence[bytes]) -> Lines:
    """Make requests ready; all must have the same size (`ValueError`)."""
    sizes = {len(request) for request in requests}
    if len(sizes) != 1:
        raise ValueError("requests of one size, please")
    return Lines(b"".join(requests) * 2, sizes.pop(), len(requests))


def get_lines(names: Sequence[str], count: int) -> Lines:
    """`count` calls of `terminal.get`, going through `names`, ids all different and equally long."""
    return lines_of(
        [
            b'{"jsonrpc":"2.0","id":%d,"method":"terminal.get","params":{"terminal":"%s"}}\n'
            % (100_000 + number, names[number % len(names)].encode())
            for number in range(count)
        ]
    )


def echo_lines(size: int, count: int) -> Lines:
    """`count` lines of `size` bytes each."""
    return lines_of([b"x" * (size - 1) + b"\n"] * count)


ROOMY: Mapping[str, str] = {
    f"MALLOC_{name}_": str(4 * 1024 * 1024) for name in ("MMAP_THRESHOLD", "TRIM_THRESHOLD", "TOP_PAD")
}
"""With these a process of the GNU C library keeps the blocks that asyncio reads into; without, it is a matter of luck
whether each read fetches one from the system, and an echo that does is twice as slow."""


@contextlib.contextmanager
def process(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run one of our modules in a process of its own, for as long as the block; gives the first line that it says.

    `environment` is laid over our own. Raises `BenchError` if it ends without a word.
    """
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **(environment or {})}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as child:
        try:
            first = child.stdout.readline() if child.stdout is not None else ""
            if not first:
                raise BenchError(f"{module} did not start")
            yield first.strip()
        finally:
            try:
                child.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                child.kill()


def connect(path: str) -> socket.socket:
    """A blocking connection."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(path)
    return link


def one_line(link: socket.socket, line: bytes) -> bytes:
    """Send a line and give back the line that answers it."""
    link.sendall(line)
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        parts.append(link.recv(READ_BYTES))
        if not parts[-1]:
            raise BenchError("the connection ended")
    return b"".join(parts)


def rate(link: socket.socket, lines: Lines, *, in_flight: int, seconds: float) -> float:
    """Lines answered a second, with `in_flight` of them under way all the time (at most `lines.count`)."""
    view, size, count = memoryview(lines.text), lines.size, lines.count
    done, place = 0, in_flight % count
    begin = time.perf_counter()
    end = begin + seconds
    link.sendall(view[: in_flight * size])
    while True:
        data = link.recv(READ_BYTES)
        if not data:
            raise BenchError("the connection ended")
        back = data.count(b"\n")
        done += back
        now = time.perf_counter()
        if now >= end:
            break
        if back:
            link.sendall(view[place * size : (place + back) * size])
            place = (place + back) % count
    owed = in_flight - back
    while owed > 0:
        owed -= link.recv(READ_BYTES).count(b"\n")
    return done / (now - begin)


def check_reply(reply: bytes) -> None:
    """Raises `BenchError` if this is no result: a rate of error replies would be no rate of anything."""
    if "result" not in json.loads(reply):
        raise BenchError(f"not a result: {reply[:200].decode(errors='replace')}")
