"""The clauses of the terminal backend, driven with the real supervisor against a live core and small scripted children.

Each check is a short life of one or two children. What a child was really given it has written down itself.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from contracts.live.corner import rows, terminal_of
from contracts.live.owner import SPACE
from contracts.live.stage import SEE_MS, ProbeSkippedError, Stage, is_finished, shows, turn_of, word_of
from contracts.records import Finding
from contracts.scenario import Level
from contracts.sut.base import Sut, SutError, SutFactory, SutSetup
from contracts.sut.python import PythonSut, spawn_request
from legion_terminal.spawn import terminal_argv, terminal_name

POLL_MS: Final = 50
SETTLE_MS: Final = 10_000
SHORT_MS: Final = 400
TEXT: Final = "go on with “this”, please\nacts: working sleep:40 reject done"


@dataclass(slots=True)
class Driven:
    """One supervisor, the stage it stands on, and what has been found out about it."""

    stage: Stage
    sut: Sut
    env: dict[str, str]
    findings: list[Finding] = field(default_factory=list)

    def say(self, clause: str, where: str, got: Any, expected: Any, words: str = "") -> bool:
        """Put down one finding; the values are compared as they are."""
        ok = bool(got == expected)
        self.findings.append(Finding(clause=clause, ok=ok, where=where, expected=expected, got=got, say=words))
        return ok

    def session(self, handle: str) -> str:
        """The session file of a child."""
        return str(self.stage.corner.folder / "sessions" / f"{handle}.jsonl")

    def spawn_params(self, handle: str, task: str) -> dict[str, Any]:
        """What the supervisor is asked to start."""
        return {
            "handle": handle,
            "runId": self.stage.corner.owner.token,
            "task": task,
            "cwd": str(self.stage.corner.folder / "work"),
            "sessionFile": self.session(handle),
            "worktree": True,
            "branch": "live",
            "env": {"LGV_REQUEST": f"for {handle}"},
            "mode": "terminal",
        }

    async def spawn(self, handle: str, task: str) -> dict[str, Any]:
        """Start a child on a task. Raises `SutError`."""
        started = await self.sut.call("spawn", self.spawn_params(handle, task))
        shown = await self.shown(handle)
        if shown is not None and shown.get("parent") == self.stage.home:
            self.stage.corner.took(shown)
        return started

    async def wait(self, child: str, ms: int = SETTLE_MS) -> dict[str, Any]:
        """Wait until a child has settled."""
        return await self.sut.call("wait", {"child": child, "timeoutMs": ms})

    def name(self, handle: str) -> str:
        """The name that a child's terminal has to have (D7)."""
        return terminal_name(self.stage.corner.owner.token, handle)

    async def shown(self, handle: str) -> dict[str, Any] | None:
        """The terminal of a child, looked at past the supervisor."""
        return await self.stage.get(self.name(handle))


