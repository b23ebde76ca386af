"""The gate for a driver: every scenario once, over the socket, in real time; what cannot be told is skipped, aloud."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from contracts.checks import CHECKS
from contracts.loading.rules import clauses_of
from contracts.loading.selection import Selection
from contracts.records import RunRecord, RunVerdict
from contracts.running.engine import Engine
from contracts.running.one_run import run_scenario
from contracts.running.pool import Job, run_jobs
from contracts.running.runner import failed, limit_ms
from contracts.scenario import HostName, Scenario
from contracts.sut.messages import InitializeResult
from contracts.sut.scope import in_real_time, only_virtual, too_long, undeclared
from contracts.sut.stdio import StdioFactory

OF_PYTHON: Final = "it looks into the Python supervisor itself"
MEASURE_MS: Final = 20_000
"""What finding out how long a scenario lasts by the virtual clock may take."""

Result = RunRecord | RunVerdict
_Payload = tuple[Scenario, bool]
"""A scenario as it was written, and whether it was written for virtual time, so that its length is found out first."""


@dataclass(frozen=True, slots=True)
class _Driven:
    """One driver, and the scenarios as they were written, by id."""

    factory: StdioFactory
    features: frozenset[str]
    originals: Mapping[str, Scenario]


def foreign_gate(factory: StdioFactory, declared: InitializeResult, selection: Selection) -> tuple[Engine, Selection]:
    """The engine that asks this driver, and the selection with each scenario once, over the socket.

    The checks look into our own supervisor, and are skipped.
    """
    entries = tuple(replace(entry, scenario=in_real_time(entry.scenario)) for entry in selection.entries)
    originals = {scenario.id: scenario for scenario in (entry.scenario for entry in selection.entries)}
    driven = _Driven(factory, frozenset(declared.features), originals)
    engine = Engine(
        run_all=partial(_run_all, driven),
        run_scenario=partial(_run_one, factory),
        checks={name: one.clause for name, one in CHECKS.items()},
        sut=declared.name,
        about=about(factory, declared),
    )
    return engine, replace(selection, entries=entries, hosts=("socket",))


def about(factory: StdioFactory, declared: InitializeResult) -> Mapping[str, Any]:
    """What a report says of the system under test."""
    return {
        "name": declared.name,
        "version": declared.version,
        "language": declared.language,
        "features": sorted(declared.features),
        "command": factory.command.text,
    }


def _run_one(factory: StdioFactory, scenario: Scenario, host: HostName) -> RunRecord:
    return run_scenario(in_real_time(scenario), "socket", factory)


def _run_all(
    driven: _Driven,
    scenarios: Sequence[Scenario],
    *,
    workers: int | None,
    on_result: Callable[[Result], None] | None,
    hosts: Sequence[HostName],
    checks: Sequence[str],
) -> list[Result]:
    """As `contracts.running.runner.run_all`, in the same order."""
    results: dict[int, Result] = {}
    played: list[int] = []
    jobs: list[Job[_Payload]] = []

    def keep(index: int, result: Result) -> None:
        results[index] = result
        if on_result is not None:
            on_result(result)

    for index, scenario in enumerate(scenarios):
        original = driven.originals[scenario.id]
        if reason := undeclared(original, driven.features) or only_virtual(original):
            keep(index, _skipped(scenario, reason))
        else:
            played.append(index)
            jobs.append(Job((original, "socket" not in original.hosts), limit_ms((scenario, "socket")) + MEASURE_MS))
    for index, name in enumerate(checks, start=len(scenarios)):
        keep(index, _no_check(name))
    run_jobs(
        partial(_perform, driven.factory),
        jobs,
        failed=_failed,
        workers=workers,
        on_result=lambda place, result: keep(played[place], result),
    )
    return [results[index] for index in range(len(scenarios) + len(checks))]


def _perform(factory: StdioFactory, payload: _Payload) -> Result:
    scenario, measured = payload
    if measured:
        by_the_clock = run_scenario(scenario, "memory")
        if by_the_clock.errored is None and (reason := too_long(by_the_clock.virtual_ms)):
            return _skipped(scenario, reason)
    return run_scenario(in_real_time(scenario), "socket", factory)


def _failed(payload: _Payload, why: str) -> Result:
    return failed((payload[0], "socket"), why)


def _skipped(scenario: Scenario, why: str) -> RunVerdict:
    clauses = clauses_of(scenario)
    return RunVerdict(
        scenario=scenario.id, host="socket", verdict="skipped", level=scenario.level, clauses=clauses, why=why
    )


def _no_check(name: str) -> RunVerdict:
    one = CHECKS[name]
    clauses = [one.clause, *one.also]
    return RunVerdict(scenario=name, host="check", verdict="skipped", level=one.level, clauses=clauses, why=OF_PYTHON)
