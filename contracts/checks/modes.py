"""I4: everything that maps over the modes handles all of them, as written and as the type checker sees it."""

import ast
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from contracts.checks.base import Check, SkippedError, Subject, check, found
from contracts.hosts.witness import SYSTEM_PATH
from contracts.records import Finding
from legion_terminal import routing, types

MODES = ("inprocess", "rpc", "terminal")
TYPECHECK_LIMIT_S = 100

_HEAD = """
from typing import assert_never
from legion_terminal.types import SpawnMode

def shown(mode: SpawnMode) -> str:
    match mode:
"""
_COMPLETE = (
    _HEAD + "".join(f'        case "{mode}":\n            return "x"\n' for mode in MODES) + "    assert_never(mode)\n"
)
_INCOMPLETE = _COMPLETE.replace('        case "terminal":\n            return "x"\n', "")


@check("i4-every-map", "I4", "every map and every match over the modes knows all three")
def every_map(subject: Subject) -> list[Finding]:
    """The list of modes; each match and table in the source; each mode shown by its label."""
    findings = [found("I4", "SPAWN_MODES", expected=MODES, got=tuple(types.SPAWN_MODES))]
    for where, modes in _maps(subject):
        findings.append(found("I4", where, expected=list(MODES), got=sorted(modes)))
    labels = {mode: routing.mode_label(mode) for mode in types.SPAWN_MODES}
    distinct = len(set(labels.values())) == len(labels) and all(labels.values())
    findings.append(Finding(clause="I4", ok=distinct, where="labels", expected="a label for each", got=labels))
    findings.append(found("I4", "maps found", expected=True, got=len(findings) > 2))
    return findings


@check("i4-type-checker", "I4", "the type checker passes a complete map and refuses one that misses a mode")
def type_checker(subject: Subject) -> list[Finding]:
    """Two small files, one of them with a mode missing. Skipped where mypy is not installed (extra `gate`)."""
    if importlib.util.find_spec("mypy") is None:
        raise SkippedError("mypy is not installed; pip install 'legion-contracts[gate]' adds this evidence")
    complete, incomplete = _typecheck(subject, {"complete.py": _COMPLETE, "incomplete.py": _INCOMPLETE})
    refused = "assert_never" in incomplete and "terminal" in incomplete
    return [
        found("I4", "a complete match", expected="", got=complete),
        Finding(
            clause="I4", ok=refused, where="a match without terminal", expected="an error that names it", got=incomplete
        ),
    ]


CHECKS: tuple[Check, ...] = (every_map, type_checker)


def _maps(subject: Subject) -> Iterator[tuple[str, set[str]]]:
    """Where the source maps over modes, and which modes each place names: a match, a table, or the comparisons of one
    function, which nothing but a full list of the modes keeps from a default for a mode that is yet to come.
    """
    for path in sorted(subject.package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named: set[str] = set()
            if isinstance(node, ast.Match):
                patterns = [inner for case in node.cases for inner in ast.walk(case.pattern)]
                named = {
                    text for inner in patterns if isinstance(inner, ast.MatchValue) for text in _texts(inner.value)
                }
            elif isinstance(node, ast.Dict):
                named = {text for key in node.keys if key is not None for text in _texts(key)}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                named = {
                    text for inner in ast.walk(node) if isinstance(inner, ast.Compare) for text in _compared(inner)
                }
            if named <= set(MODES) and len(named) > isinstance(node, ast.Dict):
                yield f"{path.name}:{getattr(node, 'lineno', 0)}", named


def _compared(node: ast.Compare) -> set[str]:
    """The modes that a comparison names: one side of an equality, or a choice of nothing but modes."""
    named: set[str] = set()
    for operator, side in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.Eq | ast.NotEq):
            named |= {text for one in (node.left, side) for text in _texts(one) if text in MODES}
        elif isinstance(side, ast.Tuple | ast.Set | ast.List):
            choice = {text for one in side.elts for text in _texts(one)}
            named |= choice if choice <= set(MODES) else set()
    return named


def _texts(node: ast.expr) -> list[str]:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def _where(subject: Subject) -> dict[str, str]:
    """How mypy finds the package: by itself where it is installed (it refuses to be told), else by its folder."""
    installed = subject.root.name in ("site-packages", "dist-packages")
    return {} if installed else {"MYPYPATH": str(subject.root)}


def _typecheck(subject: Subject, files: dict[str, str]) -> list[str]:
    """The errors that mypy has for each file, one text a file."""
    with tempfile.TemporaryDirectory(prefix="hc-") as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent",
             "--config-file=", "--cache-dir=/dev/null", *files],
            cwd=folder,
            env={"HOME": folder, "PATH": SYSTEM_PATH, **_where(subject)},
            check=False,
            capture_output=True,
            text=True,
            timeout=TYPECHECK_LIMIT_S,
        )  # fmt: skip
    if done.returncode not in (0, 1) or done.stderr.strip():
        raise RuntimeError(f"mypy broke: {done.stderr.strip() or done.stdout.strip()}")
    lines = done.stdout.splitlines()
    return ["\n".join(line for line in lines if line.startswith(name) and ": error:" in line) for name in files]
