"""Executables that a supervisor really starts."""

from hc_sim.programs.faulty_hc import install_faulty_hc
from hc_sim.programs.install import install_hc
from hc_sim.programs.install_pi import install_pi

__all__ = ["install_faulty_hc", "install_hc", "install_pi"]
