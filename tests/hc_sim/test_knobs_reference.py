"""The reference of faults lists every knob, and for every knob there is a test that shows its effect."""

import ast
import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from hc_sim.cli import main
from hc_sim.commands.faults import text
from hc_sim.faults import FaultPlan
from hc_sim.faults.reference import TABLES, knob_names, reference
from hc_sim.knobs import CLASSES, Knob

TESTS = Path(__file__).parent
ADDRESSES = {
    "method", "nth", "connection", "from_ms", "until_ms", "times", "at_ms", "name",  # which call, link, document, time
}  # fmt: skip
PARTS = {"argv", "labels", "turn", "status"}
"""How the terminal of a rival looks; `fault.rival` itself is the knob."""


def shown() -> set[str]:
    """The knobs that a test under tests/hc_sim says it shows."""
    names = set()
    for path in TESTS.glob("test_knobs_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names |= {name for one in node.decorator_list if (name := _knob(one))}
    return names


def _knob(decorator: ast.expr) -> str:
    if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "knob":
        argument = decorator.args[0]
        return str(argument.value) if isinstance(argument, ast.Constant) else ""
    return ""


def test_every_knob_has_a_test_that_shows_its_effect() -> None:
    assert set(knob_names()) - shown() == set()


def test_every_knob_that_a_test_shows_exists() -> None:
    assert shown() - set(knob_names()) == set()


def test_all_fifteen_classes_have_knobs() -> None:
    assert {row.number for row in reference()} == set(CLASSES) == set(range(1, 16))


@pytest.mark.parametrize(("table", "type_"), [(table, type_) for table, _, type_ in TABLES])
def test_every_field_of_a_fault_plan_is_a_knob_or_an_address(table: str, type_: type[msgspec.Struct]) -> None:
    fields = set(type_.__struct_fields__) - ADDRESSES - (PARTS if table == "rival" else set())
    assert {f"{table}.{field}" for field in fields} <= set(knob_names())


def test_every_table_of_a_plan_is_in_the_reference() -> None:
    assert set(FaultPlan.__struct_fields__) <= {table for table, _, _ in TABLES}


def test_every_knob_says_what_it_does_and_where_it_is_written() -> None:
    assert all(row.text and row.where for row in reference())


def test_a_knob_without_a_class_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="none given"):
        Knob("nothing")
    with pytest.raises(ValueError, match="16"):
        Knob("nothing", 16)


def test_the_command_prints_each_knob_under_each_of_its_classes() -> None:
    printed = CliRunner().invoke(main, ["faults"]).output
    headings = [line for line in printed.splitlines() if line[:1].isdigit()]
    assert headings == [f"{number}. {name}" for number, name in CLASSES.items()]
    assert sum(f"  {row.name} " in line for row in reference() for line in printed.splitlines()) >= len(reference())
    assert max(map(len, printed.splitlines())) <= 120


@pytest.mark.parametrize("width", [80, 100])
def test_the_reference_fits_a_terminal_that_is_narrow(width: int) -> None:
    lines = text(list(reference()), width)
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    assert all(row.text in words for row in reference())


def test_the_command_prints_one_class_as_json_or_as_a_table_for_a_page() -> None:
    found = json.loads(CliRunner().invoke(main, ["faults", "--class", "14", "--format", "json"]).output)
    assert found["schema"] == 1
    assert {row["class"] for row in found["knobs"]} == {"clocks"}
    assert "clock.jump_ms" in [row["name"] for row in found["knobs"]]
    page = CliRunner().invoke(main, ["faults", "--class", "14", "--format", "markdown"]).output.splitlines()
    assert len(page) == 2 + len(found["knobs"])
    assert all(line.startswith("| ") for line in page)


def test_a_class_that_is_not_there_is_bad_usage() -> None:
    assert CliRunner().invoke(main, ["faults", "--class", "16"]).exit_code == 2
