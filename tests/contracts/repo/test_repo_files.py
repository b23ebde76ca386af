"""I1, I2 and the list of files: what may not be touched since the base, and what may."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.repo.findings import Finding, RepoReport
from contracts.repo.gate import judge_repo
from contracts.repo.terms import FROZEN_TESTS, WORKTREE

Git = Callable[..., str]


def red(report: RepoReport) -> list[str]:
    return [one.id for one in report.clauses if one.verdict != "pass"]


def findings(report: RepoReport, clause: str) -> list[Finding]:
    return next(one for one in report.clauses if one.id == clause).findings


def test_the_contract_as_it_was_landed_holds(checkout: Path) -> None:
    report = judge_repo(checkout, "base")

    assert red(report) == []
    assert report.outcome == "holds"


def test_a_base_judged_against_itself_lacks_the_mode_and_the_clearing(base_only: Path) -> None:
    assert red(judge_repo(base_only, "base")) == ["I4", "A1"]


@pytest.mark.parametrize("path", [*FROZEN_TESTS, WORKTREE])
def test_a_change_of_a_frozen_file_fails_at_the_first_line_that_differs(checkout: Path, path: str) -> None:
    clause = "I2" if path == WORKTREE else "I1"
    lines = (checkout / path).read_text().splitlines()
    lines[3] += " // better"
    (checkout / path).write_text("\n".join(lines) + "\n")

    report = judge_repo(checkout, "base")

    assert red(report) == [clause]
    assert [(one.path, one.line) for one in findings(report, clause)] == [(path, 4)]


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


def carriage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def link(path: Path) -> None:
    copy = path.with_name("elsewhere")
    copy.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(copy.name)
    copy.unlink()


def empty(path: Path) -> None:
    path.write_text("")


def executable(path: Path) -> None:
    path.chmod(0o755)


@pytest.mark.parametrize("change", [append, carriage, link, empty, executable, Path.unlink])
@pytest.mark.parametrize("path", [FROZEN_TESTS[0], WORKTREE])
def test_every_kind_of_change_of_a_frozen_file_is_seen(
    checkout: Path, path: str, change: Callable[[Path], None]
) -> None:
    change(checkout / path)

    report = judge_repo(checkout, "base", only=["I1", "I2"])

    assert [one.id for one in report.clauses if one.verdict == "fail"] == ["I2" if path == WORKTREE else "I1"]


def test_a_frozen_test_that_was_renamed_is_told_by_its_new_name(checkout: Path) -> None:
    (checkout / FROZEN_TESTS[3]).rename(checkout / "test/unit/team.test.ts")

    report = judge_repo(checkout, "base")

    assert red(report) == ["I1", "files"]
    (finding,) = findings(report, "I1")
    assert finding.in_base
    assert "test/unit/team.test.ts has its content" in finding.say


@pytest.mark.parametrize(("path", "clause"), [(FROZEN_TESTS[1], "I1"), (WORKTREE, "I2")])
def test_a_base_without_a_frozen_file_proves_nothing(checkout: Path, git: Git, path: str, clause: str) -> None:
    git(checkout, "rm", "-q", "--cached", path)
    git(checkout, "commit", "-q", "-m", "a base that lacks it")

    report = judge_repo(checkout, "HEAD")

    result = next(one for one in report.clauses if one.id == clause)
    assert result.verdict == "unproven"
    assert report.outcome == "fails"


def test_what_is_committed_is_judged_like_what_is_not(checkout: Path, git: Git) -> None:
    append(checkout / WORKTREE)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "landed")

    assert red(judge_repo(checkout, "base")) == ["I2"]
    assert red(judge_repo(checkout, "base", head="HEAD")) == ["I2"]
    assert red(judge_repo(checkout, "HEAD", head="HEAD")) == []


def test_a_head_is_judged_without_the_work_tree(checkout: Path, git: Git) -> None:
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "landed")
    append(checkout / WORKTREE)
    (checkout / "stray.txt").write_text("x")

    assert red(judge_repo(checkout, "base", head="HEAD")) == []
    assert red(judge_repo(checkout, "base")) == ["I2", "files"]


TOUCHED = {
    "an untracked file": ("notes.txt", "x\n"),
    "a file with an odd name": ("ünd\n weiter\t.txt", "x\n"),
    "a document": ("README.md", "# Another\n"),
    "a source that is not named": ("src/settings/settings.ts", "export const DEFAULTS = { maxChildren: 9 };\n"),
    "a further test": ("test/unit/more.test.ts", "export {};\n"),
    "a configuration": ("tsconfig.json", "{}\n"),
}


@pytest.mark.parametrize(("path", "text"), TOUCHED.values(), ids=TOUCHED.keys())
def test_a_file_that_the_contract_does_not_name_fails(checkout: Path, path: str, text: str) -> None:
    (checkout / path).write_text(text)

    report = judge_repo(checkout, "base")

    assert red(report) == ["files"]
    assert [one.path for one in findings(report, "files")] == [path]
    assert red(judge_repo(checkout, "base", allowed=[path])) == []


def test_a_deleted_file_is_placed_in_the_base(checkout: Path) -> None:
    (checkout / "src/git/status-line.ts").unlink()

    report = judge_repo(checkout, "base")

    assert red(report) == ["files"]
    (finding,) = findings(report, "files")
    assert finding.in_base
    assert "deleted" in finding.say


def test_a_renamed_file_is_told_by_both_names(checkout: Path) -> None:
    (checkout / "src/settings/settings.ts").rename(checkout / "src/settings/other.ts")

    found = findings(judge_repo(checkout, "base"), "files")

    assert [one.path for one in found] == ["src/settings/other.ts", "src/settings/settings.ts"]
    assert "renamed to src/settings/other.ts" in found[1].say


def test_a_file_that_may_be_modified_may_not_be_deleted(checkout: Path) -> None:
    (checkout / "index.ts").unlink()

    assert "files" in red(judge_repo(checkout, "base"))


def test_a_file_that_may_be_created_may_not_be_a_link(checkout: Path) -> None:
    path = checkout / "test/unit/terminal-supervisor.test.ts"
    path.unlink()
    path.symlink_to("teams.test.ts")

    assert red(judge_repo(checkout, "base")) == ["files"]


def test_a_frozen_file_cannot_be_allowed(checkout: Path) -> None:
    append(checkout / WORKTREE)

    assert red(judge_repo(checkout, "base", allowed=["*"])) == ["I2"]


def test_what_gitignore_names_is_no_change(checkout: Path) -> None:
    (checkout / "node_modules/x").mkdir(parents=True)
    (checkout / "node_modules/x/index.ts").write_text("export {};\n")

    assert red(judge_repo(checkout, "base")) == []


def test_a_repository_inside_the_checkout_is_a_change(checkout: Path, git: Git) -> None:
    (checkout / "inner").mkdir()
    git(checkout / "inner", "init", "-q")

    assert red(judge_repo(checkout, "base")) == ["files"]


LABEL = "src/ui/mode-label.ts"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('  terminal: "terminal",\n', '  terminal: "terminal", // D6\n'),
        ('  terminal: "terminal",\n', '  "terminal": "in a terminal",\n'),
        ("  inprocess:", "  /* the default */ inprocess:"),
    ],
)
def test_a_map_that_gets_the_new_mode_is_allowed(checkout: Path, old: str, new: str) -> None:
    path = checkout / LABEL
    path.write_text(path.read_text().replace(old, new))

    assert red(judge_repo(checkout, "base")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('rpc: "headless"', 'rpc: "headless child"'),
        ("return LABELS[mode];", "return LABELS[mode] ?? mode;"),
        ("export function modeLabel", "export const MORE = 1;\nexport function modeLabel"),
        ('  inprocess: "in process",\n', ""),
    ],
    ids=["another text", "another line", "something more", "a mode less"],
)
def test_a_map_that_changes_in_more_than_the_new_mode_is_not(checkout: Path, old: str, new: str) -> None:
    path = checkout / LABEL
    path.write_text(path.read_text().replace(old, new))

    assert "files" in red(judge_repo(checkout, "base"))


def package(checkout: Path, change: Callable[[dict[str, dict[str, str]]], object]) -> None:
    path = checkout / "package.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content, indent=2) + "\n")


PACKAGES: dict[str, Callable[[dict[str, dict[str, str]]], object]] = {
    "a dependency": lambda it: it["devDependencies"].update(execa="^9.0.0"),
    "another script": lambda it: it["scripts"].update(build="tsc"),
    "a new script": lambda it: it["scripts"].update(postinstall="node x.mjs"),
    "a test script that tests nothing": lambda it: it["scripts"].update(
        {"test:unit": "env -u HC_TERMINAL_SOCKET -u HC_TERMINAL_ID true"}
    ),
    "a test script that tests less": lambda it: it["scripts"].update(
        {"test:unit": it["scripts"]["test:unit"] + " --exclude test/unit/teams.test.ts"}
    ),
    "a test script less": lambda it: it["scripts"].pop("test:integration"),
}


@pytest.mark.parametrize("change", PACKAGES.values(), ids=PACKAGES.keys())
def test_package_json_may_change_only_in_the_clearing(
    checkout: Path, change: Callable[[dict[str, dict[str, str]]], object]
) -> None:
    package(checkout, change)

    report = judge_repo(checkout, "base", only=["files"])

    assert [(one.path, one.weight) for one in findings(report, "files")] == [("package.json", "fail")]
    assert findings(report, "files")[0].line > 1


def test_package_json_may_be_written_anew_with_the_same_content(checkout: Path) -> None:
    path = checkout / "package.json"
    path.write_text(json.dumps(json.loads(path.read_text())))

    assert red(judge_repo(checkout, "base")) == []


def test_a_base_that_went_on_is_told(checkout: Path, git: Git) -> None:
    git(checkout, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    git(checkout, "tag", "elsewhere")
    git(checkout, "reset", "-q", "--soft", "base")

    report = judge_repo(checkout, "elsewhere")

    assert "git merge-base elsewhere HEAD" in report.notes[0]


def test_a_sparse_checkout_is_no_deletion(checkout: Path, git: Git) -> None:
    git(checkout, "update-index", "--skip-worktree", "README.md", "src/settings/settings.ts", WORKTREE)
    for path in ("README.md", "src/settings/settings.ts", WORKTREE):
        (checkout / path).unlink()

    assert red(judge_repo(checkout, "base")) == []


def test_an_index_that_looks_away_hides_nothing(checkout: Path, git: Git) -> None:
    git(checkout, "update-index", "--assume-unchanged", WORKTREE)
    git(checkout, "update-index", "--skip-worktree", FROZEN_TESTS[0])
    append(checkout / WORKTREE)
    append(checkout / FROZEN_TESTS[0])

    assert red(judge_repo(checkout, "base")) == ["I1", "I2"]


def test_a_linked_worktree_is_judged(checkout: Path, git: Git, tmp_path: Path) -> None:
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "landed")
    git(checkout, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"), "HEAD")

    assert red(judge_repo(tmp_path / "linked", "base")) == []
