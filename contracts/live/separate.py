"""The fake core as a program of its own, behind its own `hc`: what live checks are proved on."""

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from contracts.live.problem import LiveError

START_S: Final = 20.0
END_S: Final = 10.0
LAST_LINE: Final = "export PATH="
ROOT: Final = Path(__file__).resolve().parents[2]
"""The folder above the packages of this very installation."""


@contextlib.contextmanager
def served(root: Path = ROOT, *, options: Sequence[str] = ("--programs",)) -> Iterator[dict[str, str]]:
    """Within: `hc-sim serve` of the packages below `root` runs as a process; yields the environment that leads to it.

    Raises `LiveError` when it does not start.
    """
    command = [sys.executable, "-B", "-P", "-m", "hc_sim.cli", "serve", "--quiet", *options]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HC_", "PYTHON"))}
    with subprocess.Popen(
        command,
        env=env | {"PYTHONPATH": str(root)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield _exports(process)
        finally:
            _end(process)


def _exports(process: "subprocess.Popen[bytes]") -> dict[str, str]:
    """The variables that it prints when it is up."""
    until = time.monotonic() + START_S
    said = b""
    if process.stdout is None:  # pragma: no cover - it is a pipe
        raise LiveError("the core has no output")
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while LAST_LINE.encode() not in said or not said.endswith(b"\n"):
            left = until - time.monotonic()
            data = os.read(process.stdout.fileno(), 4_096) if left > 0 and selector.select(left) else b""
            if not data:
                raise LiveError(f"the core did not start: {_last_words(process)}")
            said += data
    pairs = (line.removeprefix("export ").partition("=") for line in said.decode().splitlines())
    return {name: shlex.split(value)[0] for name, _, value in pairs if name.startswith("HC_")}


def _last_words(process: "subprocess.Popen[bytes]") -> str:
    _end(process)
    said = process.stderr.read() if process.stderr is not None else b""
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {process.returncode}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
