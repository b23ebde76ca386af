"""Search for orders of events in which a supervisor lies: the oracle that says what a wait owed."""

from contracts.fuzz.oracle import (
    Failed,
    History,
    Look,
    Missing,
    Outcome,
    Prompt,
    Seen,
    demanded,
    essence,
    objections,
    overdue,
    satisfies,
    watch,
)

__all__ = [
    "Failed",
    "History",
    "Look",
    "Missing",
    "Outcome",
    "Prompt",
    "Seen",
    "demanded",
    "essence",
    "objections",
    "overdue",
    "satisfies",
    "watch",
]
