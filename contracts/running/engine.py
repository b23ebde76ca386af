"""What the command line needs of the machinery that runs scenarios, so that it can be tested without it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from contracts.records import RunRecord, RunVerdict
from contracts.scenario import HostName, Scenario

OnResult = Callable[[RunRecord | RunVerdict], None]


class RunAll(Protocol):
    """Runs scenarios and checks side by side."""

    def __call__(
        self,
        scenarios: Sequence[Scenario],
        *,
        workers: int | None,
        on_result: OnResult | None,
        hosts: Sequence[HostName],
        checks: Sequence[str],
    ) -> Sequence[RunRecord | RunVerdict]:
        """Every result; a scenario gives a record for the judge, a check a finished verdict."""


@dataclass(frozen=True, slots=True)
class Engine:
    """`checks` maps the id of each executable check to its clause. `about`: what a report says of a foreign system."""

    run_all: RunAll
    run_scenario: Callable[[Scenario, HostName], RunRecord]
    checks: Mapping[str, str]
    sut: str = "python"
    about: Mapping[str, Any] = field(default_factory=dict)


def real_engine() -> Engine:
    """The engine of the product."""
    from contracts.checks import CHECKS
    from contracts.running.runner import run_all, run_scenario

    return Engine(run_all, run_scenario, {name: check.clause for name, check in CHECKS.items()})
