"""How terminals look, encoded once and kept for as long as nothing happens in the core.

Supervisors ask `terminal.get` and `terminal.list` again and again, mostly to hear what they know already. A look at a
terminal whose timeline never counts looks changes nothing, so its answer can be the bytes of the time before.
"""

from collections.abc import Mapping

import msgspec

from hc_sim.core.terminal import Entry, show
from hc_sim.core.world import World
from hc_sim.script.format import Agent

LOOKS = ("terminal.get", "terminal.list")


class Glances:
    """Encoded answers to looks. `expire` whenever something may have happened."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._encoder = msgspec.json.Encoder(order="sorted" if world.profile.sorted_keys else None)
        self._known: dict[str, bytes] = {}
        self._manners: dict[int, tuple[Agent, bool]] = {}

    def expire(self) -> None:
        """Something may have happened: what was kept may be no longer so."""
        if self._known:
            self._known.clear()

    def known(self) -> Mapping[str, bytes]:
        """The results of `terminal.get` by target, as far as they are kept."""
        return self._known

    def get(self, target: str) -> bytes | None:
        """The result of `terminal.get`; None if there is no such terminal, or if its timeline counts looks."""
        found = self._known.get(target)
        if found is None:
            entry = self._world.table.find(target)
            found = None if entry is None else entry.drawn or self._draw(entry)
            if found is None:
                return None
            if self._world.profile.wrap_terminal:
                found = b'{"terminal":%b}' % found
            self._known[target] = found
        return found

    def all(self, *, finished_too: bool) -> list[bytes] | None:
        """The terminals of a `terminal.list` without labels; None if the timeline of one of them counts looks."""
        draw = self._draw
        found = [entry.drawn or draw(entry) for entry in self._world.table if finished_too or entry.state == "running"]
        return None if None in found else found  # type: ignore[return-value]

    def _draw(self, entry: Entry) -> bytes | None:
        if entry.player is not None and self._counts_looks(entry.player.agent):
            return None
        entry.drawn = drawn = self._encoder.encode(show(entry, self._world.profile))
        return drawn

    def _counts_looks(self, agent: Agent) -> bool:
        known = self._manners.get(id(agent))
        if known is None:
            counts = any(step.after_observations is not None or step.on_call in LOOKS for step in agent.step)
            known = self._manners[id(agent)] = (agent, counts)
        return known[1]
