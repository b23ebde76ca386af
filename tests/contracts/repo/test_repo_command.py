"""The command: its reports, its exit codes, and one clear sentence for each mistake."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from contracts.cli import main
from contracts.repo.report import shown

Git = Callable[..., str]


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["repo", *(str(word) for word in words)])


@pytest.fixture
def broken(checkout: Path) -> Path:
    """A checkout in which I2 fails and README.md was changed."""
    for name in ("src/runs/worktree.ts", "README.md"):
        (checkout / name).write_text((checkout / name).read_text() + "\nmore\n")
    return checkout


def test_a_checkout_that_holds_ends_with_0(checkout: Path) -> None:
    done = run(checkout, "--base", "base")

    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].startswith("holds: 7 pass; work tree against base (")


def test_a_checkout_that_fails_ends_with_1_and_names_places_and_remedies(broken: Path) -> None:
    done = run(broken, "--base", "base")

    assert done.exit_code == 1
    assert "I2 fail  src/runs/worktree.ts:24" in done.stdout
    assert "do: put it back as it was: git checkout BASE -- README.md" in done.stdout


def test_what_is_unproven_does_not_hold(checkout: Path) -> None:
    (checkout / "package.json").unlink()

    assert run(checkout, "--base", "base", "--clause", "A1").exit_code == 1


def test_json_begins_with_the_schema_and_holds_every_clause(broken: Path) -> None:
    done = run(broken, "--base", "base", "--format", "json")

    report = json.loads(done.stdout)
    assert re.sub(r"\s", "", done.stdout).startswith('{"schema":1,"kind":"repo"')
    assert [one["id"] for one in report["clauses"]] == ["I1", "I2", "I3", "I4", "D13", "files", "A1"]
    assert {one["verdict"] for one in report["clauses"]} == {"pass", "fail"}
    assert report["outcome"] == "fails"
    assert report["judged"] == "work tree"
    finding = report["clauses"][1]["findings"][0]
    assert (finding["path"], finding["line"], finding["weight"]) == ("src/runs/worktree.ts", 24, "fail")


def test_github_annotations_name_file_and_line(broken: Path) -> None:
    done = run(broken, "--base", "base", "--format", "github")

    lines = done.stdout.splitlines()
    assert any(line.startswith("::error file=src/runs/worktree.ts,line=24,title=I2 fail::") for line in lines)
    assert any(line.startswith("::notice file=src/hc/client.ts,line=19,") for line in lines)
    assert lines[-1].startswith("::notice title=legion-contracts repo::fails: 5 pass, 2 fail")


def test_no_more_annotations_than_github_shows(checkout: Path) -> None:
    for number in range(70):
        (checkout / f"{number}.txt").write_text("x")

    done = run(checkout, "--base", "base", "--format", "github")

    assert len(done.stdout.splitlines()) == 52
    assert "21 more annotations" in done.stdout


def test_the_report_goes_to_a_file(broken: Path, tmp_path: Path) -> None:
    done = run(broken, "--base", "base", "--format", "json", "--out", tmp_path / "r.json")

    assert done.exit_code == 1
    assert done.stdout.startswith("fails: 5 pass, 2 fail")
    assert json.loads((tmp_path / "r.json").read_text())["outcome"] == "fails"


def test_clauses_that_nobody_asked_for_are_skipped(broken: Path) -> None:
    done = run(broken, "--base", "base", "--clause", "I1", "--clause", "A1")

    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].startswith("holds: 2 pass, 5 skipped")


def test_files_can_be_allowed(broken: Path) -> None:
    assert run(broken, "--base", "base", "--clause", "files", "--allow", "*.md").exit_code == 0


def test_names_of_files_do_not_write_on_the_terminal(checkout: Path) -> None:
    (checkout / "a\x1b[2J\nb\udcff").write_text("x")

    for form in ("table", "json", "github"):
        done = run(checkout, "--base", "base", "--format", form)
        assert done.exit_code == 1
        assert "\x1b" not in done.stdout
    assert shown("a\x1b[2J\nb") == "a\\x1b[2J\\nb"


def refused(done: Result, *words: str) -> None:
    assert done.exit_code == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_a_path_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    refused(run(tmp_path, "--base", "main"), "is no git repository")
    refused(run(tmp_path / "gone", "--base", "main"), "no such folder")
    (tmp_path / "file").write_text("")
    refused(run(tmp_path / "file", "--base", "main"), "is a file")
    (tmp_path / ".git").mkdir()
    refused(run(tmp_path, "--base", "main"), "no git repository that git can open")


def test_a_folder_inside_a_repository_is_refused(checkout: Path) -> None:
    refused(run(checkout / "src", "--base", "base"), "inside the repository", str(checkout))


def test_a_bare_repository_is_refused(checkout: Path, git: Git, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(checkout), str(tmp_path / "bare"))

    refused(run(tmp_path / "bare", "--base", "base"), "bare repository")


@pytest.mark.parametrize("rev", ["gone", "0" * 40, "--all", "", "a\nb", "base:README.md", "base^{tree}"])
def test_a_base_that_is_no_commit_is_refused(checkout: Path, rev: str) -> None:
    refused(run(checkout, f"--base={rev}"), "--base", "commit")


def test_a_head_that_is_no_commit_is_refused(checkout: Path) -> None:
    refused(run(checkout, "--base", "base", "--head", "gone"), "--head", "gone")


def test_a_shallow_clone_without_the_base_says_how_to_fetch_it(checkout: Path, git: Git, tmp_path: Path) -> None:
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "landed")
    base = git(checkout, "rev-parse", "base")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{checkout}", str(tmp_path / "shallow"))

    refused(run(tmp_path / "shallow", "--base", base), "shallow", "git fetch --unshallow")


def test_a_repository_without_commits_is_refused(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q")

    refused(run(tmp_path, "--base", "HEAD"), "no commit")


def test_a_file_that_cannot_be_written_is_refused(checkout: Path, tmp_path: Path) -> None:
    refused(run(checkout, "--base", "base", "--out", tmp_path / "no" / "r.json"), "--out", "no folder")


def test_without_the_parser_one_sentence_says_how_to_install_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    refused(run(checkout, "--base", "base"), "pip install 'legion-contracts[repo]'")


def test_without_git_one_sentence_says_so(checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    refused(run(checkout, "--base", "base"), "git is not on PATH")
