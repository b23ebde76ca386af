"""A clean corner for one part of a live run: a home, a model on this machine, a supervisor, and what is seen."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from contracts.agents.found import Pi
from hc_sim.programs.model import Model
from hc_sim.programs.model_words import Reply, reply_to
from legion_terminal.headless import AskParent, HeadlessSettings, HeadlessSupervisor
from legion_terminal.settle import SettleResult
from legion_terminal.types import Child, OnBlocked, SpawnRequest

WAIT_MS = 30_000
"""How long a run may take to settle."""
POLL_S = 0.02
T = TypeVar("T")
PROVIDER, MODEL_ID = "fake", "fake-1"

ASKING = """\
export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    const how = process.env.LEGION_ASKS || "confirm";
    const ok = how === "select"
      ? (await ctx.ui.select("Run it?", ["yes", "no"])) === "yes"
      : await ctx.ui.confirm("Run it?", "the command");
    ctx.ui.notify("the answer was " + ok, "info");
    if (!ok) return { block: true, reason: "refused by the person" };
  });
}
"""
ENDING = """\
export default function (pi) {
  pi.on("tool_call", () => process.exit(Number(process.env.LEGION_ENDS)));
}
"""
APPENDED = "the project has spoken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing that was looked at: the clause it belongs to, what must be, whether it is, and what was seen."""

    clause: str
    part: str
    what: str
    ok: bool
    saw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What the real program did, beside the document or the scripted program: no verdict hangs on it."""

    part: str
    what: str
    saw: str
    beside: str


def decide(text: str, *, after_tool: bool = False, asked_before: int = 0) -> Reply:
    """As the loopback model decides, and `RUN ...` has the tool run the rest of the text."""
    if "RUN " in text and not after_tool:
        return Reply(command=text.partition("RUN ")[2])
    return reply_to(text.replace("RUN ", "TOOL "), after_tool=after_tool, asked_before=asked_before)


@dataclass(slots=True, kw_only=True)
class Stage:
    """Where one part plays. `rows` and `facts` grow as it looks."""

    part: str
    pi: Pi
    model: Model
    folder: Path
    rows: list[Row] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    _kills: list[Callable[[], None]] = field(default_factory=list)
    _called_off: bool = False
    _handles: int = 0

    def __post_init__(self) -> None:
        for name in ("home/.pi/agent", "work"):
            (self.folder / name).mkdir(parents=True, mode=0o700)
        provider = {
            "baseUrl": self.model.url,
            "api": "openai-completions",
            "apiKey": "none",
            "models": [{"id": MODEL_ID, "name": "Fake One"}],
        }
        models = self.agent_folder / "models.json"
        models.write_text(json.dumps({"providers": {PROVIDER: provider}}))

    @property
    def agent_folder(self) -> Path:
        """The folder in which the program keeps trust and settings."""
        return self.folder / "home" / ".pi" / "agent"

    @property
    def work(self) -> Path:
        """The working folder of the children."""
        return self.folder / "work"

    @property
    def env(self) -> dict[str, str]:
        """All that the program is told: no key, no proxy, nothing of the caller's own."""
        home = str(self.folder / "home")
        return {"PATH": self.pi.path, "HOME": home, "PI_OFFLINE": "1", "LANG": "C.UTF-8", "TERM": "xterm-256color"}

    def extension(self, source: str) -> str:
        """The path of an extension with this source."""
        path = self.folder / f"extension-{len(list(self.folder.glob('extension-*')))}.ts"
        path.write_text(source)
        return str(path)

    def request(self, task: str, **more: Any) -> SpawnRequest:
        """What the supervisor is asked for; each has a handle and a session file of its own unless `more` says so."""
        self._handles += 1
        given: dict[str, Any] = {
            "agent": "worker",
            "run_id": "live",
            "handle": f"{self.part}-{self._handles}",
            "task": task,
            "cwd": str(self.work),
            "session_file": str(self.folder / f"session-{self._handles}.jsonl"),
            "provider": PROVIDER,
            "model": MODEL_ID,
            **more,
        }
        return SpawnRequest(**given)

    @asynccontextmanager
    async def supervisor(
        self,
        *,
        on_blocked: OnBlocked = "forward",
        ask: AskParent | None = None,
        approve: bool = False,
        path: str | None = None,
    ) -> AsyncIterator[HeadlessSupervisor]:
        """A supervisor whose children are gone when the block ends. `path`: a PATH that leads to another node."""
        settings = HeadlessSettings(
            program=(str(self.pi.program),), on_blocked=on_blocked, approve=approve, min_free_mb=0
        )
        supervisor = HeadlessSupervisor({**self.env, "PATH": path or self.pi.path}, settings, ask=ask)
        try:
            yield supervisor
        finally:
            await supervisor.close()

    async def by_hand(self, play: Callable[[], T]) -> T:
        """Play something in a thread. Called off, it ends with the processes that it gave to `end_with`."""
        playing = asyncio.create_task(asyncio.to_thread(play))
        try:
            return await asyncio.shield(playing)
        except asyncio.CancelledError:
            self._called_off = True
            for kill in self._kills:
                kill()
            await asyncio.wait({playing})
            if not playing.cancelled():
                playing.exception()  # what a process that was ended under it makes of it, nobody wants to know
            raise

    def end_with(self, kill: Callable[[], None]) -> None:
        """What ends a process that is driven from a thread, when the run is called off."""
        self._kills.append(kill)
        if self._called_off:
            kill()

    def row(self, clause: str, what: str, ok: bool, saw: object) -> None:
        """Something that a clause asks for was looked at."""
        self.rows.append(Row(clause=clause, part=self.part, what=what, ok=bool(ok), saw=shown(saw)))

    def fact(self, what: str, saw: object, beside: str) -> None:
        """Something was measured."""
        self.facts.append(Fact(part=self.part, what=what, saw=shown(saw), beside=beside))

    async def settled(self, supervisor: HeadlessSupervisor, child: Child) -> SettleResult:
        """Wait for the newest prompt."""
        return await supervisor.wait_settled(child, WAIT_MS)

    def users(self) -> list[str]:
        """The newest words of the user at each request to the model, in order."""
        return [request.user for request in self.model.requests]


