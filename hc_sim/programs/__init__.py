"""Executables that a supervisor really starts."""

from hc_sim.programs.faulty_hc import install_faulty_hc
from hc_sim.programs.install import install_hc

__all__ = ["install_faulty_hc", "install_hc"]
