"""Planted violations as people write them: TOML entries, read strictly, each mistake with file, line and key."""
# ruff: noqa: RUF012 - msgspec gives every value its own copy of an empty default

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Literal, get_args

import msgspec

from contracts.clauses import Clauses
from contracts.loading.problem import Problem, nearest
from contracts.scenario import HostName
from hc_sim.script.format import Strict
from hc_sim.script.toml import FileError, line_of, read_toml

FOLDER: Final = Path(__file__).parent
MAX_ENTRIES: Final = 1_000
PACKAGES: Final = ("hc_sim", "legion_terminal", "contracts")
"""What a planted violation may change, and what a copy consists of."""

Target = Literal["supervisor", "core", "suite"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)
_ID: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_INDEX: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


class Edit(Strict, frozen=True):
    """One text that takes the place of another. `file` is a path below the packages' root; `old` stands there once."""

    file: str
    old: str
    new: str


class Entry(Strict, frozen=True):
    """One violation as it is written.

    `breaks`: what it breaks: for a supervisor one clause; for the core the one difference that a live run has to name;
    for the suite the supervisor violations and probes that go unseen by it. `why`: one sentence, what is wrong with
    whoever does this. `file`, `old`, `new`, or several of them as `edits`. `also`: clause (or difference) that turns
    red too, and the reason. `hosts`: with `socket`, the scenarios of the broken clause are run over the socket as well.
    `looks`: further checks and scenarios over the socket, by id, without which it is not seen.
    """

    id: str
    breaks: list[str]
    why: str
    file: str | None = None
    old: str | None = None
    new: str | None = None
    edits: list[Edit] = []
    also: dict[str, str] = {}
    hosts: list[HostName] = msgspec.field(default_factory=lambda: ["memory"])
    looks: list[str] = []


class _Entries(Strict, frozen=True):
    violation: list[Entry]


@dataclass(frozen=True, slots=True)
class Violation:
    """One planted violation, and the file that it stands in."""

    id: str
    target: Target
    breaks: tuple[str, ...]
    why: str
    edits: tuple[Edit, ...]
    also: Mapping[str, str]
    hosts: tuple[HostName, ...]
    looks: tuple[str, ...]
    path: Path
    index: int

    def mistake(self, key: str, message: str) -> FileError:
        """An error about one key of this entry, with its line."""
        return _located(self.path, Problem(f"violation[{self.index}].{key}" if key else "", message))


@dataclass(frozen=True, slots=True)
class Known:
    """What entries may refer to: must clauses, the ids of checks and socket scenarios, and probes."""

    clauses: Collection[str]
    looks: Collection[str]
    probes: Collection[str]


