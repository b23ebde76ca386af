"""Proof that live runs see drift: the live checks against a fake core that was changed, as a separate program."""

import asyncio
from pathlib import Path

from contracts.live.corner import make_corner, remove_folder
from contracts.live.finding import find_core
from contracts.live.hosts import LiveHost
from contracts.live.owner import new_owner
from contracts.live.problem import LiveError
from contracts.live.run import LiveRun, Options, run_live
from contracts.live.separate import ROOT, served

OPTIONS = Options(keep_going=True, documents=True, slow=False, supervisor=False, tidy=False)
"""The probes of the core alone; the supervisor's own lives would find the same once more, and slowly."""


def look(copy_root: Path) -> list[str]:
    """Serve the core of the packages below `copy_root` and return the names of all differences from the fake here.

    Raises `LiveError` when it does not start, or is gone before the end.
    """
    with served(copy_root) as env:
        return [one.name for one in live_run(env).found]


def live_run(env: dict[str, str], options: Options = OPTIONS) -> LiveRun:
    """One live run against the core that this environment leads to."""
    found = find_core(env)
    if found is None:
        raise LiveError("the environment leads to no core")
    corner = make_corner(new_owner())
    try:
        return asyncio.run(run_live(LiveHost(found, env), corner, options))
    finally:
        remove_folder(corner)


__all__ = ["OPTIONS", "ROOT", "live_run", "look", "served"]
