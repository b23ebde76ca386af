"""What the supervisor does not do: touch the machine outside hc, start a shell, look at memory, speak other methods."""

import ast
import asyncio
import re
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path, PurePath

from contracts.checks import pieces
from contracts.checks.audit import (
    COMMANDS,
    FILE_EVENTS,
    IMPORT_EVENTS,
    LOOK_EVENTS,
    PROCESS_EVENTS,
    SOCKET_EVENTS,
    Touched,
    touched,
)
from contracts.checks.base import Check, Subject, check, found
from contracts.hosts.environment import decoys, surrounded
from contracts.hosts.starts import programs
from contracts.hosts.witness import SYSTEM_PATH
from contracts.records import Finding
from hc_sim.model import METHODS as WIRE_METHODS
from legion_terminal import client as client_module
from legion_terminal import host
from legion_terminal.bridge import ProcessTransport
from legion_terminal.errors import SupervisorError

ALLOWED = frozenset(
    ("hello", "terminal.run", "terminal.get", "terminal.send", "terminal.interrupt", "terminal.kill", "terminal.rm")
)
"""D3: the methods that the decisions name."""

SHELL_NAMES = frozenset(
    (
        "system",
        "popen",
        "getoutput",
        "getstatusoutput",
        "create_subprocess_shell",
        "subprocess_shell",
        "spawnlp",
        "spawnvp",
    )
)
MEMORY_WORDS = ("meminfo", "psutil", "virtual_memory", "sysconf", "getrusage", "cgroup", "MemAvailable", "memory_gate")
"""What the source of a memory gate would name."""
MEMORY_FILES = re.compile(
    r"/proc/(meminfo|vmstat|zoneinfo|swaps|pressure/memory)"
    r"|/proc/[^/]+(/task/[^/]+)?/(status|statm|stat|smaps\w*|oom_\w+)\b"
    r"|/sys/fs/cgroup/\S*memory"
    r"|/sys/devices/system/node/\S*meminfo"
)
MEMORY_PROGRAMS = frozenset(("free", "vmstat", "vm_stat", "memory_pressure", "smem", "sysctl", "top"))
MEMORY_MODULES = frozenset(("psutil",))
"""Where a running gate would find out about memory. Files, programs and modules beside these are no concern of A3."""


@check("i1-touches-nothing", "I1", "detection, arbitration and a spawn in process touch no process, socket or file")
def touches_nothing(subject: Subject) -> list[Finding]:
    """An audited process in which nothing of the supervisor's leaves a trace."""
    return [found("I1", "audit", expected=[], got=[str(one) for one in touched(pieces.OUTSIDE, subject)])]


@check(
    "i1-made-in-silence",
    "I1",
    "imported, made and closed without a terminal child, it starts nothing and opens no socket",
)
def made_in_silence(subject: Subject) -> list[Finding]:
    """An audited process, from the import of every module to the close, with a terminal backend that stays unused."""
    seen = touched(pieces.MADE, subject, kinds=PROCESS_EVENTS + SOCKET_EVENTS)
    return [found("I1", "audit", expected=[], got=[str(one) for one in seen])]


@check(
    "d2-touches-nothing",
    "D2",
    "detection touches no process, socket or file, and does not even look whether one is there",
)
def detection_touches_nothing(subject: Subject) -> list[Finding]:
    """An audited process in which the markers name a path that is there."""
    seen = touched(pieces.DETECTION, subject, kinds=PROCESS_EVENTS + SOCKET_EVENTS + FILE_EVENTS + LOOK_EVENTS)
    return [found("D2", "audit", expected=[], got=[str(one) for one in seen])]


@check("d3-no-shell", "D3", "one program is started, from an argument list, and no shell anywhere")
def no_shell(subject: Subject) -> list[Finding]:
    """The source names no shell; an audited bridge starts exactly the executable with one argument."""
    source = [found("D3", "source", expected=[], got=[word for path in _modules(subject) for word in _shells(path)])]
    started = [str(one) for one in touched(pieces.BRIDGE, subject, kinds=PROCESS_EVENTS)]
    plain = len(started) == 1 and "odd) name', 'connect']" in started[0] and "/bin/sh'" not in started[0]
    return [*source, Finding(clause="D3", ok=plain, where="audit", expected="[executable, 'connect']", got=started)]


