"""The files of planted violations: every entry can still be planted, each clause has several, mistakes are located."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.clauses import load_clauses
from contracts.violations import FOLDER, ViolationsError, load_checked
from contracts.violations.copies import EditError, check_edits, edited, installed, plant
from contracts.violations.entries import Edit, Known, Violation, load_violations, musts
from contracts.violations.matrix import known_names
from contracts.violations.probes import PROBES, failing_probes

KNOWN = Known(clauses=["D8", "D9"], looks=["a1-hermetic"], probes=["unproven"])
GOOD = """\
[[violation]]
id = "settle-early"
breaks = ["D8"]
why = "It settles early."
file = "legion_terminal/settle.py"
old = "POLL_MS: Final = 250"
new = "POLL_MS: Final = 251"
"""
CHOSEN = [f"D{number}" for number in range(1, 14)]
CHOSEN += [f"I{number}" for number in range(1, 7)] + [f"A{number}" for number in range(1, 5)]
"""The clauses of the terminal backend that a failure of can fail a gate."""

Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write files as `target/name` below a folder of violations."""

    def write(**texts: str) -> Path:
        for name, text in texts.items():
            target, _, stem = name.partition("_")
            (tmp_path / target).mkdir(exist_ok=True)
            (tmp_path / target / f"{stem or 'file'}.toml").write_text(text)
        return tmp_path

    return write


def mistakes(folder: Path) -> list[str]:
    with pytest.raises(ViolationsError) as caught:
        load_violations(KNOWN, folder)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


@pytest.fixture(scope="module")
def every() -> list[Violation]:
    return load_checked()


def test_every_violation_can_be_planted(every: list[Violation]) -> None:
    assert len(every) >= 80
    assert len({one.id for one in every}) == len(every)


def test_each_clause_of_the_terminal_backend_is_broken_in_several_ways(every: list[Violation]) -> None:
    count = Counter(one.breaks[0] for one in every if one.target == "supervisor")

    assert set(CHOSEN) <= musts(load_clauses())
    assert {name: count[name] for name in CHOSEN if count[name] < 3} == {}
    assert sum(count.values()) >= 60


def test_there_are_as_many_as_were_promised(every: list[Violation]) -> None:
    gating = load_clauses()
    musts = [one for one in every if one.target == "supervisor" and gating[one.breaks[0]].level == "must"]
    headless = [one for one in musts if one.breaks[0].startswith("H")]
    cores = [one for one in every if one.target == "core"]

    assert len(musts) - len(headless) >= 55
    assert len([one for one in every if one.breaks[0].startswith("H")]) >= 15
    assert len(cores) >= 15
    assert len(every) >= 80


def test_the_suite_itself_is_broken_too(every: list[Violation]) -> None:
    suite = [one for one in every if one.target == "suite"]

    assert len(suite) >= 12
    assert all(edit.file.startswith(("contracts/", "hc_sim/")) for one in suite for edit in one.edits)


def test_every_probe_holds_and_each_is_broken_by_some_violation_of_the_suite(every: list[Violation]) -> None:
    assert failing_probes() == []
    assert set(PROBES) <= {name for one in every if one.target == "suite" for name in one.breaks}


