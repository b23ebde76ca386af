"""What watched processes run: each piece stands alone, and calls `watch()` and `forget()` around what counts."""

OUTSIDE = """
import asyncio
from legion_terminal.host import terminal_host_available
from legion_terminal.inprocess import InProcessSupervisor
from legion_terminal.routing import RoutingSupervisor, arbitrate
from legion_terminal.types import SpawnRequest

ENVS = [{}, {"HC_TERMINAL_SOCKET": "/nowhere/s"}, {"HC_TERMINAL_ID": "t1"}, {"HC_BIN": "/bin/true", "HC_SESSION": "x"}]
INSIDE = {"HC_TERMINAL_SOCKET": "/nowhere/s", "HC_TERMINAL_ID": "t1"}

async def work(request):
    return "done"

async def one():
    router = RoutingSupervisor({"inprocess": InProcessSupervisor(work)}, {})
    request = SpawnRequest(agent="scout", run_id="r", handle="h", task="t", cwd="/", session_file="/nowhere/x")
    child = await router.spawn(request)
    await router.wait_settled(child, 1000)
    await router.close()

loop = asyncio.new_event_loop()
watch()
for env in ENVS + [INSIDE]:
    terminal_host_available(env)
    for agent in ("centurion", "scout", "worker"):
        for worktree in (True, False):
            arbitrate(agent, worktree, env)
loop.run_until_complete(one())
forget()
loop.close()
"""

DETECTION = """
from legion_terminal.host import terminal_host_available

there = "/dev/null"
terminal_host_available({})
watch()
for env in ({}, {"HC_TERMINAL_SOCKET": there}, {"HC_TERMINAL_SOCKET": there, "HC_TERMINAL_ID": "t1", "HC_BIN": there}):
    terminal_host_available(env)
forget()
"""

MADE = """
import asyncio, collections, importlib, json, pkgutil, re, signal, subprocess, weakref, yaml

loop = asyncio.new_event_loop()
watch()
import legion_terminal
for module in pkgutil.walk_packages(legion_terminal.__path__, "legion_terminal."):
    importlib.import_module(module.name)
from legion_terminal.bridge import ProcessTransport
from legion_terminal.client import HcClient
from legion_terminal.host import resolve_hc
from legion_terminal.inprocess import InProcessSupervisor
from legion_terminal.routing import RoutingSupervisor
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import SpawnRequest

async def work(request):
    return "done"

async def one(env):
    client = HcClient(lambda: ProcessTransport(resolve_hc(env), env))
    backends = {"inprocess": InProcessSupervisor(work), "terminal": TerminalSupervisor(client, env)}
    router = RoutingSupervisor(backends, env)
    request = SpawnRequest(agent="scout", run_id="r", handle="h", task="t", cwd="/", session_file="/nowhere/x")
    await router.wait_settled(await router.spawn(request), 1000)
    await router.close()

for env in ({}, {"HC_TERMINAL_SOCKET": "/nowhere/s"}, {"HC_TERMINAL_ID": "t1"}):
    loop.run_until_complete(one({**env, "PATH": "/nowhere", "HC_BIN": "/bin/true"}))
forget()
loop.close()
"""

BRIDGE = """
import asyncio, os, pathlib
from legion_terminal.bridge import ProcessTransport
from legion_terminal.host import resolve_hc

home = pathlib.Path(os.environ["HOME"])
hc = home / "an hc; with $(odd) name"
hc.write_text("#!/bin/sh\\nexec cat\\n")
hc.chmod(0o755)
env = {"HC_BIN": str(hc), "PATH": os.environ["PATH"]}

async def go():
    transport = ProcessTransport(resolve_hc(env), env)
    watch()
    await transport.open()
    forget()
    await transport.write(b"x\\n")
    await transport.read()
    await transport.close()

asyncio.run(go())
"""

SPAWN = """
import asyncio, json
from legion_terminal.client import HcClient
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import SpawnRequest

TERMINAL = {"address": "t2", "name": "lgl-run00001-alpha", "argv": [], "cwd": "/", "state": "running", "status": None,
            "turn": 0, "exit_code": None, "signal": None, "labels": {}, "parent": "t1", "die_with_parent": True,
            "keep": False, "created_ms": 5, "pid": 9, "foreground": None}

class Echo:
    def __init__(self):
        self.answers = asyncio.Queue()
    async def open(self):
        pass
    async def write(self, data):
        for line in data.splitlines():
            asked = json.loads(line)
            result = {"core_id": "c", "generation": 1, "version": "0.1.20", "pid": 1}
            if asked["method"] != "hello":
                result = {**TERMINAL, "argv": asked["params"].get("argv", [])}
            answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
            self.answers.put_nowait(answer.encode() + b"\\n")
    async def read(self):
        return await self.answers.get()
    async def close(self):
        self.answers.put_nowait(b"")
    def tail(self):
        return ""
    def ended(self):
        return None

async def go():
    env = {"HC_TERMINAL_SOCKET": "/nowhere/s", "HC_TERMINAL_ID": "t1", "PATH": "/bin", "HOME": "/nowhere"}
    supervisor = TerminalSupervisor(HcClient(Echo), env)
    watch()
    await supervisor.spawn(SpawnRequest(agent="centurion", run_id="run00001", handle="alpha", task="t", cwd="/",
                                        session_file="/nowhere/x.jsonl", worktree=True))
    forget()
    await supervisor.close()

asyncio.run(go())
"""
