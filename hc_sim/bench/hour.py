"""How long an hour of an agent's life takes in virtual time."""

import asyncio
import gc
import json
import time

from hc_sim.bench.client import BenchError
from hc_sim.bench.figures import Figure, judge
from hc_sim.clock import run_virtual
from hc_sim.core import Core
from hc_sim.driver import Driver
from hc_sim.hub.connection import Hub
from hc_sim.script.format import Agent, Finish, Step

HOUR_MS = 3_600_000
TURNS = 60
RUN = b'{"jsonrpc":"2.0","id":1,"method":"terminal.run","params":{"argv":["pi","work"],"name":"worker"}}\n'
GET = b'{"jsonrpc":"2.0","id":2,"method":"terminal.get","params":{"terminal":"worker"}}\n'


def an_hour() -> Agent:
    """An agent that works a turn of 40 s each minute, for an hour, and then exits."""
    steps: list[Step] = []
    for turn in range(TURNS):
        steps.append(Step(at_ms=turn * HOUR_MS // TURNS, turn=turn + 1, status="working"))
        steps.append(Step(after_ms=40_000, status="done"))
    return Agent(status="working", step=[*steps, Step(at_ms=HOUR_MS, finish=Finish(code=0))])


def live_an_hour(agent: Agent) -> dict[str, object]:
    """Start the agent on a core in virtual time, see its end, and return the terminal as it is then."""
    return run_virtual(_follow(agent))


async def _follow(agent: Agent) -> dict[str, object]:
    driver = Driver(Hub(Core(agents=[agent])))
    link = driver.open_link()
    link.write(RUN)
    await link.read()
    await asyncio.sleep((HOUR_MS + 1) / 1_000)
    link.write(GET)
    reply = await link.read()
    driver.close()
    result: dict[str, object] = json.loads(reply)["result"]
    return result


def hour_figure(slices: int) -> Figure:
    """Milliseconds of real time for the hour, loop, connection and trace included."""
    agent, taken = an_hour(), []
    for _ in range(slices):
        gc.collect()
        begin = time.perf_counter()
        last = live_an_hour(agent)
        taken.append((time.perf_counter() - begin) * 1_000)
        if (last.get("state"), last.get("turn")) != ("finished", TURNS):
            raise BenchError(f"the hour did not come to its end: {last}")
    return judge("hour_ms", min(taken))
