"""Two reports side by side: what regressed, what is better, new, gone, slower; and what is no report."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from syrupy.assertion import SnapshotAssertion

from contracts.cli import main
from contracts.commands.diff import MAX_ROWS
from contracts.report.diff import Difference, Report, ReportError, compare, diff_summary, read_report


def report(
    clauses: dict[str, str] | None = None, runs: dict[str, tuple[str, float]] | None = None, **more: Any
) -> dict[str, Any]:
    told = {"one": ("pass", 0.1)} if runs is None else runs
    return {
        "schema": 1,
        "outcome": "holds",
        "clauses": [
            {"id": name, "level": "must", "verdict": verdict} for name, verdict in (clauses or {"D8": "pass"}).items()
        ],
        "scenarios": [
            {"id": name, "verdict": verdict, "runs": [{"host": "memory", "verdict": verdict, "seconds": took}]}
            for name, (verdict, took) in told.items()
        ],
        "checks": [{"id": "i4-maps", "host": "check", "verdict": "pass", "seconds": 0.1}],
        **more,
    }


def read(**told: Any) -> Report:
    return read_report(json.dumps(report(**told)))


def changes(before: Report, after: Report) -> list[tuple[str, str, bool]]:
    return [(one.change, one.name, one.is_regression) for one in compare(before, after)]


@pytest.mark.parametrize(
    ("was", "now", "change", "regressed"),
    [
        ("pass", "fail", "worse", True),
        ("pass", "errored", "worse", True),
        ("pass", "skipped", "worse", True),
        ("pass", "known", "worse", True),
        ("avoided", "errored", "worse", True),
        ("fail", "pass", "better", False),
        ("known", "pass", "better", False),
        ("known", "fail", "worse", True),
        ("avoided", "hazard", "changed", False),
        ("fail", "errored", "changed", False),
    ],
)
def test_a_verdict_that_changed(was: str, now: str, change: str, regressed: bool) -> None:
    before, after = read(runs={"one": (was, 0.1)}), read(runs={"one": (now, 0.1)})

    assert changes(before, after) == [(change, "one", regressed)]


def test_a_clause_that_has_no_evidence_any_more_regressed() -> None:
    assert changes(read(clauses={"D8": "pass"}), read(clauses={"D8": "unproven"})) == [("worse", "D8", True)]


def test_what_held_and_is_gone_regressed_and_what_failed_and_is_gone_did_not() -> None:
    before = read(runs={"one": ("pass", 0.1), "two": ("fail", 0.1)})

    assert changes(before, read(runs={})) == [("gone", "one", True), ("gone", "two", False)]
    assert changes(read(runs={}), before) == [("new", "one", False), ("new", "two", False)]


@pytest.mark.parametrize(
    ("took", "takes", "slower"), [(1.0, 2.0, True), (1.0, 1.9, False), (0.1, 0.9, False), (3.0, 1.0, False)]
)
def test_a_run_is_slower_when_a_person_would_notice(took: float, takes: float, slower: bool) -> None:
    found = compare(read(runs={"one": ("pass", took)}), read(runs={"one": ("pass", takes)}))

    assert [(one.change, one.is_regression) for one in found] == ([("slower", False)] if slower else [])


def test_regressions_come_first() -> None:
    before = read(
        clauses={"D8": "fail", "D9": "pass"}, runs={"a": ("fail", 1.0), "b": ("pass", 1.0), "c": ("pass", 1.0)}
    )
    after = read(
        clauses={"D8": "pass", "D9": "pass"}, runs={"a": ("pass", 1.0), "b": ("pass", 9.0), "d": ("pass", 1.0)}
    )

    assert changes(before, after) == [
        ("gone", "c", True),
        ("slower", "b", False),
        ("better", "D8", False),
        ("better", "a", False),
        ("new", "d", False),
    ]


def test_a_check_is_compared_like_a_run() -> None:
    after = report()
    after["checks"][0]["verdict"] = "fail"

    assert changes(read(), read_report(json.dumps(after))) == [("worse", "i4-maps", True)]


def test_the_summary_counts() -> None:
    found = [
        Difference(change="worse", kind="run", name="a", before="pass", after="fail"),
        Difference(change="new", kind="run", name="b", after="pass"),
    ]

    assert diff_summary(found) == "1 regressed: 1 worse, 1 new"
    assert diff_summary(found[1:]) == "nothing regressed: 1 new"
    assert diff_summary([]).startswith("the same")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON (line 1)"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is no report of legion-contracts check --format json"),
        ('{"schema": 1, "planted": []}', "is no report of"),
        (json.dumps(report(schema=2)), "has schema 2; this version reads 1"),
        (json.dumps(report(schema="1")), "has schema '1'; this version reads 1"),
        (json.dumps(report(scenarios=[{"id": 5}])), "is no report of legion-contracts check --format json: "),
    ],
)
def test_what_is_no_report_is_said_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ReportError) as caught:
        read_report(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


# ----------------------------------------------------------------- the command


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("good.json").write_text(json.dumps(report()))
    Path("bad.json").write_text(json.dumps(report({"D8": "fail"}, {"one": ("fail", 0.1)}, outcome="fails")))
    return tmp_path


def diff(*args: str) -> Result:
    return CliRunner().invoke(main, ["diff", *args])


def test_it_ends_with_0_when_nothing_regressed_and_with_1_when_something_did(there: Path) -> None:
    assert diff("good.json", "good.json").exit_code == 0
    assert diff("bad.json", "good.json").exit_code == 0
    assert diff("good.json", "bad.json").exit_code == 1


def test_the_table_as_a_person_sees_it(there: Path, snapshot: SnapshotAssertion) -> None:
    assert diff("good.json", "bad.json").output == snapshot


def test_json_has_every_difference(there: Path) -> None:
    told = json.loads(diff("good.json", "bad.json", "--format", "json").output)

    assert list(told) == ["schema", "before", "after", "regressions", "differences"]
    assert (told["schema"], told["regressions"]) == (1, 2)
    assert told["before"] == {"file": "good.json", "outcome": "holds"}
    assert told["differences"] == [
        {"change": "worse", "regression": True, "kind": "clause", "id": "D8", "before": "pass", "after": "fail"},
        {
            "change": "worse", "regression": True, "kind": "run", "id": "one", "host": "memory",
            "before": "pass", "after": "fail",
        },
    ]  # fmt: skip


def test_a_long_table_ends_with_the_count_of_the_rest(there: Path) -> None:
    many = {f"s{n}": ("pass", 0.1) for n in range(MAX_ROWS + 30)}
    Path("many.json").write_text(json.dumps(report(runs=many)))

    assert "and 31 more; --format json has them all" in diff("good.json", "many.json").output


def test_each_file_that_is_no_report_is_named(there: Path) -> None:
    Path("text.json").write_text("hello")
    Path("binary.json").write_bytes(b"\xff\xfe")
    result = diff("text.json", "nowhere.json")

    assert result.exit_code == 2
    assert "text.json is not JSON" in result.output
    assert "nowhere.json cannot be read: No such file or directory" in result.output
    assert "binary.json is not text in UTF-8" in diff("good.json", "binary.json").output
    assert "cannot be read: Is a directory" in diff("good.json", ".").output