@check("d3-allowlist", "D3", "seven methods can leave the client, and no other one of the wire's does")
def allowlist(_: Subject) -> list[Finding]:
    """The list itself; and every other method refused before a byte is written."""
    others = [*sorted(set(WIRE_METHODS) - ALLOWED), "terminal.attach", "events.subscribe", "server.stop", "", "HELLO"]
    refused = [
        found("D3", f"call {method!r}", expected="refused, nothing sent", got=_attempt(method)) for method in others
    ]
    return [found("D3", "methods", expected=sorted(ALLOWED), got=sorted(client_module.METHODS)), *refused]


@check("d3-executable", "D3", "HC_BIN, then the first hc on PATH, then ~/.local/bin/hc, then the bare name")
def executable(_: Subject) -> list[Finding]:
    """Every combination of what is set and what is there."""
    return [
        found("D3", where, expected=expected, got=host.resolve_hc(env, is_executable=lambda path: path in there))  # noqa: B023
        for where, env, there, expected in _executables()
    ]


@check(
    "d3-real-files",
    "D3",
    "an hc is a file that may be executed, in a folder that PATH names; its environment is the one given",
)
def real_files(_: Subject) -> list[Finding]:
    """Folders with something else of that name before the right one; and what a started bridge finds around it."""
    with tempfile.TemporaryDirectory(prefix="hc-") as folder:
        home = Path(folder)
        for name in ("plain", "folder", "right", "linked", "dangling", "me/.local/bin"):
            (home / name).mkdir(parents=True)
        (home / "plain" / "hc").write_text("no program")
        (home / "folder" / "hc").mkdir()
        for right in (home / "right" / "hc", home / "me" / ".local" / "bin" / "hc"):
            right.write_text("#!/bin/sh\nenv\n")
            right.chmod(0o700)
        (home / "linked" / "hc").symlink_to(home / "right" / "hc")
        (home / "dangling" / "hc").symlink_to(home / "nothing")
        wrong = f"{home}/absent:{home}/plain:{home}/folder:{home}/dangling"
        me = {"HOME": str(home / "me")}
        resolved = [
            ("PATH", {**me, "PATH": f"{wrong}:{home}/right"}, str(home / "right" / "hc")),
            ("PATH with a link", {**me, "PATH": f"{wrong}:{home}/linked"}, str(home / "linked" / "hc")),
            ("HOME", {**me, "PATH": wrong}, str(home / "me" / ".local" / "bin" / "hc")),
            ("nowhere", {"PATH": wrong, "HOME": str(home / "absent")}, "hc"),
        ]
        files = [
            found("D3", f"found by {where}", expected=path, got=host.resolve_hc(env)) for where, env, path in resolved
        ]
        given = {"PATH": SYSTEM_PATH, "HC_TERMINAL_SOCKET": "/given", "GIVEN": "1"}
        with surrounded({**decoys(home), "LEGION_DECOY": "1"}):
            seen = asyncio.run(_around(ProcessTransport(str(home / "right" / "hc"), given)))
        around = {name for name in seen if name not in ("PWD", "OLDPWD", "SHLVL", "_")}
    return [*files, found("D3", "environment of the bridge", expected=sorted(given), got=sorted(around))]


async def _around(bridge: ProcessTransport) -> set[str]:
    """The names of the variables that a bridge prints."""
    said = b""
    await bridge.open()
    while data := await bridge.read():
        said += data
    await bridge.close()
    return {line.partition("=")[0] for line in said.decode().splitlines()}


