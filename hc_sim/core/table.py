"""All terminals of a core, found by address or name without a search."""

import heapq
from collections.abc import Iterator
from string import ascii_lowercase

from hc_sim.core.terminal import Entry


class Table:
    """Terminals in the order of their creation. A name belongs to at most one live terminal.

    Finished terminals keep their name until they are removed; of several the newest answers to it, and a live one
    before them all. An address is looked up before a name.
    """

    def __init__(self, *, reuse_addresses: bool = False, suffix: bool = False) -> None:
        self.live_count = 0
        self._by_address: dict[str, Entry] = {}
        self._live_names: dict[str, Entry] = {}
        self._finished_names: dict[str, dict[str, Entry]] = {}
        self._children: dict[str, dict[str, Entry]] = {}
        self._reuse = reuse_addresses
        self._suffix = suffix
        self._free: list[int] = []
        self._last = 0

    def __len__(self) -> int:
        return len(self._by_address)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._by_address.values())

    def find(self, target: str) -> Entry | None:
        """The terminal with this address, or else with this name."""
        entry = self._by_address.get(target) or self._live_names.get(target)
        if entry is None and (finished := self._finished_names.get(target)):
            entry = finished[next(reversed(finished))]
        return entry

    def holder(self, name: str, *, finished_too: bool = False) -> Entry | None:
        """The live terminal that holds `name`; with `finished_too` a finished one as well."""
        entry = self._live_names.get(name)
        if entry is None and finished_too and (finished := self._finished_names.get(name)):
            entry = finished[next(reversed(finished))]
        return entry

    def children(self, address: str) -> list[Entry]:
        """The terminals whose parent is `address`."""
        return list(self._children.get(address, {}).values())

    def new_address(self) -> str:
        """An address that no terminal has."""
        while True:
            if self._free:
                number = heapq.heappop(self._free)
            else:
                self._last += 1
                number = self._last
            address = f"t{number}{chr(ord('a') + number % 26)}" if self._suffix else f"t{number}"
            if address not in self._by_address:
                return address

    def start_over(self) -> None:
        """Give out addresses from the first one again; those that are taken stay taken."""
        self._last = 0
        self._free.clear()

    def add(self, entry: Entry) -> None:
        """Take in a terminal, or one that comes back."""
        self._by_address[entry.address] = entry
        if entry.parent is not None:
            self._children.setdefault(entry.parent, {})[entry.address] = entry
        self.live_count += entry.live
        self._bind(entry)

    def remove(self, entry: Entry) -> None:
        """Forget a terminal."""
        del self._by_address[entry.address]
        self._release(entry)
        self.live_count -= entry.live
        if entry.parent is not None and (siblings := self._children.get(entry.parent)) is not None:
            siblings.pop(entry.address, None)
            if not siblings:
                del self._children[entry.parent]
        if self._reuse:
            heapq.heappush(self._free, int(entry.address.strip(ascii_lowercase)))

    def finish(self, entry: Entry) -> None:
        """Note that the terminal has finished: its name is free for another one."""
        self._release(entry)
        entry.state = "finished"
        self.live_count -= 1
        self._bind(entry)

    def rename(self, entry: Entry, name: str | None) -> None:
        """Give the terminal another name, or none; nothing happens if a live terminal has it already."""
        if name is not None and entry.live and self._live_names.get(name, entry) is not entry:
            return
        self._release(entry)
        entry.name = name
        self._bind(entry)

    def _bind(self, entry: Entry) -> None:
        if entry.name is None:
            return
        if entry.live:
            self._live_names[entry.name] = entry
        else:
            self._finished_names.setdefault(entry.name, {})[entry.address] = entry

    def _release(self, entry: Entry) -> None:
        if entry.name is None:
            return
        if entry.live:
            del self._live_names[entry.name]
            return
        finished = self._finished_names[entry.name]
        del finished[entry.address]
        if not finished:
            del self._finished_names[entry.name]
