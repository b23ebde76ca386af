"""Break a copy of the supervisor in one small place, and see its clause turn red and no other.

Each break runs in a process of its own, over the checks that need no watched process (and those that are named for it)
and over the spawn and arbitration scenarios on the memory host.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.checks.base import PACKAGE
from contracts.hosts.witness import real_git

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60

LOOK = """
import json, sys
from contracts import loading
from contracts.checks import CHECKS, run_check
from contracts.judging.judge import judge
from contracts.loading import load_all
from contracts.running.one_run import run_scenario

SLOW = {"i4-type-checker", "a1-hermetic", "i1-touches-nothing", "i1-made-in-silence", "d2-touches-nothing",
        "d3-no-shell", "a3-no-memory-gate"}
LAYERS = [loading.SCENARIOS / layer for layer in ("spawn", "arbitration")]
named = set(sys.argv[1:])
verdicts = [run_check(one) for name, one in CHECKS.items() if name not in SLOW or name in named]
for one in load_all(LAYERS).scenarios:
    if one.level == "must" and "memory" in one.hosts:
        verdicts.append(judge(one, run_scenario(one, "memory")))
for one in load_all(LAYERS).scenarios:
    if one.id in named:
        verdicts.append(judge(one, run_scenario(one, "socket")))
print(json.dumps({
    "red": sorted({f.clause for one in verdicts for f in one.findings if not f.ok}),
    "by": sorted({one.scenario for one in verdicts if any(not f.ok for f in one.findings)}),
    "errored": [f"{one.scenario}: {one.errored}" for one in verdicts if one.errored],
}))
"""

Look = Callable[..., dict[str, Any]]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Replace one text in one module of a copy of the package, and look at the copy."""

    def looked(module: str, old: str, new: str, *named: str) -> dict[str, Any]:
        package = tmp_path / "legion_terminal"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        path = package / module
        text = path.read_text()
        assert old in text, f"{module} has no {old!r} any more; plant the break elsewhere"
        path.write_text(text.replace(old, new, 1))
        done = subprocess.run(
            [sys.executable, "-B", "-c", LOOK, *named],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return looked


INSIDE = "    return bool(env.get(SOCKET_VAR)) and bool(env.get(ID_VAR))"
GIVEN = "            if value is not None:"
OWN = "    own = {name: process_env.get(name) for name in (*BASE, *TERMINAL)}"
OPTIONS = "    for extension in request.extensions:"
HANDLE = '    return head + _part("handle", handle, handle)[: MAX_NAME - len(head)]'
OPEN = "        self._check_open(request.handle)\n"
MARK = """\
        folder = __import__("pathlib").Path(request.cwd, ".git")
        if folder.is_dir():
            (folder / "legion").write_text("x")
"""
CHAIN = """
def shown(mode: SpawnMode) -> str:
    if mode == "terminal":
        return "t"
    return "other"


def mode_label("""

BREAKS: dict[str, tuple[str, str, str, str, tuple[str, ...]]] = {
    "backend-takes-any-role": ("terminal.py", "if request.agent != ROLE:", "if False:", "D1", ()),
    "any-truthy-worktree": ("routing.py", "if worktree is not True:", "if not worktree:", "D1", ()),
    "other-socket-variable": (
        "host.py",
        INSIDE,
        '    return bool(env.get(SOCKET_VAR) or env.get("HC_SOCKET")) and bool(env.get(ID_VAR))',
        "D2",
        (),
    ),
    "dumb-terminal": ("host.py", INSIDE, INSIDE + ' and env.get("TERM") != "dumb"', "D2", ()),
    "subagent": ("host.py", INSIDE, INSIDE + ' and "PI_SUBAGENT_DEPTH" not in env', "D2", ()),
    "stripped-markers": (
        "host.py",
        INSIDE,
        '    return bool(env.get(SOCKET_VAR, "").strip()) and bool(env.get(ID_VAR, "").strip())',
        "D2",
        (),
    ),
    "process-environment": (
        "host.py",
        INSIDE,
        "    env = {**os.environ, **env}\n" + INSIDE,
        "D2",
        (),
    ),
    "looks-at-the-socket": (
        "host.py",
        INSIDE,
        '    os.path.exists(env.get(SOCKET_VAR, "/"))\n' + INSIDE,
        "D2",
        ("d2-touches-nothing", "i1-touches-nothing"),
    ),
    "asks-for-access": (
        "host.py",
        INSIDE,
        '    os.access(env.get(SOCKET_VAR, "/"), os.R_OK)\n' + INSIDE,
        "D2",
        ("d2-touches-nothing",),
    ),
    "any-file": ("host.py", " and os.access(path, os.X_OK)", "", "D3", ()),
    "any-executable": ("host.py", "Path(path).is_file() and ", "", "D3", ()),
    "empty-element-is-here": ("host.py", "split(os.pathsep) if folder]", "split(os.pathsep)]", "D3", ()),
    "empty-element-is-dot": (
        "host.py",
        'folder for folder in env.get("PATH", "").split(os.pathsep) if folder',
        'folder or "." for folder in env.get("PATH", "").split(os.pathsep)',
        "D3",
        (),
    ),
    "bridge-inherits": (
        "bridge.py",
        "self._env = dict(env)",
        'self._env = {**__import__("os").environ, **env}',
        "D3",
        (),
    ),
    "nesting-ignored": ("spawn/argv.py", "if allow_nested else", "if False else", "D4", ()),
    "extensions-once": ("spawn/argv.py", OPTIONS, "    for extension in dict.fromkeys(request.extensions):", "D4", ()),
    "model-lowered": ("spawn/argv.py", '("--model", request.model)', '("--model", request.model.lower())', "D4", ()),
    "nothing-as-word": (
        "spawn/env.py",
        GIVEN,
        "            value = str(value) if block is not own else value\n" + GIVEN,
        "D5",
        (),
    ),
    "nothing-as-empty": (
        "spawn/env.py",
        GIVEN,
        '            value = "" if value is None and block is not own else value\n' + GIVEN,
        "D5",
        (),
    ),
    "nothing-deletes": (
        "spawn/env.py",
        GIVEN,
        "            if value is None:\n                merged.pop(name, None)\n" + GIVEN,
        "D5",
        (),
    ),
    "colour-invented": (
        "spawn/env.py",
        OWN,
        OWN + '\n    own["COLORTERM"] = own["COLORTERM"] or own["TERM"] and "truecolor"',
        "D5",
        (),
    ),
    "empty-dropped": (
        "spawn/env.py",
        GIVEN,
        "            if value is not None and (value or block is not own):",
        "D5",
        (),
    ),
    "home-invented": ("spawn/env.py", OWN, OWN + '\n    own["HOME"] = own["HOME"] or "/root"', "D5", ()),
    "handle-label": (
        "terminal.py",
        "child_labels(await",
        '{"legion.handle": request.handle} | child_labels(await',
        "D6",
        (),
    ),
    "role-of-the-parent": (
        "spawn/labels.py",
        "    return labels",
        "    return {**labels, **{k: v for k, v in (parent_labels or {}).items() if k == ROLE_LABEL}}",
        "D6",
        (),
    ),
    "run-id-lowered": ("spawn/names.py", "run_id, handle)[", "run_id.lower(), handle)[", "D7", ()),
    "handle-cut-at-19": ("spawn/names.py", "[: MAX_NAME - len(head)]", "[:19]", "D7", ()),
    "a-dash-a-byte": (
        "spawn/names.py",
        'return _OUTSIDE.sub("-", text)',
        'return _OUTSIDE.sub("-", text.encode().decode("latin-1"))',
        "D7",
        (),
    ),
    "open-front-matter-is-text": (
        "cards.py",
        '    raise _refused(source, "the front matter has no closing --- line")',
        '    return "", text',
        "D13",
        (),
    ),
    "started-at-import": (
        "inprocess.py",
        "import asyncio\n",
        'import asyncio\nimport subprocess\n\nsubprocess.run(["/bin/true"])\n',
        "I1",
        ("i1-made-in-silence",),
    ),
    "started-when-made": (
        "terminal.py",
        "        self._closed = False\n",
        '        self._closed = False\n        __import__("subprocess").run(["/bin/true"])\n',
        "I1",
        ("i1-made-in-silence",),
    ),
    "mark-in-git": (
        "terminal.py",
        OPEN,
        OPEN + MARK,
        "I2",
        (),
    ),
    "a-chain-with-a-default": ("routing.py", "def mode_label(", CHAIN.lstrip(), "I4", ()),
    "guard-takes-in-process": ("routing.py", "if not may_hold_worktree(mode):", "if False:", "I6", ()),
    "frozen-words": ("routing.py", "an in-process agent cannot", "an inprocess agent cannot", "I6", ()),
    "hc-of-the-process": (
        "host.py",
        "    named = env.get(EXECUTABLE_VAR)",
        "    named = os.environ.get(EXECUTABLE_VAR) or env.get(EXECUTABLE_VAR)",
        "A1",
        ("hermetic",),
    ),
    "subagent-of-the-process": (
        "terminal.py",
        "env = overlay(self._env, self._memory_env, request.env)",
        (
            "around = __import__('os').environ\n"
            "        env = overlay(self._env, self._memory_env, request.env)\n"
            "        env |= {name: around[name] for name in around if name.startswith('PI_SUBAGENT_')}"
        ),
        "A1",
        (),
    ),
    "parent-of-the-process": (
        "terminal.py",
        "self._env.get(ID_VAR) or None",
        "__import__('os').environ.get(ID_VAR) or self._env.get(ID_VAR) or None",
        "A1",
        (),
    ),
    "no-rpc-for-another-role": (
        "routing.py",
        '    return "rpc"\n\n\ndef mode_label',
        (
            "    known = agent == WORKTREE_ROLE or terminal_host_available(env)\n"
            '    return "rpc" if known else "inprocess"\n\n\ndef mode_label'
        ),
        "I1",
        (),
    ),
}
"""Module, text, what takes its place, the clause that has to turn red, and what else to look at."""


@pytest.mark.skipif(real_git() is None, reason="two checks need a git on this machine")
@pytest.mark.parametrize("name", BREAKS)
def test_a_small_break_turns_exactly_its_clause_red(name: str, look: Look) -> None:
    module, old, new, clause, named = BREAKS[name]

    found = look(module, old, new, *named)

    assert (found["red"], found["errored"]) == ([clause], [])


def test_without_a_break_nothing_is_red(look: Look) -> None:
    found = look("host.py", INSIDE, INSIDE, "hermetic")

    assert (found["red"], found["errored"]) == ([], [])
