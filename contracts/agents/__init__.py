"""Real coding agents that can be checked when they are installed."""

from contracts.agents.found import NoPi, Pi, find_pi
from contracts.agents.pi import Broken, PiReport, run_pi
from contracts.agents.raw import RawPi, TooLate
from contracts.agents.stage import Fact, Row

__all__ = ["Broken", "Fact", "NoPi", "Pi", "PiReport", "RawPi", "Row", "TooLate", "find_pi", "run_pi"]
