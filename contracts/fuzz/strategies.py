"""The random runs and timelines as hypothesis strategies, so that hypothesis can shrink what it finds in them.

The generators are the same: only the choices come from hypothesis instead of a seed. Needs hypothesis (extra `test`).
"""

from typing import Any

from hypothesis import strategies as st

from contracts.fuzz.decisions import Timeline, timeline
from contracts.fuzz.plans import plan
from contracts.fuzz.timelines import agent
from contracts.scenario import Scenario
from hc_sim.script.format import Agent

MAX_SEED = 2**32


class Drawn:
    """Choices that hypothesis makes, and can make again, smaller."""

    def __init__(self, draw: Any) -> None:
        self.choices: list[int] = []
        self._draw = draw

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        value: int = self._draw(st.integers(0, n - 1))
        self.choices.append(value)
        return value


def seeds() -> st.SearchStrategy[int]:
    """One drawn seed may drive as many generated runs as one likes."""
    return st.integers(0, MAX_SEED - 1)


@st.composite
def plans(draw: st.DrawFn) -> Scenario:
    """Random runs of a whole supervisor."""
    return plan(Drawn(draw))


@st.composite
def agents(draw: st.DrawFn, name: str) -> Agent:
    """Random agents for terminals of this name."""
    return agent(Drawn(draw), name)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Random timelines for the settle decision alone."""
    return timeline(Drawn(draw))
