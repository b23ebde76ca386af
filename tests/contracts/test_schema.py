"""The committed JSON Schemas: up to date, valid, and in agreement with the loader."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from contracts.clauses.catalogue import FOLDER as CLAUSES
from contracts.loading import SCENARIOS
from contracts.loading.schema import FOLDER, drift, schemas, write


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


def test_the_committed_schemas_say_what_the_types_say() -> None:
    assert drift() == [], "run: legion-contracts schema --write"


@pytest.mark.parametrize("name", sorted(schemas()))
def test_a_schema_is_a_valid_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schemas()[name]))


def test_every_scenario_of_the_product_agrees_with_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(schema("scenario.schema.json"))
    files = sorted(SCENARIOS.rglob("*.toml"))

    assert files
    for path in files:
        errors = [error.message for error in validator.iter_errors(tomllib.loads(path.read_text(encoding="utf-8")))]
        assert errors == [], path


def test_every_clause_file_agrees_with_the_schema() -> None:
    for path in CLAUSES.glob("*.toml"):
        jsonschema.validate(tomllib.loads(path.read_text(encoding="utf-8")), schema("clauses.schema.json"))


def test_the_scenario_schema_refuses_an_unknown_key() -> None:
    value = {"id": "x", "why": "x", "clauses": ["D8"], "drive": [{"do": "spawn", "ass": "a"}]}

    with pytest.raises(jsonschema.ValidationError, match="ass"):
        jsonschema.validate(value, schema("scenario.schema.json"))


def test_the_wire_schema_has_parameters_and_result_of_every_method() -> None:
    from hc_sim.model import METHODS

    properties = schema("wire.schema.json")["properties"]

    assert set(properties) == set(METHODS)
    assert all(set(entry["properties"]) == {"params", "result"} for entry in properties.values())


def test_writing_brings_a_folder_up_to_date_once(tmp_path: Path) -> None:
    folder = tmp_path / "schemas"
    assert drift(folder) == sorted(schemas(), key=list(schemas()).index)

    assert [path.name for path in write(folder)] == list(schemas())
    assert write(folder) == []
    assert drift(folder) == []


def test_a_file_that_belongs_to_nothing_is_drift(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "old.schema.json").write_text("{}")
    (tmp_path / "scenario.schema.json").write_text("{}")

    assert drift(tmp_path) == ["scenario.schema.json", "old.schema.json"]
