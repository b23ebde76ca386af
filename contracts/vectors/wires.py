"""Wires to the cores that vectors can be run on: the fake one in memory, and any that listens on a socket."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.vectors.run import PROBE, PROBE_ID, OpenWire
from hc_sim.core import Core
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile

PATIENCE_S: Final = 10.0
"""How long a core may take for its next bytes."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024


class FakeWire:
    """A connection to a new fake core in memory, on which no time passes."""

    def __init__(self, profile: WireProfile) -> None:
        self._hub = Hub(Core(profile))
        self._conn = self._hub.connect(0)

    def exchange(self, data: bytes) -> tuple[list[bytes], bool]:
        """Send `data` and the probe, and take everything that is answered."""
        self._hub.receive(self._conn, data, 0)
        self._hub.receive(self._conn, PROBE, 0)
        out = self._hub.outgoing(0)
        lines = b"".join(delivery.data for delivery in out).split(b"\n")
        return [line for line in lines if line], any(delivery.close for delivery in out)


def fake_wire(profile: Mapping[str, Any]) -> FakeWire:
    """A connection to a fake core with these choices. Raises `msgspec.ValidationError` for one that there is not."""
    return FakeWire(msgspec.convert(dict(profile), WireProfile))


class SocketWire:
    """A connection to whatever core listens at a Unix socket."""

    def __init__(self, path: Path, patience_s: float = PATIENCE_S) -> None:
        self._path = path
        self._patience_s = patience_s

    def exchange(self, data: bytes) -> tuple[list[bytes], bool]:
        """Send `data` and the probe on a new connection, and read until its reply. Raises `OSError`, `TimeoutError`."""
        answer = b""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(self._patience_s)
            peer.connect(str(self._path))
            peer.sendall(data + PROBE)
            while not _is_over(answer):
                piece = _read(peer)
                if not piece:
                    return [line for line in answer.split(b"\n") if line], True
                answer += piece
        return [line for line in answer.split(b"\n") if line], False


def socket_wire(path: Path) -> OpenWire:
    """Connections to the core at `path`. It is as it is: vectors that need a profile cannot be run on it."""
    return lambda profile: None if profile else SocketWire(path)


def _is_over(answer: bytes) -> bool:
    if len(answer) > MAX_ANSWER_BYTES:
        raise OSError(f"the core answers with more than {MAX_ANSWER_BYTES} bytes")
    return any(PROBE_ID.encode() in line for line in answer.split(b"\n")[:-1])


def _read(peer: socket.socket) -> bytes:
    try:
        return peer.recv(65_536)
    except ConnectionResetError:
        return b""
