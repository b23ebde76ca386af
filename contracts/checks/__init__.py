"""Executable evidence for clauses that needs no scenario, by id."""

from collections.abc import Mapping

from contracts.checks import cards, launch, lives, modes, quiet, truth
from contracts.checks.base import Check, SkippedError, Subject, by_id, run_check

CHECKS: Mapping[str, Check] = by_id(
    (*modes.CHECKS, *lives.CHECKS, *quiet.CHECKS, *truth.CHECKS, *cards.CHECKS, *launch.CHECKS)
)
"""Every check; the slow ones first."""

__all__ = ["CHECKS", "Check", "SkippedError", "Subject", "by_id", "run_check"]