def shown(value: object) -> str:
    """What was seen, in one line."""
    if isinstance(value, SettleResult):
        words = {
            name: getattr(value, name)
            for name in ("settled", "abnormal", "reason", "exit_code", "signal", "aborted", "node")
        }
        return ", ".join(f"{name} {one}" for name, one in words.items() if one is not None)
    return " ".join(str(value).split())[:300]


async def until(true: Callable[[], bool], what: str, *, limit_s: float = 20.0) -> None:
    """Wait until it is true; raises `TimeoutError` with `what` when it does not become so."""
    deadline = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {limit_s:g} s")
        await asyncio.sleep(POLL_S)


def entries(path: str | Path) -> list[dict[str, Any]]:
    """The entries of a session file that can be read."""
    found = []
    for line in Path(path).read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        found.append(entry)
    return found


def content(path: str | Path) -> bytes:
    """All of a file."""
    return Path(path).read_bytes()


def mode(path: str | Path) -> str:
    """The permissions of a file."""
    return oct(Path(path).stat().st_mode & 0o777)


def empty(path: str | Path) -> None:
    """Make an empty file for its owner alone."""
    Path(path).touch(mode=0o600)


def number(path: Path) -> int:
    """The number in a file, 0 while there is none."""
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text.isdigit() else 0


def lives(pid: int) -> bool:
    """Whether a process with this number runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return False


def has_message(path: str | Path, role: str, stop: str | None = None) -> bool:
    """Whether a session file has a message of this role, with this stop reason."""
    messages = [entry["message"] for entry in entries(path) if entry.get("type") == "message"]
    return any(one["role"] == role and stop in (None, one.get("stopReason")) for one in messages)
