"""The commands about drivers: `sut new`, `sut doctor`, `sut protocol`, and `check --sut`."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from click.testing import CliRunner, Result

from contracts.cli import main
from contracts.running.processes import Process, descendants, processes
from contracts.sut import stdio

SUT = Path(__file__).parents[1] / "sut" / "python"
DRIVER = shlex.join([sys.executable, str(SUT / "driver.py")])
LANGUAGES: Mapping[str, str] = {"node": "driver.mjs", "python": "driver.py"}


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def broken(how: str) -> str:
    return shlex.join([sys.executable, str(SUT / "broken.py"), how, str(os.getpid())])


def check(*words: str, sut: str = DRIVER) -> Result:
    return invoke("check", "--sut", sut, "--workers", "0", *words)


def interpreter(language: str) -> str:
    found = sys.executable if language == "python" else shutil.which("node")
    if found is None:
        pytest.skip("there is no node on this machine")
    return found


# ---------------------------------------------------------------------- sut new


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_a_new_driver_runs_at_once_and_is_told_what_it_lacks(language: str, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "mine"
    made = invoke("sut", "new", "--language", language, str(folder))
    assert made.exit_code == 0, made.output
    assert sorted(path.name for path in folder.iterdir()) == sorted(["README.md", LANGUAGES[language]])

    command = shlex.join([interpreter(language), str(folder / LANGUAGES[language])])
    told = invoke("sut", "doctor", "--format", "json", command)
    document = json.loads(told.stdout)
    states = {row["id"]: row["state"] for row in document["probes"]}
    assert (told.exit_code, document["schema"], document["ready"]) == (1, 1, False)
    assert states.pop("initialize") == "has"
    assert set(states.values()) == {"undeclared"}

    checked = check(sut=command)
    assert checked.exit_code == 3
    assert "declares neither terminal nor rpc" in checked.stderr


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_a_new_driver_says_not_implemented_to_every_call(language: str, tmp_path: Path) -> None:
    invoke("sut", "new", "--language", language, str(tmp_path / "mine"))
    path = tmp_path / "mine" / LANGUAGES[language]
    path.write_text(
        path.read_text().replace("FEATURES = []", 'FEATURES = ["host"]', 1).replace("str] = []", 'str] = ["host"]')
    )
    told = invoke("sut", "doctor", "--format", "json", shlex.join([interpreter(language), str(path)]))
    [host] = [row for row in json.loads(told.stdout)["probes"] if row["id"] == "host"]
    assert host["state"] == "broken"
    assert "this driver has no host.available" in host["got"]


def test_a_folder_with_something_in_it_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    for taken in (tmp_path / "mine", tmp_path / "mine" / "notes"):
        told = invoke("sut", "new", "--language", "node", str(taken))
        assert told.exit_code == 2
        assert "name a new folder" in told.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


# ------------------------------------------------------------------- sut doctor


def test_the_doctor_finds_nothing_wrong_with_the_driver_in_python() -> None:
    told = invoke("sut", "doctor", "--format", "json", DRIVER)
    document = json.loads(told.stdout)
    assert {row["id"]: (row["state"], row["got"]) for row in document["probes"] if row["state"] != "has"} == {}
    assert (told.exit_code, document["ready"], document["driver"]["name"]) == (0, True, "legion_terminal")


def test_the_doctor_says_what_came_and_what_to_do() -> None:
    told = invoke("sut", "doctor", broken("wrong-type"))
    assert told.exit_code == 1
    assert "broken" in told.stdout
    assert "Expected `bool`, got `str`" in told.stdout
    assert "do: answer host.available" in told.stdout
    assert "not ready" in told.stdout


def test_the_doctor_says_what_answers_instead_of_a_driver() -> None:
    told = invoke("sut", "doctor", broken("no-json"))
    assert told.exit_code == 1
    assert "Welcome to my supervisor!" in told.stdout


def test_the_doctor_of_no_program_is_bad_usage() -> None:
    told = invoke("sut", "doctor", "./no-such-driver")
    assert (told.exit_code, "there is no program no-such-driver" in told.stderr) == (2, True)


# ---------------------------------------------------------------- the documents


@pytest.mark.parametrize(("name", "beginning"), [("protocol", "# The SUT protocol"), ("example", '{"from":"suite"')])
def test_the_documents_are_printed(name: str, beginning: str) -> None:
    told = invoke("sut", name)
    assert told.exit_code == 0
    assert told.stdout.startswith(beginning)


# ------------------------------------------------------------------ check --sut

ONE_OF_EACH = (
    "--scenario",
    "arbitrate-outside",
    "--scenario",
    "settle-ten-silent-minutes",
    "--scenario",
    "session-accept",
)


def verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {one["id"]: one["verdict"] for one in document["scenarios"]}


def test_a_driver_is_asked_over_the_socket_and_what_real_time_cannot_tell_is_skipped() -> None:
    told = check(*ONE_OF_EACH, "--format", "json")
    document = json.loads(told.stdout)
    assert told.exit_code == 0, told.output
    assert verdicts(document) == {
        "arbitrate-outside": "pass", "settle-ten-silent-minutes": "skipped", "session-accept": "pass",
    }  # fmt: skip
    assert {run["host"] for one in document["scenarios"] for run in one["runs"]} == {"socket"}
    assert (document["sut"]["name"], document["sut"]["command"]) == ("legion_terminal", DRIVER)


def test_require_makes_a_skipped_scenario_a_failure() -> None:
    assert check(*ONE_OF_EACH, "--require").exit_code == 1


def test_what_is_not_declared_is_skipped_in_every_report() -> None:
    words = ("--scenario", "host-available-unprobed", "--scenario", "card-plain-loads")
    reason = "the SUT does not declare cards"
    good = broken("good")
    table = check(*words, sut=good)
    assert reason in " ".join(table.stdout.split())
    document = json.loads(check(*words, "--format", "json", sut=good).stdout)
    assert verdicts(document) == {"host-available-unprobed": "pass", "card-plain-loads": "skipped"}
    junit = fromstring(check(*words, "--format", "junit", sut=good).stdout)  # noqa: S314 - our own report
    assert reason in {skipped.get("message") for skipped in junit.iter("skipped")}
    assert reason in check(*words, "--format", "github", sut=good).stdout


def test_what_a_driver_does_to_itself_costs_its_own_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "CALL_S", 1.0)
    words = ("--scenario", "host-available-unprobed", "--scenario", "host-available-table")
    told = check(*words, "--format", "json", sut=broken("dies"))
    assert told.exit_code == 1
    assert set(verdicts(json.loads(told.stdout)).values()) == {"fail"}


def test_a_failure_can_be_run_again_with_the_line_that_is_shown() -> None:
    told = check("--scenario", "host-available-unprobed", sut=broken("noise"))
    assert "debug: about to answer" in " ".join(told.stdout.split())
    [line] = [line for line in told.stdout.splitlines() if "again: " in line]
    words = shlex.split(line.partition("again: ")[2])
    assert words[:2] == ["legion-contracts", "check"]
    assert words[words.index("--sut") + 1] == broken("noise")
    assert invoke(*words[1:], "--workers", "0").exit_code == 1


@pytest.mark.parametrize(
    ("sut", "code", "words"),
    [
        ("no-such-program driver.mjs", 2, "there is no program no-such-program on PATH"),
        (broken("wrong-version"), 3, "speaks version 9 of the protocol, and this suite version 1"),
        (broken("no-json"), 3, "no JSON on its standard output: 'Welcome to my supervisor!'"),
        (broken("dies-at-once"), 3, "ended with exit code 7; its error output ends: no such module"),
        (broken("declares-nothing"), 3, "declares neither terminal nor rpc"),
    ],
    ids=["no-program", "wrong-version", "no-json", "dies-at-once", "declares-nothing"],
)
def test_what_is_no_driver_is_one_error_before_any_run(sut: str, code: int, words: str) -> None:
    told = check(sut=sut)
    assert told.exit_code == code
    assert words in told.stderr
    assert told.stdout == ""
    assert "Traceback" not in told.stderr


def test_a_driver_cannot_be_asked_in_memory() -> None:
    told = check("--host", "memory")
    assert (told.exit_code, "over the socket only" in told.stderr) == (2, True)


def test_the_built_in_supervisor_can_be_named() -> None:
    words = ("check", "--scenario", "arbitrate-outside", "--host", "memory", "--workers", "0")
    named, plain = (invoke(*words, *more).stdout.rpartition(";")[0] for more in (("--sut", "python"), ()))
    assert named == plain
    assert "holds" in plain


def test_a_driver_is_asked_by_workers_side_by_side() -> None:
    told = invoke("check", "--sut", DRIVER, "--workers", "3", "--clause", "D10", "--format", "json")
    document = json.loads(told.stdout)
    assert told.exit_code == 0, told.output
    found = list(verdicts(document).values())
    assert found.count("pass") > 8
    assert set(found) == {"pass", "skipped"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_no_driver_behind(number: signal.Signals) -> None:
    command = broken("hangs")
    words = ("check", "--sut", command, "--workers", "2", "--scenario", "host-available-*")
    run = subprocess.Popen(
        [sys.executable, "-m", "contracts", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _until(lambda: len(_drivers(run.pid)) >= 2)
        run.send_signal(number)
        assert run.wait(timeout=20) == 128 + number
    finally:
        run.kill()
    mark = f"broken.py hangs {os.getpid()}"
    _until(lambda: not any(one.command.endswith(mark) for one in processes()))


def test_a_run_that_is_stopped_while_a_driver_introduces_itself_leaves_none_behind() -> None:
    words = ("check", "--sut", broken("hangs-at-once"), "--scenario", "host-available-*")
    run = subprocess.Popen(
        [sys.executable, "-m", "contracts", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _until(lambda: bool(_drivers(run.pid)))
        run.send_signal(signal.SIGTERM)
        assert run.wait(timeout=20) == 128 + signal.SIGTERM
    finally:
        run.kill()
    mark = f"broken.py hangs-at-once {os.getpid()}"
    _until(lambda: not any(one.command.endswith(mark) for one in processes()))


def _drivers(pid: int) -> list[Process]:
    return [process for process in descendants(pid) if "broken.py" in process.command and "-m" not in process.command]


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it never came to that")


@pytest.mark.parametrize(
    "words", [("check",), ("show", "settle-boot-idle"), ("violations",), ("fuzz",), ("table", "headless")]
)
def test_an_empty_command_is_no_supervisor(words: tuple[str, ...]) -> None:
    result = invoke(*words, "--sut", "")

    assert result.exit_code == 2
    assert "--sut" in result.stderr
