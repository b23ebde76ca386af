"""D11: how a child is ended and its terminal removed, in bounded time and without ever raising.

The order is fixed: look (is it still ours?), kill, look until it has finished, remove. When a call got no answer, the
next look decides what it did.
"""

import asyncio

from legion_terminal.client import HcClient
from legion_terminal.errors import SupervisorError
from legion_terminal.sight import NOT_LIVE_KINDS, Sight, difference, is_missing, read_sight
from legion_terminal.types import Child, RetireResult

RETIRE_MS = 8_000
LOOK_MS = 2_500
KILL_MS = 5_000
REMOVE_RESERVE_MS = 500
MIN_CALL_MS = 50
MAX_FIRST_LOOKS = 2
MAX_REMOVALS = 4

_NOT_FINISHED_KINDS = frozenset({"not_finished", "still_live", "still_running", "live", "running"})


class _Gone(Exception):  # noqa: N818  (not a failure: the way out once nothing further may be called)
    """The child's terminal is gone, or the name is another incarnation's now."""

    def __init__(self, result: RetireResult) -> None:
        super().__init__(result.note)
        self.result = result


class Retirement:
    """One attempt to retire one child. `limit_ms` bounds all of it."""

    def __init__(self, client: HcClient, child: Child, *, poll_ms: int, limit_ms: int = RETIRE_MS) -> None:
        self._client = client
        self._child = child
        self._poll_ms = max(1, poll_ms)
        self._until = asyncio.get_running_loop().time() + limit_ms / 1000
        self._notes: list[str] = []

    async def run(self) -> RetireResult:
        """Do it. What the core shows decides what is claimed; failures end up in the note."""
        try:
            sight = await self._first_look()
            await self._kill(sight)
            sight = await self._look_until_finished(sight)
            removed = await self._remove(sight)
        except _Gone as gone:
            return gone.result
        except SupervisorError as error:
            self._note(error.message)
            return RetireResult(ended=False, removed=False, note=self._text())
        if not sight.finished and not removed:
            self._note("the end of the program was not seen")
        return RetireResult(ended=sight.finished or removed, removed=removed, note=self._text())

    async def _first_look(self) -> Sight:
        for _ in range(MAX_FIRST_LOOKS - 1):
            try:
                return await self._look()
            except SupervisorError as error:
                if error.code == "closed":
                    raise
                self._note(error.message)
            await asyncio.sleep(self._poll_ms / 1000)
        return await self._look()

    async def _kill(self, sight: Sight) -> None:
        try:
            await self._client.ask(
                "terminal.kill",
                {"terminal": self._child.name},
                on_link=sight.link,
                within_ms=min(KILL_MS, self._left(REMOVE_RESERVE_MS)),
            )
        except SupervisorError as error:
            if not is_missing(error) and error.kind not in NOT_LIVE_KINDS:
                self._note(error.message)

    async def _look_until_finished(self, sight: Sight) -> Sight:
        while True:
            try:
                sight = await self._look()
            except SupervisorError as error:
                self._note(error.message)
            if sight.finished or self._remaining(REMOVE_RESERVE_MS) <= self._poll_ms:
                return sight
            await asyncio.sleep(self._poll_ms / 1000)

    async def _remove(self, sight: Sight) -> bool:
        for _ in range(MAX_REMOVALS):
            try:
                await self._client.ask(
                    "terminal.rm", {"terminal": self._child.name}, on_link=sight.link, within_ms=self._left(0)
                )
            except SupervisorError as error:
                if is_missing(error):
                    return True
                self._note(error.message)
                again = error.known in ("unknown", "not-sent") or error.kind in _NOT_FINISHED_KINDS
                if not again or self._remaining(0) <= self._poll_ms:
                    return False
            else:
                return True
            await asyncio.sleep(self._poll_ms / 1000)
            sight = await self._look()
        return False

    async def _look(self) -> Sight:
        """Look at the terminal of the child's name. Leaves by `_Gone` when it is not the child's any more."""
        within = min(LOOK_MS, self._left(0))
        try:
            answer = await self._client.ask("terminal.get", {"terminal": self._child.name}, within_ms=within)
        except SupervisorError as error:
            if not is_missing(error):
                raise
            raise _Gone(await self._without_name()) from error
        sight = read_sight(answer)
        if mismatch := difference(self._child, sight):
            note = f"the name {self._child.name} belongs to another terminal now ({mismatch}); it was left alone"
            raise _Gone(RetireResult(ended=False, removed=False, note=note))
        self._child.last = sight.observation
        return sight

    async def _without_name(self) -> RetireResult:
        """Nobody has the child's name: either its terminal was removed, or it was renamed and lives on."""
        if not self._child.address:
            return RetireResult(ended=True, removed=True, note=self._text())
        try:
            answer = await self._client.ask(
                "terminal.get", {"terminal": self._child.address}, within_ms=min(LOOK_MS, self._left(0))
            )
            other = read_sight(answer)
        except SupervisorError:
            return RetireResult(ended=True, removed=True, note=self._text())
        if other.created_ms != self._child.created_ms or other.argv != self._child.argv:
            return RetireResult(ended=True, removed=True, note=self._text())
        self._note(f"its terminal {self._child.address} has another name now ({other.name}) and was left alone")
        return RetireResult(ended=other.finished, removed=False, note=self._text())

    def _left(self, reserve_ms: int) -> int:
        """How long the next call may take: never so short that it could not be answered."""
        return max(MIN_CALL_MS, self._remaining(reserve_ms))

    def _remaining(self, reserve_ms: int) -> int:
        return round((self._until - asyncio.get_running_loop().time()) * 1000) - reserve_ms

    def _note(self, words: str) -> None:
        if words not in self._notes:
            self._notes.append(words)

    def _text(self) -> str | None:
        return "; ".join(self._notes) or None