@check("a3-no-memory-gate", "A3", "a spawn reads nothing about the machine's memory")
def no_memory_gate(subject: Subject) -> list[Finding]:
    """No word about memory in the source; an audited spawn reads no file, starts no program that tells of memory."""
    code = {path.name: _code_of(path) for path in _modules(subject) if not _headless(subject, path)}
    words = [f"{name}: {word}" for name, text in code.items() for word in MEMORY_WORDS if word in text]
    seen = touched(pieces.SPAWN, subject, kinds=FILE_EVENTS + PROCESS_EVENTS + IMPORT_EVENTS)
    asked = [str(one) for one in seen if is_about_memory(one)]
    return [found("A3", "source", expected=[], got=words), found("A3", "audit", expected=[], got=asked)]


CHECKS: tuple[Check, ...] = (
    touches_nothing,
    made_in_silence,
    detection_touches_nothing,
    no_shell,
    allowlist,
    executable,
    real_files,
    no_memory_gate,
)


def is_about_memory(one: Touched) -> bool:
    """Whether something that a process touched could tell it how much memory there is or is used."""
    if one.event in IMPORT_EVENTS:
        return str(one.first[0]).partition(".")[0] in MEMORY_MODULES
    if one.event in COMMANDS and any(PurePath(name).name in MEMORY_PROGRAMS for name in programs(one.event, one.first)):
        return True
    return MEMORY_FILES.search(one.arguments) is not None


def _executables() -> Iterator[tuple[str, dict[str, str], set[str], str]]:
    for named, first, second, installed in product((False, True), repeat=4):
        env = {"PATH": "/one:/two", "HOME": "/me"} | ({"HC_BIN": "/named/hc"} if named else {})
        there = {
            path
            for path, is_there in (("/one/hc", first), ("/two/hc", second), ("/me/.local/bin/hc", installed))
            if is_there
        }
        candidates = [
            ("/named/hc", named),
            ("/one/hc", first),
            ("/two/hc", second),
            ("/me/.local/bin/hc", installed),
            ("hc", True),
        ]
        expected = next(path for path, is_there in candidates if is_there)
        yield (
            f"HC_BIN {'set' if named else 'not set'}, there: {', '.join(sorted(there)) or 'nothing'}",
            env,
            there,
            expected,
        )
    here = {"hc", "./hc", "/hc"}
    for path in ("", ":", ":/two", "/one:", "::/two:"):
        found_in = "/two/hc" if "/two" in path else "hc"
        yield f"PATH {path!r} with an hc in the current folder", {"PATH": path}, here | {"/two/hc"}, found_in
    yield "no PATH with an hc in the current folder", {}, here, "hc"
    yield "an empty HC_BIN", {"HC_BIN": "", "PATH": "/one"}, {"/one/hc"}, "/one/hc"


class _Nobody:
    """A link that nobody answers; it notes that it was opened."""

    def __init__(self, opened: list[str]) -> None:
        self._opened = opened

    async def open(self) -> None:
        self._opened.append("a link was opened")
        raise ConnectionResetError("nobody is there")

    async def write(self, data: bytes) -> None:
        self._opened.append("bytes were written")

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        return None

    def tail(self) -> str:
        return ""

    def ended(self) -> str | None:
        return None


def _attempt(method: str) -> str:
    opened: list[str] = []

    async def go() -> str:
        client = client_module.HcClient(lambda: _Nobody(opened), connect_ms=0)
        try:
            await client.call(method, {})  # type: ignore[arg-type]
        except SupervisorError as error:
            return "refused, nothing sent" if error.known == "not-sent" and not opened else f"{error.code}, {opened}"
        finally:
            await client.close()
        return "carried out"

    return asyncio.run(go())


def _modules(subject: Subject) -> list[Path]:
    return sorted(subject.package.rglob("*.py"))


def _headless(subject: Subject, path: Path) -> bool:
    """Whether a module belongs to the headless backend alone, which has a memory gate."""
    return path.relative_to(subject.package).parts[0] in ("headless.py", "rpc")


def _shells(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "shell":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield f"{path.name}:{node.value.lineno}: shell="
        elif isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in SHELL_NAMES:
                yield f"{path.name}:{node.lineno}: {name}"


def _code_of(path: Path) -> str:
    """The module without its docstrings and comments."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
