"""Programs that are really started: each in a pseudo-terminal of its own, heard by what it reports (OSC 7501)."""

from hc_sim.hosting.host import Programs

__all__ = ["Programs"]