class ViolationsError(Exception):
    """One or more violation files cannot be used. `problems` says which, where and why."""

    def __init__(self, problems: Sequence[FileError]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


def musts(clauses: Clauses) -> frozenset[str]:
    """The clauses that a violation can break: a failure of any other fails no gate."""
    return frozenset(name for name, clause in clauses.items() if clause.level == "must")


def gating(clauses: Clauses) -> frozenset[str]:
    """The clauses that a violation of the supervisor can break; a should is seen where the entry has it looked at."""
    return frozenset(name for name, clause in clauses.items() if clause.level != "hazard")


def load_violations(known: Known, folder: Path = FOLDER) -> list[Violation]:
    """Every violation below `folder`, by target and path. Raises `ViolationsError` with all mistakes at once."""
    found: list[Violation] = []
    problems: list[FileError] = []
    for target in TARGETS:
        for path in sorted((folder / target).glob("*.toml")):
            try:
                entries = read_toml(path, _Entries).violation
            except FileError as error:
                problems.append(error)
                continue
            found += [_violation(entry, target, path, index) for index, entry in enumerate(entries)]
            problems += [
                _located(path, Problem(f"violation[{index}].{problem.key}", problem.message))
                for index, entry in enumerate(entries)
                for problem in _entry_problems(entry, target, known)
            ]
    problems += _across(found, known)
    if len(found) > MAX_ENTRIES:
        problems.append(FileError(folder, 0, "", f"more than {MAX_ENTRIES} violations"))
    if problems:
        raise ViolationsError(problems)
    return found


def _violation(entry: Entry, target: Target, path: Path, index: int) -> Violation:
    edits = tuple(entry.edits) or (Edit(file=entry.file or "", old=entry.old or "", new=entry.new or ""),)
    return Violation(
        id=entry.id,
        target=target,
        breaks=tuple(entry.breaks),
        why=entry.why,
        edits=edits,
        also=dict(entry.also),
        hosts=tuple(entry.hosts),
        looks=tuple(entry.looks),
        path=path,
        index=index,
    )


def _entry_problems(entry: Entry, target: Target, known: Known) -> Iterator[Problem]:
    if not _ID.fullmatch(entry.id):
        yield Problem("id", f"{entry.id!r} is no id in kebab-case")
    if not entry.why.strip():
        yield Problem("why", "is empty; say in one sentence what is wrong with whoever does this")
    yield from _edit_problems(entry)
    if not entry.breaks or (target != "suite" and len(entry.breaks) != 1):
        yield Problem("breaks", f"names {len(entry.breaks)}; a violation of the {target} breaks exactly one")
    if target == "supervisor":
        for place, clause in [(f"breaks[{i}]", name) for i, name in enumerate(entry.breaks)] + [
            (f"also.{name}", name) for name in entry.also
        ]:
            if clause not in known.clauses:
                yield Problem(place, f"there is no clause that gates, {clause!r}{nearest(clause, known.clauses)}")
    for name, reason in entry.also.items():
        if not reason.strip():
            yield Problem(f"also.{name}", "has no reason")
        if name in entry.breaks:
            yield Problem(f"also.{name}", "is what the violation breaks")
    if target == "suite" and entry.also:
        yield Problem("also", "belongs to violations of the supervisor and the core")
    for index, name in enumerate(entry.looks):
        if name not in known.looks:
            near = nearest(name, known.looks)
            yield Problem(f"looks[{index}]", f"there is no check or scenario over the socket {name!r}{near}")


def _edit_problems(entry: Entry) -> Iterator[Problem]:
    single = [name for name in ("file", "old", "new") if getattr(entry, name) is not None]
    if entry.edits and single:
        yield Problem(single[0], "cannot stand beside edits")
    elif not entry.edits and len(single) < len(("file", "old", "new")):
        missing = next(name for name in ("file", "old", "new") if name not in single)
        yield Problem(missing, "is missing: write file, old and new, or several of them as edits")
        return
    for index, edit in enumerate(entry.edits):
        yield from _one_edit(edit, f"edits[{index}].")
    if not entry.edits:
        yield from _one_edit(Edit(file=entry.file or "", old=entry.old or "", new=entry.new or ""), "")


def _one_edit(edit: Edit, key: str) -> Iterator[Problem]:
    parts = PurePosixPath(edit.file).parts
    if not parts or parts[0] not in PACKAGES or ".." in parts:
        yield Problem(f"{key}file", f"{edit.file!r} is no path below {', '.join(PACKAGES)}")
    if not edit.old:
        yield Problem(f"{key}old", "is empty")
    if edit.old == edit.new:
        yield Problem(f"{key}new", "is the text that is there already")


def _across(found: Sequence[Violation], known: Known) -> Iterator[FileError]:
    """Mistakes that one entry alone does not show: an id used twice, a suite violation that names nothing known."""
    first: dict[str, Violation] = {}
    for one in found:
        if one.id in first:
            yield one.mistake("id", f"{one.id} is already the id of a violation in {first[one.id].path}")
        first.setdefault(one.id, one)
    visible = {one.id for one in found if one.target == "supervisor"} | set(known.probes)
    for one in found:
        for index, name in enumerate(one.breaks if one.target == "suite" else ()):
            if name not in visible:
                near = nearest(name, visible)
                yield one.mistake(f"breaks[{index}]", f"there is no supervisor violation or probe {name!r}{near}")


def _located(path: Path, problem: Problem) -> FileError:
    key = tuple(int(index) if index else name for index, name in _INDEX.findall(problem.key))
    return FileError(path, line_of(path.read_text(encoding="utf-8"), key) if key else 0, problem.key, problem.message)
