"""Planted violations: supervisors, cores and suites that break one thing each, to prove that it is seen."""

from contracts.violations.entries import FOLDER, TARGETS, Target, Violation, ViolationsError
from contracts.violations.judgement import Control, Judged, Matrix, as_json
from contracts.violations.matrix import load_checked, look_count, run_matrix

__all__ = [
    "FOLDER",
    "TARGETS",
    "Control",
    "Judged",
    "Matrix",
    "Target",
    "Violation",
    "ViolationsError",
    "as_json",
    "load_checked",
    "look_count",
    "run_matrix",
]
