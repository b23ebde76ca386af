"""Vectors as they stand in their file: lines to send, and the replies that have to come back."""

from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from contracts.judging.match import pattern_faults
from hc_sim.script.format import Strict
from hc_sim.script.toml import FileError, line_of, read_toml

VECTORS: Final = Path(__file__).with_name("jsonrpc.toml")

Basis = Literal["standard", "measured", "inferred", "unknown"]
"""Why a core should answer so: JSON-RPC 2.0 says it, it was seen, it is read between the lines, or it is our choice."""


class Reply(Strict, frozen=True):
    """One reply, as a partial match: `result` or `error`. `id` is compared as a value, `raw_id` as the text it is."""

    id: Any = None
    raw_id: str = ""
    result: Any = None
    error: Any = None


class Vector(Strict, frozen=True):
    """One case. `send` are lines (each is ended for you), `hex` is one more line, as bytes.

    `replies` have to come, in any order and no others; `batch` are the replies that come together in one array.
    `closes`: the core ends the connection after them. `profile`: choices of the fake core that the case needs, so that
    only it can be asked.
    """

    id: str
    why: str
    send: list[str] = msgspec.field(default_factory=list)
    hex: str = ""
    replies: list[Reply] = msgspec.field(default_factory=list)
    batch: list[Reply] | None = None
    closes: bool = False
    basis: Basis = "standard"
    profile: dict[str, Any] = msgspec.field(default_factory=dict)

    def data(self) -> bytes:
        """The bytes to send."""
        lines = [line.encode() for line in self.send] + ([bytes.fromhex(self.hex)] if self.hex else [])
        return b"".join(line + b"\n" for line in lines)


class VectorFile(Strict, frozen=True):
    """A file of vectors."""

    document: str
    vector: list[Vector] = msgspec.field(default_factory=list)


def load_vectors(path: Path = VECTORS) -> tuple[Vector, ...]:
    """The vectors of a file. Raises `FileError` for what is wrong in it: unknown keys, an id that comes twice."""
    file = read_toml(path, VectorFile)
    text = path.read_text(encoding="utf-8")
    seen: set[str] = set()
    for index, vector in enumerate(file.vector):
        problem = _problem(vector, seen)
        if problem is not None:
            key, message = problem
            raise FileError(path, line_of(text, ("vector", index, key)), f"vector[{index}].{key}", message)
        seen.add(vector.id)
    return tuple(file.vector)


def _problem(vector: Vector, seen: set[str]) -> tuple[str, str] | None:
    if vector.id in seen:
        return "id", f"{vector.id!r} is there already"
    if not vector.send and not vector.hex:
        return "id", "nothing is sent"
    if any("\n" in line for line in vector.send):
        return "send", "one line an element"
    try:
        bytes.fromhex(vector.hex)
    except ValueError:
        return "hex", "not hexadecimal"
    for reply in [*vector.replies, *(vector.batch or [])]:
        if (reply.result is None) is (reply.error is None):
            return "replies", "a reply has a result or an error"
        for field, fault in pattern_faults({"result": reply.result, "error": reply.error}):
            return "replies", f"{field}: {fault}"
    return None
