"""Pure: replies go in, differences with stable names come out."""

from typing import Any

import msgspec
import pytest

from contracts.live.difference import differences
from contracts.live.learning import conclude
from contracts.live.peer import Reply, error_seen
from contracts.live.shapes import models, type_of
from contracts.live.sheet import Sheet
from contracts.live.writing import confirmed, diff_text, profile_rows, profile_toml
from hc_sim.profile import WireProfile, reasons

TERMINAL: dict[str, Any] = {
    "address": "t1",
    "argv": ["sh"],
    "created_ms": 1,
    "cwd": "/",
    "die_with_parent": True,
    "exit_code": None,
    "foreground": {"name": "sh", "pid": 7},
    "keep": False,
    "labels": {},
    "name": "x",
    "parent": None,
    "pid": 7,
    "signal": None,
    "state": "running",
    "status": {"state": "idle"},
    "turn": 0,
}


def reply(method: str, result: Any) -> Reply:
    return Reply(method=method, result=result, raw=msgspec.json.encode({"result": result}, order="sorted"))


def sheet_with(*replies: Reply) -> Sheet:
    sheet = Sheet()
    for one in replies:
        sheet.saw(one)
    return sheet


def names(sheet: Sheet) -> list[str]:
    return [one.name for one in differences(sheet)]


def test_the_fakes_own_terminal_differs_in_nothing() -> None:
    assert names(sheet_with(reply("terminal.get", TERMINAL), reply("terminal.list", {"terminals": [TERMINAL]}))) == []


def test_a_field_under_another_name_is_one_difference() -> None:
    changed = {("turns" if key == "turn" else key): value for key, value in TERMINAL.items()}

    found = differences(sheet_with(reply("terminal.get", changed)))

    assert [one.name for one in found] == ["terminal.turn: renamed"]
    assert "turns" in found[0].text


@pytest.mark.parametrize("key", ["turn", "labels", "created_ms", "parent", "argv"])
def test_a_missing_field_is_named(key: str) -> None:
    changed = {name: value for name, value in TERMINAL.items() if name != key}

    assert names(sheet_with(reply("terminal.get", changed))) == [f"terminal.{key}: missing"]


@pytest.mark.parametrize(("key", "value"), [("turn", "0"), ("labels", []), ("argv", "sh"), ("keep", 1), ("name", 5)])
def test_a_field_of_another_type_is_named(key: str, value: Any) -> None:
    assert names(sheet_with(reply("terminal.get", {**TERMINAL, key: value}))) == [f"terminal.{key}: type"]


def test_a_field_that_the_fake_does_not_have_is_named() -> None:
    assert names(sheet_with(reply("terminal.get", {**TERMINAL, "machine": "a"}))) == ["terminal.machine: new"]


def test_a_field_deep_inside_is_named_by_its_own_object() -> None:
    changed = {**TERMINAL, "status": {"state": "idle", "mood": "good"}}

    assert names(sheet_with(reply("terminal.wait", {"ended": True, "terminal": changed, "children": []}))) == [
        "status.mood: new"
    ]


def test_a_fact_that_is_not_as_expected_is_a_difference_under_its_own_id() -> None:
    sheet = Sheet()
    sheet.fact("done.stays", "C5", "idle", "done", say="done stays")
    sheet.fact("turn.per_prompt", "C5", 1, 1)

    assert [(one.name, one.core, one.fake) for one in differences(sheet)] == [("done.stays", "idle", "done")]


def test_one_and_true_are_not_the_same() -> None:
    sheet = Sheet()

    assert not sheet.fact("x", "C1", 1, True)


def test_errors_differ_in_kind_and_code_each_by_itself() -> None:
    sheet = Sheet()
    sheet.error("no_such_terminal", error_seen({"code": -32000, "message": "m", "data": {"kind": "gone", "hint": "h"}}))
    sheet.error("name_taken", error_seen({"code": -32602, "message": "m", "data": {"kind": "NAME_TAKEN", "hint": "h"}}))

    assert names(sheet) == ["error.no_such_terminal: kind", "error.name_taken: code"]


def test_an_error_without_data_is_taken_as_it_is() -> None:
    seen = error_seen({"code": "x", "message": 5})

    assert (seen.code, seen.kind, seen.hint) == (None, "", "")


def test_a_choice_that_was_learned_and_is_another_is_a_difference() -> None:
    sheet = Sheet()
    sheet.learn("exit_code_key", "code")
    sheet.learn("live_state", "running")

    assert names(sheet) == ["profile.exit_code_key"]


