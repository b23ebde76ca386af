"""The clause files: complete, in our own words, and loaded strictly."""

from pathlib import Path

import pytest

from contracts.clauses import Clause, Clauses, load_clauses
from hc_sim.script.toml import FileError

FROZEN = [*(f"D{n}" for n in range(1, 14)), *(f"I{n}" for n in range(1, 7)), *(f"A{n}" for n in range(1, 5))]
HAZARDS = ["D8-done-withdrawn", "D8-idle-end", "D8-error-end", "D10-steer-absorbed"]
HARDENING = ["W1", "W2", "W3", "W4", "W5", "D8-gone", "D9-reread", "D10-blocked", "D10-early", "D10-esc-once"]
HARDENING += ["D11-finish", "ID1", "D7-sibling", "D6-unread", "D4-size"]
HEADLESS = [f"H{n}" for n in range(1, 15)]
OF_THE_REAL_PI = ["ack", "order", "own-settle", "stands", "drained", "stdin", "exit-last", "held-pipe", "escalate"]
OF_THE_REAL_PI += ["group", "null", "framing", "ids", "dialog-once", "abort", "abort-queue", "steer-idle", "start"]
OF_THE_REAL_PI += ["session-file", "verdict", "memory", "no-second"]
HARDENING += [f"H-{name}" for name in OF_THE_REAL_PI]
MINIMAL = """
document = "a document"
status = "frozen"

[[clause]]
id = "X1"
title = "A title"
statement = "Something holds."
source = "a document, X1"
proof = ["a scenario"]
"""


@pytest.fixture(scope="module")
def clauses() -> Clauses:
    return load_clauses()


def test_every_decision_invariant_and_amendment_is_a_must(clauses: Clauses) -> None:
    assert [name for name in [*FROZEN, *HEADLESS] if name not in clauses or clauses[name].level != "must"] == []


def test_the_four_hazards_are_hazards(clauses: Clauses) -> None:
    assert sorted(name for name, clause in clauses.items() if clause.level == "hazard") == sorted(HAZARDS)


def test_what_was_learned_in_the_field_is_a_should(clauses: Clauses) -> None:
    assert sorted(name for name, clause in clauses.items() if clause.level == "should") == sorted(HARDENING)


def test_musts_come_first_and_hazards_last(clauses: Clauses) -> None:
    levels = [clause.level for clause in clauses.values()]

    assert levels == sorted(levels, key=["must", "should", "hazard"].index)
    assert list(clauses)[:13] == [f"D{n}" for n in range(1, 14)]


@pytest.mark.parametrize("name", [*FROZEN, *HEADLESS, *HAZARDS, *HARDENING])
def test_a_clause_states_itself_in_few_sentences_with_source_and_proof(name: str, clauses: Clauses) -> None:
    clause = clauses[name]

    assert clause.statement.strip().endswith(".")
    assert "\n" not in clause.statement.strip()
    assert 40 <= len(clause.statement) <= 480
    assert clause.source
    assert clause.proof
    assert clause.title == clause.title.strip() != ""


def test_a_frozen_clause_names_the_document_and_a_learned_one_its_cases(clauses: Clauses) -> None:
    assert all(clauses[name].source.startswith("centurion terminal backend v1") for name in FROZEN)
    assert all(clauses[name].source.startswith("headless child contract") for name in HEADLESS)
    learned = ("BC-", "the real pi, measured", "memory gate")
    assert [name for name in HARDENING if not any(word in clauses[name].source for word in learned)] == []


def test_a_clause_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(MINIMAL)

    assert load_clauses(tmp_path) == {
        "X1": Clause(
            id="X1", title="A title", statement="Something holds.", source="a document, X1", proof=["a scenario"]
        )
    }


def test_a_clause_that_is_defined_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(MINIMAL)
    (tmp_path / "two.toml").write_text(MINIMAL)

    with pytest.raises(FileError, match="X1 is defined twice") as caught:
        load_clauses(tmp_path)
    assert caught.value.path == str(tmp_path / "two.toml")


def test_an_unknown_key_is_refused_with_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(MINIMAL + 'decison = "a typo"\n')

    with pytest.raises(FileError, match="decision") as caught:
        load_clauses(tmp_path)
    assert caught.value.line == 11


def test_a_level_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(MINIMAL + 'level = "maybe"\n')

    with pytest.raises(FileError, match="maybe"):
        load_clauses(tmp_path)
