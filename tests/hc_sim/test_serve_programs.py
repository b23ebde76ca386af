"""`hc-sim serve --programs`: real programs behind the command, and what is left of them after any end."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hc_sim import programs as executables
from hc_sim.cli import main

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")
WAIT_S = 20.0
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "hc_sim"]
AGENT = [sys.executable, "-IS", str(Path(executables.__file__).with_name("reporting_agent.py")), "--work-ms", "20"]
STUBBORN = "trap '' HUP TERM; sleep 88 & echo $! up; while :; do sleep 87; done"


class Serving:
    """A running command and the environment that it printed."""

    def __init__(self, home: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--programs", "--quiet", *words],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(5)]
        self.env = dict(line.removeprefix("export ").rstrip().split("=", 1) for line in lines[:4])

    def hc(self, *words: str) -> str:
        done = subprocess.run(
            [self.env["HC_BIN"], *words], env=self.env, capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pid(self, name: str) -> int:
        return int(json.loads(self.hc("get", "--json", name))["pid"])

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, str(err)


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hcp-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def serving(home: Path) -> Iterator[Serving]:
    (home / "p.toml").write_text("program_grace_ms = 100\n")
    one = Serving(home, "--profile", str(home / "p.toml"), "--env", f"PATH={os.environ['PATH']}", "--env", "A=b")
    yield one
    one.process.kill()
    one.process.communicate(timeout=WAIT_S)


def alive(pid: int) -> bool:
    """Whether there is such a process; a zombie that only waits for the system's own first process is none."""
    try:
        os.kill(pid, 0)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[:2] != ["Z", "1"]


def wait_for(so: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not so():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def test_a_program_runs_and_reports(serving: Serving) -> None:
    serving.hc("run", "--bg", "--name", "a", "--", *AGENT, "task")
    serving.hc("wait", "a", "--timeout", "10")
    wait_for(lambda: json.loads(serving.hc("get", "--json", "a"))["status"]["state"] == "done")
    serving.hc("send", "a", "more")
    wait_for(lambda: json.loads(serving.hc("get", "--json", "a"))["turn"] == 2)
    serving.hc("run", "--name", "e", "--", "sh", "-c", "echo $A $TERM $HC_TERMINAL_ID")
    assert serving.hc("read", "e") == "b xterm-256color t3\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_no_program_outlives_it(serving: Serving, home: Path, number: signal.Signals) -> None:
    serving.hc("run", "--bg", "--name", "a", "--", *AGENT, "wait")
    serving.hc("run", "--bg", "--name", "s", "--", "sh", "-c", STUBBORN)
    wait_for(lambda: "up" in serving.hc("read", "s"))
    pids = [serving.pid("a"), serving.pid("s"), int(serving.hc("read", "s").split()[0])]
    assert all(map(alive, pids))
    code, err = serving.end(number)
    if number == signal.SIGKILL:
        wait_for(lambda: not any(map(alive, pids)))
        assert [path.name[:7] for path in home.iterdir() if path.is_dir()] == ["hc-sim-"]
        assert Serving(home).end(signal.SIGTERM)[0] == 0
    else:
        assert (code, err.endswith("hc-sim: ended\n")) == (0, True)
        assert not any(map(alive, pids))
    assert [path.name for path in home.iterdir()] == ["p.toml"]


def test_a_variable_that_is_none_is_bad_usage() -> None:
    done = CliRunner().invoke(main, ["serve", "--env", "PATH"])
    assert done.exit_code == 2
    assert "a variable is NAME=VALUE" in done.output


def test_help_says_how_to_start_programs() -> None:
    assert "hc-sim serve --programs --env" in CliRunner().invoke(main, ["serve", "--help"]).output


def test_a_ctrl_c_before_anything_has_begun_is_one_word() -> None:
    code = (
        "import sys, importlib.abc\n"
        "class Pressed(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'hc_sim.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from hc_sim.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
