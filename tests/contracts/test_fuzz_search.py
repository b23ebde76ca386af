"""The exhaustive search as a whole: side by side, saved and gone on with, and what the command says of it."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from contracts.cli import main
from contracts.fuzz import search
from contracts.fuzz.exhaustive import Tally, count, explore
from contracts.fuzz.schedule import cases
from contracts.fuzz.search import SavedError, Search, SearchError, fingerprint, load, run


def fuzz(*arguments: str | int | Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["fuzz", *map(str, arguments), "--workers", "0"])
    return result.exit_code, result.output


def test_two_processes_find_what_one_does() -> None:
    alone, two = (
        run(Search(steps=2, subject="idle-settles"), workers=0),
        run(Search(steps=2, subject="idle-settles"), workers=2),
    )
    assert (alone.histories, alone.judged, alone.disagreements) == (two.histories, two.judged, two.disagreements)
    assert alone.first is not None
    assert two.first is not None
    assert (alone.first.steps, alone.first.case) == (two.first.steps, two.first.case)


def test_the_report_counts_every_history() -> None:
    report = run(Search(steps=2), workers=0)
    assert report.histories == count(2) == report.judged + report.merged
    assert (report.disagreements, report.first, report.resumed) == (0, None, 0)


class StoppedError(Exception):
    """Somebody pressed Ctrl-C."""


def test_a_stopped_search_goes_on_where_it_was_put_down(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    told: list[Tally] = []

    def stop(tally: Tally) -> None:
        told.append(tally)
        if len(told) == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(Search(steps=2), workers=0, saved=saved, on_case=stop)
    assert len(load(saved, Search(steps=2)).done) == 3
    again: list[str] = []
    report = run(Search(steps=2), workers=0, saved=saved, on_case=lambda tally: again.append(tally.case))
    assert sorted(again) == sorted(case.name for case in cases(2)), "each case is told of once"
    assert again[:3] == [tally.case for tally in told]
    assert (report.histories, report.resumed) == (count(2), sum(tally.histories for tally in told))


def test_a_search_that_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = tmp_path / "saved.json"
    first = run(Search(steps=1, subject="error-settles"), workers=0, saved=saved)
    monkeypatch.setattr(search, "explore", None)
    again = run(Search(steps=1, subject="error-settles"), workers=0, saved=saved)
    assert (again.histories, again.disagreements) == (first.histories, first.disagreements)
    assert again.first is not None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no saved search"),
        (b'{"schema": 1, "st', "no saved search"),
        (b"\xff\xfe", "no saved search"),
        (b'{"schema": 2, "steps": 2, "unmerged": false, "subject": "", "code": ""}', "no saved search"),
        (b'{"schema": 1, "steps": 3, "unmerged": false, "subject": "", "code": ""}', "by another search (steps is 3"),
        (b'{"schema": 1, "steps": 2, "unmerged": false, "subject": "", "code": "old"}', "by another search (code is"),
        (b"[" * 2_000_000, "too large"),
    ],
)
def test_a_file_that_is_no_saved_search_is_refused_and_left_alone(tmp_path: Path, content: bytes, words: str) -> None:
    saved = tmp_path / "saved.json"
    saved.write_bytes(content)
    with pytest.raises(SavedError) as refused:
        run(Search(steps=2), workers=0, saved=saved)
    assert words in str(refused.value)
    assert saved.read_bytes() == content
    code, output = fuzz("--exhaustive", 2, "--saved", saved)
    assert (code, output.count("Error:")) == (2, 1)
    assert "saved.json" in output


def test_a_saved_case_that_there_is_not_is_refused(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    run(Search(steps=1), workers=0, saved=saved)
    document = json.loads(saved.read_text())
    document["done"]["early/77"] = document["done"].pop("early/0")
    saved.write_text(json.dumps(document))
    with pytest.raises(SavedError, match="early/77"):
        run(Search(steps=1), workers=0, saved=saved)


def test_a_saved_count_that_is_not_the_true_one_is_seen(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    run(Search(steps=1), workers=0, saved=saved)
    document = json.loads(saved.read_text())
    document["done"]["early/0"]["histories"] -= 1
    saved.write_text(json.dumps(document))
    with pytest.raises(SearchError, match="histories were tried, and there are"):
        run(Search(steps=1), workers=0, saved=saved)


def test_a_case_that_breaks_is_an_error_and_the_others_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "saved.json"
    honest = explore

    def breaks(case: object, *rest: object, **more: object) -> Tally:
        if getattr(case, "name", "") == "slow/1500":
            raise RuntimeError("no room")
        return honest(case, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(search, "explore", breaks)
    with pytest.raises(SearchError, match=r"case slow/1500: .*no room"):
        run(Search(steps=1), workers=0, saved=saved)
    assert len(load(saved, Search(steps=1)).done) == len(cases(1)) - 1
    code, output = fuzz("--exhaustive", 1)
    assert code == 3
    assert "no room" in output


def test_the_fingerprint_is_of_the_code_that_is_searched() -> None:
    assert fingerprint() == fingerprint()
    assert len(fingerprint()) == 16


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_the_document_that_was_promised() -> None:
    code, output = fuzz("--exhaustive", 2, "--format", "json")
    document = json.loads(output)
    assert code == 0
    assert list(document) == ["schema", "steps", "histories", "merged", "seconds", "disagreements", "first"]
    assert document | {"merged": 0, "seconds": 0} == {
        "schema": 1, "steps": 2, "histories": 14_580, "merged": 0, "seconds": 0, "disagreements": 0, "first": None,
    }  # fmt: skip


def test_the_command_shows_the_first_disagreement_and_keeps_it(tmp_path: Path) -> None:
    code, output = fuzz("--exhaustive", 2, "--plant", "looks-are-mixed", "--keep", tmp_path, "--format", "json")
    first = json.loads(output)["first"]
    assert code == 1
    assert first["steps"] == ["same done", "+1 none"]
    assert first["objections"][0].startswith("ended at")
    assert Path(first["scenario"]).is_file()
    code, output = fuzz("--exhaustive", 2, "--plant", "looks-are-mixed", "--keep", tmp_path)
    assert code == 1
    assert f"legion-contracts check --scenario {first['scenario']}" in output


def test_unmerged_is_the_same_with_nothing_merged() -> None:
    merged, alone = (
        json.loads(fuzz("--exhaustive", 1, "--format", "json", *more)[1]) for more in ((), ("--unmerged",))
    )
    assert alone["merged"] == 0 < merged["merged"]
    assert merged["histories"] == alone["histories"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--exhaustive", "0"], "from 1 to 10 steps, not 0"),
        (["--exhaustive", "11"], "from 1 to 10 steps, not 11"),
        (["--exhaustive", "x"], "not a valid integer"),
        (["--exhaustive", "2", "--plant", "no-such"], "no planted rule 'no-such'"),
    ],
)
def test_bad_usage_is_one_clear_error(arguments: list[str], words: str) -> None:
    code, output = fuzz(*arguments)
    assert (code, output.count("Error:")) == (2, 1)
    assert words in output


def test_a_saved_search_is_json_that_names_its_schema(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    fuzz("--exhaustive", 1, "--saved", saved)
    assert msgspec.json.decode(saved.read_bytes())["schema"] == 1
