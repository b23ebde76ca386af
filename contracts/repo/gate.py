"""All clauses of the gate on one checkout, from its path and a base to the report."""

from collections.abc import Collection, Sequence
from pathlib import Path

from contracts.repo.cards import judge_cards
from contracts.repo.files import judge_files, judge_frozen_tests, judge_worktree
from contracts.repo.findings import TITLES, ClauseResult, RepoReport, outcome, skipped
from contracts.repo.git import commit_of, descends, open_git
from contracts.repo.launch import judge_launch
from contracts.repo.modes import judge_modes
from contracts.repo.parsing import Sources
from contracts.repo.scripts import judge_scripts
from contracts.repo.trees import Tree, commit_tree, work_tree


def judge_repo(
    path: Path, base: str, *, head: str = "", allowed: Sequence[str] = (), only: Collection[str] = ()
) -> RepoReport:
    """Judge the work tree at `path`, or with `head` a commit, against the commit `base`.

    `allowed` are globs of files that may change beside those of the contract. `only`: the clauses to judge, all when
    empty; the others are skipped. Raises RepoError for a mistake of the caller, GitBrokeError when git fails.
    """
    git = open_git(path)
    base_commit = commit_of(git, base)
    head_commit = commit_of(git, head or "HEAD", "--head")
    before = commit_tree(git, base_commit, base)
    now = commit_tree(git, head_commit, head) if head else work_tree(git, before)
    notes = []
    if not descends(git, base_commit, head_commit):
        notes.append(
            f"{base} does not come before what is judged: what changed there since shows here as a change; "
            f"the point where both part is named by: git merge-base {base} {head or 'HEAD'}"
        )
    results = _judge_all(before, now, allowed, only)
    return RepoReport(
        path=str(path),
        base=base,
        base_commit=base_commit,
        judged=head_commit if head else "work tree",
        clauses=results,
        notes=notes,
        outcome=outcome(results),
    )


def _judge_all(before: Tree, now: Tree, allowed: Sequence[str], only: Collection[str]) -> list[ClauseResult]:
    old, new = Sources(before), Sources(now)
    judges = {
        "I1": lambda: judge_frozen_tests(before, now),
        "I2": lambda: judge_worktree(before, now),
        "I3": lambda: judge_launch(old, new),
        "I4": lambda: judge_modes(old, new),
        "D13": lambda: judge_cards(now),
        "files": lambda: judge_files(old, new, allowed),
        "A1": lambda: judge_scripts(now),
    }
    return [judges[clause]() if not only or clause in only else skipped(clause, "not asked for") for clause in TITLES]
