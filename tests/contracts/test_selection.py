"""The filters of the command line: what they keep, and what they refuse."""

from pathlib import Path
from typing import Any

import pytest

from contracts.clauses import Clause, Clauses
from contracts.loading import Catalogue, Loaded
from contracts.loading.selection import NothingSelectedError, Selection, select
from contracts.scenario import Expect, Level, Scenario, Step


def clause(name: str, level: Level = "must") -> Clause:
    return Clause(id=name, title=name, statement="x", source="x", proof=["x"], level=level)


CLAUSES: Clauses = {
    one.id: one for one in (clause("D8"), clause("D11"), clause("I4"), clause("W1", "should"), clause("H1", "hazard"))
}


def loaded(name: str, *clauses: str, layer: str = "settle", **more: Any) -> Loaded:
    scenario = Scenario(
        id=name, why="x", clauses=list(clauses), drive=[Step(do="spawn")], expect=[Expect(git=0)], **more
    )
    return Loaded(scenario, Path(f"/s/{layer}/{name}.toml"))


CATALOGUE = Catalogue(
    {
        one.scenario.id: one
        for one in (
            loaded("settle-one", "D8"),
            loaded("settle-two", "D8", "D11", hosts=["memory", "socket"]),
            loaded("wire-cut", "W1", layer="wire", hosts=["socket"]),
            loaded("hazard-idle", "H1", "D8", layer="hazard", level="hazard"),
        )
    }
)


def chosen(**filters: Any) -> Selection:
    return select(CATALOGUE, CLAUSES, **filters)


def ids(selection: Selection) -> list[str]:
    return [scenario.id for scenario in selection.scenarios]


def test_without_filters_everything_runs() -> None:
    selection = chosen()

    assert ids(selection) == list(CATALOGUE.entries)
    assert list(selection.clauses) == list(CLAUSES)
    assert (selection.checks, selection.filtered, selection.hosts) == (True, False, ("memory", "socket"))


def test_a_clause_keeps_its_scenarios_and_only_its_own_row() -> None:
    selection = chosen(ids=["D11"])

    assert ids(selection) == ["settle-two"]
    assert list(selection.clauses) == ["D11"]
    assert selection.filtered
    assert selection.by_clause


def test_a_clause_is_found_in_any_case() -> None:
    assert list(chosen(ids=["d8", "w1"]).clauses) == ["D8", "W1"]


def test_a_must_is_not_asked_of_hazard_scenarios() -> None:
    assert ids(chosen(ids=["D8"])) == ["settle-one", "settle-two"]
    assert ids(chosen(ids=["H1"])) == ["hazard-idle"]


@pytest.mark.parametrize(
    ("level", "names", "rows"),
    [
        ("must", ["settle-one", "settle-two"], ["D8", "D11", "I4"]),
        ("should", ["wire-cut"], ["W1"]),
        ("hazard", ["hazard-idle"], ["H1"]),
    ],
)
def test_a_level_keeps_its_clauses(level: Level, names: list[str], rows: list[str]) -> None:
    assert (ids(chosen(level=level)), list(chosen(level=level).clauses)) == (names, rows)


@pytest.mark.parametrize(
    ("glob", "names"),
    [("settle-one", ["settle-one"]), ("settle-*", ["settle-one", "settle-two"]), ("wire/*", ["wire-cut"])],
)
def test_a_glob_keeps_ids_and_layers(glob: str, names: list[str]) -> None:
    assert ids(chosen(globs=[glob])) == names


def test_a_scenario_shows_only_the_clauses_that_it_speaks_of_and_runs_no_checks() -> None:
    selection = chosen(globs=["settle-two"])

    assert list(selection.clauses) == ["D8", "D11"]
    assert not selection.checks
    assert not selection.by_clause


def test_a_host_keeps_the_scenarios_that_run_on_it() -> None:
    selection = chosen(host="socket")

    assert ids(selection) == ["settle-two", "wire-cut"]
    assert (selection.hosts, selection.checks) == (("socket",), False)


def test_filters_narrow_each_other() -> None:
    selection = chosen(ids=["D8"], globs=["settle-two"], host="socket")

    assert ids(selection) == ["settle-two"]
    assert list(selection.clauses) == ["D8"]


def test_a_clause_that_only_a_check_proves_selects_no_scenario_and_is_no_mistake() -> None:
    selection = chosen(ids=["I4"])

    assert ids(selection) == []
    assert selection.checks


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"ids": ["D88"]}, "no clause 'D88'; near: D8"),
        ({"ids": ["D8"], "level": "hazard"}, "none of the named clauses has the level hazard"),
        ({"globs": ["setle-one"]}, "no scenario matches 'setle-one'; near: settle-one"),
        ({"globs": ["settle-one", "zzz"]}, "no scenario matches 'zzz'"),
        ({"globs": ["settle-one"], "host": "socket"}, "settle-one runs on memory"),
        ({"globs": ["wire-cut"], "ids": ["D8"]}, "no scenario is left"),
    ],
)
def test_a_filter_that_matches_nothing_is_refused_with_what_is_near(filters: dict[str, Any], message: str) -> None:
    with pytest.raises(NothingSelectedError, match=message.replace("(", r"\(")):
        chosen(**filters)
