"""What is planned for later: what befalls the core as a whole, and what the faults of calls have put off."""

import heapq
import itertools
from collections.abc import Callable

from hc_sim.faults import Faults, Moment, Planned

Action = Callable[[int], None]
"""Something to be done; it is told the time."""


class Agenda:
    """A plan under way and actions, each at its time."""

    def __init__(self, faults: Faults) -> None:
        self.plan = Planned(faults)
        self._actions: list[tuple[int, int, Action]] = []
        self._order = itertools.count()

    @property
    def idle(self) -> bool:
        """Whether nothing is planned."""
        return self.plan.idle and not self._actions

    def at(self, due: int, action: Action) -> None:
        """Put off an action to a time."""
        heapq.heappush(self._actions, (due, next(self._order), action))

    def next_due(self) -> int | None:
        """When something happens next; None if never."""
        plan, action = self.plan.next_due(), self._actions[0][0] if self._actions else None
        return min((at for at in (plan, action) if at is not None), default=None)

    def take(self, due: int) -> Moment | Action:
        """What happens at `next_due`: what befalls the core comes before what was put off to the same moment."""
        taken = self.plan.take(due)
        return heapq.heappop(self._actions)[2] if taken is None else taken[1]
