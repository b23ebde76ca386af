"""The records of one terminal: what its program and the parts of it have reported, and which report stands for all."""

from dataclasses import replace
from typing import Literal

from hc_sim.hosting.reports import Report
from hc_sim.model import Status

MAX_RECORDS = 256
"""Records of one terminal; beyond, the one that was updated least recently goes."""

Which = Literal["root", "most-urgent"]

_URGENCY = ("blocked", "error", "done", "working", "idle")


class Records:
    """Reports by path, the most recently updated last. A report replaces its record completely."""

    def __init__(self) -> None:
        self._known: dict[str, Report] = {}

    def __len__(self) -> int:
        return len(self._known)

    def apply(self, report: Report) -> None:
        """Take in one report. A `clear` removes its record and all below it, without a path everything."""
        if report.state == "clear":
            self._known = {path: one for path, one in self._known.items() if not _within(path, report.id)}
            return
        self._known.pop(report.id, None)
        self._known[report.id] = report
        if len(self._known) > MAX_RECORDS:
            del self._known[next(iter(self._known))]

    def stop_work(self) -> None:
        """The program has ended, or a shell shows its prompt again: nobody works or waits any more."""
        self._known = {path: one for path, one in self._known.items() if one.state not in ("working", "blocked")}

    def reset(self) -> None:
        """The terminal was reset: nothing is reported."""
        self._known.clear()

    def status(self, which: Which = "root") -> Status | None:
        """The report that stands for the terminal: its own, or the most urgent of all (of equals its own, then the
        newest); None if there is none."""
        chosen = self._known.get("")
        if which == "most-urgent" and self._known:
            newest_first = [one for one in (chosen, *reversed(self._known.values())) if one is not None]
            chosen = min(newest_first, key=lambda one: _URGENCY.index(one.state))
        return None if chosen is None else _as_status(replace(chosen, app=self._app(chosen)))

    def _app(self, report: Report) -> str | None:
        """The app of a record, or else that of its nearest ancestor."""
        path, app = report.id, report.app
        while app is None and path:
            path = path.rpartition("/")[0]
            above = self._known.get(path)
            app = None if above is None else above.app
        return app


def _within(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(top + "/")


def _as_status(report: Report) -> Status:
    return Status(
        state=report.state,  # type: ignore[arg-type] # a clear is never kept
        app=report.app,
        kind=report.kind,
        msg=report.msg,
        title=report.title,
        progress=report.progress,
    )
