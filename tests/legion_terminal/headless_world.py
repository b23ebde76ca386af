"""A world for headless children: a scripted program in the place of pi, and a supervisor that starts it."""

import asyncio
import contextlib
import json
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from legion_terminal.headless import HeadlessSettings, HeadlessSupervisor
from legion_terminal.types import SpawnRequest

PROGRAM = Path(__file__).with_name("scripted_child.py")

STARTED = 'say {"id":"{id}","type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}'
RUN = 'say {"type":"agent_start"}'
SETTLED = 'say {"type":"agent_settled","aborted":false}'
AT_WORK = ("read", STARTED, RUN)


class World:
    """A folder with a program `pi` in it, and what a request needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._others = frozenset(children())
        self.log = folder / "log"
        program = folder / "pi"
        program.write_text(f"#!{sys.executable} -IS\n{PROGRAM.read_text()}")
        program.chmod(0o755)

    def env(self, *story: str) -> dict[str, str]:
        return {"PATH": f"{self.folder}:/usr/bin:/bin", "HOME": str(self.folder), "STORY": "\n".join(story)}

    def request(self, handle: str = "alpha", **rest: Any) -> SpawnRequest:
        filled: dict[str, Any] = {
            "agent": "centurion",
            "run_id": "run00001",
            "handle": handle,
            "task": "do it",
            "cwd": str(self.folder),
            "session_file": str(self.folder / f"{handle}.jsonl"),
            "worktree": True,
        } | rest
        filled["env"] = {"LOG": str(self.log), **filled.get("env", {})}
        return SpawnRequest(**filled)

    def children(self) -> list[int]:
        """What this process has started since this world was made, and that is still there, zombies among it."""
        return [pid for pid in children() if pid not in self._others]

    def commands(self) -> list[dict[str, Any]]:
        """Every line that the program has read."""
        return [json.loads(line) for line in self.log.read_bytes().splitlines()] if self.log.exists() else []


def run(
    world: World,
    story: tuple[str, ...],
    main: Callable[[HeadlessSupervisor], Awaitable[None]],
    settings: Mapping[str, Any] | None = None,
    *,
    limit_s: float = 20,
    **rest: Any,
) -> None:
    """Run `main` with a supervisor of a world, close it, and see that nothing is left behind."""

    async def go() -> None:
        before = descriptors()
        limits = {"grace_ms": 300, "drain_ms": 300, "min_free_mb": 0} | dict(settings or {})
        supervisor = HeadlessSupervisor(world.env(*story), HeadlessSettings(**limits), **rest)
        try:
            async with asyncio.timeout(limit_s):
                await main(supervisor)
        finally:
            await supervisor.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        assert descriptors() == before

    asyncio.run(go())
    assert not world.children()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children(of: int | None = None) -> list[int]:
    """The processes that this one (or `of`) has started and that are still there, zombies among them."""
    found = []
    parent = str(os.getpid() if of is None else of)
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            if entry.name.isdigit() and (entry / "stat").read_text().rpartition(")")[2].split()[1] == parent:
                found.append(int(entry.name))
    return found


def alive(pid: int, *, group: bool = False) -> bool:
    """Whether a process, or any of its group, runs; a zombie does not."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            if state != "Z" and (its_group if group else entry.name) == str(pid):
                return True
    return False


def mode(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)
