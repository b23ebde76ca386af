"""The report as one page for a browser. Imported by its own path: it alone needs Jinja2."""

from contracts.report.html.page import as_html

__all__ = ["as_html"]
