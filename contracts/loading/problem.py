"""One mistake in a scenario, and the name that was perhaps meant."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the dotted field, and what is wrong with it."""

    key: str
    message: str


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing when no name is near."""
    close = get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
