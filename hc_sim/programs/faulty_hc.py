"""An `hc` whose `connect` misbehaves on a chosen connection: noise on stderr, an early end, an end after n requests.

How many connections there were is kept in a file beside the program (one byte a connection), because each of them is a
process of its own. Whatever the faults leave alone is done by the healthy `hc`, whose source stands next to it.
"""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hc_sim.faults import Bridge
from hc_sim.programs.install import copy_program_source, write_program

COUNTER = ".connections"
MAX_STDERR_BYTES = 64 * 1024 * 1024
_HEALTHY = "hc_healthy"
_BLANK = msgspec.structs.asdict(Bridge())

_SOURCE = '''
"""A faulty `hc connect`; written by hc_sim.programs.faulty_hc."""
import os
import sys

HERE = os.path.realpath(__file__).rpartition("/")[0]
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import {healthy} as healthy

BRIDGES = {bridges}
NOISE = b"noise from the bridge: nothing to see here\\n"


def number():
    """Which connection this is, from 1. One appended byte each: two processes never get the same place."""
    fd = os.open(HERE + "/{counter}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, b".")
    place = os.lseek(fd, 0, os.SEEK_CUR)
    os.close(fd)
    return place


def say(bridge):
    os.write(2, bridge["stderr"].encode())
    rest = bridge["stderr_bytes"]
    while rest > 0:
        rest -= os.write(2, (NOISE * 512)[: min(rest, 16384)])


def end(bridge):
    if bridge["signal"]:
        import _signal

        number = getattr(_signal, bridge["signal"])
        if number not in (_signal.SIGKILL, _signal.SIGSTOP):
            _signal.signal(number, _signal.SIG_DFL)
        os.killpg(0, number) if bridge["group"] else os.kill(os.getpid(), number)
    os._exit(bridge["exit_code"] or 0)


class Ending(healthy.Bridge):
    """The healthy bridge, until the request that is one too many has been read; that one never reaches the core."""

    bridge = None
    seen = passed = 0

    def _read(self):
        before = len(self.up)
        super()._read()
        self.seen += self.up[before:].count(b"\\n")
        if self.bridge["after_requests"] and self.seen >= self.bridge["after_requests"]:
            if not self.bridge["closes"]:
                end(self.bridge)
            let_go(self.bridge["closes"])

    def _write(self):
        limit = self.bridge["after_reply_bytes"]
        if limit is not None and self.passed + len(self.down) >= limit:
            while self.passed < limit:
                written = os.write(self.sink, self.down[: limit - self.passed])
                self.passed += written
                del self.down[:written]
            end(self.bridge)
        before = len(self.down)
        super()._write()
        self.passed += before - len(self.down)


def let_go(stream):
    """The other end sees the end of this stream; the process lives on."""
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, ("stdin", "stdout", "stderr").index(stream))
    os.close(null)
    if stream == "stdin":
        import _signal

        while True:
            _signal.pause()


def end_after(bridge):
    import _signal

    _signal.signal(_signal.SIGALRM, lambda *_: end(bridge))
    _signal.setitimer(_signal.ITIMER_REAL, bridge["after_ms"] / 1000 or 1e-6)


def main():
    if sys.argv[1:2] == ["connect"]:
        nth = number()
        for bridge in BRIDGES:
            if bridge["nth"] in (0, nth):
                say(bridge)
                if bridge["exit_code"] is not None or bridge["signal"] or bridge["closes"]:
                    later = bridge["after_ms"] is not None or bridge["after_reply_bytes"] is not None
                    if bridge["after_ms"] is not None:
                        end_after(bridge)
                    if bridge["after_requests"] == 0 and not later:
                        let_go(bridge["closes"]) if bridge["closes"] else end(bridge)
                    Ending.bridge = bridge
                    healthy.Bridge = Ending
                break
    healthy.run(sys.argv[1:])


main()
'''


def install_faulty_hc(directory: Path | str, bridges: Sequence[Mapping[str, Any]], *, name: str = "hc") -> Path:
    """Write an `hc` into `directory` whose connections go wrong as `bridges` say; returns its path.

    A bridge: `nth` (which connection, from 1; 0 = every one), `stderr` and `stderr_bytes` (said at the start),
    `exit_code` or `signal` (how the process ends, `"SIGKILL"`; with `group` its whole group), `after_requests` (0 = at
    once, else as soon as so many request lines were read, the last of which never reaches the core), `after_ms`,
    `after_reply_bytes` (it ends then instead), `closes` (it lets go of one stream and lives on). The first bridge that
    fits is taken. Raises `ValueError` for a field that is not there or makes no sense.
    """
    checked = [_checked(bridge) for bridge in bridges]
    folder = Path(directory)
    copy_program_source(folder, "hc.py", f"{_HEALTHY}.py")
    copy_program_source(folder, "hc_verbs.py")
    source = _SOURCE.format(healthy=_HEALTHY, bridges=repr(checked), counter=COUNTER)
    write_program(folder / name, source)
    return folder / name


def connections(directory: Path | str) -> int:
    """How many times `connect` of the faulty `hc` in `directory` was started."""
    counter = Path(directory) / COUNTER
    return counter.stat().st_size if counter.exists() else 0


def _checked(bridge: Mapping[str, Any]) -> dict[str, Any]:
    unknown = set(bridge) - set(_BLANK)
    if unknown:
        raise ValueError(f"a bridge has no {', '.join(sorted(unknown))}")
    whole = {**_BLANK, **bridge}
    if whole["signal"] is not None and whole["signal"] not in signal.Signals.__members__:
        raise ValueError(f"there is no signal {whole['signal']}")
    if not 0 <= whole["stderr_bytes"] <= MAX_STDERR_BYTES:
        raise ValueError(f"stderr_bytes must be 0 to {MAX_STDERR_BYTES}")
    if whole["closes"] not in ("", "stdin", "stdout", "stderr"):
        raise ValueError(f"there is no stream {whole['closes']}")
    if whole["after_requests"] < 0 or whole["nth"] < 0:
        raise ValueError("nth and after_requests count from 0")
    return whole
