"""Run all scenarios and checks side by side in a pool of workers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from contracts.checks import CHECKS, run_check
from contracts.records import RunRecord, RunVerdict
from contracts.running.one_run import run_scenario
from contracts.running.pool import Job, run_jobs
from contracts.scenario import HostName, Scenario
from contracts.sut.base import SutFactory
from contracts.sut.python import PythonSut

__all__ = ["SUTS", "RunResult", "run_all", "run_scenario"]

RunResult = RunRecord | RunVerdict
"""What one job leaves: the record of a scenario's run, or the finished verdict of a check."""

MEMORY_LIMIT_MS = 20_000
"""Real time that a run on the memory host may take: its waits cost nothing, so more is a loop that never ends."""
CHECK_LIMIT_MS = 120_000
GRACE_MS = 10_000
"""What a worker gets beyond a run's own limit, to look at what is left and to clear up."""

SUTS: Mapping[str, SutFactory] = {"python": PythonSut}
"""Systems under test by name."""


def run_all(
    scenarios: Sequence[Scenario],
    *,
    workers: int | None = None,
    on_result: Callable[[RunResult], None] | None = None,
    sut: str = "python",
    hosts: Sequence[HostName] = ("memory", "socket"),
    checks: Sequence[str] = (),
) -> list[RunResult]:
    """Run every scenario on each of its hosts (those that are in `hosts`), and the checks with these ids.

    A scenario's run gives a `RunRecord`, for the judge; a check gives a finished `RunVerdict`. Order: scenarios as
    given, hosts as the scenario lists them, checks last; `on_result` hears of each as it comes in. `workers`: None = as
    many as suit this machine, 0 = none, everything in this process. Raises KeyError for an unknown system or check.
    """
    factory = SUTS[sut]
    payloads: list[_Payload] = [
        (scenario, host) for scenario in scenarios for host in scenario.hosts if host in hosts
    ] + [(name, "check") for name in checks]
    for name in checks:
        CHECKS[name]
    order = _interleaved(payloads)
    results: dict[int, RunResult] = {}

    def keep(place: int, result: RunResult) -> None:
        results[order[place]] = result
        if on_result is not None:
            on_result(result)

    run_jobs(
        partial(perform, factory),
        [Job(payloads[index], limit_ms(payloads[index])) for index in order],
        failed=failed,
        workers=workers,
        on_result=keep,
    )
    return [results[index] for index in range(len(payloads))]


_Payload = tuple[Scenario | str, str]


def perform(factory: SutFactory, payload: _Payload) -> RunResult:
    """Do one job: a scenario on a host, or a check."""
    what, host = payload
    if isinstance(what, str):
        return run_check(CHECKS[what])
    return run_scenario(what, "socket" if host == "socket" else "memory", factory)


def failed(payload: _Payload, why: str) -> RunResult:
    """The result of a job that has none of its own: errored, never passed and never failed."""
    what, host = payload
    if isinstance(what, str):
        check = CHECKS[what]
        return RunVerdict(
            scenario=what, host="check", verdict="errored", level=check.level, clauses=[check.clause], errored=why
        )
    return RunRecord(scenario=what.id, host="socket" if host == "socket" else "memory", errored=why)


def limit_ms(payload: _Payload) -> int:
    """The hard limit of a job in real time."""
    what, host = payload
    if isinstance(what, str):
        return CHECK_LIMIT_MS
    return (what.limit_ms if host == "socket" else MEMORY_LIMIT_MS) + GRACE_MS


def _interleaved(payloads: Sequence[_Payload]) -> list[int]:
    """Checks first, for they are the longest; then runs that wait beside runs that compute: no processor idles."""
    of: dict[str, list[int]] = {"check": [], "socket": [], "memory": []}
    for index, (_, host) in enumerate(payloads):
        of[host].append(index)
    short, long = sorted((of["socket"], of["memory"]), key=len)
    stride = max(1, len(long) // max(1, len(short)))
    mixed = []
    for place, index in enumerate(short):
        mixed += [index, *long[place * stride : (place + 1) * stride]]
    return of["check"] + mixed + long[len(short) * stride :]
