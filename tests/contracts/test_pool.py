"""The pool: order, limits, workers that die, hang or speak; nothing left behind."""

import contextlib
import multiprocessing
import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.running.pool import MAX_DEAD_STARTS, Job, default_workers, run_jobs
from contracts.running.processes import descendants, processes

LIMIT_MS = 30_000
ROOT = Path(__file__).resolve().parents[2]


def said(payload: Any, why: str) -> str:
    return f"{payload!r} failed: {why}"


def jobs(*payloads: Any, limit_ms: int = LIMIT_MS) -> list[Job[Any]]:
    return [Job(payload, limit_ms) for payload in payloads]


def children() -> set[int]:
    return {child.pid for child in multiprocessing.active_children() if child.pid is not None}


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert run_jobs(operator.neg, jobs(1, 2, 3, 4, 5), failed=said, workers=2) == [-1, -2, -3, -4, -5]


def test_without_workers_everything_runs_here() -> None:
    pids = run_jobs(eval, jobs("__import__('os').getpid()", "1/0"), failed=said, workers=0)

    assert pids == [os.getpid(), "'1/0' failed: ZeroDivisionError: division by zero"]


def test_each_result_is_told_as_it_comes_in() -> None:
    told: list[tuple[int, int]] = []

    run_jobs(operator.neg, jobs(7, 8, 9), failed=said, workers=2, on_result=lambda *pair: told.append(pair))

    assert sorted(told) == [(0, -7), (1, -8), (2, -9)]


def test_a_job_that_raises_costs_only_itself() -> None:
    results = run_jobs(eval, jobs("1 + 1", "1 / 0", "2 + 2"), failed=said, workers=1)

    assert results == [2, "'1 / 0' failed: ZeroDivisionError: division by zero", 4]


def test_a_worker_that_exits_is_replaced_and_its_last_words_are_kept() -> None:
    dies = "__import__('os').write(2, b'out of luck'), __import__('os')._exit(7)"

    results = run_jobs(eval, jobs("1", dies, "2", "3"), failed=said, workers=1)

    assert results[0] == 1
    assert results[2:] == [2, 3]
    assert results[1].endswith("failed: its worker ended with exit code 7; it said: out of luck")


def test_when_no_worker_ever_answers_the_rest_is_given_up() -> None:
    told: list[int] = []

    results = run_jobs(
        eval,
        jobs(*["__import__('os')._exit(7)"] * (MAX_DEAD_STARTS + 20)),
        failed=said,
        workers=2,
        on_result=lambda index, _: told.append(index),
    )

    assert sum("none has ever answered" in result for result in results) >= 19
    assert sorted(told) == list(range(MAX_DEAD_STARTS + 20))


def test_a_worker_that_is_killed_is_replaced_and_the_signal_named() -> None:
    dies = "__import__('os').kill(__import__('os').getpid(), 9)"

    results = run_jobs(eval, jobs(dies, "5"), failed=said, workers=1)

    assert results[0].endswith("its worker was ended by signal SIGKILL")
    assert results[1] == 5


def test_a_worker_that_hangs_is_ended_at_the_limit_of_its_job() -> None:
    hanging = Job("__import__('time').sleep(600)", 300)

    results = run_jobs(eval, [hanging, *jobs("6")], failed=said, workers=1)

    assert results[0].endswith("was still running at its hard limit, and was ended")
    assert results[1] == 6


