"""Failures of the supervisor as values: what happened, to which child, what is known of the outcome, what to do."""

from typing import Literal

Code = Literal[
    "bad-request",  # the caller's mistake: a value that no core could take
    "host-unreachable",  # no core could be reached; nothing was sent
    "protocol",  # the peer broke the protocol
    "call-timeout",  # no answer within the call's own deadline
    "call-failed",  # the core answered with an error
    "outcome-unknown",  # a call that changes something got no answer: it may or may not have happened
    "name-taken",  # a live terminal (or another child's) holds the name
    "gone",  # the child's terminal is gone or is another incarnation now
    "blocked",  # the child waits for an answer to a dialog; sending would answer it
    "not-started",  # the child's first prompt has not started yet
    "mode-unavailable",  # the backend for this mode is not there
    "worktree-refused",  # this role or this mode cannot hold a worktree
    "card-refused",  # an agent card says what it must not
    "memory-gate",  # too little memory is available to start another child
    "program-missing",  # the program of a headless child cannot be started at all
    "start-failed",  # it was started and ended at once, saying why
    "closed",  # the supervisor or client was closed
]
Known = Literal["not-sent", "not-applied", "applied", "unknown"]


class SupervisorError(Exception):
    """One failure. Two errors with the same fields are equal, so that tests compare values and not sentences.

    `code`: what kind. `child`: handle or terminal name it happened to, "" if none. `known`: what is known about the
    effect. `kind`: the core's own `data.kind`, if it answered. `hint`: what to do.
    """

    def __init__(
        self, code: Code, message: str, *, child: str = "", known: Known = "not-sent", kind: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.child = child
        self.known = known
        self.kind = kind
        self.hint = hint

    def about(self, child: str) -> "SupervisorError":
        """The same failure, saying which child it happened to."""
        return SupervisorError(self.code, self.message, child=child, known=self.known, kind=self.kind, hint=self.hint)

    def __str__(self) -> str:
        where = f"{self.child}: " if self.child else ""
        then = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{then}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SupervisorError):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str, str, str, str, str]:
        return (self.code, self.message, self.child, self.known, self.kind, self.hint)
