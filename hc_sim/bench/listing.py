"""How fast `terminal.list` of many terminals arrives, beside the encoding of the same list alone."""

import socket
import time

import msgspec

from hc_sim.bench.client import READ_BYTES, BenchError, connect
from hc_sim.bench.figures import Figure, judge
from hc_sim.model import ListResult

ASK = b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{}}\n'


class _Reply(msgspec.Struct):
    result: ListResult


def list_figure(path: str, terminals: int, lists: int) -> Figure:
    """Megabytes of JSON a second, as they reach a client; the floor encodes the typed terminals of that very reply.

    One terminal is changed before each list, so that none of them is the list of before, word for word.
    """
    values, floors = [], []
    encoder = msgspec.json.Encoder()
    with connect(path) as link:
        for number in range(lists):
            _change(link, number)
            begin = time.perf_counter()
            reply = _ask(link, ASK)
            values.append(len(reply) / (time.perf_counter() - begin) / 1e6)
            listed = msgspec.json.decode(reply, type=_Reply).result
            if len(listed.terminals) != terminals:
                raise BenchError(f"{len(listed.terminals)} terminals listed, not {terminals}")
            begin = time.perf_counter()
            text = encoder.encode(listed)
            floors.append(len(text) / (time.perf_counter() - begin) / 1e6)
    return judge("list_10000", max(values), max(floors))


def _change(link: socket.socket, number: int) -> None:
    change = b'{"jsonrpc":"2.0","id":2,"method":"terminal.label","params":{"terminal":"t1","labels":{"n":"%d"}}}\n'
    _ask(link, change % number)


def _ask(link: socket.socket, line: bytes) -> bytes:
    link.sendall(line)
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        parts.append(link.recv(16 * READ_BYTES))
        if not parts[-1]:
            raise BenchError("the connection ended")
    return b"".join(parts)