Make = Callable[[Driven], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Life:
    """One check: its id, the clauses that it gives evidence for, and what makes it."""

    id: str
    clauses: tuple[str, ...]
    make: Make
    level: Level = "must"

    @property
    def why(self) -> str:
        """What it shows, in a sentence."""
        return (self.make.__doc__ or "").strip().split("\n")[0]


def make_driven(stage: Stage, factory: SutFactory = PythonSut) -> Driven:
    """A supervisor in the home of this run. Raises `ProbeSkippedError` where it would not start our own `pi`."""
    stage.need_programs()
    if not stage.sheet.core.get("finds_by_given_path"):
        raise ProbeSkippedError(
            "this core does not look for programs on the PATH that it is given: it would be another pi"
        )
    folder = stage.corner.folder
    for name in ("sessions", "home"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    env = {
        "HOME": str(folder / "home"),
        "PATH": f"{folder}/bin:/usr/local/bin:/usr/bin:/bin",
        "TERM": "xterm-256color",
        "HC_TERMINAL_SOCKET": "live",
        "HC_TERMINAL_ID": stage.home,
    }
    setup = SutSetup(env=env, connect=lambda: stage.host.connect("supervisor"), poll_ms=POLL_MS)
    return Driven(stage, factory(setup), env)


async def first_task(driven: Driven) -> None:
    """A child is started as the contract has it, settles on the end of its first turn, and its verdict is read."""
    task = "look at it\nacts: working sleep:120 accept done"
    started = await driven.spawn("one", task)
    shown = await driven.shown("one") or {}
    driven.say("D7", "spawn.name", (started.get("name"), shown.get("name")), (driven.name("one"), driven.name("one")))
    wanted = terminal_argv(spawn_request({k: v for k, v in driven.spawn_params("one", task).items() if k != "mode"}))
    driven.say("D4", "terminal.argv", shown.get("argv"), wanted, "argv as the core shows it")
    labels = {"legion.role": "centurion", SPACE: driven.stage.corner.owner.mark}
    driven.say("D6", "terminal.labels", shown.get("labels"), labels, "the role, and the space of the parent")
    driven.say("D3", "terminal.parent", shown.get("parent"), driven.stage.home)
    entries = await driven.stage.corner.entries(Path(f"{driven.session('one')}.log")) or [{}]
    env = entries[0].get("env", {})
    given = {
        "PATH": driven.env["PATH"],
        "HOME": driven.env["HOME"],
        "TERM": driven.env["TERM"],
        "LGV_REQUEST": "for one",
    }
    driven.say("D5", "child.env", {key: env.get(key) for key in given}, given, "what the child itself found")
    driven.say("D4", "child.argv", entries[0].get("argv", [])[1:], wanted[1:], "what the child itself was given")
    settled = await driven.wait(str(started["child"]))
    driven.say("D8", "wait.settled", settled.get("settled"), True)
    later = int(settled.get("lastTurn") or 0) > int(started.get("promptTurn") or 0)
    driven.say("D8", "wait.lastTurn", later, True, "the turn has passed the one before the prompt")
    driven.say("D8", "wait.lastStatus", settled.get("lastStatus"), "done")
    await driven.stage.corner.files.read(Path(driven.session("one")), lambda text: "VERDICT" in text, SEE_MS)
    verdict = await driven.sut.call("collect", {"child": started["child"]})
    driven.say("D9", "collect.verdict", verdict.get("verdict"), "accept")
    await _retired(driven, "one", str(started["child"]))


async def steered(driven: Driven) -> None:
    """A prompt arrives as it was sent, and only its own turn settles the wait for it."""
    started = await driven.spawn("two", "begin\nacts: working sleep:40 accept done")
    child = str(started["child"])
    await driven.wait(child)
    steered = await driven.sut.call("steer", {"child": child, "text": TEXT})
    settled = await driven.wait(child)
    driven.say("D10", "wait.settled", settled.get("settled"), True)
    later = int(settled.get("lastTurn") or 0) > int(steered.get("promptTurn") or 0)
    driven.say("D8", "wait.lastTurn", later, True, "the turn of the steer, not the one before")
    log = Path(f"{driven.session('two')}.log")
    entries = await driven.stage.corner.entries(log, lambda found: any(one["what"] == "text" for one in found)) or []
    texts = [one["text"] for one in entries if one["what"] == "text"]
    driven.say("D10", "child.text", texts, [TEXT], "what the child itself was typed")
    await driven.stage.corner.files.read(Path(driven.session("two")), lambda text: "reject" in text, SEE_MS)
    verdict = await driven.sut.call("collect", {"child": child})
    driven.say("D9", "collect.verdict", verdict.get("verdict"), "reject")
    await driven.sut.call("steer", {"child": child, "text": "acts: working sleep:40 exit:3"})
    ended = await driven.wait(child)
    driven.say("D8", "wait.exitCode", (ended.get("settled"), ended.get("exitCode")), (True, 3), "an end settles")
    await _retired(driven, "two", child)


async def aborted(driven: Driven) -> None:
    """An abort ends the turn and keeps the child; the idle that follows does not settle a wait."""
    started = await driven.spawn("three", "begin\nacts: working sleep:20000 done")
    child, name = str(started["child"]), driven.name("three")
    working = await driven.stage.seen(name, shows("working"))
    answer = await driven.sut.call("abort", {"child": child})
    driven.say("D10", "abort.status", answer, {"status": "interrupted"})
    idle = await driven.stage.seen(name, lambda terminal: word_of(terminal) != "working")
    driven.say("D10", "child.state", idle is not None and not is_finished(idle), True, "the child lives on")
    driven.say("D10", "child.turn", turn_of(idle), turn_of(working), "the turn is as it was")
    if word_of(idle) == "idle":
        settled = await driven.wait(child, SHORT_MS)
        driven.say("D8", "wait.idle", (settled.get("settled"), settled.get("reason")), (False, "timeout"))
    await _retired(driven, "three", child)


async def collisions(driven: Driven) -> None:
    """A name that is taken is shown and its holder left alone; a finished holder makes room."""
    name = driven.name("four")
    holder = await driven.stage.run("holder", "idle", name=name)
    try:
        await driven.spawn("four", "never\nacts: done")
        driven.say("A4", "spawn.raises", "nothing", "name-taken")
    except SutError as error:
        driven.say("A4", "spawn.raises", error.error.get("code"), "name-taken")
    there = await driven.stage.get(holder.address)
    driven.say("A4", "holder.state", there is not None and not is_finished(there), True, "the holder lives on")
    await driven.stage.on("terminal.kill", holder.address)
    await driven.stage.seen(holder.address, is_finished)
    started = await driven.spawn("four", "begin\nacts: working sleep:40 accept done")
    driven.say("A4", "spawn.name", started.get("name"), name, "a finished holder is removed")
    settled = await driven.wait(str(started["child"]))
    driven.say("D8", "wait.settled", settled.get("settled"), True)
    await _retired(driven, "four", str(started["child"]))


async def in_a_dialog(driven: Driven) -> None:
    """Nothing is sent to a child that asks something."""
    started = await driven.spawn("five", "begin\nacts: working blocked")
    child = str(started["child"])
    await driven.stage.seen(driven.name("five"), shows("blocked"))
    try:
        await driven.sut.call("steer", {"child": child, "text": "yes"})
        driven.say("D10-blocked", "steer.raises", "nothing", "blocked")
    except SutError as error:
        driven.say("D10-blocked", "steer.raises", error.error.get("code"), "blocked")
    await driven.sut.call("retire", {"child": child})


async def taken_away(driven: Driven) -> None:
    """A child whose terminal somebody removed is gone, and a wait for it says so."""
    started = await driven.spawn("six", "begin\nacts: working sleep:20000 done")
    child, name = str(started["child"]), driven.name("six")
    shown = await driven.stage.seen(name, shows("working"))
    if shown is None or not driven.stage.corner.is_mine(shown):
        raise ProbeSkippedError("the child never worked")
    address = str(shown["address"])
    await driven.stage.on("terminal.kill", address)
    await driven.stage.seen(address, is_finished)
    await driven.stage.on("terminal.rm", address)
    settled = await driven.wait(child)
    got = (settled.get("settled"), settled.get("reason"))
    driven.say("D8-gone", "wait.reason", got, (False, "gone"))


async def _retired(driven: Driven, handle: str, child: str) -> None:
    """D11: retire a child; it has ended, its terminal is gone, and what stood beside it is still there."""
    address = str((await driven.shown(handle) or {}).get("address"))
    retired = await driven.sut.call("retire", {"child": child})
    got = (retired.get("ended"), retired.get("removed"))
    driven.say("D11", f"retire({handle})", got, (True, True), str(retired.get("note") or ""))
    driven.say("D11", f"terminal({handle})", await driven.stage.get(address), None, "its terminal is gone")
    there = terminal_of(await driven.stage.on("terminal.get", driven.stage.home))
    listed = rows(await driven.stage.ask("terminal.list", labels=driven.stage.corner.labels))
    beside = there is not None and not is_finished(there) and bool(listed)
    driven.say("D11", f"beside({handle})", beside, True, "the parent lives on")


LIVES: tuple[Life, ...] = (
    Life("first-task", ("D3", "D4", "D5", "D6", "D7", "D8", "D9", "D11"), first_task),
    Life("steered", ("D8", "D9", "D10", "D11"), steered),
    Life("aborted", ("D8", "D10", "D11"), aborted),
    Life("collisions", ("A4", "D8", "D11"), collisions),
    Life("in-a-dialog", ("D10-blocked",), in_a_dialog, level="should"),
    Life("taken-away", ("D8-gone",), taken_away, level="should"),
)
