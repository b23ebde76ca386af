"""`legion-contracts live --agent pi`, as far as it can be seen without a pi."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from contracts.commands.live import live


@pytest.fixture(autouse=True)
def _no_pi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("contracts.agents.found.PINNED", tmp_path / "nowhere")
    monkeypatch.delenv("PI_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def called(*args: str) -> Result:
    return CliRunner().invoke(live, ["--agent", "pi", *args])


def test_without_a_pi_it_is_skipped_with_the_reason_and_required_it_fails() -> None:
    skipped, required = called(), called("--require")

    assert (skipped.exit_code, required.exit_code) == (0, 1)
    assert skipped.output == "skipped: no pi is installed: PI_BIN is not set, and there is none on PATH\n"


def test_the_json_says_the_same_and_goes_into_a_folder_too(tmp_path: Path) -> None:
    result = called("--format", "json", "--out", str(tmp_path / "out"))

    value = json.loads(result.output)
    assert (value["schema"], value["agent"], "PI_BIN" in value["skipped"]) == (1, "pi", True)
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == value


@pytest.mark.parametrize("option", [["--quick"], ["--documents"], ["--keep-going"], ["--cassette", "x"], ["--hc", "x"]])
def test_the_options_of_a_core_do_not_go_with_it(option: list[str]) -> None:
    result = called(*option)

    assert result.exit_code == 2
    assert "only --require, --strict, --out and --format" in result.output
