"""Any calls on the whole supervisor, in any order, with random agents and faults: every invariant after every step."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from contracts.fuzz.broken import VIOLATIONS, supervisor
from contracts.fuzz.lean import Make
from contracts.fuzz.machine import SupervisorMachine

BUDGET = settings(max_examples=100, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck))

SEARCH = settings(BUDGET, max_examples=4_000, derandomize=True, database=None, phases=[Phase.generate])
"""For faults that are there to be found: the first failure will do."""

TestSupervisor = SupervisorMachine.TestCase
TestSupervisor.settings = BUDGET


def machine_for(make: Make) -> type[SupervisorMachine]:
    class Faulty(SupervisorMachine):
        pass

    Faulty.make = staticmethod(make)
    return Faulty


@pytest.mark.parametrize(
    "name", ["claims-too-much", "leaves-a-task", "waits-longer", "raises-anything", "idle-settles"]
)
def test_a_supervisor_with_a_fault_is_caught(name: str) -> None:
    broken = VIOLATIONS[name].invariant if name in VIOLATIONS else "consent"

    with supervisor(name) as make, pytest.raises(AssertionError, match=broken):
        run_state_machine_as_test(machine_for(make), settings=SEARCH)


def test_a_call_that_never_comes_back_is_a_failure_and_no_endless_test() -> None:

    with supervisor("never-comes-back") as make, pytest.raises(AssertionError, match="never comes back"):
        run_state_machine_as_test(machine_for(make), settings=SEARCH)