def test_a_process_that_a_hanging_job_started_is_ended_with_it(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    starts = (
        f"(lambda p: (__import__('pathlib').Path({str(noted)!r}).write_text(str(p.pid)), p.wait()))"
        "(__import__('subprocess').Popen(['sleep', '600'], start_new_session=True))"
    )

    run_jobs(eval, [Job(starts, 1_500)], failed=said, workers=1)

    assert int(noted.read_text()) not in {process.pid for process in processes()}


def test_a_worker_sees_no_foreign_variable_and_a_temporary_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HC_TERMINAL_ID", "t1")
    monkeypatch.setenv("PI_SUBAGENT_DEPTH", "1")
    names_seen = "sorted(n for n in __import__('os').environ if n.startswith(('HC_', 'PI_')))"
    seen = f"[{names_seen}, __import__('tempfile').mkdtemp()]"

    (names, folder), *_ = run_jobs(eval, jobs(seen), failed=said, workers=1)

    assert names == []
    assert not Path(folder).exists(), "the pool removes what its workers leave in their folder"


def test_what_a_job_prints_does_not_reach_our_output(capfd: pytest.CaptureFixture[str]) -> None:
    run_jobs(eval, jobs("__import__('os').write(1, b'loud')", "print('louder', flush=True)"), failed=said, workers=1)

    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_when_the_caller_is_interrupted(interrupt: type[BaseException]) -> None:
    before = children()

    def stop(*_: object) -> None:
        raise interrupt

    with pytest.raises(interrupt):
        run_jobs(eval, jobs("1", "__import__('time').sleep(600)"), failed=said, workers=2, on_result=stop)

    assert children() <= before


POOLING = """
import sys
from contracts.running.pool import Job, run_jobs

if __name__ == "__main__":
    tell = lambda index, result: print(result, flush=True)
    slow = "__import__('time').sleep(%s)"
    run_jobs(eval, [Job("'begun'", 30_000), Job(slow, 30_000)], failed=str, workers=2, on_result=tell)
"""


@pytest.fixture
def pooling(tmp_path: Path) -> Iterator[Callable[[float], "subprocess.Popen[str]"]]:
    """Start a program that has a pool with one busy worker, and wait until it is at work."""
    started: list[subprocess.Popen[str]] = []

    def start(seconds: float) -> "subprocess.Popen[str]":
        env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", POOLING % seconds]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT)
        started.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        return program

    yield start
    for program in started:
        program.kill()
        program.communicate()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_program_that_is_told_to_end_leaves_no_worker_and_no_folder(
    number: signal.Signals, code: int, pooling: Callable[[float], "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    program = pooling(600)
    below = {process.pid for process in descendants(program.pid)}

    program.send_signal(number)

    assert program.wait(30) == code
    assert list(tmp_path.iterdir()) == []
    assert len(below) > 1
    assert _gone(below)


def test_a_second_signal_does_not_cut_the_clearing_up(
    pooling: Callable[[float], "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    program = pooling(600)
    below = {process.pid for process in descendants(program.pid)}

    for _ in range(20):
        program.send_signal(signal.SIGTERM)  # as timeout(1) does: to the program, and to its group
        time.sleep(0.002)

    assert program.wait(30) in (143, -signal.SIGTERM)  # the last ones may come when all is done
    assert list(tmp_path.iterdir()) == []
    assert _gone(below)


def test_workers_of_a_program_that_was_killed_leave_when_their_job_is_done(
    pooling: Callable[[float], "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    program = pooling(0.5)
    below = {process.pid for process in descendants(program.pid)}

    program.kill()

    assert _gone(below)
    assert list(tmp_path.glob("hc-*")) == []


def _gone(pids: set[int]) -> bool:
    for _ in range(1_000):
        if not pids & {process.pid for process in processes()}:
            return True
        time.sleep(0.01)
    return False


def test_no_jobs_no_workers() -> None:
    before = children()

    assert run_jobs(operator.neg, [], failed=said, workers=3) == []
    assert children() <= before


def test_the_default_is_two_a_processor_and_two_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    assert default_workers() == 6


def test_workers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4_000)

    assert default_workers() == 64


def test_a_result_that_cannot_travel_is_a_failure_of_its_job() -> None:
    work: Callable[[Any], Any] = eval

    results = run_jobs(work, jobs("lambda: 1", "4"), failed=said, workers=1)

    assert "failed" in results[0]
    assert results[1] == 4


def test_without_workers_a_job_that_hangs_is_stopped_at_its_limit() -> None:
    hangs = "__import__('asyncio').run(__import__('asyncio').sleep(600))"

    assert run_jobs(eval, [Job(hangs, 200), Job("7", LIMIT_MS)], failed=said, workers=0) == [
        f"{hangs!r} failed: was still running at its hard limit, and was stopped",
        7,
    ]


def test_without_workers_a_job_that_swallows_every_error_is_stopped_too() -> None:
    [told] = run_jobs(_swallows, [Job("x", 200)], failed=said, workers=0)

    assert "hard limit" in told


def _swallows(_: str) -> str:
    while True:
        with contextlib.suppress(Exception):
            time.sleep(600)


def test_who_is_deaf_to_a_hangup_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        kept: list[object] = []
        run_jobs(
            eval, jobs("1"), failed=said, workers=1, on_result=lambda *_: kept.append(signal.getsignal(signal.SIGHUP))
        )
    finally:
        signal.signal(signal.SIGHUP, before)

    assert kept == [signal.SIG_IGN]


def test_a_long_temporary_folder_is_no_hindrance(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 150)
    long.mkdir()
    code = (
        "from contracts.running.pool import Job, run_jobs\n"
        "if __name__ == '__main__': print(run_jobs(eval, [Job('7', 30000)], failed=str, workers=1))"
    )
    env = {**os.environ, "TMPDIR": str(long), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=ROOT, timeout=60, check=False
    )

    assert (done.stdout, list(long.iterdir())) == ("[7]\n", []), done.stderr


def test_a_worker_that_begins_after_the_pool_was_closed_leaves_without_a_word(tmp_path: Path) -> None:
    code = f"from contracts.running.pool import _serve; _serve(None, None, {str(tmp_path / 'gone')!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_workers_import_nothing_from_the_folder_that_the_program_stands_in(tmp_path: Path) -> None:
    program, here = tmp_path / "bin" / "program.py", tmp_path / "here"
    for folder in (program.parent, here):
        folder.mkdir()
    for name in ("click.py", "json.py"):
        (here / name).write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    program.write_text(
        f"import sys\nsys.path.append({str(ROOT)!r})\n"
        "import operator\nfrom contracts.running.pool import Job, run_jobs\n"
        "if __name__ == '__main__':\n"
        "    print(run_jobs(operator.neg, [Job(3, 20_000)], failed=lambda *why: why, workers=1))\n"
    )

    run = subprocess.run(
        [sys.executable, str(program)], cwd=here, capture_output=True, text=True, check=False, timeout=60
    )

    assert (run.returncode, run.stdout) == (0, "[-3]\n"), run.stderr
    assert not (tmp_path / "imported").exists()
