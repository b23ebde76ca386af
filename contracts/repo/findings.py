"""What the gate says of a checkout: findings with a place and a remedy, and a verdict for each clause."""

from typing import Final, Literal

import msgspec

Word = Literal["pass", "fail", "skipped", "unproven"]
Weight = Literal["fail", "unproven", "note"]


class RepoError(Exception):
    """The checkout cannot be judged, through a mistake of the caller; the message says what to do (exit code 2)."""


class GitBrokeError(Exception):
    """git did not do what it was asked for, or not in time (exit code 3)."""


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the values of a report."""


class Finding(Value, frozen=True, kw_only=True):
    """One statement about one place.

    `weight`: `fail` breaks the clause, `unproven` keeps it from being proved, `note` changes no verdict and asks a
    person to look. `line` counts from 1 in the judged tree; with `in_base`, in the base, where the file still was.
    """

    clause: str
    weight: Weight
    path: str
    line: int
    say: str
    todo: str = ""
    in_base: bool = False


class ClauseResult(Value, frozen=True, kw_only=True):
    """The verdict on one clause, what was looked at to reach it, and every finding about it."""

    id: str
    title: str
    verdict: Word
    looked_at: str
    findings: list[Finding] = []


class RepoReport(Value, frozen=True, kw_only=True):
    """The whole answer. `judged` is the commit, or `work tree` with all that is uncommitted and untracked in it."""

    schema: int = 1
    kind: str = "repo"
    path: str
    base: str
    base_commit: str
    judged: str
    clauses: list[ClauseResult]
    notes: list[str] = []
    outcome: Literal["holds", "fails"]


TITLES: Final = {
    "I1": "The four frozen tests are as in the base",
    "I2": "src/runs/worktree.ts is as in the base",
    "I3": "No new git process on the launch path",
    "I4": "SPAWN_MODES and every map over it know terminal",
    "D13": "No agent card sets spawnMode",
    "files": "Only the files that the contract allows are touched",
    "A1": "The test scripts clear the two markers of hc",
}
"""The clauses of this gate, in the order of the report; `files` is the contract's list of files that may be touched."""


def result(clause: str, looked_at: str, findings: list[Finding]) -> ClauseResult:
    """The verdict that follows from the findings: one that fails outweighs one that leaves the clause unproven."""
    weights = {finding.weight for finding in findings}
    verdict: Word = "fail" if "fail" in weights else "unproven" if "unproven" in weights else "pass"
    ordered = sorted(findings, key=lambda one: (one.path, one.line, one.say))
    return ClauseResult(id=clause, title=TITLES[clause], verdict=verdict, looked_at=looked_at, findings=ordered)


def skipped(clause: str, why: str) -> ClauseResult:
    """A clause that nobody asked for."""
    return ClauseResult(id=clause, title=TITLES[clause], verdict="skipped", looked_at=why)


def outcome(results: list[ClauseResult]) -> Literal["holds", "fails"]:
    """Holds when every clause that was asked for passes: what is unproven does not hold."""
    return "holds" if all(one.verdict in ("pass", "skipped") for one in results) else "fails"
