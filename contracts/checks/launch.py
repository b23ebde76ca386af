"""What one start sends to the core, to the letter: options, environment, labels and name, from tables of requests."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from contracts.checks.base import Check, Subject, check, found
from contracts.records import Finding
from legion_terminal.client import HcClient
from legion_terminal.errors import SupervisorError
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import SpawnRequest

INSIDE: Mapping[str, str] = {"HC_TERMINAL_SOCKET": "/nowhere/s", "HC_TERMINAL_ID": "t1", "PATH": "/p", "HOME": "/h"}
"""The environment of a supervisor inside hc, and no more than that."""
HELLO = {"core_id": "c", "generation": 1, "version": "0.1.20", "pid": 1}

Env = Mapping[str, str | None]
OVERLAYS: Mapping[str, tuple[Env, Env, Env, dict[str, str]]] = {
    "nothing but the markers": ({"PATH": None, "HOME": None}, {}, {}, {}),
    "no HOME": ({"HOME": None}, {}, {}, {"PATH": "/p"}),
    "no PATH": ({"PATH": None}, {}, {}, {"HOME": "/h"}),
    "TERM alone": ({"TERM": "xterm"}, {}, {}, {"PATH": "/p", "HOME": "/h", "TERM": "xterm"}),
    "an empty TERM": ({"TERM": ""}, {}, {}, {"PATH": "/p", "HOME": "/h", "TERM": ""}),
    "COLORTERM alone": ({"COLORTERM": "x"}, {}, {}, {"PATH": "/p", "HOME": "/h", "COLORTERM": "x"}),
    "other variables of the parent": ({"LANG": "C", "USER": "me"}, {}, {}, {"PATH": "/p", "HOME": "/h"}),
    "a request without a value": ({}, {}, {"LEGION_X": None}, {"PATH": "/p", "HOME": "/h"}),
    "a memory variable without a value": ({}, {"NODE_OPTIONS": None}, {}, {"PATH": "/p", "HOME": "/h"}),
    "no value after a value": (
        {"TERM": "xterm"},
        {"NODE_OPTIONS": "m", "TERM": None},
        {"NODE_OPTIONS": None, "PATH": None},
        {"PATH": "/p", "HOME": "/h", "TERM": "xterm", "NODE_OPTIONS": "m"},
    ),
    "an empty value": (
        {},
        {"NODE_OPTIONS": "m"},
        {"NODE_OPTIONS": ""},
        {"PATH": "/p", "HOME": "/h", "NODE_OPTIONS": ""},
    ),
}
"""Changes to the supervisor's environment (None takes a variable out), memory variables, the request's own; and what
travels."""

NAMES: Mapping[tuple[str, str], str] = {
    ("run00001-and-more", "api"): "lgl-run00001-api",
    ("AbCdEfGhI", "x"): "lgl--b-d-f-h-x",
    ("Run.ID/9", "x"): "lgl--un----9-x",
    ("r7", "abcdefghijklmnopqrstuvwxyz0123456789"): "lgl-r7-abcdefghijklmnopqrstuvwxy",
    ("run00001", "abcdefghijklmnopqrstuvwxyz"): "lgl-run00001-abcdefghijklmnopqrs",
    ("run00001", "UPPER_case-9"): "lgl-run00001------_case-9",
    ("run00001", "\u00fcber \u00c4rger"): "lgl-run00001--ber--rger",
    ("run00001", "a..b"): "lgl-run00001-a--b",
}
"""Run id and handle, and the name that they have to make."""

LABELS: Mapping[str, tuple[dict[str, str], dict[str, str]]] = {
    "space": ({"herdr.space": "s1"}, {"herdr.space": "s1", "legion.role": "centurion"}),
    "much else": (
        {"herdr.space": "s1", "herdr.tab": "t", "legion.run": "r", "legion.handle": "h", "other": "x"},
        {"herdr.space": "s1", "legion.role": "centurion"},
    ),
    "a role of its own": (
        {"herdr.space": "s1", "legion.role": "legatus"},
        {"herdr.space": "s1", "legion.role": "centurion"},
    ),
    "no space": ({"herdr.tab": "t"}, {"legion.role": "centurion"}),
}
"""Labels of the parent, and those that the child has to carry."""


@check("d1-one-role", "D1", "the terminal backend itself starts no role but the centurion")
def one_role(_: Subject) -> list[Finding]:
    """Other roles, handed to the backend past arbitration and routing."""
    roles = ("worker", "scout", "vexillatio", "utility", "legatus", "Centurion", "")
    return [found("D1", repr(role), expected="refused", got=_outcome(_request(agent=role))) for role in roles]


@check("d4-options", "D4", "every option of the request arrives as it was given, in one order, none left out or folded")
def options(_: Subject) -> list[Finding]:
    """The options without the task; the task's element ends in the task, and differs with nesting and branch."""
    full = _argv(model="Fake-1/X", provider="Fake", tools=("read", "Bash", "read"), skills=("/s/B", "/s/a", "/s/B"),
                 extensions=("/e/Z.ts", "/e/a.ts", "/e/Z.ts"), system_prompt="/S.md")  # fmt: skip
    expected = ["pi", "--session", "/nowhere/x.jsonl", "--model", "Fake-1/X", "--provider", "Fake",
                "--tools", "read,Bash,read", "--no-extensions", "-e", "/e/Z.ts", "-e", "/e/a.ts", "-e", "/e/Z.ts",
                "--skill", "/s/B", "--skill", "/s/a", "--skill", "/s/B", "--no-skills", "--no-context-files",
                "--system-prompt", "/S.md"]  # fmt: skip
    plain, nested, branched = _argv(), _argv(allow_nested=True), _argv(worktree_branch="legion/Side")
    tail = "\n\n  do the Work \n"
    return [
        found("D4", "options", expected=expected, got=full[:-1]),
        found("D4", "the task as it stands", expected=tail, got=plain[-1][-len(tail) :]),
        found("D4", "the task depends on whether agents may be started", expected=True, got=plain[-1] != nested[-1]),
        found("D4", "the options do not", expected=plain[:-1], got=nested[:-1]),
        found("D4", "the task names the branch", expected=True, got="legion/Side" in branched[-1]),
    ]


