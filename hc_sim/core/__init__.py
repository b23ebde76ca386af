"""The fake core: a pure state machine without socket, clock or thread."""

from hc_sim.core.answers import Answer, Answered, FileEffect, Pending
from hc_sim.core.machine import Core

__all__ = ["Answer", "Answered", "Core", "FileEffect", "Pending"]
