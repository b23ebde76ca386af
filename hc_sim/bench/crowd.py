"""What a call costs while very many connections are open, each with one call a second."""

import contextlib
import random
import resource
import selectors
import socket
import statistics
import time

from hc_sim.bench.client import READ_BYTES, BenchError, Lines, connect, get_lines, name_of, one_line
from hc_sim.bench.figures import Figure, judge

CALLS_ALONE = 2_000
SPARE_FILES = 100
SEED = 7


def crowd_figure(path: str, connections: int, *, laps: int, rounds: int) -> Figure:
    """p99 of a call in microseconds, beside p50 on one connection alone; the best of each in `rounds`.

    Each connection calls once a second, for `laps` seconds, at a moment of its own. Raises `BenchError` when the system
    does not let this process open so many files.
    """
    _allow(connections)
    lines = get_lines([name_of(number) for number in range(10)], connections)
    p99, alone = [], []
    for number in range(rounds):
        alone.append(_alone(path, lines))
        with contextlib.ExitStack() as stack:
            links = [stack.enter_context(connect(path)) for _ in range(connections)]
            for place, link in enumerate(links):
                one_line(link, _line(lines, place))  # everybody has been heard once
            taken = sorted(_calls(links, lines, laps, random.Random(SEED + number)))  # noqa: S311 - moments
        p99.append(taken[int(len(taken) * 0.99)])
    return judge("thousand_connections", min(p99) * 1e6, min(alone) * 1e6)


def _allow(connections: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise BenchError(f"the system allows {hard} open files, and {wanted} are needed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _line(lines: Lines, place: int) -> bytes:
    return lines.text[place * lines.size : (place + 1) * lines.size]


def _alone(path: str, lines: Lines) -> float:
    taken = []
    line = _line(lines, 0)
    with connect(path) as link:
        for _ in range(CALLS_ALONE):
            begin = time.perf_counter()
            one_line(link, line)
            taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def _calls(links: list[socket.socket], lines: Lines, laps: int, moments: random.Random) -> list[float]:
    """Seconds from sending to the reply, of every call of every connection."""
    phases = sorted((moments.random(), place) for place in range(len(links)))
    schedule = [(lap + phase, place) for lap in range(laps) for phase, place in phases]
    sent: dict[int, float] = {}
    taken: list[float] = []
    with selectors.DefaultSelector() as selector:
        for place, link in enumerate(links):
            selector.register(link, selectors.EVENT_READ, place)
        begin, following = time.perf_counter(), 0
        while following < len(schedule) or sent:
            now = time.perf_counter()
            while following < len(schedule) and begin + schedule[following][0] <= now:
                place = schedule[following][1]
                following += 1
                sent.setdefault(place, time.perf_counter())
                links[place].sendall(_line(lines, place))
            pause = begin + schedule[following][0] - time.perf_counter() if following < len(schedule) else 1.0
            for key, _ in selector.select(max(0.0, pause)):
                _take(links[key.data], key.data, sent, taken)
    return taken


def _take(link: socket.socket, place: int, sent: dict[int, float], taken: list[float]) -> None:
    data = link.recv(READ_BYTES)
    if not data:
        raise BenchError("the connection ended")
    if data.endswith(b"\n") and place in sent:
        taken.append(time.perf_counter() - sent.pop(place))
