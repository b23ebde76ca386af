"""D6: the supervisor's own terminal, looked at once for the labels that its children copy."""

import asyncio
from collections.abc import Mapping

from legion_terminal.client import HcClient
from legion_terminal.errors import SupervisorError
from legion_terminal.sight import is_missing, read_sight


class Parent:
    """The terminal with this address (None: there is none). Its labels are read once and kept.

    `limit_ms` bounds the reading. A read that failed for a reason of the moment is tried again by the next start.
    """

    def __init__(self, client: HcClient, address: str | None, limit_ms: int) -> None:
        self._client = client
        self._address = address
        self._limit_ms = limit_ms
        self._labels: Mapping[str, str] | None = None
        self._read = address is None
        self._reading = asyncio.Lock()

    @property
    def address(self) -> str | None:
        """The address to name as the caller of a start; None also when the core says that there is no such terminal."""
        return self._address

    async def labels(self) -> Mapping[str, str] | None:
        """The labels, None while they are not known. Never raises for a failed call."""
        async with self._reading:
            if not self._read:
                await self._look()
            return self._labels

    async def _look(self) -> None:
        try:
            answer = await self._client.ask("terminal.get", {"terminal": self._address}, within_ms=self._limit_ms)
            self._labels = read_sight(answer).labels
            self._read = True
        except SupervisorError as error:
            if is_missing(error):
                self._address, self._read = None, True
