"""The core that is measured: a process of its own with as many terminals as wanted, each with an agent and a timeline.

It keeps no trace, as `hc-sim serve` does not. When it is ready it says in one line of JSON what its terminals weigh.
"""

import asyncio
import gc
import json
import os
import resource
import sys
from pathlib import Path

from hc_sim.bench.client import name_of
from hc_sim.bench.seats import sit
from hc_sim.core import Core
from hc_sim.driver import Driver
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.script.load import POLITE
from hc_sim.server import UnixServer

MAX_TERMINALS = 20_000


def fill(core: Core, count: int) -> None:
    """Start `count` terminals the way a supervisor does, each played by an agent with a timeline."""
    for number in range(count):
        params = {
            "argv": ["pi", "--session", f"/tmp/session-{number}.jsonl", f"do the work number {number}"],  # noqa: S108
            "cwd": "/home/someone/project",
            "env": {"PATH": "/usr/bin:/bin", "HOME": "/home/someone"},
            "labels": {"herdr.space": "space-1"},
            "name": name_of(number),
        }
        core.call("terminal.run", params, 0)


def resident_bytes() -> int:
    """What this process has in memory now; its peak where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


async def serve(path: str, count: int) -> None:
    """Listen at `path` until stdin ends."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(0, over.set)
    core = Core(WireProfile(max_terminals=MAX_TERMINALS), agents=[POLITE])
    driver = Driver(Hub(core), loop, keep_trace=False)
    gc.collect()
    before = resident_bytes()
    fill(core, count)
    gc.collect()
    weight = (resident_bytes() - before) / max(1, count)
    core.trace.events.clear()
    async with UnixServer(driver, path):
        print(json.dumps({"terminal_bytes": weight}), flush=True)  # noqa: T201 - read by the starting process
        await over.wait()
    driver.close()
    if driver.problems:
        sys.exit("\n".join(driver.problems))


def lift_file_limit() -> None:
    """As many open files as the system lets us have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sit("server")
    lift_file_limit()
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
