"""The real `pi`, when it is installed: every part of the live check, against a model on this machine."""

import os

import pytest

from contracts.agents import NoPi, Pi, find_pi, run_pi
from contracts.agents.pi import PARTS

SCRIPTED = ("scripted-runs", "scripted-queues", "scripted-questions")
TRIES = 3
"""What the real program says of an abort depends on which of its own parts is quicker; one run in which both say the
same shows that the scripted one can say it."""


@pytest.fixture(scope="session")
def pi() -> Pi:
    found = find_pi(os.environ)
    if isinstance(found, NoPi):
        pytest.skip(found.reason)
    return found


@pytest.mark.parametrize("part", [part for part in PARTS if part not in (*SCRIPTED, "by-hand")])
def test_the_clauses_hold_with_the_real_program(part: str, pi: Pi) -> None:
    report = run_pi(pi, parts=[part])

    assert report.broken == ()
    assert [row for row in report.rows if not row.ok] == []
    assert report.rows or report.facts


@pytest.mark.parametrize("part", SCRIPTED)
def test_the_scripted_program_says_what_the_real_one_says(part: str, pi: Pi) -> None:
    different: dict[str, str] = {}
    for attempt in range(TRIES):
        report = run_pi(pi, parts=[part])
        assert report.broken == ()
        assert len(report.facts) > 4
        odd = {fact.what: fact.saw for fact in report.facts if fact.saw != "alike"}
        different = odd if attempt == 0 else {what: saw for what, saw in odd.items() if what in different}
        if not different:
            break
    assert different == {}


def test_the_scripted_program_ends_as_the_real_one_ends(pi: Pi) -> None:
    report = run_pi(pi, parts=["by-hand"])

    assert report.broken == ()
    for fact in report.facts:
        assert fact.beside.endswith(fact.saw), fact
