"""The command as a program: closed streams, readers that leave, a folder that is gone, a Ctrl-C at any moment."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.running.surroundings import unwritable

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "contracts"]
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}
ONE = ("check", "--scenario", "settle-boot-idle", "--host", "memory", "--workers", "1")


def run(*arguments: str, **more: object) -> "subprocess.CompletedProcess[str]":
    told = {"cwd": ROOT, "env": ENV, "text": True, "timeout": 60, "stderr": subprocess.PIPE, **more}
    return subprocess.run([*COMMAND, *arguments], check=False, **told)  # type: ignore[call-overload,no-any-return]


def closing(number: int) -> Callable[[], None]:
    return lambda: os.close(number)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_closed_stream_is_no_hindrance(number: int, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run(*ONE, "--format", "json", "--out", str(report), preexec_fn=closing(number), stdout=subprocess.PIPE)

    assert done.returncode == 0, done.stderr
    assert report.read_text().startswith("{"), "nothing else was written into the report"


def test_a_gate_says_what_it_found_though_its_reader_has_left() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(*ONE, stdout=writing)
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_list_that_nobody_reads_ends_as_if_the_system_had_ended_it() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run("clauses", stdout=writing)
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (141, "")


def test_a_folder_that_is_gone_is_bad_usage(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    there = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})"
    code = f"{there}; os.execv({sys.executable!r}, {[*COMMAND, *ONE]!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENV, timeout=60, check=False
    )

    assert done.returncode == 2
    assert "the current folder is not there any more" in done.stderr
    assert "bug" not in done.stderr


def test_a_ctrl_c_while_modules_are_read_is_one_word() -> None:
    code = (
        "import builtins, os, signal, runpy\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'contracts.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "from contracts.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENV, timeout=60, check=False
    )

    assert done.stderr == "interrupted\n"
    assert done.returncode in (130, -signal.SIGINT)


@pytest.mark.parametrize("name", ["there/report", "folder", "no\0name"])
def test_a_report_that_cannot_be_written_is_noticed_before(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    if "\0" in name:
        assert unwritable(Path("/proc/nothing")) != ""
    else:
        assert unwritable(tmp_path / name) != ""


def test_to_try_a_file_changes_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("kept")

    assert (unwritable(old), unwritable(tmp_path / "new"), unwritable(Path(os.devnull))) == ("", "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert old.read_text() == "kept"


def test_a_wrong_out_is_bad_usage_and_nothing_runs(tmp_path: Path) -> None:
    done = run(*ONE, "--out", str(tmp_path), stdout=subprocess.PIPE)

    assert done.returncode == 2
    assert done.stdout == ""


def test_an_endless_recording_is_refused() -> None:
    done = run("import-recording", "/dev/zero", "--out", "/tmp/never", stdout=subprocess.PIPE)

    assert done.returncode == 2
    assert "larger than" in done.stderr


@pytest.mark.parametrize("path", [os.devnull, "empty"])
def test_where_there_is_no_scenario_none_is_good(path: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run("lint", str(tmp_path / path), stdout=subprocess.PIPE)

    assert (done.returncode, done.stdout) == (2, "0 scenarios are good, 1 mistake\n")
