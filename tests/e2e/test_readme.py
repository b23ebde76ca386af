"""The README is run: its tables are made again, its snippets executed, its worked failure reproduced."""

import re
import shlex
import tomllib
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from contracts.clauses import load_clauses
from contracts.cli import main as legion_contracts
from contracts.report.as_markdown import renew
from hc_sim.cli import main as hc_sim
from hc_sim.script.load import Script
from legion_terminal import settle

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"(?:<!-- (?P<mark>[a-z: ]+) -->\n)?```(?P<language>[a-z]+)\n(?P<body>.*?)```", re.DOTALL)
BLOCKS = [(found["language"], found["mark"] or "", found["body"]) for found in FENCE.finditer(README)]
PLANTED = (settle.SETTLE_ROWS[0], ("any", "any", "idle", True), *settle.SETTLE_ROWS[1:])


def block(mark: str) -> str:
    return next(body for _, name, body in BLOCKS if name == mark)


def test_the_generated_tables_are_those_of_today() -> None:
    assert renew(README) == README, "make them again: python -m contracts.report.as_markdown"


def test_a_table_that_lags_would_be_noticed() -> None:
    assert renew(README.replace("| D8 | must | Settle |", "| D8 | should | Settle |")) == README


@pytest.mark.parametrize("body", [body for language, _, body in BLOCKS if language == "python" and "import" in body])
def test_a_python_snippet_runs(body: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(body, "README.md", "exec"), {})  # noqa: S102 - the README's own words

    promised = re.findall(r"^print\(.*#\s*(.+)$", body, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised


def test_the_python_snippet_of_the_failure_is_the_table_with_one_row_more() -> None:
    rows: dict[str, object] = {}
    exec(next(body for language, _, body in BLOCKS if language == "python" and "SETTLE_ROWS" in body), {}, rows)  # noqa: S102

    assert rows["SETTLE_ROWS"] == PLANTED


@pytest.mark.parametrize("body", [body for language, _, body in BLOCKS if language == "toml"])
def test_a_script_snippet_is_a_script(body: str) -> None:
    script = msgspec.convert(tomllib.loads(body), Script)

    assert script.agent[0].step


@pytest.mark.parametrize(
    ("mark", "arguments"),
    [
        ("figures: failure", "check --clause D8 --scenario settle-boot-idle --host memory --workers 0"),
        ("figures: picture", "show settle-boot-idle"),
    ],
)
def test_the_worked_failure_is_what_the_command_prints(
    mark: str, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "SETTLE_ROWS", PLANTED)
    monkeypatch.setenv("COLUMNS", "110")

    result = CliRunner().invoke(legion_contracts, shlex.split(arguments))

    assert result.exit_code == 1
    assert without_seconds(result.output) == without_seconds(block(mark))


def test_the_summary_line_counts_what_there_is() -> None:
    line = block("figures: summary")
    levels = [clause.level for clause in load_clauses().values()]

    assert f"{levels.count('must')} of {levels.count('must')} must" in line
    assert f"{levels.count('should')} of {levels.count('should')} should" in line
    assert f"{len(list((ROOT / 'contracts' / 'scenarios').rglob('*.toml')))} scenarios" in line


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`((?:legion-contracts|hc-sim) [a-z][a-z-]+)", README))))
def test_a_command_that_the_readme_names_exists(command: str) -> None:
    program, verb = command.split()
    result = CliRunner().invoke({"legion-contracts": legion_contracts, "hc-sim": hc_sim}[program], [verb, "--help"])

    assert result.exit_code == 0, result.output


def without_seconds(text: str) -> str:
    return re.sub(r"\d+\.\d s", "N s", text).strip()
