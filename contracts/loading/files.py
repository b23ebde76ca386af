"""Load scenario files: strict, with the file, line and field of every mistake.

`python -m contracts.loading [PATH...]` checks files or folders and prints what is wrong.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from contracts.clauses import Clauses, load_clauses
from contracts.loading.problem import Problem
from contracts.loading.rules import scenario_problems
from contracts.scenario import Scenario
from hc_sim.script.toml import FileError, line_of, read_toml

SCENARIOS = Path(__file__).parents[1] / "scenarios"
MAX_FILES = 5_000
_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


class ScenarioError(Exception):
    """One or more scenario files cannot be used. `problems` says which, where and why."""

    def __init__(self, problems: Sequence[FileError]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Loaded:
    """One scenario and the file that it stands in."""

    scenario: Scenario
    path: Path


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The scenarios of one or more folders, by id, in the order of their paths."""

    entries: Mapping[str, Loaded] = field(default_factory=dict)

    @property
    def scenarios(self) -> list[Scenario]:
        """All scenarios."""
        return [entry.scenario for entry in self.entries.values()]

    def paths(self) -> dict[str, Path]:
        """Scenario id to file."""
        return {name: entry.path for name, entry in self.entries.items()}

    def matching(self, glob: str) -> list[Scenario]:
        """Scenarios whose id, or whose path below its folder (`wire/*`), matches a glob."""
        return [
            entry.scenario
            for name, entry in self.entries.items()
            if fnmatchcase(name, glob) or fnmatchcase(f"{entry.path.parent.name}/{name}", glob)
        ]


def load_scenario(path: Path, clauses: Clauses | None = None) -> Scenario:
    """One scenario file. Raises `ScenarioError` with everything that is wrong with it."""
    known = load_clauses() if clauses is None else clauses
    try:
        scenario = read_toml(path, Scenario)
    except FileError as error:
        raise ScenarioError([error]) from error
    problems = scenario_problems(scenario, path.stem, known)
    if problems:
        raise ScenarioError(_located(path, problems))
    return scenario


def load_all(roots: Iterable[Path] = (SCENARIOS,), clauses: Clauses | None = None) -> Catalogue:
    """Every scenario at or below the given paths. Raises `ScenarioError` with the mistakes of all files at once."""
    known = load_clauses() if clauses is None else clauses
    entries: dict[str, Loaded] = {}
    problems: list[FileError] = []
    for path in scenario_files(roots):
        try:
            scenario = load_scenario(path, known)
        except ScenarioError as error:
            problems += error.problems
            continue
        if scenario.id in entries:
            problems.append(_file_error(path, "id", f"{scenario.id} is already the id of {entries[scenario.id].path}"))
        else:
            entries[scenario.id] = Loaded(scenario, path)
    if problems:
        raise ScenarioError(problems)
    return Catalogue(entries)


def scenario_files(roots: Iterable[Path]) -> Iterator[Path]:
    """The TOML files at or below the roots, sorted. Raises `ScenarioError` for a root that is not there."""
    count = 0
    for root in roots:
        if not root.exists():
            raise ScenarioError([FileError(str(root), 0, "", "no such file or folder")])
        if not (root.is_file() or root.is_dir()):
            raise ScenarioError([FileError(str(root), 0, "", "neither a file nor a folder")])
        for path in [root] if root.is_file() else sorted(root.rglob("*.toml")):
            count += 1
            if count > MAX_FILES:
                raise ScenarioError([FileError(str(root), 0, "", f"more than {MAX_FILES} scenario files")])
            yield path


def _located(path: Path, problems: Sequence[Problem]) -> list[FileError]:
    return [_file_error(path, problem.key, problem.message) for problem in problems]


def _file_error(path: Path, key: str, message: str) -> FileError:
    return FileError(path, line_in(path, key), key, message)


def line_in(path: Path, field: str) -> int:
    """The line of a dotted field such as `drive[2].returns.settled` in a scenario file, or the nearest one above it."""
    parts = tuple(int(index) if index else name for index, name in _PART.findall(field))
    return line_of(path.read_text(encoding="utf-8"), parts)


def lint(roots: Sequence[Path]) -> tuple[int, list[str]]:
    """How many scenarios are good, and one line for every mistake in the others."""
    clauses = load_clauses()
    seen: dict[str, Path] = {}
    lines: list[str] = []
    for path in scenario_files(roots):
        try:
            scenario = load_scenario(path, clauses)
        except ScenarioError as error:
            lines += [str(problem) for problem in error.problems]
            continue
        if scenario.id in seen:
            lines.append(str(_file_error(path, "id", f"{scenario.id} is already the id of {seen[scenario.id]}")))
        seen.setdefault(scenario.id, path)
    return len(seen), lines or ([] if seen else ["there is no scenario file in " + ", ".join(map(str, roots))])


def lint_summary(good: int, mistakes: int) -> str:
    """`1 scenario is good, 2 mistakes`."""
    return f"{good} scenario{' is' if good == 1 else 's are'} good, {mistakes} mistake{'' if mistakes == 1 else 's'}"


def main(arguments: Sequence[str]) -> int:
    """Check scenario files: 0 when all are good, 2 when one is not."""
    try:
        good, lines = lint([Path(argument) for argument in arguments] or [SCENARIOS])
    except ScenarioError as error:
        good, lines = 0, [str(problem) for problem in error.problems]
    for line in lines:
        sys.stderr.write(f"{line}\n")
    sys.stdout.write(f"{lint_summary(good, len(lines))}\n")
    return 2 if lines else 0
