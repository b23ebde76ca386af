"""What stands at the path of a core that is not up."""

import socket
from pathlib import Path
from typing import Literal

Occupant = Literal["dead-socket", "directory", "regular-file", "nothing"]


def occupy(path: Path, what: Occupant) -> None:
    """Put at a socket's path what a core that is not up leaves there: a dead socket, a folder, a file, or nothing."""
    match what:
        case "dead-socket":
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
                dead.bind(str(path))
        case "directory":
            path.mkdir(mode=0o700)
        case "regular-file":
            path.write_text("this is no socket\n")
        case "nothing":
            pass
