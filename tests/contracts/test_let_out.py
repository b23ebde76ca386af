"""A supervisor that lets an exception out fails the clause of that step; only a broken world or harness is errored."""

from typing import Any

import pytest

from contracts.clauses import load_clauses
from contracts.judging.judge import judge
from contracts.judging.tally import clause_table, exit_code, outcome
from contracts.loading import SCENARIOS, load_scenario
from contracts.records import RunVerdict
from contracts.running.one_run import run_scenario
from contracts.scenario import HostName
from contracts.sut.base import SutSetup
from contracts.sut.python import PythonSut


def letting_out(method: str, error: Exception) -> type[PythonSut]:
    class LettingOut(PythonSut):
        async def call(self, called: str, params: dict[str, Any]) -> dict[str, Any]:
            if called == method:
                raise error
            return await super().call(called, params)

    return LettingOut


def ran(path: str, method: str, error: Exception, host: HostName = "memory") -> RunVerdict:
    scenario = load_scenario(SCENARIOS / path)
    system = letting_out(method, error)

    def factory(setup: SutSetup) -> PythonSut:
        return system(setup)

    return judge(scenario, run_scenario(scenario, host, factory))


@pytest.mark.parametrize(
    ("path", "method", "error", "clause"),
    [
        ("settle/settle-timeout-shape.toml", "wait", TimeoutError("late"), "D8"),
        ("lifecycle/retire-after-done.toml", "retire", RuntimeError("no rm"), "D11"),
    ],
)
def test_an_exception_that_is_no_failure_of_the_supervisor_fails_the_clause(
    path: str, method: str, error: Exception, clause: str
) -> None:
    verdict = ran(path, method, error)
    failing = {finding.clause for finding in verdict.findings if not finding.ok}
    rows = clause_table(load_clauses(), [verdict])

    assert (verdict.verdict, failing >= {clause}) == ("fail", True), verdict
    assert exit_code(outcome(rows, [verdict], whole=False)) == 1
    assert any(type(error).__name__ in str(finding.got) for finding in verdict.findings)


def test_an_exception_over_the_socket_fails_the_clause_too() -> None:
    assert ran("settle/settle-boot-idle.toml", "wait", TimeoutError("late"), "socket").verdict == "fail"
