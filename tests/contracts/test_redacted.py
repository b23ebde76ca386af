"""Reports show no secret unless somebody asks for them, and what was judged is not changed by that."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from contracts.cli import main
from contracts.records import Finding, RunVerdict
from contracts.report.redacted import verdict_without_secrets
from hc_sim.redact import HIDDEN

SCENARIO = """
id = "leaky"
why = "A scenario whose findings and trace are full of secrets, for the reports."
clauses = ["D5"]

[[drive]]
do = "spawn"
as = "a"
args = { task = "--token sesame", env = { MY_TOKEN = "sesame", HOME = "/home/me" } }

[[expect]]
run = true
with = { env = { MY_TOKEN = "another sesame", PLAIN = "is not there" } }
"""


@pytest.fixture
def leaky(tmp_path: Path) -> str:
    path = tmp_path / "leaky.toml"
    path.write_text(SCENARIO)
    return str(path)


@pytest.mark.parametrize("form", ["table", "json", "junit", "github"])
def test_no_format_of_a_report_shows_a_secret(leaky: str, form: str) -> None:
    args = ["check", "--scenario", leaky, "--workers", "0", "--format", form]
    hidden = CliRunner().invoke(main, args)
    shown = CliRunner().invoke(main, [*args, "--show-secrets"])
    assert hidden.exit_code == shown.exit_code == 1
    assert "is not there" in hidden.output
    assert "sesame" not in hidden.output
    assert "sesame" in shown.output


def test_no_picture_shows_a_secret(leaky: str) -> None:
    hidden = CliRunner().invoke(main, ["show", leaky])
    shown = CliRunner().invoke(main, ["show", leaky, "--show-secrets"])
    assert "sesame" not in hidden.output
    assert "sesame" in shown.output


def test_a_finding_is_hidden_by_the_name_it_stands_under() -> None:
    finding = Finding(clause="D5", ok=False, where="expect[0].with.env.X_KEY", expected="one", got=None)
    verdict = RunVerdict(scenario="s", host="memory", verdict="fail", findings=[finding], why="one key: no more")
    shown = verdict_without_secrets(verdict)
    assert (shown.findings[0].expected, shown.findings[0].got) == (HIDDEN, None)
    assert (shown.verdict, shown.why) == ("fail", "one key: no more")
