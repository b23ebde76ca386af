"""How fast the fake core is, measured beside floors that are measured in the same run."""

from hc_sim.bench.client import BenchError
from hc_sim.bench.figures import SCHEMA, TARGETS, Figure, Report, Target, judge
from hc_sim.bench.suite import Effort, run_bench

__all__ = ["SCHEMA", "TARGETS", "BenchError", "Effort", "Figure", "Report", "Target", "judge", "run_bench"]
