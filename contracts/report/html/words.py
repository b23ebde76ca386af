"""What each verdict is called and looks like on the page: always a symbol and a word, never a colour alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Word:
    """A verdict: its word, the symbol before it, the class of its colour, and what it means."""

    word: str
    symbol: str
    css: str
    means: str


_ALL: Final = (
    Word("FAIL", "✗", "bad", "a statement that fails the gate does not hold"),
    Word("errored", "✱", "bad", "the harness, the host or the system under test broke"),
    Word("warn", "!", "warn", "a statement that does not fail the gate does not hold"),
    Word("known", "≡", "warn", "it fails, as the baseline says"),
    Word("unproven", "?", "warn", "no scenario or check gave evidence"),
    Word("hazard", "◆", "hazard", "the contract's own text led to a bad end"),
    Word("avoided", "◇", "good", "the bad end that the contract's text allows did not come"),
    Word("pass", "✓", "good", "every statement holds"),
    Word("skipped", "–", "soft", "it could not be judged here"),  # noqa: RUF001 - a dash is what is meant
)
WORDS: Final[Mapping[str, Word]] = {one.word: one for one in _ALL}
"""Every verdict, the gravest first."""

OUTCOMES: Final[Mapping[str, Word]] = {
    "holds": Word("holds", "✓", "good", "the contract holds"),
    "fails": Word("fails", "✗", "bad", "the contract does not hold"),
    "errored": Word("errored", "✱", "bad", "the run broke"),
}


def gravest(words: list[str]) -> str:
    """The gravest of some verdicts."""
    order = list(WORDS)
    return min(words, key=order.index)
