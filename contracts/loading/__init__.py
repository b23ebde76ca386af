"""Scenario files in: read strictly, checked for sense, selected by filters, described by schemas."""

from contracts.loading.files import (
    SCENARIOS,
    Catalogue,
    Loaded,
    ScenarioError,
    line_in,
    lint,
    lint_summary,
    load_all,
    load_scenario,
)

__all__ = [
    "SCENARIOS",
    "Catalogue",
    "Loaded",
    "ScenarioError",
    "line_in",
    "lint",
    "lint_summary",
    "load_all",
    "load_scenario",
]