def test_an_entry_is_read_whole(written: Written) -> None:
    [one] = load_violations(KNOWN, written(supervisor=GOOD + 'also = { D9 = "because" }\nlooks = ["a1-hermetic"]\n'))

    assert (one.id, one.target, one.breaks, one.hosts) == ("settle-early", "supervisor", ("D8",), ("memory",))
    assert (one.also, one.looks) == ({"D9": "because"}, ("a1-hermetic",))
    assert one.edits == (
        Edit(file="legion_terminal/settle.py", old="POLL_MS: Final = 250", new="POLL_MS: Final = 251"),
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "settle-early"', 'id = "Settle early"', "2: violation[0].id: 'Settle early' is no id in kebab-case"),
        ("why = ", "wyh = ", "4: violation[0].wyh: unknown key 'wyh'; did you mean 'why'?"),
        ('why = "It settles early."', 'why = " "', "4: violation[0].why: is empty"),
        ('["D8"]', '["D7"]', "3: violation[0].breaks[0]: there is no clause that gates, 'D7'"),
        ('["D8"]', '["D8", "D9"]', "3: violation[0].breaks: names 2; a violation of the supervisor breaks exactly one"),
        ('file = "legion_terminal/settle.py"\n', "", "1: violation[0].file: is missing"),
        ("legion_terminal/", "tests/", "5: violation[0].file: 'tests/settle.py' is no path below hc_sim"),
        ("legion_terminal/", "hc_sim/../", "5: violation[0].file: 'hc_sim/../settle.py' is no path below hc_sim"),
        ('old = "POLL_MS: Final = 250"', 'old = ""', "6: violation[0].old: is empty"),
        ("251", "250", "7: violation[0].new: is the text that is there already"),
        ("new =", 'also = { D8 = "x" }\nnew =', "7: violation[0].also.D8: is what the violation breaks"),
        ("new =", 'also = { D9 = " " }\nnew =', "7: violation[0].also.D9: has no reason"),
        (
            "new =",
            'looks = ["x"]\nnew =',
            "7: violation[0].looks[0]: there is no check or scenario over the socket 'x'",
        ),
        ("new =", "edits = [{ file = 1 }]\nnew =", "7: violation[0].edits[0].file: expected `str`, got `int`"),
        ("[[violation]]", "[[violations]]", "1: violations: unknown key 'violations'; did you mean 'violation'?"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(old: str, new: str, said: str, written: Written) -> None:
    [first, *_] = mistakes(written(supervisor=GOOD.replace(old, new, 1)))

    assert first.startswith(f"supervisor/file.toml:{said}")


def test_an_id_is_used_once_over_all_files(written: Written) -> None:
    [said] = mistakes(written(supervisor=GOOD, core=GOOD.replace('["D8"]', '["a.difference"]')))

    assert said.startswith("core/file.toml:2: violation[0].id: settle-early is already the id of a violation in ")


def test_a_violation_of_the_suite_names_what_goes_unseen_by_it(written: Written) -> None:
    suite = GOOD.replace("settle-early", "blind").replace('["D8"]', '["settle-early", "unproven", "settle-late"]')
    [said] = mistakes(written(supervisor=GOOD, suite=suite))

    assert said == (
        "suite/file.toml:3: violation[0].breaks[2]: there is no supervisor violation or probe 'settle-late'; "
        "did you mean 'settle-early'?"
    )


def stale(folder: Path) -> str:
    with pytest.raises(ViolationsError) as caught:
        check_edits(load_violations(KNOWN, folder), installed())
    [problem] = caught.value.problems
    return str(problem).removeprefix(f"{folder}/supervisor/file.toml:")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "POLL_MS: Final = 250",
            "POLL_MS = 250",
            "6: violation[0].old: legion_terminal/settle.py does not hold the text that is to be replaced",
        ),
        (
            "POLL_MS: Final = 250",
            "Observation",
            "6: violation[0].old: legion_terminal/settle.py holds ",
        ),
        ("settle.py", "nothing.py", "6: violation[0].old: legion_terminal/nothing.py cannot be read: No such file"),
    ],
)
def test_a_stale_edit_names_the_file_that_it_is_stale_in(old: str, new: str, said: str, written: Written) -> None:
    assert stale(written(supervisor=GOOD.replace(old, new, 1))).startswith(said)


def test_an_edit_that_leaves_no_python_is_refused(written: Written) -> None:
    said = stale(written(supervisor=GOOD.replace("= 251", "= 251)")))

    assert "settle-early: legion_terminal/settle.py would be no Python any more: unmatched ')'" in said


def test_several_edits_of_one_file_are_made_one_after_the_other() -> None:
    text = edited(edited("a b", Edit(file="x", old="a", new="c")), Edit(file="x", old="c", new="d"))

    assert text == "d b"
    with pytest.raises(EditError, match="x holds 2 times the text that is to be replaced, 'a'"):
        edited("a a", Edit(file="x", old="a", new="b"))


def test_a_copy_shares_nothing_with_what_it_was_copied_from(tmp_path: Path) -> None:
    for name in installed():
        (tmp_path / "from" / name).mkdir(parents=True)
    source = tmp_path / "from" / "hc_sim" / "one.py"
    source.write_text("x = 1\n")

    plant(tmp_path / "from", tmp_path / "to", [Edit(file="hc_sim/one.py", old="1", new="2")])

    assert (tmp_path / "to" / "hc_sim" / "one.py").read_text() == "x = 2\n"
    assert source.read_text() == "x = 1\n"


def test_violation_files_are_part_of_the_package() -> None:
    copied = {path.parent.name for path in FOLDER.rglob("*.toml")}

    assert {"supervisor", "core", "suite"} <= copied
    assert known_names().probes == list(PROBES)