@check(
    "d5-overlay",
    "D5",
    "exactly these variables travel: a missing one is neither made up nor spelt, an empty one is kept",
)
def overlays(_: Subject) -> list[Finding]:
    """Every overlay of the table, as sent."""
    return [found("D5", where, expected=row[3], got=_sent_env(row)) for where, row in OVERLAYS.items()]


@check("d6-labels", "D6", "the space and the role, and no other label")
def labels(_: Subject) -> list[Finding]:
    """Every parent of the table."""
    return [
        found("D6", f"parent with {where}", expected=expected, got=_sent(_request(), labels=given).get("labels"))
        for where, (given, expected) in LABELS.items()
    ]


@check(
    "d7-names", "D7", "eight characters of the run id, one dash for every other character, cut where the name is full"
)
def names(_: Subject) -> list[Finding]:
    """Every name of the table."""
    return [
        found(
            "D7",
            f"{run_id!r}, {handle!r}",
            expected=expected,
            got=_sent(_request(run_id=run_id, handle=handle))["name"],
        )
        for (run_id, handle), expected in NAMES.items()
    ]


CHECKS: tuple[Check, ...] = (one_role, options, overlays, labels, names)


def _request(**changed: Any) -> SpawnRequest:
    plain: dict[str, Any] = {
        "agent": "centurion",
        "run_id": "run00001",
        "handle": "alpha",
        "task": "  do the Work \n",
        "cwd": "/",
        "session_file": "/nowhere/x.jsonl",
        "worktree": changed.get("agent", "centurion") == "centurion",
    }
    return SpawnRequest(**(plain | changed))


def _argv(**changed: Any) -> list[str]:
    return list(_sent(_request(**changed))["argv"])


def _sent_env(row: tuple[Env, Env, Env, dict[str, str]]) -> Any:
    changes, memory, own, _ = row
    env = {name: value for name, value in {**INSIDE, **changes}.items() if value is not None}
    return _sent(_request(env=own), env=env, memory=memory).get("env")


def _outcome(request: SpawnRequest) -> str:
    try:
        _sent(request)
    except SupervisorError as error:
        return "refused" if error.known == "not-sent" else error.code
    return "started"


def _sent(
    request: SpawnRequest, *, env: Env = INSIDE, memory: Env | None = None, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The parameters of the `terminal.run` that a spawn sends. Raises what the spawn raises."""
    runs: list[dict[str, Any]] = []

    async def go() -> None:
        client = HcClient(lambda: _Mirror(runs, dict(labels or {})))
        known = {name: value for name, value in env.items() if value is not None}
        supervisor = TerminalSupervisor(client, known, memory_env=memory)
        try:
            await supervisor.spawn(request)
        finally:
            await supervisor.close()

    asyncio.run(go())
    return runs[0]


class _Mirror:
    """A link whose far side starts whatever it is told to, and shows a parent with the given labels."""

    def __init__(self, runs: list[dict[str, Any]], labels: dict[str, str]) -> None:
        self._runs = runs
        self._labels = labels
        self._answers: asyncio.Queue[bytes] = asyncio.Queue()

    async def open(self) -> None:
        return None

    async def write(self, data: bytes) -> None:
        for asked in _lines(data):
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": self._result(asked["method"], asked["params"])}
            self._answers.put_nowait(json.dumps(reply).encode() + b"\n")

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "hello":
            return HELLO
        if method == "terminal.run":
            self._runs.append(params)
            return _terminal(params["name"], params["argv"], params.get("labels", {}))
        return _terminal(params.get("terminal", ""), ["/bin/bash"], self._labels)

    async def read(self) -> bytes:
        return await self._answers.get()

    async def close(self) -> None:
        self._answers.put_nowait(b"")

    def tail(self) -> str:
        return ""

    def ended(self) -> str | None:
        return None


def _lines(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        yield msgspec.json.decode(line, type=dict[str, Any])


def _terminal(name: str, argv: list[str], labels: dict[str, str]) -> dict[str, Any]:
    return {"address": "t2", "name": name, "argv": argv, "cwd": "/", "state": "running", "status": None, "turn": 0,
            "exit_code": None, "signal": None, "labels": labels, "parent": "t1", "die_with_parent": True, "keep": False,
            "created_ms": 5, "pid": 9, "foreground": None}  # fmt: skip
