"""The player of one agent on one terminal: which step is armed, and what fires it. It decides; the core carries out."""

from hc_sim.script.format import Agent, Step

Fired = tuple[int, Step]
"""A step that fires now, and its index in the timeline."""


class Player:
    """Walks one timeline. At most one step is armed; firing it arms the next one at the same moment.

    Each question (`timed`, `called`, `seen`, `named`) is asked when something happened, and answers with the step that
    this fires. Counters start anew with each arming, so what fired a step never counts for the next one; only
    prompts wait.
    """

    __slots__ = ("_armed_at", "_calls", "_index", "_prompts", "_seen", "_start", "_steps", "agent")

    def __init__(self, agent: Agent, start: int) -> None:
        self.agent = agent
        self._start = start
        self._steps = agent.step
        self._index = -1
        self._calls = 0
        self._seen = 0
        self._prompts = 0
        self._armed_at = start
        self._arm(0, start)

    @property
    def started(self) -> int:
        """When its terminal started."""
        return self._start

    @property
    def index(self) -> int | None:
        """Index of the armed step, or None at the end of the timeline."""
        return self._index if self._index < len(self._steps) else None

    def due(self) -> int | None:
        """The moment at which the armed step fires by itself, or None if time alone does not fire it."""
        if self._index >= len(self._steps):
            return None
        step = self._steps[self._index]
        if step.at_ms is not None:
            return max(self._start + step.at_ms, self._armed_at)
        if step.after_ms is not None:
            return self._armed_at + step.after_ms
        if step.on_prompt and self._prompts:
            return self._armed_at
        if step.after_observations is not None and step.after_observations <= 0:
            return self._armed_at
        return None

    def timed(self, now: int) -> Fired | None:
        """Fire the armed step if its time has come."""
        due = self.due()
        return self._fire(now) if due is not None and due <= now else None

    def called(self, method: str, now: int) -> Fired | None:
        """A call of `method` reached the terminal."""
        step = self._armed()
        if step is None or step.on_call != method:
            return None
        self._calls += 1
        return self._fire(now) if self._calls >= step.nth else None

    def seen(self, now: int) -> Fired | None:
        """An answer has shown the terminal."""
        step = self._armed()
        if step is None or step.after_observations is None:
            return None
        self._seen += 1
        return self._fire(now) if self._seen >= step.after_observations else None

    def named(self, name: str, now: int) -> Fired | None:
        """Somebody fires `name` by hand."""
        step = self._armed()
        return self._fire(now) if step is not None and step.by_hand == name else None

    def prompted(self) -> None:
        """A prompt has reached the agent; it waits until a step with `on_prompt` takes it."""
        self._prompts += 1

    def jump(self, index: int, now: int) -> None:
        """Arm the step with this index instead of the armed one."""
        self._arm(index, now)

    def stop(self) -> None:
        """Play nothing more."""
        self._index = len(self._steps)

    def _armed(self) -> Step | None:
        return self._steps[self._index] if self._index < len(self._steps) else None

    def _fire(self, now: int) -> Fired:
        index = self._index
        if self._steps[index].on_prompt:
            self._prompts -= 1
        following = index + 1
        if following >= len(self._steps) and self.agent.repeat_from is not None:
            following = self.agent.repeat_from
        self._arm(following, now)
        return index, self._steps[index]

    def _arm(self, index: int, now: int) -> None:
        self._index = index
        self._armed_at = now
        self._calls = 0
        self._seen = 0
