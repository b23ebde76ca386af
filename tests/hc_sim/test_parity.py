import json
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from hc_sim.commands.parity import narrow
from hc_sim.commands.parity import parity as command
from hc_sim.model import METHODS, REFUSED, Kind
from hc_sim.parity import LiveRun, Row, field_names, listed_names, parity
from hc_sim.profile import WireProfile, reasons


def rows(what: str) -> dict[str, Row]:
    return {row.name: row for row in parity() if row.what == what}


def test_every_method_is_in_the_table_with_its_certainty() -> None:
    table = rows("method")

    assert {name: table[name].certainty for name in METHODS} == {m.name: m.certainty for m in METHODS.values()}
    assert set(table) == set(METHODS) | set(REFUSED)


def test_a_method_is_partial_exactly_when_something_is_missing() -> None:
    table = rows("method")

    for method in METHODS.values():
        assert (table[method.name].presence == "partial") == bool(method.missing)
        assert method.missing in table[method.name].note
    assert {name for name, row in table.items() if row.presence == "refused"} == set(REFUSED)


def test_every_parameter_of_every_method_has_a_row() -> None:
    expected = {f"{m.name}({field})" for m in METHODS.values() for field in m.params.__struct_fields__}

    assert set(rows("parameter")) == expected


def test_the_table_knows_every_field_and_kind_by_name_and_no_other() -> None:
    assert sorted(listed_names()) == sorted([*field_names(), *get_args(Kind)])


def test_errors_are_spelt_and_numbered_as_the_profile_has_it() -> None:
    spelt = {row.name: row.note for row in parity(WireProfile(kind_style="upper")) if row.what == "error"}

    assert spelt["UNKNOWN_METHOD"] == "code -32601"
    assert len(spelt) == len(get_args(Kind))


def test_what_was_measured_is_said_to_be() -> None:
    assert rows("error")["unknown_method"].certainty == "measured"
    assert rows("result")["Terminal.turn"].certainty == "measured"
    assert rows("parameter")["terminal.run(argv)"].certainty == "documented"


def test_every_choice_of_the_profile_is_listed_with_its_value_and_reason() -> None:
    table = {row.name: row for row in parity(WireProfile(max_terminals=7)) if row.what == "choice"}

    assert set(table) == set(reasons())
    assert table["max_terminals"].note.startswith("7: ")


def test_a_live_run_leaves_its_date_and_version_on_what_it_confirmed() -> None:
    live = LiveRun(date="2026-11-30", version="0.1.20", confirmed=["terminal.get", "Terminal.turn"])

    confirmed = {row.name: row.confirmed for row in parity(live=live) if row.confirmed}

    assert confirmed == dict.fromkeys(["terminal.get", "Terminal.turn"], "2026-11-30, core 0.1.20")


def test_the_command_prints_json(tmp_path: Path) -> None:
    live = tmp_path / "live.json"
    live.write_text(json.dumps({"date": "today", "version": "9", "confirmed": ["hello"]}))

    done = CliRunner().invoke(command, ["--format", "json", "--only", "method", "--live", str(live)])

    found = json.loads(done.stdout)
    assert found["schema"] == 1
    assert found["rows"][0] == {
        "what": "method", "name": "hello", "certainty": "documented",
        "presence": found["rows"][0]["presence"], "confirmed": "today, core 9",
        **({"note": found["rows"][0]["note"]} if "note" in found["rows"][0] else {}),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_the_command_prints_for_people(form: str) -> None:
    done = CliRunner().invoke(command, ["--format", form, "--only", "error"])

    assert done.exit_code == 0
    assert "unknown_method" in done.stdout


@pytest.mark.parametrize("width", [80, 100])
def test_on_a_narrow_terminal_the_notes_stand_below_and_nothing_is_cut(width: int) -> None:
    rows = parity(live=LiveRun(date="2026-11-30", version="0.1.20", confirmed=["terminal.get"]))

    lines = narrow(rows, width)

    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    assert all(" ".join(row.note.split()) in words and row.name in words for row in rows)
    assert "confirmed 2026-11-30, core 0.1.20" in words


def test_a_live_file_that_is_none_ends_in_one_line_and_code_2(tmp_path: Path) -> None:
    live = tmp_path / "live.json"
    live.write_text("[]")

    done = CliRunner().invoke(command, ["--live", str(live)])

    assert done.exit_code == 2
    assert done.stderr.startswith(f"hc-sim: {live}: ")
