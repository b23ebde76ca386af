"""Run vectors against a core, whichever it is, and say what differs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from contracts.judging.match import equal
from contracts.vectors.cases import Reply, Vector

PROBE_ID: Final = "probe-of-the-vectors"
PROBE: Final = b'{"jsonrpc":"2.0","id":"probe-of-the-vectors","method":"hello"}\n'
"""Sent after each vector: its reply shows that no more is coming, so that silence needs no waiting."""


class Wire(Protocol):
    """A connection to a core, in line mode, that takes a vector and comes back with everything that was answered."""

    def exchange(self, data: bytes) -> tuple[list[bytes], bool]:
        """Send `data` and the probe. Returns the lines up to the reply to the probe, and whether the core hung up."""


OpenWire = Callable[[Mapping[str, Any]], Wire | None]
"""Opens a new connection to a core with such a profile; None if the core cannot be had that way."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one vector: `holds` (None: it was not run), and what differs, in words."""

    vector: Vector
    holds: bool | None
    differences: tuple[str, ...] = ()


def run_vectors(vectors: Iterable[Vector], open_wire: OpenWire) -> list[Outcome]:
    """Each vector on a connection of its own."""
    return [run_vector(vector, open_wire) for vector in vectors]


def run_vector(vector: Vector, open_wire: OpenWire) -> Outcome:
    """One vector; not run if its profile cannot be had."""
    wire = open_wire(vector.profile)
    if wire is None:
        return Outcome(vector, None, ("needs a choice that this core does not offer",))
    lines, closed = wire.exchange(vector.data())
    differences = _differences(vector, lines, closed=closed)
    return Outcome(vector, not differences, tuple(differences))


class _Envelope(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _differences(vector: Vector, lines: list[bytes], *, closed: bool) -> list[str]:
    found: list[str] = []
    replies, batches = [], []
    for line in lines:
        value = _decoded(line)
        if isinstance(value, list):
            batches.append([_Got(item, msgspec.json.encode(item)) for item in value])
        elif isinstance(value, dict) and value.get("id") == PROBE_ID:
            continue
        else:
            replies.append(_Got(value, line))
    found += _compare(list(vector.replies), replies, "")
    if vector.batch is not None and len(batches) != 1:
        found.append(f"expected one batch of replies, got {len(batches)}")
    elif vector.batch is not None:
        found += _compare(list(vector.batch), batches[0], "in the batch: ")
    elif batches:
        found.append("got a batch of replies, expected none")
    if closed is not vector.closes:
        found.append(f"expected the connection {'to end' if vector.closes else 'to stay'}")
    return found


@dataclass(frozen=True, slots=True)
class _Got:
    value: Any
    line: bytes


def _compare(expected: list[Reply], got: list[_Got], where: str) -> list[str]:
    found, left = [], list(got)
    for reply in expected:
        match = next((one for one in left if _fits(reply, one)), None)
        if match is None:
            found.append(f"{where}expected {_shown(reply)}")
        else:
            left.remove(match)
    return found + [f"{where}got {one.line.decode('utf-8', 'backslashreplace').strip()}" for one in left]


def _fits(expected: Reply, got: _Got) -> bool:
    reply = got.value
    if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0" or "id" not in reply:
        return False
    if ("result" in reply) is ("error" in reply):
        return False
    raw = msgspec.json.decode(got.line, type=_Envelope).id
    if expected.raw_id:
        if isinstance(raw, msgspec.UnsetType) or bytes(raw) != expected.raw_id.encode():
            return False
    elif type(reply["id"]) is not type(expected.id) or reply["id"] != expected.id:
        return False
    side = "result" if expected.error is None else "error"
    return side in reply and equal(getattr(expected, side), reply[side])


def _shown(reply: Reply) -> str:
    said = {name: value for name in reply.__struct_fields__ if (value := getattr(reply, name)) not in (None, "")}
    return msgspec.json.encode({"id": reply.id, **said} if not reply.raw_id else said).decode()


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
