import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hc_sim.programs import install_faulty_hc
from hc_sim.programs.faulty_hc import connections

WAIT_S = 20


class Echo:
    """A peer that sends every line back and remembers them."""

    def __init__(self, path: Path) -> None:
        self.lines: list[bytes] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.fspath(path))
        self._listener.listen(8)
        self._threads: list[threading.Thread] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(link,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, link: socket.socket) -> None:
        with link, link.makefile("rwb", buffering=0) as file:
            try:
                for line in file:
                    self.lines.append(line)
                    file.write(line)
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(WAIT_S)


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hcf-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def echo(folder: Path) -> Iterator[Echo]:
    peer = Echo(folder / "s")
    yield peer
    peer.close()


def start(folder: Path) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [folder / "hc", "connect"], stdin=pipe, stdout=pipe, stderr=pipe, env={"HC_SOCKET": str(folder / "s")}
    )


def connect(folder: Path, data: bytes = b"one\ntwo\n") -> tuple[int, bytes, bytes]:
    process = start(folder)
    out, err = process.communicate(data, timeout=WAIT_S)
    return process.returncode, out, err


def converse(folder: Path, *lines: bytes) -> tuple[int, list[bytes]]:
    """One line at a time, each after the answer to the one before; returns the exit code and the answers."""
    with start(folder) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for line in lines:
            process.stdin.write(line)
            process.stdin.flush()
            answers.append(process.stdout.readline())
        process.stdin.close()
        return process.wait(WAIT_S), answers


def test_without_faults_it_is_a_healthy_bridge(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [])
    assert connect(folder) == (0, b"one\ntwo\n", b"")


def test_a_bridge_can_end_at_once_and_only_the_first_time(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"exit_code": 7, "stderr": "hc: no core\n"}])
    assert connect(folder, b"") == (7, b"", b"hc: no core\n")
    assert connect(folder) == (0, b"one\ntwo\n", b"")
    assert echo.lines == [b"one\n", b"two\n"]


def test_nth_chooses_the_connection_and_zero_means_every_one(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"nth": 2, "exit_code": 3}, {"nth": 0, "stderr": "noise"}])
    assert [connect(folder, b"")[0] for _ in range(3)] == [0, 3, 0]
    assert connect(folder, b"")[2] == b"noise"


def test_a_bridge_can_be_ended_by_a_signal(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"signal": "SIGKILL"}, {"nth": 2, "signal": "SIGTERM"}, {"nth": 3, "signal": "SIGINT"}])
    assert [connect(folder, b"")[0] for _ in range(3)] == [-9, -15, -2]


def test_a_bridge_ends_when_the_nth_request_was_read_and_that_one_is_not_carried(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"exit_code": 1, "after_requests": 3}])
    code, answers = converse(folder, b"one\n", b"two\n", b"three\n")
    assert (code, answers) == (1, [b"one\n", b"two\n", b""])
    assert echo.lines == [b"one\n", b"two\n"]


def test_a_signal_can_wait_for_requests_too(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"signal": "SIGKILL", "after_requests": 1}])
    assert converse(folder, b"one\n") == (-9, [b""])
    assert echo.lines == []


def test_a_bridge_that_waits_for_more_requests_than_come_ends_well(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"exit_code": 1, "after_requests": 5}])
    assert connect(folder) == (0, b"one\ntwo\n", b"")


def test_a_zero_exit_code_is_an_end_like_any_other(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"exit_code": 0}])
    assert connect(folder, b"") == (0, b"", b"")
    assert echo.lines == []


def test_megabytes_on_stderr_come_to_the_byte(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"stderr": "start\n", "stderr_bytes": 3_000_000}])
    code, out, err = connect(folder)
    assert (code, out) == (0, b"one\ntwo\n")
    assert err.startswith(b"start\nnoise from the bridge")
    assert len(err) == 6 + 3_000_000


def test_connections_are_counted_even_when_they_start_together(folder: Path, echo: Echo) -> None:
    install_faulty_hc(folder, [{"nth": number, "exit_code": number} for number in range(1, 7)])
    assert connections(folder) == 0
    together = [start(folder) for _ in range(6)]
    codes = []
    for process in together:
        process.communicate(timeout=WAIT_S)
        codes.append(process.returncode)
    assert sorted(codes) == [1, 2, 3, 4, 5, 6]
    assert connections(folder) == 6


def test_other_verbs_are_the_healthy_ones_and_do_not_count(folder: Path) -> None:
    hc = install_faulty_hc(folder, [{"exit_code": 7}])
    done = subprocess.run([hc, "--version"], capture_output=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout[:3]) == (0, b"hc ")
    assert connections(folder) == 0


def test_texts_are_carried_as_they_are(folder: Path, echo: Echo) -> None:
    text = "quotes ' \" \\ {braces} é \x1b[0m\n"
    install_faulty_hc(folder, [{"stderr": text}])
    assert connect(folder)[2].decode() == text


@pytest.mark.parametrize(
    ("bridge", "message"),
    [
        ({"exit": 1}, "a bridge has no exit"),
        ({"signal": "SIGNOPE"}, "there is no signal SIGNOPE"),
        ({"stderr_bytes": -1}, "stderr_bytes must be 0 to"),
        ({"stderr_bytes": 10**12}, "stderr_bytes must be 0 to"),
        ({"nth": -1}, "count from 0"),
    ],
)
def test_a_bridge_that_makes_no_sense_is_refused(folder: Path, bridge: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        install_faulty_hc(folder, [bridge])
    assert list(folder.iterdir()) == []
