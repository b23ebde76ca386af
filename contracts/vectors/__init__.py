"""Vectors: bytes that go to a core, and what has to come back, as data; and what runs them."""

from contracts.vectors.cases import VECTORS, Reply, Vector, VectorFile, load_vectors
from contracts.vectors.run import Outcome, Wire, run_vector, run_vectors
from contracts.vectors.wires import fake_wire, socket_wire

__all__ = [
    "VECTORS",
    "Outcome",
    "Reply",
    "Vector",
    "VectorFile",
    "Wire",
    "fake_wire",
    "load_vectors",
    "run_vector",
    "run_vectors",
    "socket_wire",
]
