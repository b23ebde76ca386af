"""Where the choices of a random run come from: a seed, or choices that were made before.

Everything random asks a source for a number below n and for nothing else. So a run is the list of its choices: the same
list gives the same run, a changed list gives a neighbour, and a source that a test library drives gives it the means to
shrink. The numbers of a seed are BLAKE2 digests, so they are the same on every machine and in every release.
"""

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol, TypeVar

T = TypeVar("T")

MOST = 65_536
"""No choice is among more than this many."""
AFRESH = 16
"""Choices that a neighbour may have more than the run it comes from."""
_BLOCK = struct.Struct("<32H")


class Source(Protocol):
    """Makes choices. `choices` are those that were made so far."""

    choices: list[int]

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""


class Dice:
    """The choices that follow from a seed."""

    __slots__ = ("_block", "_key", "_values", "choices")

    def __init__(self, seed: int, stream: int = 0) -> None:
        self.choices: list[int] = []
        self._key = f"{seed}/{stream}/".encode()
        self._block = 0
        self._values: list[int] = []

    def below(self, n: int) -> int:
        """A number from 0 to n - 1; n is at most `MOST`."""
        if not self._values:
            digest = blake2b(self._key + str(self._block).encode()).digest()
            self._values = list(_BLOCK.unpack(digest))
            self._block += 1
        value = self._values.pop() % n
        self.choices.append(value)
        return value


class Replay:
    """Choices that were made before; where they do not fit they are folded, and where they end the rest are 0."""

    __slots__ = ("_at", "_given", "choices")

    def __init__(self, given: Sequence[int]) -> None:
        self.choices: list[int] = []
        self._given = given
        self._at = 0

    def below(self, n: int) -> int:
        """The next of the given choices, folded below n."""
        value = self._given[self._at] % n if self._at < len(self._given) else 0
        self._at += 1
        self.choices.append(value)
        return value


def pick(source: Source, options: Sequence[T]) -> T:
    """One of the options; one that stands there twice comes twice as often."""
    return options[source.below(len(options))]


def chance(source: Source, one_in: int) -> bool:
    """True once in so many times. Folded and missing choices give False, the plainer world."""
    return source.below(one_in) == one_in - 1


def neighbour(choices: Sequence[int], source: Source, *, other: Sequence[int] = ()) -> list[int]:
    """A list of choices close to this one: mostly its beginning, gone on with differently.

    At times the end is taken from another list, or some choices are changed in place.
    """
    near = list(choices)
    if not near:
        return [source.below(MOST) for _ in range(AFRESH)]
    kind = source.below(8)
    at = source.below(min(len(near), MOST))
    if kind == 0 and other:
        return near[:at] + list(other[min(at, len(other)) :])
    if kind == 1:
        for _ in range(1 + source.below(4)):
            near[source.below(min(len(near), MOST))] = source.below(MOST)
        return near
    return near[:at] + [source.below(MOST) for _ in range(len(near) - at + AFRESH)]
