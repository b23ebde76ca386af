"""Which keys a statement about a result may name, so that a misspelt one cannot hold for ever by absence."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from contracts.judging.headless import PROGRAM_KEYS
from contracts.judging.match import is_operators
from contracts.loading.problem import Problem
from contracts.scenario import Step
from contracts.sut.base import ERROR_KEYS, RESULTS

FORBIDDEN_CLAIMS: Final[Mapping[str, frozenset[str]]] = {
    "D10": frozenset(("clearQueued", "cleared", "clearedQueue", "clearedQueued", "queued", "disposition")),
    "D12": frozenset(("inFlightTool", "inFlightToolStack", "lastEventAt")),
}
"""Names that no result may have, by the clause that forbids them: scenarios state their absence on purpose."""

_CLAIMS: Final = frozenset[str]().union(*FORBIDDEN_CLAIMS.values())


def unknown_keys(step: Step, background: Mapping[str, Step]) -> Iterator[tuple[str, str]]:
    """For each key of `returns` and `raises` that nothing could ever have: the dotted key, and what is wrong with it.

    `background`: the steps that a join may be about, by name.
    """
    told = _told_by(step, background)
    for name, pattern, known in (("returns", step.returns, told), ("raises", step.raises, ERROR_KEYS)):
        if pattern is None or known is None or is_operators(pattern):
            continue
        for key in pattern:
            if key not in known | _CLAIMS:
                what = f"what {step.do} returns" if name == "returns" else "an error"
                yield f"{name}.{key}", f"{what} has no key {key!r}{_nearest(key, known)}"


def unknown_program_keys(pattern: Mapping[str, object], key: str) -> Iterator[Problem]:
    """A problem for each key of a statement about a started `pi` that is none of its own."""
    for name in pattern:
        if name not in PROGRAM_KEYS:
            yield Problem(f"{key}.{name}", f"a started pi has no {name!r} (it has {', '.join(sorted(PROGRAM_KEYS))})")


def _told_by(step: Step, background: Mapping[str, Step]) -> frozenset[str] | None:
    """The keys of a step's result; None for a step that is refused for another reason."""
    if step.do != "join":
        return RESULTS.get(step.do)
    if len(step.of) != 1:
        return frozenset()
    joined = background.get(step.of[0])
    return RESULTS.get(joined.do) if joined is not None else None


def _nearest(key: str, known: frozenset[str]) -> str:
    close = get_close_matches(key, [*sorted(known), *sorted(_CLAIMS)], n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f" (it has {', '.join(sorted(known)) or 'none'})"
