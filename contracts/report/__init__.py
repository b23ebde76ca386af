"""Reports on a run of the gate. `as_table` is imported by its own path: it alone needs rich."""

from contracts.report.as_github import as_github
from contracts.report.as_json import as_json
from contracts.report.as_junit import as_junit
from contracts.report.content import Content

__all__ = ["Content", "as_github", "as_json", "as_junit"]
