"""What runs that were killed have left behind: found by their labels and names, removed if their process is gone."""

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from contracts.live.corner import FOLDER_PREFIX, Corner, RealFiles, clear, rows
from contracts.live.owner import LABEL, SPACE, Owner, read_mark
from contracts.live.peer import Peer
from contracts.live.problem import GoneError, SilentError

MAX_OWNERS: Final = 100
LIST_MS: Final = 5_000


async def clear_after_others(peer: Peer, *, target_key: str = "terminal") -> list[str]:
    """Remove what dead runs have left in a core, and their folders. Returns in words what was found.

    A terminal is taken for such a run's only if its name and its label say so, the label names a process of this
    machine, and that process is gone.
    """
    said: list[str] = []
    try:
        reply = await peer.ask("terminal.list", {"all": True}, within_ms=LIST_MS)
    except (GoneError, SilentError):
        return said
    owners = {owner for row in rows(reply) if (owner := owner_of(row)) is not None and owner.gone()}
    for owner in sorted(owners, key=lambda one: one.token)[:MAX_OWNERS]:
        corner = Corner(owner, Path("/nonexistent"), RealFiles(), target_key=target_key)
        left = await clear(corner, peer)
        words = f"; left: {'; '.join(left)}" if left else ""
        said.append(f"removed what the killed run {owner.token} (process {owner.pid}) had left{words}")
    remove_old_folders()
    return said


def owner_of(terminal: dict[str, Any]) -> Owner | None:
    """Whose terminal this is by its label, if its name agrees; None if it is nobody's here."""
    labels = terminal.get("labels")
    if not isinstance(labels, dict):
        return None
    owner = read_mark(labels.get(LABEL)) or read_mark(labels.get(SPACE))
    name = terminal.get("name")
    return owner if owner is not None and owner.named(name if isinstance(name, str) else None) else None


def remove_old_folders(place: Path | None = None) -> int:
    """Remove the folders of runs of this machine whose process is gone; returns how many."""
    removed = 0
    for path in (place or Path(tempfile.gettempdir())).glob(f"{FOLDER_PREFIX}lv*-*-*"):
        token, pid, start, machine = [*path.name.removeprefix(FOLDER_PREFIX).split("-"), "", ""][:4]
        if pid.isdecimal() and Owner(token, int(pid), start, machine).gone() and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
    return removed
