"""What became of vectors, as lines of text: one a vector, what differs below it, and a summary."""

from collections import Counter
from collections.abc import Iterator, Sequence

from contracts.vectors import Outcome

WORDS = {True: "holds", False: "FAILS", None: "not run"}


def vectors_as_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The lines, without their ends."""
    width = max((len(outcome.vector.id) for outcome in outcomes), default=0)
    for outcome in outcomes:
        vector = outcome.vector
        yield f"{WORDS[outcome.holds]:<7}  {vector.id:<{width}}  {vector.basis:<8}  {vector.why}"
        if outcome.holds is not True:
            yield from (f"         {difference}" for difference in outcome.differences)
    counts = Counter(WORDS[outcome.holds] for outcome in outcomes)
    yield ", ".join(f"{counts[word]} {word.lower()}" for word in WORDS.values() if counts[word]) or "no vectors"
