"""The page of `check --html` in a real browser: what it shows, by mouse and by keyboard, and that it loads nothing."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from contracts.cli import main

HERE = Path(__file__).parent
LIMIT_S = 90
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

PASSES = """
id = "page-passes"
why = "A child works and is done <script>window.planted = true</script>."
clauses = ["D8"]
hosts = ["memory"]

[[world.agent]]
step = [{ at_ms = 500, turn = 1, status = "working" }, { at_ms = 3000, turn = 1, status = "done" }]

[[drive]]
do = "spawn"
as = "alpha"

[[drive]]
do = "wait"
child = "alpha"
args = { timeoutMs = 9000 }
returns = { settled = true }
"""
FAILS = PASSES.replace("page-passes", "page-fails").replace("settled = true }", "settled = false }")
OTHER = """
id = "page-is-about-arguments"
why = "A spawn and nothing else."
clauses = ["D4"]
hosts = ["memory", "socket"]

[[drive]]
do = "spawn"
as = "alpha"

[[expect]]
calls = "terminal.run"
count = 1
"""


@pytest.fixture(scope="module")
def tools() -> tuple[str, str]:
    """Node and the browser; skips with the reason when something is missing."""
    node = shutil.which("node")
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if node is None:
        pytest.skip("node is not installed")
    if browser is None:
        pytest.skip("no chromium is installed")
    if not (HERE / "node_modules" / "playwright-core").is_dir():
        pytest.skip("playwright-core is not installed; run npm ci --ignore-scripts in tests/browser")
    return node, browser


@pytest.fixture(scope="module")
def page(tools: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    scenarios = folder / "settle"
    scenarios.mkdir()
    for text in (PASSES, FAILS, OTHER):
        name = text.split('"')[1]
        (scenarios / f"{name}.toml").write_text(text, encoding="utf-8")
    result = CliRunner().invoke(
        main, ["check", "--scenario", str(scenarios), "--workers", "0", "--html", str(folder / "report")]
    )
    assert result.exit_code == 1, result.output
    return folder / "report" / "index.html"


@pytest.fixture(scope="module")
def saw(tools: tuple[str, str], page: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a browser saw of the page."""
    node, browser = tools
    profile = tmp_path_factory.mktemp("profile")
    with subprocess.Popen(
        [node, "page.mjs", browser, str(page), str(profile)],
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, error = process.communicate(timeout=LIMIT_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, error
    told: dict[str, Any] = json.loads(out)
    return told


ALL = ["scenario-page-fails", "scenario-page-is-about-arguments", "scenario-page-passes"]


def test_at_first_everything_is_shown_and_what_fails_is_open(saw: dict[str, Any]) -> None:
    assert saw["first"] == {
        "shown": ALL,
        "open": ["scenario-page-fails"],
        "status": "3 of 3 shown",
        "pressed": [],
        "none": False,
    }


def test_a_filter_leaves_what_it_says_and_can_be_taken_back(saw: dict[str, Any]) -> None:
    filters = saw["filters"]

    assert (filters["failing"]["shown"], filters["failing"]["pressed"]) == (ALL[:1], ["FAIL"])
    assert filters["failing"]["status"] == "1 of 3 shown"
    assert (filters["failingOnSocket"]["shown"], filters["failingOnSocket"]["none"]) == ([], True)
    assert (filters["all"]["shown"], filters["all"]["pressed"]) == (ALL, [])


def test_a_scenario_opens_with_its_drawing(saw: dict[str, Any]) -> None:
    scenario = saw["scenario"]

    assert (scenario["before"], scenario["after"]) == (False, True)
    assert scenario["name"].startswith("page-passes on memory, time going down: 1 child")
    assert {"drive", "turn 1 working", "turn 1 done", "wait alpha = settled", "get → 1 done: settled"} <= set(
        scenario["text"]
    )
    assert "--host memory" in scenario["again"]


def test_a_clause_shows_its_own_scenarios(saw: dict[str, Any]) -> None:
    clause = saw["clause"]

    assert (clause["chosen"], clause["shown"]) == ("D8", [ALL[0], ALL[2]])
    assert clause["focus"] == "scenarios"


def test_text_is_searched_whatever_its_case(saw: dict[str, Any]) -> None:
    assert saw["search"]["found"]["shown"] == ["scenario-page-passes"]
    assert (saw["search"]["nothing"]["shown"], saw["search"]["nothing"]["none"]) == ([], True)


def test_everything_can_be_done_by_keyboard_and_the_focus_is_seen(saw: dict[str, Any]) -> None:
    keyboard = saw["keyboard"]

    assert keyboard["skip"]["text"] == "Skip to the scenarios"
    assert keyboard["skip"]["visible"]
    assert keyboard["filter"]["tag"] == "BUTTON"
    assert keyboard["filter"]["outline"]
    assert (keyboard["pressed"]["pressed"], keyboard["released"]["pressed"]) == (["FAIL"], [])
    assert (keyboard["opened"], keyboard["closed"]) == (True, True)


def test_colours_follow_the_system_until_somebody_chooses(saw: dict[str, Any]) -> None:
    themes = saw["themes"]

    assert themes["light"] == themes["lightInDark"] != themes["systemDark"]
    assert themes["systemDark"] == themes["auto"] == themes["darkInLight"]
    assert themes["pressed"] == ["dark"]


def test_on_paper_there_are_no_buttons_and_dark_ink(saw: dict[str, Any]) -> None:
    printed = saw["print"]

    assert (printed["filters"], printed["themes"], printed["clauses"]) == (False, False, True)
    assert printed["ink"] == "rgb(27, 29, 33)"
    assert not printed["wide"]


def test_a_link_leads_to_its_scenario_even_when_a_filter_hides_it(saw: dict[str, Any]) -> None:
    assert "scenario-page-fails" in saw["link"]["shown"]
    assert saw["link"]["focus"] == "scenario-page-fails"


def test_whatever_can_be_used_has_a_name(saw: dict[str, Any]) -> None:
    assert saw["nameless"] == []


def test_the_page_loads_nothing_and_complains_of_nothing(saw: dict[str, Any]) -> None:
    quiet = saw["quiet"]

    assert {request.split("#")[0] for request in quiet["requests"]} <= {saw["address"], "data:,"}
    assert (quiet["console"], quiet["errors"]) == ([], [])


def test_no_script_but_its_own_runs_and_nothing_can_be_loaded(saw: dict[str, Any]) -> None:
    assert saw["attack"] == {"ran": False, "refused": "script-src-elem", "image": "img-src", "planted": False}