def test_durations_that_are_near_each_other_do_not_differ() -> None:
    sheet = Sheet()
    sheet.learn("program_watch_ms", 2_250)
    sheet.learn("program_grace_ms", 5_000)

    assert names(sheet) == ["profile.program_grace_ms"]


def test_a_renamed_exit_code_is_said_once_as_a_choice() -> None:
    sheet = sheet_with(
        reply("terminal.get", {("code" if key == "exit_code" else key): value for key, value in TERMINAL.items()})
    )
    sheet.learn("exit_code_key", "code")

    assert names(sheet) == ["profile.exit_code_key"]


def test_a_method_that_cannot_be_used_is_a_difference() -> None:
    sheet = Sheet()
    sheet.refused["terminal.wait"] = "it is not there"

    assert names(sheet) == ["terminal.wait: refused"]


def test_the_style_of_kinds_and_their_codes_are_learned_from_all_errors() -> None:
    sheet = Sheet()
    for ours, kind, code in (
        ("unknown_method", "UNKNOWN_METHOD", -32601),
        ("no_such_terminal", "NOT_THERE", -32001),
        ("not_live", "NOT_LIVE", -32001),
        ("name_taken", "NAME_TAKEN", 409),
    ):
        sheet.error(ours, error_seen({"code": code, "message": "m", "data": {"kind": kind, "hint": "h"}}))
    conclude(sheet)

    values = {name: sheet.learned[name].value for name in ("kind_style", "kinds", "other_code", "codes")}
    assert values == {
        "kind_style": "upper",
        "kinds": {"no_such_terminal": "NOT_THERE"},
        "other_code": -32001,
        "codes": {"name_taken": 409},
    }


def test_unsorted_keys_are_seen_at_any_level() -> None:
    sheet = sheet_with(Reply(method="terminal.get", result={}, raw=b'{"a": {"c": 1, "b": 2}}'))
    conclude(sheet)

    assert sheet.learned["sorted_keys"].value is False


def test_every_choice_is_learned_or_has_a_reason() -> None:
    sheet = Sheet()
    conclude(sheet)
    rows = profile_rows(sheet)

    assert [row["field"] for row in rows] == list(reasons())
    assert all(row["learned"] or row["why"] for row in rows)


def test_a_field_that_no_profile_has_cannot_be_learned() -> None:
    with pytest.raises(KeyError):
        Sheet().learn("no_such_field", 1)


def test_the_profile_file_holds_what_was_learned_and_can_be_taken() -> None:
    sheet = Sheet()
    sheet.learn("kind_style", "upper")
    sheet.learn("codes", {"blocked": -5})
    conclude(sheet)

    text = profile_toml(sheet)

    assert msgspec.toml.decode(text, type=WireProfile) == WireProfile(kind_style="upper", codes={"blocked": -5})
    assert "# torn: not learned: " in text


def test_what_was_confirmed_bears_the_names_of_the_parity_table() -> None:
    sheet = sheet_with(reply("terminal.get", TERMINAL))
    sheet.error("name_taken", error_seen({"code": -32000, "message": "", "data": {"kind": "NAME_TAKEN", "hint": ""}}))
    sheet.learn("live_state", "running")
    sheet.learn("exit_code_key", "code")
    found = confirmed(sheet)

    assert {"terminal.get", "Terminal.turn", "Status.state", "NAME_TAKEN", "live_state"} <= set(found)
    assert "exit_code_key" not in found
    assert "Document.version" not in found


def test_types_are_words() -> None:
    values: list[Any] = ["a", True, 1, 1.5, None, {}, [], ["a"], [1, None]]

    assert [type_of(value) for value in values] == [
        "text", "boolean", "integer", "number", "null", "object", "list", "list of text", "list of integer and null",
    ]  # fmt: skip


def test_the_models_know_every_object_of_the_wire() -> None:
    known = models()

    assert {"terminal", "status", "foreground", "document", "server", "terminal.send"} <= set(known)
    assert known["terminal"]["status"].inner == "status"
    assert known["status"]["state"].always
    assert not known["status"]["msg"].always


def test_what_a_core_adds_to_hello_is_shown_without_its_secrets() -> None:
    sheet = Sheet()
    sheet.learn("hello_extra", {"auth_token": "hunter2", "note": "x"})

    assert "hunter2" not in profile_toml(sheet) + diff_text(differences(sheet), "a core")
    assert 'note = "x"' in profile_toml(sheet)


def test_a_value_that_no_profile_can_have_stands_in_a_comment() -> None:
    sheet = Sheet()
    sheet.learn("first_channel", 70_000)
    text = profile_toml(sheet)

    assert "# first_channel: learned, but the fake cannot be told so: " in text
    assert msgspec.toml.decode(text, type=WireProfile) == WireProfile()
