"""The corner of a live run: what it has started, how that is recognised, and how all of it is removed again.

Nothing is killed or removed unless it was looked at just before and is still the very terminal that this run started:
same core, same address, same moment of creation, a name of this run, a label of this run.
"""

import ast
import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from contracts.live.owner import LABEL, SPACE, Owner, new_owner
from contracts.live.peer import Peer, Reply
from contracts.live.problem import GoneError, LiveError, SilentError
from hc_sim.folder import private_folder
from hc_sim.programs.install import shebang

FOLDER_PREFIX: Final = "lglive-"
AGENT: Final = Path(__file__).with_name("agent.py")
LOOK_MS: Final = 10
"""Rest between two looks at a file or a terminal."""
END_MS: Final = 6_000
"""How long the end of what was killed is waited for, all together."""
CALL_MS: Final = 3_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """A terminal of this run, as it was when it was started. `labelled`: the core showed our label then."""

    address: str
    created_ms: Any
    name: str | None
    labelled: bool


class Files(Protocol):
    """How what the programs write down is read; a cassette keeps what was read."""

    async def read(self, path: Path, wanted: Callable[[str], bool], within_ms: int) -> str | None:
        """The text of a file once it is as wanted; None when it is not in time."""


class RealFiles:
    """Files that programs on this machine write."""

    async def read(self, path: Path, wanted: Callable[[str], bool], within_ms: int) -> str | None:
        """Look again and again until the file is as wanted."""
        loop = asyncio.get_running_loop()
        until = loop.time() + within_ms / 1_000
        while True:
            text = _text_of(path)
            if text is not None and wanted(text):
                return text
            if loop.time() >= until:
                return None
            await asyncio.sleep(LOOK_MS / 1_000)


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


@dataclass(slots=True)
class Corner:
    """One run's own place: its owner, its folder, the terminals that it has started."""

    owner: Owner
    folder: Path
    files: Files
    python: str = sys.executable
    core_id: str = ""
    target_key: str = "terminal"
    mine: dict[str, Mine] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    """What could not be removed at the end, in words."""
    _count: int = 0

    @property
    def labels(self) -> dict[str, str]:
        """The label of everything that live checks start."""
        return {LABEL: self.owner.mark}

    @property
    def home_labels(self) -> dict[str, str]:
        """Those of the terminal that the supervisor is told to run in: its children copy the space (D6)."""
        return {LABEL: self.owner.mark, SPACE: self.owner.mark}

    @property
    def begun(self) -> bool:
        """Whether anything may have been started: a start whose answer never came is known by its label alone."""
        return self._count > 0

    def name(self, word: str) -> str:
        """A name that nobody else uses: at most 32 characters of those that a core takes."""
        self._count += 1
        return f"lgv-{self.owner.token}-{self._count}{word}"[:32]

    def log(self, word: str) -> Path:
        """Where a program writes what happens to it."""
        return self.folder / f"{word}.log"

    def acts(self, log: Path, words: str) -> list[str]:
        """The command of a program that carries out these words."""
        return [self.python, "-IS", str(self.folder / "agent.py"), "acts", str(log), *words.split()]

    def home(self, log: Path) -> list[str]:
        """The command of the terminal that the others are children of: it ends when this process does."""
        ticks = self.owner.start.rpartition("x")[2]
        return [self.python, "-IS", str(self.folder / "agent.py"), "home", str(log), str(self.owner.pid), ticks]

    async def entries(
        self, log: Path, wanted: Callable[[list[dict[str, Any]]], bool] = bool, within_ms: int = CALL_MS
    ) -> list[dict[str, Any]] | None:
        """What a program has written down once it is as wanted; None when it is not in time."""
        text = await self.files.read(log, lambda text: wanted(read_log(text)), within_ms)
        return None if text is None else read_log(text)

    def took(self, terminal: Mapping[str, Any]) -> None:
        """A terminal of this run was started."""
        address = terminal.get("address")
        if isinstance(address, str) and address:
            name = terminal.get("name")
            self.mine[address] = Mine(
                address=address,
                created_ms=terminal.get("created_ms"),
                name=name if isinstance(name, str) else None,
                labelled=self.is_labelled(terminal),
            )

    def is_labelled(self, terminal: Mapping[str, Any]) -> bool:
        """Whether a terminal carries this run's label."""
        labels = terminal.get("labels")
        return isinstance(labels, dict) and self.owner.mark in (labels.get(LABEL), labels.get(SPACE))

    def is_mine(self, terminal: Mapping[str, Any]) -> bool:
        """Whether what a core shows is a terminal that this run has started, and still that one."""
        known = self.mine.get(str(terminal.get("address")))
        if known is None:
            return self.owner.named(terminal.get("name")) and self.is_labelled(terminal)
        same = (terminal.get("created_ms"), terminal.get("name")) == (known.created_ms, known.name)
        return same and (self.is_labelled(terminal) or not known.labelled)

    def forget(self, address: str) -> None:
        """A terminal of this run is gone."""
        self.mine.pop(address, None)


