"""What is said when there is no core, or something that is none: one sentence, and the right exit code."""

import socket
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from contracts.cli import main

NOWHERE = {
    "HC_BIN": None,
    "HC_SOCKET": None,
    "HC_TERMINAL_SOCKET": None,
    "PATH": "/nonexistent",
    "HOME": "/nonexistent",
}


def legion(*words: str, **env: str) -> Result:
    return CliRunner().invoke(main, list(words), env={**NOWHERE, **env})


def stub(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hc"
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")
    path.chmod(0o755)
    return path


def test_without_a_core_the_report_is_skipped_and_all_is_well() -> None:
    result = legion("live")

    assert result.exit_code == 0
    assert "skipped: there is no hc" in result.output
    assert '"outcome": "skipped"' in legion("live", "--format", "json").output


def test_a_core_can_be_required() -> None:
    assert legion("live", "--require").exit_code == 1


def test_nothing_is_recorded_without_a_core(tmp_path: Path) -> None:
    result = legion("record", str(tmp_path / "tape"))

    assert result.exit_code == 3
    assert "nothing was recorded: there is no hc" in result.output
    assert not (tmp_path / "tape").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo 'hc: no such session' >&2; exit 1", "cannot be reached: hc: no such session"),
        ("exit 4", "cannot be reached: hc connect ended with exit code 4"),
        ("exec cat", "what answers is no core"),
        ('read line; echo \'{"jsonrpc":"2.0","id":"live-1","result":7}\'; exec sleep 9', "what answers is no core"),
        (
            'read line; echo \'{"jsonrpc":"2.0","id":"live-1","error":{"code":1,"message":"too old"}}\'; exec sleep 9',
            "refuses hello: too old",
        ),
        (
            'read line; echo \'{"jsonrpc":"2.0","id":"live-1","result":{"core_id":"c","generation":1,"version":"1"}}\'',
            "is gone",
        ),
    ],
)
def test_what_is_no_core_is_said_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    result = legion("live", "--hc", str(stub(tmp_path, text)))

    assert result.exit_code == 3, result.output
    assert words in result.output
    assert result.output.count("\n") == 1
    assert "Traceback" not in result.output


def test_a_core_that_says_nothing_but_noise_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contracts.live.stage.CALL_MS", 300)

    result = legion("live", "--hc", str(stub(tmp_path, "echo welcome to the jungle; exec sleep 9")))

    assert result.exit_code == 3
    assert "no answer to hello" in result.output
    assert "welcome to the jungle" in result.output


def test_names_that_lead_nowhere_are_a_mistake_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")

    for words, said in (
        (("--hc", str(tmp_path / "missing")), "is not there"),
        (("--hc", str(tmp_path / "plain")), "is not executable"),
        (("--cassette", str(tmp_path / "missing")), "cannot be read"),
        (("--cassette", str(tmp_path / "plain")), "is empty"),
        (("--cassette", "x", "--hc", "y"), "leave out the other options"),
        (("--out", str(tmp_path / "plain")), "--out"),
    ):
        result = legion("live", *words)
        assert result.exit_code == 2, result.output
        assert said in result.output


def test_an_hc_bin_that_leads_nowhere_and_a_dead_socket_are_no_mistake_of_this_command(tmp_path: Path) -> None:
    assert legion("live", HC_BIN="/nowhere/hc").exit_code == 3
    assert legion("live", "--socket", str(tmp_path / "missing")).exit_code == 3
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder) / "s"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        result = legion("live", "--socket", str(path))

    assert result.exit_code == 3
    assert "cannot be reached" in result.output
