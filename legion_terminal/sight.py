"""What one `terminal.get` shows: the terminal as a value, and whether it is still the one that was started."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from legion_terminal.client import Answer
from legion_terminal.errors import SupervisorError
from legion_terminal.settle import Observation
from legion_terminal.types import Child

FINISHED = "finished"
MISSING_KINDS = frozenset(
    {"no_such_terminal", "not_found", "terminal_not_found", "unknown_terminal", "no_terminal", "notfound"}
)
NAME_TAKEN_KINDS = frozenset({"name_taken", "nametaken", "name_in_use", "name_exists"})
NOT_LIVE_KINDS = frozenset({"not_live", "not_running", "already_finished", "finished"})
BLOCKED_KINDS = frozenset({"blocked"})
NO_METHOD_KINDS = frozenset({"unknown_method", "method_not_found"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One terminal as the core showed it. `core_id` and `link`: who showed it, and over which link."""

    address: str
    name: str | None
    argv: tuple[str, ...]
    labels: Mapping[str, str]
    parent: str | None
    created_ms: int | None
    observation: Observation
    core_id: str = ""
    link: int = 0

    @property
    def finished(self) -> bool:
        """Whether its program has ended."""
        return self.observation.state == FINISHED

    @property
    def words(self) -> str:
        """Its state in a few words, for messages."""
        seen = self.observation
        return f"{seen.state}, turn {seen.turn}, status {seen.status or 'none'}"


def read_sight(answer: Answer) -> Sight:
    """Read a terminal out of an answer. Raises SupervisorError (`protocol`) for what is no terminal."""
    inner = answer.result.get("terminal")
    fields = inner if isinstance(inner, dict) else answer.result
    state, turn = fields.get("state"), fields.get("turn")
    if not isinstance(state, str) and not _is_int(turn):
        raise SupervisorError("protocol", "the answer describes no terminal", known="unknown")
    return Sight(
        address=_text(fields.get("address")) or (inner if isinstance(inner, str) else ""),
        name=_text(fields.get("name")) or None,
        argv=tuple(str(item) for item in fields.get("argv") or ()) if isinstance(fields.get("argv"), list) else (),
        labels=_labels(fields.get("labels")),
        parent=_text(fields.get("parent")) or None,
        created_ms=fields["created_ms"] if _is_int(fields.get("created_ms")) else None,
        observation=_observation(fields),
        core_id=answer.core_id,
        link=answer.link,
    )


def difference(child: Child, sight: Sight) -> str | None:
    """In words, why `sight` is not the incarnation that `child` was started as; None when it is.

    What either side does not know decides nothing.
    """
    pairs: list[tuple[str, Any, Any]] = [
        ("another core", child.core_id or None, sight.core_id or None),
        ("another address", child.address or None, sight.address or None),
        ("another name", child.name or None, sight.name),
        ("another creation time", child.created_ms, sight.created_ms),
        ("another program", child.argv or None, sight.argv or None),
    ]
    return next((words for words, ours, theirs in pairs if None not in (ours, theirs) and ours != theirs), None)


def is_missing(error: SupervisorError) -> bool:
    """Whether the core said that it knows no such terminal."""
    return error.kind in MISSING_KINDS


def _observation(fields: Mapping[str, Any]) -> Observation:
    status, turn, state = fields.get("status"), fields.get("turn"), fields.get("state")
    word = status.get("state") if isinstance(status, dict) else status
    code = next((fields[key] for key in ("exit_code", "exitCode", "exit") if _is_int(fields.get(key))), None)
    signal = next((fields[key] for key in ("signal", "exit_signal") if fields.get(key) is not None), None)
    return Observation(
        turn=turn if isinstance(turn, int) and not isinstance(turn, bool) else 0,
        status=_text(word) or None,
        state=state if isinstance(state, str) else "running",
        exit_code=code,
        signal=str(signal) if signal is not None else None,
    )


def _labels(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(key): text for key, text in value.items() if isinstance(text, str)}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
