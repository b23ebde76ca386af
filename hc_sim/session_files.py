"""What a scripted agent does to its session file, done to a real one."""

import os
from pathlib import Path

from hc_sim.core import FileEffect


def apply_file(effect: FileEffect) -> None:
    """Do to a session file what the scripted agent does to it; raises `OSError`.

    Files are made 0600 and links are not followed to be replaced: a replacement is written beside and renamed over.
    """
    path = Path(effect.path)
    if effect.op == "remove":
        path.unlink(missing_ok=True)
    elif effect.op == "append":
        _write_all(path, os.O_APPEND, effect.data)
    else:
        draft = path.with_name(f".{path.name}.new")
        _write_all(draft, os.O_TRUNC, effect.data)
        draft.replace(path)


def _write_all(path: Path, flag: int, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | flag | os.O_NONBLOCK, 0o600), "wb") as file:
        file.write(data)
