"""A checkout that nobody vouches for runs no code, leads out of itself nowhere, and costs a bounded time."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.repo import git as plumbing
from contracts.repo import trees
from contracts.repo.findings import GitBrokeError, RepoError, RepoReport
from contracts.repo.gate import judge_repo
from contracts.repo.parsing import parse

Git = Callable[..., str]
GIT = shutil.which("git") or "git"


def red(report: RepoReport) -> list[str]:
    return [one.id for one in report.clauses if one.verdict != "pass"]


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """A program that leaves a mark when anybody starts it, and the mark."""
    mark = tmp_path / "mark"
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    program.chmod(0o755)
    return program, mark


SETTINGS = [
    "core.fsmonitor",
    "core.hooksPath",
    "core.sshCommand",
    "core.pager",
    "core.askPass",
    "core.alternateRefsCommand",
    "diff.external",
    "diff.trap.textconv",
    "diff.trap.command",
    "filter.trap.clean",
    "filter.trap.smudge",
    "filter.trap.process",
    "merge.trap.driver",
    "gpg.program",
    "credential.helper",
    "alias.ls-files",
    "uploadpack.packObjectsHook",
]


def test_no_setting_of_the_repository_starts_a_program(checkout: Path, git: Git, trap: tuple[Path, Path]) -> None:
    program, mark = trap
    git(checkout, "rm", "-rq", "--cached", "docs")  # something is staged, too
    for name in SETTINGS:
        git(checkout, "config", name, str(program))
    git(checkout, "config", "core.untrackedCache", "true")
    (checkout / ".git/info").mkdir(exist_ok=True)
    (checkout / ".git/info/attributes").write_text("* filter=trap diff=trap merge=trap\n")
    (checkout / ".git/hooks").mkdir(exist_ok=True)
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        (checkout / ".git/hooks" / name).symlink_to(program)
    (checkout / "src/shared/types.ts").touch()

    assert red(judge_repo(checkout, "base")) == []
    assert not mark.exists()
    subprocess.run([GIT, "status"], cwd=checkout, check=False, timeout=60, capture_output=True)
    assert mark.exists(), "the trap works: git by itself runs into it"


def test_missing_objects_are_not_fetched(checkout: Path, git: Git, trap: tuple[Path, Path], tmp_path: Path) -> None:
    program, mark = trap
    blob = git(checkout, "rev-parse", "base:src/runs/worktree.ts")
    (pack,) = (checkout / ".git/objects/pack").glob("*.pack")
    loose = tmp_path / "pack"
    pack.rename(loose)
    pack.with_suffix(".idx").unlink()
    with loose.open("rb") as stream:
        unpack = [GIT, "unpack-objects", "-q"]
        subprocess.run(unpack, cwd=checkout, stdin=stream, check=True, timeout=60, capture_output=True)
    (checkout / ".git/objects" / blob[:2] / blob[2:]).unlink()
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": f"ext::{program}",
        "remote.origin.uploadpack": str(program),
        "remote.origin.promisor": "true",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
    }
    for name, value in settings.items():
        git(checkout, "config", name, value)

    with pytest.raises(GitBrokeError, match=r"lacks object|could not"):
        judge_repo(checkout, "base")
    assert not mark.exists()
    subprocess.run([GIT, "cat-file", "-p", blob], cwd=checkout, check=False, timeout=60, capture_output=True)
    assert mark.exists(), "the trap works: git by itself runs into it"


def test_the_callers_environment_does_not_reach_git(
    checkout: Path, trap: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program, mark = trap
    config = tmp_path / "config"
    config.write_text(f"[core]\n\tfsmonitor = {program}\n\texcludesFile = /dev/null\n")
    for name, value in {
        "GIT_DIR": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_EXTERNAL_DIFF": str(program),
        "GIT_TRACE": str(tmp_path / "trace"),
    }.items():
        monkeypatch.setenv(name, value)

    assert red(judge_repo(checkout, "base")) == []
    assert not mark.exists()
    assert not (tmp_path / "trace").exists()


def test_a_work_tree_that_the_configuration_moves_is_not_followed(checkout: Path, git: Git, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    git(checkout, "config", "core.worktree", str(tmp_path / "elsewhere"))

    assert red(judge_repo(checkout, "base")) == []


def test_replaced_objects_are_not_taken_for_the_base(checkout: Path, git: Git) -> None:
    path = checkout / "src/runs/worktree.ts"
    path.write_text(path.read_text() + "\n")
    old = git(checkout, "rev-parse", "base:src/runs/worktree.ts")
    git(checkout, "replace", old, git(checkout, "hash-object", "-w", str(path)))
    tree = git(checkout, "rev-parse", "base")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "other")
    git(checkout, "replace", tree, "HEAD")

    assert red(judge_repo(checkout, "base")) == ["I2"]


def test_no_link_leads_out_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (checkout / "src/shared").rename(outside)
    (checkout / "src/shared").symlink_to(outside)

    report = judge_repo(checkout, "base")

    assert "files" in red(report)
    gone = [one.path for one in report.clauses[5].findings]
    assert "src/shared/types.ts" in gone


@pytest.mark.parametrize("path", ["test/unit/teams.test.ts", "src/runs/worktree.ts"])
def test_a_pipe_in_the_place_of_a_file_is_not_read(checkout: Path, path: str) -> None:
    (checkout / path).unlink()
    os.mkfifo(checkout / path)

    assert set(red(judge_repo(checkout, "base"))) & {"I1", "I2"}


def test_a_git_that_does_not_end_is_ended(checkout: Path, monkeypatch: pytest.MonkeyPatch, git: Git) -> None:
    monkeypatch.setattr(plumbing, "GIT_LIMIT_S", 0.3)
    os.mkfifo(checkout / "pipe")
    git(checkout, "config", "include.path", str(checkout / "pipe"))

    with pytest.raises(GitBrokeError, match=r"did not finish within 0\.3 s"):
        judge_repo(checkout, "base")


def test_a_git_that_says_too_much_is_ended(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plumbing, "MAX_OUTPUT_BYTES", 100)

    with pytest.raises(GitBrokeError, match="said more than"):
        judge_repo(checkout, "base")


def test_a_checkout_of_too_many_files_is_refused(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MAX_FILES", 10)

    with pytest.raises(RepoError, match="and 10 is the most"):
        judge_repo(checkout, "base")


def test_a_huge_file_is_compared_without_being_read_whole(checkout: Path) -> None:
    with (checkout / "src/huge.ts").open("wb") as stream:
        stream.truncate(2**33)

    report = judge_repo(checkout, "base", allowed=["src/huge.ts"])

    assert red(report) == ["I4"]  # a source that is too long to be looked into might map over the modes
    assert "bytes" in report.clauses[3].findings[0].say


@pytest.mark.parametrize(
    "text",
    ["(" * 50_000, "a<" * 20_000, "`${" * 20_000, "[" * 20_000 + "]" * 20_000, "if(a)" * 10_000, "a." * 20_000 + "b"],
    ids=["parentheses", "comparisons", "templates", "lists", "ifs", "members"],
)
def test_sources_of_any_depth_are_judged(checkout: Path, text: str) -> None:
    path = checkout / "src/hc/client.ts"
    path.write_text(f'{path.read_text()}\nconst M = "inprocess";\n{text}\n')

    judge_repo(checkout, "base")


def test_constants_in_a_circle_end(checkout: Path) -> None:
    path = checkout / "src/hc/client.ts"
    path.write_text(
        path.read_text() + "const a = b + b;\nconst b = a + a;\nconst c = [...c];\nspawn(a, c);\nspawn(...c);\n"
    )
    (checkout / "src/hc/one.ts").write_text('export * from "./two.js";\nexport { x as y } from "./two.js";\n')
    (checkout / "src/hc/two.ts").write_text('export * from "./one.js";\nexport { y as x } from "./one.js";\n')
    path.write_text(path.read_text() + 'import { x, z } from "./one.js";\nx(); z();\n')

    assert red(judge_repo(checkout, "base", allowed=["src/hc/*"])) == []


def test_a_text_that_is_no_program_still_has_a_tree() -> None:
    assert parse("x.ts", "\0\ud800 }{").broken_line == 1
