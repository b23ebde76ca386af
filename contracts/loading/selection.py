"""Which scenarios and clauses a run of the gate is about: the filters of the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from contracts.clauses import Clauses
from contracts.loading import Catalogue, Loaded, load_all
from contracts.loading.rules import clauses_of
from contracts.scenario import HostName, Level, Scenario


class NothingSelectedError(Exception):
    """A filter that matches nothing; the message names what is near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to run and what to show.

    `clauses`: the rows of the report. `by_clause`: clauses were asked for by name or level, so that a row without
    evidence counts as unproven. `checks`: whether executable checks run too.
    """

    entries: tuple[Loaded, ...]
    clauses: Clauses
    hosts: tuple[HostName, ...] = ("memory", "socket")
    checks: bool = True
    filtered: bool = False
    by_clause: bool = False

    @property
    def scenarios(self) -> list[Scenario]:
        """The scenarios to run, each with at least one of the hosts."""
        return [entry.scenario for entry in self.entries if set(entry.scenario.hosts) & set(self.hosts)]


def select(
    catalogue: Catalogue,
    clauses: Clauses,
    *,
    ids: Sequence[str] = (),
    globs: Sequence[str] = (),
    host: HostName | None = None,
    level: Level | None = None,
) -> Selection:
    """Apply the filters. Raises `NothingSelectedError` for a name or a combination that matches nothing."""
    wanted = _clauses(clauses, ids, level)
    entries = [entry for entry in _entries(catalogue, clauses, globs) if _concerns(entry.scenario, wanted)]
    hosts: tuple[HostName, ...] = (host,) if host else ("memory", "socket")
    entries = [entry for entry in entries if set(entry.scenario.hosts) & set(hosts)]
    checks = not globs and host is None
    if not entries and not checks:
        raise NothingSelectedError("no scenario is left after these filters" + _hint(catalogue, globs, host))
    by_clause = bool(ids or level)
    if globs or host:
        spoken = {clause for entry in entries for clause in clauses_of(entry.scenario)}
        wanted = {name: clause for name, clause in wanted.items() if name in spoken}
    return Selection(
        entries=tuple(entries),
        clauses=wanted,
        hosts=hosts,
        checks=checks,
        filtered=by_clause or bool(globs or host),
        by_clause=by_clause and checks,
    )


def _clauses(clauses: Clauses, ids: Sequence[str], level: Level | None) -> Clauses:
    by_lower = {name.lower(): name for name in clauses}
    for name in ids:
        if name.lower() not in by_lower:
            raise NothingSelectedError(f"there is no clause {name!r}{_near(name, list(clauses))}")
    chosen = {by_lower[name.lower()] for name in ids} or set(clauses)
    found = {name: one for name, one in clauses.items() if name in chosen and (level is None or one.level == level)}
    if not found:
        raise NothingSelectedError(f"none of the named clauses has the level {level}")
    return found


def _entries(catalogue: Catalogue, clauses: Clauses, globs: Sequence[str]) -> list[Loaded]:
    if not globs:
        return list(catalogue.entries.values())
    found: dict[str, Loaded] = {}
    for glob in globs:
        if is_path(glob):
            matched = load_all([Path(glob)], clauses).entries
        else:
            names = [scenario.id for scenario in catalogue.matching(glob)]
            matched = {name: catalogue.entries[name] for name in names}
        if not matched:
            raise NothingSelectedError(f"no scenario matches {glob!r}{_near(glob, list(catalogue.entries))}")
        found.update(matched)
    return list(found.values())


def is_path(glob: str) -> bool:
    """Whether a filter names a file or a folder instead of scenarios of the product."""
    return glob.endswith(".toml") or Path(glob).is_dir()


def _concerns(scenario: Scenario, wanted: Clauses) -> bool:
    """Whether a scenario can give evidence of one of the clauses; a hazard scenario gives it of hazards only."""
    hazard = scenario.level == "hazard"
    return any(name in wanted and (wanted[name].level == "hazard") is hazard for name in clauses_of(scenario))


def _near(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name.strip("*?"), names, n=3, cutoff=0.4)
    return f"; near: {', '.join(close)}" if close else ""


def _hint(catalogue: Catalogue, globs: Sequence[str], host: HostName | None) -> str:
    if host and len(globs) == 1 and globs[0] in catalogue.entries:
        return f": {globs[0]} runs on {', '.join(catalogue.entries[globs[0]].scenario.hosts)}"
    return ""
