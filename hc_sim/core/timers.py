"""What is due when: moments in ms, each with something to do, taken in time order and first come first served."""

import heapq
from collections.abc import Callable

Act = Callable[[int], object]

MIN_SWEEP = 64


class Timer:
    """Something to do at `due`; `cancel` it to have it never done."""

    __slots__ = ("act", "due")

    def __init__(self, due: int, act: Act) -> None:
        self.due = due
        self.act: Act | None = act

    def cancel(self) -> None:
        """Never do it."""
        self.act = None


class Timers:
    """A heap of timers. Cancelled ones are dropped when they come up, and swept out before they can pile up."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._serial = 0
        self._sweep_at = MIN_SWEEP

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, due: int, act: Act) -> Timer:
        """Do `act(due)` when its time has come."""
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        self._serial += 1
        timer = Timer(due, act)
        heapq.heappush(self._heap, (due, self._serial, timer))
        return timer

    def next_due(self) -> int | None:
        """The earliest moment at which something is to be done, or None."""
        heap = self._heap
        while heap and heap[0][2].act is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def run_one(self) -> None:
        """Do what is due first; nothing if nothing is."""
        if self.next_due() is not None:
            due, _, timer = heapq.heappop(self._heap)
            if timer.act is not None:
                timer.act(due)

    def _sweep(self) -> None:
        self._heap = [item for item in self._heap if item[2].act is not None]
        heapq.heapify(self._heap)
        self._sweep_at = max(MIN_SWEEP, 2 * len(self._heap))
