"""Read the clause files beside this module: one TOML file a source document."""

from pathlib import Path
from typing import get_args

from contracts.scenario import Level
from hc_sim.script.format import Strict
from hc_sim.script.toml import FileError, read_toml

FOLDER = Path(__file__).parent
FIRST = "terminal-backend.toml"
"""The document that reports begin with; the others follow by name."""

Clauses = dict[str, "Clause"]
"""Clauses by id, in the order in which reports show them."""


class Clause(Strict, frozen=True):
    """One requirement: what must hold, in our words, and where it comes from.

    `level`: must, should or hazard. `source`: document and decision, or field cases. `decision`: what was decided where
    the source is silent. `proof`: what has to be shown before the clause counts as proved.
    """

    id: str
    title: str
    statement: str
    source: str
    proof: list[str]
    level: Level = "must"
    decision: str = ""


class ClauseFile(Strict, frozen=True):
    """One source document and its clauses. `status`: `frozen` (the text is law) or `hardening` (learned in use)."""

    document: str
    status: str
    clause: list[Clause]


def load_clauses(folder: Path = FOLDER) -> Clauses:
    """All clauses of a folder by id: musts first, hazards last, and in each of these the terminal backend first.

    Raises `FileError`, also for a repeated id.
    """
    found: Clauses = {}
    for path in sorted(folder.glob("*.toml"), key=lambda path: (path.name != FIRST, path.name)):
        for clause in read_toml(path, ClauseFile).clause:
            if clause.id in found:
                raise FileError(str(path), 0, "id", f"clause {clause.id} is defined twice")
            found[clause.id] = clause
    return {name: clause for level in get_args(Level) for name, clause in found.items() if clause.level == level}
