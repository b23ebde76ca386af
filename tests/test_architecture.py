"""The arrows between the packages, the size of the rooms, and what may stand at the top level."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("hc_sim", "legion_terminal", "contracts")
FORBIDDEN = {"hc_sim": {"legion_terminal", "contracts"}, "legion_terminal": {"hc_sim", "contracts"}, "contracts": set()}
TOP_LEVEL = {
    "pyproject.toml",
    "README.md",
    "conftest.py",
    "LICENSE",
    "CHANGELOG.md",
    "requirements-lock.txt",
    "tests",
    *PACKAGES,
}
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LONGEST_ROOM = 400


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_along_the_arrows(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]

    assert not imported(path) & FORBIDDEN[package]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_says_what_it_is_for_and_fits_in_one_room(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert ast.get_docstring(ast.parse(text)), "a module opens with one sentence: what it is for"
    assert len(text.splitlines()) <= LONGEST_ROOM


def test_nothing_else_grows_at_the_top_level() -> None:
    git = shutil.which("git")
    listed = (
        subprocess.run([git, "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30).stdout
        if git
        else ""
    )
    if not listed:
        pytest.skip("not a git checkout")
    tops = {name.split("/")[0] for name in listed.splitlines()}

    assert {name for name in tops if not name.startswith(".")} <= TOP_LEVEL


def test_the_hc_executable_needs_only_the_standard_library() -> None:
    needed = imported(ROOT / "hc_sim" / "programs" / "hc.py")

    assert needed <= sys.stdlib_module_names
