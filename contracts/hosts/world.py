"""Build the world of a scenario: core, hub, files, terminals, environment; and move it while the drive goes on."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from contracts.hosts.environment import supervisor_env
from contracts.hosts.folder import Folder
from contracts.hosts.witness import install_witness, make_repository, repository_state
from contracts.running.drive import DEFAULT_HANDLE, DEFAULT_RUN_ID
from contracts.running.placeholders import fill
from contracts.scenario import Scenario, World
from hc_sim.core import Core
from hc_sim.driver import Driver
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.trace import Event

PARENT_ARGV = ("/bin/bash",)
MISSING_PARENT = "t-missing"
"""Address of the supervisor's own terminal in a world where that terminal is not there."""
UNTIL_LIMIT_S = 3_600.0
"""How long an `until` step waits for its calls (loop time); the limit of a real run comes long before."""


class WorldError(Exception):
    """The world cannot be built as the scenario says."""


class _Watched(list[Event]):
    """The events of a trace, with a word to whoever waits for the next one."""

    def __init__(self, events: list[Event], told: Callable[[Event], None]) -> None:
        super().__init__(events)
        self._told = told

    def append(self, event: Event) -> None:
        super().append(event)
        self._told(event)


@dataclass(slots=True)
class Built:
    """A world that stands: who is in it, where it lies, and what its placeholders mean."""

    scenario: Scenario
    world: World
    folder: Folder
    core: Core
    hub: Hub
    driver: Driver
    parent: str
    env: Mapping[str, str]
    fills: dict[str, str]
    files: set[str] = field(default_factory=set)
    repository: dict[str, str] | None = None
    begin: int = 0
    first_event: int = 0
    restarter: Callable[[int], Awaitable[None]] | None = None
    """How the host restarts the core's listener."""
    _counts: dict[str, int] = field(default_factory=dict)
    _waiting: list[tuple[str, int, "asyncio.Future[None]"]] = field(default_factory=list)
    _sessions: set[str] = field(default_factory=set)

    def start(self) -> None:
        """The drive begins now: times and events count from here."""
        self.files = self.folder.listing()
        self.begin = self.driver.now()
        self.first_event = len(self.core.trace.events)
        self.core.trace.events = _Watched(self.core.trace.events, self._tell)

    def now(self) -> int:
        """Milliseconds since the drive began."""
        return self.driver.now() - self.begin

    def events(self) -> list[Event]:
        """The trace of the drive, with times that count from its beginning."""
        found = self.core.trace.events[self.first_event :]
        return [msgspec.structs.replace(event, t=event.t - self.begin) for event in found]

    def session(self, handle: str) -> str:
        """Path of a child's session file; created empty with mode 0600 when it is not there."""
        path = self.folder.session(handle)
        self._sessions.add(str(path))
        if not path.exists():
            path.touch(mode=0o600)
        return str(path)

    def fire(self, name: str) -> int:
        """Fire the `by_hand` steps of this name; the number that fired."""
        return self.driver.fire(name)

    def write(self, file: str, text: str, *, append: bool) -> None:
        """Write a file below the run's folder. Raises `WorldError` for a path that leaves it."""
        path = _inside(self.folder, file)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sessions.add(str(path))
        with path.open("a" if append else "w", encoding="utf-8", newline="") as stream:
            stream.write(text)

    async def calls(self, method: str, count: int) -> None:
        """Return when the core has received this method so often. Raises `WorldError` after `UNTIL_LIMIT_S`."""
        if self._counts.get(method, 0) >= count:
            return
        arrived = asyncio.get_running_loop().create_future()
        self._waiting.append((method, count, arrived))
        try:
            async with asyncio.timeout(UNTIL_LIMIT_S):
                await arrived
        except TimeoutError:
            seen = self._counts.get(method, 0)
            raise WorldError(f"waited {UNTIL_LIMIT_S:g} s for {count} calls of {method}; {seen} came") from None

    async def restart(self, ms: int) -> None:
        """Close every link, listen to nobody for so long, then listen again."""
        if self.restarter is not None:
            await self.restarter(ms)

    def expected_files(self) -> set[str]:
        """Paths that may be there afterwards: sessions, and what the drive itself wrote."""
        return self._sessions | {path for key, path in self.fills.items() if key.startswith("session")}

    def _tell(self, event: Event) -> None:
        if event.kind != "call":
            return
        for method in (event.method, "*"):
            self._counts[method] = self._counts.get(method, 0) + 1
        for method, count, arrived in self._waiting:
            if not arrived.done() and self._counts.get(method, 0) >= count:
                arrived.set_result(None)


