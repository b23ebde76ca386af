"""What a program was started with, was told and did, one JSON object a line, for whoever examines its supervisor."""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Log:
    """A file that only its owner reads; every line is there as soon as it is written. `path` "": nothing is kept."""

    def __init__(self, path: str) -> None:
        self._path = path

    def start(self, argv: Sequence[str]) -> None:
        """What the program was started with."""
        if self._path:
            place = {"cwd": os.getcwd(), "group": os.getpgid(0), "session": os.getsid(0)}
            self.write("start", argv=[sys.argv[0], *argv], env=dict(os.environ), **place)

    def write(self, what: str, **values: object) -> None:
        """Append one line: `start`, `line` (of stdin), `told` (to stop: how), `end` (its own)."""
        if not self._path:
            return
        head = {"at_ms": int(time.time() * 1000), "pid": os.getpid(), "what": what}
        line = json.dumps({**head, **values}, ensure_ascii=False) + "\n"
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(fd, line.encode("utf-8", "surrogateescape"))
        os.close(fd)
