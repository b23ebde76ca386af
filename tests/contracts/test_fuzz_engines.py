"""Engines carry every batch out, though workers die; what cannot be had is said in words."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.fuzz.batch import Batch, Report, carry_out
from contracts.fuzz.campaign import Until, pursue
from contracts.fuzz.engines import MAX_DEATHS, Engine, EngineError, HereEngine, PoolEngine, engine, lost
from contracts.fuzz.saved import Setting, State, found

PATIENCE = 120
"""Looks at an engine, half a second each, before a test gives up."""


def through(one: Engine, batches: list[Batch]) -> dict[int, Report]:
    for batch in batches:
        one.submit(batch)
    reports: dict[int, Report] = {}
    for _ in range(PATIENCE):
        report = one.next(0.5)
        if report is not None:
            reports[report.index] = report
        if len(reports) == len(batches):
            break
    return reports


def batches(count: int) -> list[Batch]:
    return [Batch(index=at, first=at * 5, count=5, mode="blind") for at in range(count)]


def dies_once(batch: Batch) -> Report:
    """The worker that first gets the third batch is killed in its middle."""
    mark = Path(os.environ["FUZZ_MARK"])
    if batch.index == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return carry_out(batch)


def always_dies(batch: Batch) -> Report:
    if batch.index == 1:
        os._exit(7)
    return carry_out(batch)


def raises(batch: Batch) -> Report:
    if batch.index == 1:
        raise OSError("no room")
    return carry_out(batch)


@pytest.fixture(name="pool")
def a_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PoolEngine]]:
    monkeypatch.setenv("FUZZ_MARK", str(tmp_path / "died"))
    with contextlib.ExitStack() as stack:

        def make(work: Callable[[Batch], Report] = carry_out) -> PoolEngine:
            one = PoolEngine(2, work)
            stack.callback(one.close)
            return one

        yield make


def test_a_pool_reports_what_this_process_reports(pool: Callable[..., PoolEngine]) -> None:
    setting = Setting(seed=40, batch_runs=5)
    here, there = State(setting=setting), State(setting=setting)

    pursue(here, HereEngine(), Until(examples=20))
    pursue(there, pool(), Until(examples=20))

    assert found(here) == found(there)


def test_a_worker_that_is_killed_loses_nothing(pool: Callable[..., PoolEngine]) -> None:
    one = pool(dies_once)

    reports = through(one, batches(5))

    assert sorted(reports) == [0, 1, 2, 3, 4]
    assert all(report.runs == 5 for report in reports.values())
    assert one.deaths == 1


def test_a_batch_that_kills_every_worker_is_given_up_and_the_others_are_not(pool: Callable[..., PoolEngine]) -> None:
    one = pool(always_dies)

    reports = through(one, batches(3))

    assert sorted(reports) == [0, 1, 2]
    assert f"{MAX_DEATHS} workers died" in reports[1].failures[0].words
    assert reports[1].failures[0].invariant == "harness"
    assert reports[0].runs == 5


def test_a_batch_over_which_the_harness_breaks_is_lost_and_the_others_are_not(pool: Callable[..., PoolEngine]) -> None:
    reports = through(pool(raises), batches(3))

    assert "OSError: no room" in reports[1].failures[0].words
    assert [reports[at].runs for at in (0, 2)] == [5, 5]


def test_a_pool_that_is_closed_leaves_no_process_and_no_folder(
    pool: Callable[..., PoolEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one = pool()
    through(one, batches(2))
    workers = list((getattr(one._pool, "_processes", None) or {}).values())
    one.submit(Batch(index=9, first=0, count=500, mode="blind"))

    one.close()

    assert workers
    assert not list(tmp_path.glob("fuzz-*"))
    assert not [worker for worker in workers if worker.is_alive()]


def test_a_batch_that_is_lost_still_counts_its_seeds() -> None:
    report = lost(Batch(index=4, first=10, count=5), "a test")

    assert (report.drawn, report.runs, report.failed) == (5, 0, 1)
    assert "seeds 10 to 14" in report.failures[0].words


def test_this_process_can_be_the_engine() -> None:
    one = engine("local", workers=0)

    assert isinstance(one, HereEngine)
    assert one.next(0.1) is None


@pytest.mark.parametrize(
    ("name", "scheduler", "why"),
    [
        ("spark", "", "no engine 'spark'; there are local and dask"),
        ("dask", "", "needs the address of a scheduler"),
        ("local", "tcp://127.0.0.1:1", "--scheduler is for --engine dask"),
    ],
)
def test_an_engine_that_cannot_be_had_is_said_in_words(name: str, scheduler: str, why: str) -> None:
    with pytest.raises(EngineError, match=why):
        engine(name, scheduler=scheduler)


def test_without_the_package_the_dask_engine_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(EngineError, match=r"install legion-contracts\[dask\]"):
        engine("dask", scheduler="tcp://127.0.0.1:1")


CLUSTER = """
import os, signal
from distributed import LocalCluster
from contracts.fuzz.campaign import Until, pursue
from contracts.fuzz.dask_engine import DaskEngine
from contracts.fuzz.engines import HereEngine
from contracts.fuzz.saved import Setting, State, found

def main():
    setting = Setting(seed=7, batch_runs=15)
    straight = State(setting=setting)
    pursue(straight, HereEngine(), Until(examples=300))
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        engine = DaskEngine(cluster.scheduler_address)
        state = State(setting=setting)
        killed = []

        def told(state, report):
            if report.index == 4 and not killed:
                workers = engine._client.run(os.getpid)
                victim = sorted(workers.values())[0]
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        pursue(state, engine, Until(examples=300), on_report=told)
        engine.close()
    print("killed", len(killed), "runs", state.runs, "same", found(state) == found(straight), "failed", state.failed)

if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None,
    reason="the package distributed is not installed (extra dask)",
)
def test_a_dask_cluster_that_loses_a_worker_in_the_middle_finds_what_this_process_finds(tmp_path: Path) -> None:
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER, encoding="utf-8")
    root = Path(__file__).parents[2]

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )

    assert "killed 1 runs 300 same True failed 0" in done.stdout, (done.stdout, done.stderr[-3_000:])
