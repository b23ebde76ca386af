"""Temporary folders for a core's socket: private, and short enough for a socket path."""

import os
import tempfile
from pathlib import Path

MAX_FOLDER = 70
"""Bytes of a folder's path that leave room for a socket below it."""


def private_folder(prefix: str = "hc-sim-") -> Path:
    """Make a folder of mode 0700 with a random name, where temporary files usually are unless that path is long."""
    usual = tempfile.gettempdir()
    short = usual if len(os.fsencode(usual)) <= MAX_FOLDER else "/tmp"  # noqa: S108 - mkdtemp makes it ours alone
    return Path(tempfile.mkdtemp(prefix=prefix, dir=short))
