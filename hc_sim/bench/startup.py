"""How long a supervisor waits for its bridge: `hc connect` from its start to the first reply."""

import os
import subprocess
import sys
import time
from pathlib import Path

from hc_sim.bench.client import PATIENCE_S, BenchError, check_reply
from hc_sim.bench.figures import Figure, judge
from hc_sim.programs import install_hc

HELLO = b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"generation":1}}\n'


def connect_figure(folder: Path, path: str, slices: int) -> Figure:
    """Milliseconds to the first reply, beside a Python that imports `socket` and ends."""
    hc = str(install_hc(folder))
    environment = {"HC_SOCKET": path, "PATH": os.environ.get("PATH", os.defpath)}
    values, floors = [], []
    for _ in range(slices):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import socket"], check=True, timeout=PATIENCE_S)
        floors.append((time.perf_counter() - begin) * 1_000)
        values.append(_first_reply([hc, "connect"], environment) * 1_000)
    return judge("hc_connect", min(values), min(floors))


def _first_reply(command: list[str], environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as bridge:
        if bridge.stdin is None or bridge.stdout is None:
            raise BenchError("no pipes")
        bridge.stdin.write(HELLO)
        bridge.stdin.flush()
        reply = bridge.stdout.readline()
        taken = time.perf_counter() - begin
        bridge.communicate(timeout=PATIENCE_S)
    check_reply(reply)
    return taken