def read_log(text: str) -> list[dict[str, Any]]:
    """The entries of a log; a line that is not complete yet is left out."""
    lines = text.split("\n")[:-1]
    return [ast.literal_eval(line) for line in lines if line]


def make_corner(owner: Owner) -> Corner:
    """A corner with a private folder that holds the programs. Raises `LiveError` when it cannot be made."""
    try:
        here = new_owner(owner.token)  # a cassette's owner is another process, and gone for long
        folder = private_folder(f"{FOLDER_PREFIX}{here.token}-{here.pid}-{here.start or '0'}-{here.machine}-")
        source = AGENT.read_text(encoding="utf-8")
        for name, head, mode in (("agent.py", "", 0o600), ("bin/pi", shebang(sys.executable, "-IS"), 0o700)):
            path = folder / name
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_text(head + source, encoding="utf-8")
            path.chmod(mode)
        (folder / "work").mkdir(mode=0o700)
    except OSError as error:
        raise LiveError(f"no folder for the programs of this run can be made: {error}") from error
    return Corner(owner, folder, RealFiles())


def remove_folder(corner: Corner) -> None:
    """Remove the folder of a run."""
    shutil.rmtree(corner.folder, ignore_errors=True)


async def clear(corner: Corner, peer: Peer, *, end_ms: int = END_MS) -> list[str]:
    """End and remove everything of this run, within a bound. Returns in words what could not be removed."""
    left: dict[str, str] = {}
    wanted = list(corner.mine)
    try:
        async with asyncio.timeout(3 * END_MS / 1_000):
            wanted = await _all_of(corner, peer)
            for address in wanted:
                await _kill(corner, peer, address)
            until = asyncio.get_running_loop().time() + end_ms / 1_000
            for address in wanted:
                left[address] = await _remove(corner, peer, address, until)
    except (GoneError, TimeoutError, SilentError) as error:
        words = str(error) or "the core took too long"
        left |= {address: words for address in dict.fromkeys([*wanted, *corner.mine]) if address not in left}
    return [f"terminal {address}: {why}" for address, why in left.items() if why]


async def _all_of(corner: Corner, peer: Peer) -> list[str]:
    """Every terminal of this run: those that were started, and those that carry its labels. Children come first.

    The whole list is looked through: a core may take labels in a list for something else.
    """
    found = dict.fromkeys(reversed(corner.mine))
    for terminal in rows(await _ask(corner, peer, "terminal.list", all=True)):
        if corner.is_mine(terminal):
            found.setdefault(str(terminal["address"]))
    return list(found)


async def _look(corner: Corner, peer: Peer, address: str) -> tuple[dict[str, Any] | None, str]:
    """A terminal of ours as it is now; None with why it must not be touched, "" when it is simply gone.

    What stands under its address now may be somebody else's: then ours is gone.
    """
    reply = await _ask(corner, peer, "terminal.get", **{corner.target_key: address})
    terminal = terminal_of(reply)
    if terminal is None or terminal.get("address") not in (address, None):
        return None, ""
    if corner.is_mine(terminal):
        return terminal, ""
    known = corner.mine.get(address)
    if known is None or terminal.get("name") != known.name:
        return None, ""
    return None, "it is not as it was when it was started, so it was left alone"


async def _kill(corner: Corner, peer: Peer, address: str) -> None:
    terminal, _ = await _look(corner, peer, address)
    if terminal is not None and terminal.get("state") != "finished":
        await _ask(corner, peer, "terminal.kill", **{corner.target_key: address})


async def _remove(corner: Corner, peer: Peer, address: str, until: float) -> str:
    """Wait for the end of a terminal and remove it. Returns why it is still there, "" when it is not."""
    loop = asyncio.get_running_loop()
    why = "it did not end after a kill"
    while True:
        terminal, changed = await _look(corner, peer, address)
        if terminal is None:
            corner.forget(address)
            return changed
        if terminal.get("state") == "finished":
            reply = await _ask(corner, peer, "terminal.rm", **{corner.target_key: address})
            if not await _is_listed(corner, peer, address):  # a core may show what was removed as it was last
                corner.forget(address)
                return ""
            why = "it is still there after it was removed" if reply.ok else f"it cannot be removed: {reply.kind}"
        if loop.time() >= until:
            return why
        await asyncio.sleep(2 * LOOK_MS / 1_000)


async def _is_listed(corner: Corner, peer: Peer, address: str) -> bool:
    return any(row.get("address") == address for row in rows(await _ask(corner, peer, "terminal.list", all=True)))


async def _ask(corner: Corner, peer: Peer, method: str, **params: Any) -> Reply:
    return await peer.ask(method, params, within_ms=CALL_MS)


def rows(reply: Reply) -> list[dict[str, Any]]:
    """The terminals of a list, whatever the member is called."""
    result = reply.result
    found = (
        next((value for value in result.values() if isinstance(value, list)), [])
        if isinstance(result, dict)
        else result
    )
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def terminal_of(reply: Reply) -> dict[str, Any] | None:
    """The terminal in a result, wrapped or not; None for an error and for anything else."""
    result = reply.result
    if not reply.ok or not isinstance(result, dict):
        return None
    inner = result.get("terminal")
    return inner if isinstance(inner, dict) else result
