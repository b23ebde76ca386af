"""What every probe works with: a core, a corner in it, the sheet that it fills, and how this core spells things."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from contracts.live.corner import CALL_MS, LOOK_MS, Corner, rows, terminal_of
from contracts.live.hosts import Host
from contracts.live.peer import Peer, Reply
from contracts.live.problem import GoneError, SilentError
from contracts.live.sheet import Sheet

SEE_MS: Final = 3_000
"""How long a change that has to come is waited for."""
SEND_MS: Final = 15_000
"""How long a text may take: a core looks whether its submission took."""
TOUCHING: Final = frozenset(f"terminal.{verb}" for verb in ("send", "interrupt", "kill", "rm", "keep", "label"))
"""Calls that do something to a terminal: before each it is looked whether that is still ours."""
QUIET_MS: Final = 150
"""How long a change that must not come is waited for."""


class ProbeSkippedError(Exception):
    """A probe cannot be made on this core; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A started program: its address, the terminal as the reply showed it, and where it writes what happens to it."""

    address: str
    name: str
    terminal: dict[str, Any]
    log: Path


@dataclass(slots=True)
class Stage:
    """One live run in progress. `home` is the address of the terminal that all others are children of."""

    host: Host
    corner: Corner
    sheet: Sheet
    peer: Peer
    home: str = ""
    programs: bool = False
    documents: bool = False
    reports: bool = True
    kills: bool = True
    labels: bool = True
    known: set[str] = field(default_factory=set)
    """What holds in this core and others build on, such as `done-stays`."""
    caller_key: str = "caller"
    described: dict[str, list[str]] = field(default_factory=dict)
    """The parameters of methods, as the core itself lists them."""
    _connections: int = 0
    peers: list[Peer] = field(default_factory=list)

    @asynccontextmanager
    async def another(self, label: str, *, greet: bool = True) -> AsyncIterator[Peer]:
        """A new connection, closed afterwards. It begins with a hello, which a core may insist on, if it is to."""
        peer = Peer(self.host.connect(label), watch=self.sheet.saw)
        try:
            await peer.open()
            if greet:
                await peer.ask("hello", {"generation": 1}, within_ms=CALL_MS)
            yield peer
        finally:
            await peer.close()

    async def ask(self, method: str, /, *, within_ms: int = 0, **params: Any) -> Reply:
        """A call on the main connection."""
        return await self.peer.ask(method, params, within_ms=within_ms or CALL_MS)

    def target(self, address: str, **more: Any) -> dict[str, Any]:
        """Parameters of a call about one terminal, in this core's spelling."""
        return {self.corner.target_key: address, **more}

    async def on(self, method: str, address: str, /, *, within_ms: int = 0, **more: Any) -> Reply:
        """A call about one terminal. A text may be held back for a while, and has more time."""
        within_ms = within_ms or (SEND_MS if method == "terminal.send" else CALL_MS)
        if method in TOUCHING:
            await self._still_mine(address)
        return await self.peer.ask(method, self.target(address, **more), within_ms=within_ms)

    async def _still_mine(self, address: str) -> None:
        """Raises `ProbeSkippedError` if what is under an address now was not started by this run."""
        shown = await self.get(address)
        if shown is not None and shown.get("address") == address and not self.corner.is_mine(shown):
            raise ProbeSkippedError(f"what is under {address} now is not what this run has started")

    async def get(self, address: str) -> dict[str, Any] | None:
        """A terminal as it is now, None if there is none."""
        return terminal_of(await self.on("terminal.get", address))

    async def run(
        self, word: str, acts: str = "", *, caller: str = "", more: Sequence[str] = (), **params: Any
    ) -> Program:
        """Start a program that carries out `acts`, as a child of `caller` (the home, if it is not said).

        `more` are arguments behind those, which mean nothing to it.

        `params` are laid over what is given otherwise; None leaves one out. Raises `ProbeSkippedError` if the core
        refuses.
        """
        own_name = self.corner.name(word)
        log = self.corner.log(own_name)
        body = {
            "argv": [*self.corner.acts(log, acts), *more],
            "name": own_name,
            "labels": self.corner.labels,
            "cwd": str(self.corner.folder / "work"),
            self.caller_key: caller or self.home or None,
            **params,
        }
        given = {key: value for key, value in body.items() if key and value is not None}
        reply = await self.peer.ask("terminal.run", given)
        terminal = terminal_of(reply)
        if terminal is None or not isinstance(terminal.get("address"), str):
            raise ProbeSkippedError(f"terminal.run was answered with {reply.kind or 'no terminal'}")
        self.corner.took(terminal)
        return Program(address=terminal["address"], name=str(body["name"]), terminal=terminal, log=log)

    async def seen(
        self, address: str, wanted: Callable[[dict[str, Any]], bool], within_ms: int = SEE_MS
    ) -> dict[str, Any] | None:
        """The first look at a terminal that is as wanted; None if that does not come in time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + within_ms / 1_000
        while True:
            terminal = await self.get(address)
            if terminal is not None and wanted(terminal):
                return terminal
            if loop.time() >= until:
                return None
            await self.host.pause(LOOK_MS)

    async def end(self, program: Program) -> None:
        """Kill a program of this run and remove its terminal, without looking at how that goes."""
        terminal = await self.get(program.address)
        if terminal is None or not self.corner.is_mine(terminal):
            return
        if terminal.get("state") != "finished":
            await self.kill(program.address)
        if (await self.on("terminal.rm", program.address)).ok:
            self.corner.forget(program.address)

    def candidates(self, method: str, known: Sequence[str], others: Collection[str]) -> list[str]:
        """Names that a parameter may have: those that we know of, and what the core lists beside `others`."""
        listed = [name for name in self.described.get(method, []) if name not in others]
        return list(dict.fromkeys([*known, *listed]))

    async def kill(self, address: str) -> dict[str, Any] | None:
        """Kill a terminal of this run and wait for its end; None if that does not come.

        Of a core that has left one alive it is not expected again.
        """
        await self.on("terminal.kill", address)
        ended = await self.seen(address, is_finished, SEE_MS if self.kills else QUIET_MS)
        self.kills = self.kills and ended is not None
        return ended

    async def listed(self, *, finished_too: bool = False) -> list[dict[str, Any]]:
        """The terminals of this run in a list, narrowed by their label if this core keeps labels."""
        params: dict[str, Any] = {"all": True} if finished_too else {}
        if self.labels:
            params["labels"] = self.corner.labels
        return rows(await self.peer.ask("terminal.list", params, within_ms=CALL_MS))

    def need_programs(self, *, reports: bool = False) -> None:
        """Raises `ProbeSkippedError` on a core that starts no programs, or shows no `reports` of them."""
        if not self.programs:
            raise ProbeSkippedError("this core starts no programs, so nothing reports a status")
        if reports and not self.reports:
            raise ProbeSkippedError("this core shows no status, so nobody can see what a program does")


def is_finished(terminal: Mapping[str, Any]) -> bool:
    """Whether a program has ended."""
    return terminal.get("state") == "finished"


def word_of(terminal: Mapping[str, Any] | None) -> str:
    """The status word of a terminal, `none` when nothing is reported."""
    status = None if terminal is None else terminal.get("status")
    word = status.get("state") if isinstance(status, dict) else status
    return word if isinstance(word, str) else "none"


def turn_of(terminal: Mapping[str, Any] | None) -> int | None:
    """The turn of a terminal, None if it has none."""
    turn = None if terminal is None else terminal.get("turn")
    return turn if isinstance(turn, int) and not isinstance(turn, bool) else None


def nearly(ms: int) -> int:
    """A duration without the time that the call itself takes: to a quarter of a second."""
    return round(ms / 250) * 250


def shows(word: str) -> Callable[[dict[str, Any]], bool]:
    """A test: the status is this word."""
    return lambda terminal: word_of(terminal) == word


__all__ = [
    "QUIET_MS",
    "SEE_MS",
    "GoneError",
    "ProbeSkippedError",
    "Program",
    "SilentError",
    "Stage",
    "is_finished",
    "nearly",
    "shows",
    "turn_of",
    "word_of",
]
