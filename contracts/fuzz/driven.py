"""`legion-contracts fuzz --sut`: random lives for a driver, in real time, and the smallest one in which it goes wrong.

Exit codes: 0 nothing was found, 1 something was, 2 no such program, 3 no driver, or the harness broke.
"""

import json
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import click

from contracts.commands.driven import driver
from contracts.fuzz.as_scenario import keep
from contracts.fuzz.campaign import Until
from contracts.fuzz.looks import LIMIT_MS, Life, as_scenario, drawn, smaller
from contracts.judging.judge import judge
from contracts.records import RunVerdict
from contracts.running.one_run import run_scenario
from contracts.running.pool import Job, default_workers, run_jobs
from contracts.sut.stdio import StdioFactory

GRACE_MS: Final = 15_000
MAX_TRIES: Final = 60
"""Smaller lives that are tried for one that failed."""
BROKE: Final = 3


@dataclass(slots=True)
class Tally:
    """What a campaign found: runs, the seeds that failed, and how the harness broke."""

    runs: int = 0
    failed: list[tuple[int, RunVerdict]] = field(default_factory=list)
    errored: list[str] = field(default_factory=list)


def run_driven(
    sut: str,
    *,
    seed: int,
    until: Until,
    form: str = "table",
    workers: int | None = None,
    keep_in: Path | None = None,
) -> int:
    """Carry the campaign out, print what it found, and return the exit code. Raises click's exceptions."""
    factory, declared = driver(sut)
    tally = _campaign(factory, seed, until, workers)
    words: list[str] = []
    kept: Path | None = None
    if tally.failed:
        first, verdict = tally.failed[0]
        life, verdict = _shrunk(factory, drawn(first), verdict)
        words = said(verdict)
        kept = _kept(life, first, words, keep_in)
    if form == "json":
        click.echo(json.dumps(_document(declared.name, seed, tally, words, kept), ensure_ascii=False))
    else:
        for line in _lines(factory, declared.name, seed, tally, words, kept):
            click.echo(line)
    return 1 if tally.failed else BROKE if tally.errored else 0


def said(verdict: RunVerdict) -> list[str]:
    """What did not hold, a line each."""
    failed = [finding for finding in verdict.findings if not finding.ok]
    return [f"{one.clause} {one.where}: expected {one.expected!r}, got {one.got!r}" for one in failed]


def _campaign(factory: StdioFactory, seed: int, until: Until, workers: int | None) -> Tally:
    tally = Tally()
    begun = time.monotonic()
    many = max(1, 4 * (default_workers() if workers is None else workers))
    seeds = iter(range(seed, seed + until.examples)) if until.examples is not None else _count(seed)

    def more() -> bool:
        return until.seconds is None or time.monotonic() - begun < until.seconds

    while more() and (batch := [number for _, number in zip(range(many), seeds, strict=False)]):
        _batch(factory, batch, workers, tally)
        if sys.stderr.isatty():
            click.echo(f"\r{tally.runs} runs, {len(tally.failed)} failed", nl=False, err=True)
    return tally


def _count(seed: int) -> Iterator[int]:
    while True:
        yield seed
        seed += 1


def _batch(factory: StdioFactory, seeds: list[int], workers: int | None, tally: Tally) -> None:
    jobs = [Job(number, LIMIT_MS + GRACE_MS) for number in seeds]
    for number, verdict in zip(
        seeds, run_jobs(partial(_perform, factory), jobs, failed=_failed, workers=workers), strict=True
    ):
        tally.runs += 1
        if verdict.verdict == "fail":
            tally.failed.append((number, verdict))
        elif verdict.errored is not None:
            tally.errored.append(f"seed {number}: {verdict.errored}")


def _perform(factory: StdioFactory, seed: int) -> RunVerdict:
    return _run(factory, drawn(seed), f"seed-{seed}")


def _run(factory: StdioFactory, life: Life, name: str) -> RunVerdict:
    scenario = as_scenario(life, name)
    return judge(scenario, run_scenario(scenario, "socket", factory))


def _failed(seed: int, why: str) -> RunVerdict:
    return RunVerdict(scenario=f"seed-{seed}", host="socket", verdict="errored", errored=why)


def _shrunk(factory: StdioFactory, life: Life, verdict: RunVerdict) -> tuple[Life, RunVerdict]:
    """A life from which nothing can be taken without its failing going away, within `MAX_TRIES`."""
    left = MAX_TRIES
    candidates = smaller(life)
    while left > 0 and (candidate := next(candidates, None)) is not None:
        left -= 1
        found = _run(factory, candidate, "shrunk")
        if found.verdict == "fail":
            life, verdict = candidate, found
            candidates = smaller(life)
    return life, verdict


def _kept(life: Life, seed: int, words: list[str], folder: Path | None) -> Path | None:
    if folder is None:
        return None
    notes = [f"found by: legion-contracts fuzz --sut, seed {seed}", *(f"broke: {one}" for one in words)]
    try:
        return keep(folder, as_scenario(life, f"fuzz-driver-{seed}"), notes)
    except OSError as error:
        raise click.UsageError(f"--keep: {folder} cannot be written: {error.strerror}") from error


def _document(name: str, seed: int, tally: Tally, words: list[str], kept: Path | None) -> dict[str, object]:
    return {
        "schema": 1,
        "sut": name,
        "seed": seed,
        "runs": tally.runs,
        "failed": [number for number, _ in tally.failed],
        "errored": tally.errored,
        "first": words,
        "scenario": str(kept) if kept is not None else None,
    }


def _lines(
    factory: StdioFactory, name: str, seed: int, tally: Tally, words: list[str], kept: Path | None
) -> Iterator[str]:
    yield f"{name}: {tally.runs} lives from seed {seed} on, {len(tally.failed)} went wrong"
    for one in tally.errored[:5]:
        yield f"  errored: {one}"
    if not tally.failed:
        return
    seeds = ", ".join(str(number) for number, _ in tally.failed[:10])
    yield f"  seeds: {seeds}"
    yield "the first one, shrunk:"
    for one in words:
        yield f"  {one}"
    if kept is not None:
        yield f"run it:   legion-contracts check --sut {shlex.quote(factory.command.text)} --scenario {kept}"
