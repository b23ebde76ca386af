"""The exhaustive search as a whole: its cases side by side in processes, what is known saved after each, one report."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final, Literal

import msgspec

from contracts.fuzz import alphabet, exhaustive, oracle, schedule, walk
from contracts.fuzz.exhaustive import Tally, count, explore
from contracts.fuzz.planted import planted
from contracts.fuzz.schedule import Case, cases
from contracts.fuzz.shrink import Found, shrunk, tried
from contracts.fuzz.walk import Subject
from contracts.running.pool import Job, run_jobs
from legion_terminal import settle

SCHEMA: Final = 1
CASE_LIMIT_MS: Final = 24 * 3_600_000
"""How long one case may take in a process of its own."""
MAX_SAVED_BYTES: Final = 1_000_000
_JUDGED_BY: Final = (alphabet, schedule, walk, exhaustive, oracle, settle)
"""What the result of a case depends on."""


class SavedError(Exception):
    """A saved search that cannot be gone on with. The message names the file and says why."""


class SearchError(Exception):
    """The search itself broke."""


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of one case, as it is saved."""

    histories: int
    judged: int
    disagreements: int
    first: tuple[int, ...] | None
    seconds: float


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A search on its way: what it is of, and the cases that are done. `code` changes with all that it depends on."""

    schema: Literal[1]
    steps: int
    unmerged: bool
    subject: str
    code: str
    done: dict[str, Done] = msgspec.field(default_factory=dict)


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched: all histories of `steps` steps, `unmerged` or not; `subject` names a planted rule, or none."""

    steps: int
    unmerged: bool = False
    subject: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `merged`: histories that are the same as one that was judged; `first`: shrunk.

    `seconds` is how long this run took, `resumed` how many histories an earlier one had done.
    """

    search: Search
    histories: int
    judged: int
    disagreements: int
    seconds: float
    resumed: int = 0
    first: Found | None = None

    @property
    def merged(self) -> int:
        """How many were not judged alone."""
        return self.histories - self.judged


OnCase = Callable[[Tally], None]


def rule(name: str) -> type[Subject]:
    """The decision code of this name: a planted one, or the supervisor's own for "". Raises KeyError."""
    return planted(name).wait if name else Subject


def run(
    search: Search, *, workers: int | None = None, saved: Path | None = None, on_case: OnCase | None = None
) -> Report:
    """Carry the search out. With `saved` its state is kept in that file, and gone on with when the file is there.

    `workers` = 0 does all in this process. `on_case` is told of every case that is done, those done before included.
    Raises SavedError before anything is done, and SearchError when a case broke; finished cases are saved then.
    """
    begun = monotonic()
    known = load(saved, search) if saved is not None else new(search)
    wanted = {case.name: case for case in cases(search.steps)}
    tell = on_case or (lambda _: None)
    for name, done in known.done.items():
        tell(_tally(name, done))
    before = sum(done.histories for done in known.done.values())
    todo = [case for name, case in wanted.items() if name not in known.done]
    state = known

    def finished(_: int, result: "Tally | str") -> None:
        nonlocal state
        if isinstance(result, Tally):
            state = _with(state, result)
            if saved is not None:
                save(saved, state)
            tell(result)

    jobs = [Job((search, case), CASE_LIMIT_MS) for case in sorted(todo, key=_cost, reverse=True)]
    results = run_jobs(_work, jobs, failed=_failed, workers=workers, on_result=finished) if jobs else []
    broken = [result for result in results if isinstance(result, str)]
    if broken:
        raise SearchError(broken[0])
    return _report(search, state, wanted, monotonic() - begun, before)


def new(search: Search) -> Saved:
    """A search that has not begun."""
    return Saved(
        schema=SCHEMA, steps=search.steps, unmerged=search.unmerged, subject=search.subject, code=fingerprint()
    )


def load(path: Path, search: Search) -> Saved:
    """The state in a file, or a new one when there is no file. Raises SavedError for any other file."""
    try:
        if not path.exists():
            return new(search)
        if path.stat().st_size > MAX_SAVED_BYTES:
            raise SavedError(f"{path}: too large for a saved search")
        found = msgspec.json.decode(path.read_bytes(), type=Saved)
    except OSError as error:
        raise SavedError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SavedError(f"{path}: no saved search: {error}") from error
    blank = new(search)
    for name in ("steps", "unmerged", "subject", "code"):
        if getattr(found, name) != getattr(blank, name):
            raise SavedError(
                f"{path}: saved by another search ({name} is {getattr(found, name)!r}, not {getattr(blank, name)!r})"
            )
    if unknown := sorted(set(found.done) - {case.name for case in cases(search.steps)}):
        raise SavedError(f"{path}: no saved search: there is no case {unknown[0]!r}")
    return found


def save(path: Path, state: Saved) -> None:
    """Write the state, whole or not at all. Raises SearchError."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(msgspec.json.format(msgspec.json.encode(state)) + b"\n")
        part.replace(path)
    except OSError as error:
        raise SearchError(f"{path}: cannot be written: {error.strerror}") from error


def fingerprint() -> str:
    """Changes with the decision code, the oracle, and everything that spells histories out."""
    sources = [Path(str(module.__file__)).read_bytes() for module in _JUDGED_BY]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:16]


def _work(payload: tuple[Search, Case]) -> "Tally | str":
    search, case = payload
    return explore(case, search.steps, rule(search.subject), unmerged=search.unmerged)


def _failed(payload: tuple[Search, Case], words: str) -> "Tally | str":
    return f"case {payload[1].name}: {words}"


def _cost(case: Case) -> tuple[int, bool, int]:
    """The longest cases first: those in which most lies between two looks."""
    return case.timeout_ms and case.phase.poll_ms + 3 * case.phase.answer_ms, case.timeout_ms > 0, case.timeout_ms


def _with(state: Saved, tally: Tally) -> Saved:
    done = Done(tally.histories, tally.judged, tally.disagreements, tally.first, tally.seconds)
    return msgspec.structs.replace(state, done={**state.done, tally.case: done})


def _tally(name: str, done: Done) -> Tally:
    return Tally(name, done.histories, done.judged, done.disagreements, done.first, done.seconds)


def _report(search: Search, state: Saved, wanted: dict[str, Case], seconds: float, before: int) -> Report:
    found = list(state.done.values())
    histories = sum(done.histories for done in found)
    if histories != count(search.steps):
        raise SearchError(f"{histories} histories were tried, and there are {count(search.steps)}")
    subject = rule(search.subject)
    firsts = [(state.done[name].first, case) for name, case in wanted.items()]
    first = next((tried(steps, case, subject) for steps, case in firsts if steps is not None), None)
    return Report(
        search=search,
        histories=histories,
        judged=sum(done.judged for done in found),
        disagreements=sum(done.disagreements for done in found),
        seconds=seconds,
        resumed=before,
        first=shrunk(first, subject) if first is not None else None,
    )