def build(scenario: Scenario, folder: Folder, loop: asyncio.AbstractEventLoop) -> Built:
    """Everything around the supervisor except the way to reach it. Raises `WorldError`."""
    fills = placeholders(folder)
    world = msgspec.convert(fill(msgspec.to_builtins(scenario.world), fills), World)
    core = Core(
        profile(world.profile),
        agents=world.agent,
        env=world.core_env,
        socket=str(folder.socket),
        cwd_exists=lambda path: Path(path).is_dir(),
    )
    parent = core.add_terminal(argv=PARENT_ARGV, labels=world.parent.labels) if not world.parent.missing else ""
    for terminal in world.terminal:
        core.add_terminal(
            name=terminal.name,
            argv=tuple(terminal.argv),
            labels=terminal.labels,
            turn=terminal.turn,
            status=terminal.status,
            finished=terminal.finished,
            parent=_parent_of(core, terminal.parent, parent),
            played=terminal.played,
        )
    install_witness(folder.witness)
    hub = Hub(core, world)
    built = Built(
        scenario=scenario,
        world=world,
        folder=folder,
        core=core,
        hub=hub,
        driver=Driver(hub, loop),
        parent=parent,
        env=supervisor_env(world, folder, parent=parent or MISSING_PARENT, hc=folder.programs / "hc"),
        fills=fills,
    )
    for file, text in world.files.items():
        built.write(file, text, append=False)
        _inside(folder, file).chmod(0o600)
    if world.repo:
        make_repository(folder.work)
        built.repository = repository_state(folder.work)
    return built


def placeholders(folder: Folder) -> dict[str, str]:
    """What the placeholders mean before the first spawn: then those of the child that is spawned by default."""
    return {
        "dir": str(folder.path),
        "home": str(folder.home),
        "cwd": str(folder.work),
        "hc": str(folder.programs / "hc"),
        "socket": str(folder.socket),
        "session": str(folder.session(DEFAULT_HANDLE)),
        "name": f"lgl-{DEFAULT_RUN_ID[:8]}-{DEFAULT_HANDLE}",
    }


def profile(overrides: Mapping[str, Any]) -> WireProfile:
    """A wire profile with some fields replaced. Raises `WorldError` that names the field that is wrong."""
    try:
        return msgspec.convert(dict(overrides), WireProfile)
    except msgspec.ValidationError as error:
        raise WorldError(f"world.profile: {error}") from error


def occupy(path: Path, core: str) -> None:
    """Put at the socket's path what a core that is not up leaves there: a dead socket, a folder, a file, or nothing."""
    if core == "down":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
            dead.bind(str(path))
    elif core == "directory":
        path.mkdir(mode=0o700)
    elif core == "regular-file":
        path.write_text("this is no socket\n")


def up_after_ms(core: str) -> int | None:
    """When the core begins to listen, in ms since the drive began (0: it does already); None: never."""
    if core == "up":
        return 0
    return int(core.partition(":")[2]) if core.startswith("down-until:") else None


def _parent_of(core: Core, wanted: str | None, own: str) -> str | None:
    if wanted in (None, ""):
        return None
    if wanted == "parent":
        return own or None
    return next((terminal.address for terminal in core.terminals() if terminal.name == wanted), wanted)


def _inside(folder: Folder, file: str) -> Path:
    path = (folder.path / file).resolve()
    if not path.is_relative_to(folder.path.resolve()):
        raise WorldError(f"{file} is outside the run's folder")
    return path
