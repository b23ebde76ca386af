"""Read and write the file of a baseline: TOML, with the line of everything that is wrong with it."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import tomli_w

from contracts.clauses import Clauses
from contracts.judging.baseline import Baseline, problems
from contracts.loading.files import ScenarioError, line_in
from contracts.scenario import Scenario
from hc_sim.script.toml import FileError, read_toml

_HEAD: Final = """\
# Failures that are known, for legion-contracts check --baseline. They are shown and do not fail the gate.
# An entry whose statement holds again fails it, until the entry is taken out. `why` is for people.
"""


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises `ScenarioError` for one that cannot be read or is misspelled."""
    try:
        return read_toml(path, Baseline)
    except FileError as error:
        raise ScenarioError([error]) from error


def check_baseline(
    baseline: Baseline, path: Path, scenarios: Mapping[str, Scenario], checks: Collection[str], clauses: Clauses
) -> None:
    """Raise `ScenarioError` with every entry of a baseline that is about nothing there is."""
    found = list(problems(baseline, scenarios, checks, clauses))
    if found:
        raise ScenarioError([FileError(path, line_in(path, one.key), one.key, one.message) for one in found])


def entry_lines(path: Path, numbers: Sequence[int]) -> list[int]:
    """The lines on which these entries (from 0) begin."""
    return [line_in(path, f"known[{number}]") for number in numbers]


def baseline_text(baseline: Baseline) -> str:
    """The text of the file."""
    entries = [msgspec.to_builtins(entry) for entry in baseline.known]
    told = {"schema": baseline.schema, **({"known": entries} if entries else {})}
    return f"{_HEAD}{tomli_w.dumps(told)}"
