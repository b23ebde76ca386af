"""A baseline: known failures are shown and do not fail the gate; a new one does, and an entry that holds again."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from click.testing import CliRunner, Result

from contracts.clauses import Clause, Clauses, load_clauses
from contracts.cli import main
from contracts.judging.baseline import Baseline, Entry, apply, problems, renewed
from contracts.judging.tally import clause_table
from contracts.loading.known import baseline_text
from contracts.records import Finding, RunRecord, RunVerdict, StepRecord
from contracts.running.engine import Engine
from contracts.scenario import Expect, HostName, Level, Scenario, Step


def clause(name: str, level: Level) -> Clause:
    return Clause(id=name, title=f"Title of {name}", statement="x", source="x", proof=["x"], level=level)


CLAUSES: Clauses = {one.id: one for one in (clause("D8", "must"), clause("D9", "must"), clause("W1", "should"))}


def run(name: str, word: str, *findings: Finding, **more: Any) -> RunVerdict:
    told = {"host": "memory", "clauses": [one.clause for one in findings], **more}
    return RunVerdict(scenario=name, verdict=word, findings=list(findings), **told)  # type: ignore[arg-type]


def finding(name: str, ok: bool) -> Finding:
    return Finding(clause=name, ok=ok, where="drive[0]", expected=1, got=1 if ok else 2)


def entry(scenario: str, name: str = "D8", host: Any = "memory", **more: str) -> Entry:
    return Entry(scenario=scenario, host=host, clause=name, **more)


def known(*entries: Entry) -> Baseline:
    return Baseline(schema=1, known=list(entries))


RUNS = [
    run("one", "fail", finding("D8", False), finding("D9", True)),
    run("two", "fail", finding("D8", False), finding("D9", False)),
    run("three", "pass", finding("D8", True)),
    run("four", "errored", clauses=["D9"], errored="broke"),
    run("five", "skipped", clauses=["D9"]),
    run("six", "fail", finding("W1", False), level="should"),
]


def judged(*entries: Entry, runs: Sequence[RunVerdict] = RUNS) -> Any:
    return apply(known(*entries), clause_table(CLAUSES, runs), runs)


# --------------------------------------------------------------- the judgement


def test_a_run_is_known_when_all_that_fails_in_it_is() -> None:
    done = judged(entry("one"), entry("two"))
    words = {one.scenario: one.verdict for one in done.verdicts}

    assert (words["one"], words["two"], words["three"]) == ("known", "fail", "pass")
    assert [one.known for one in done.verdicts[1].findings] == [True, False]
    assert (done.known, done.stale, done.unseen) == (2, [], 0)


def test_a_clause_is_known_when_nothing_else_fails_in_it() -> None:
    rows = {row.id: row for row in judged(entry("one"), entry("two")).rows}

    assert (rows["D8"].verdict, rows["D8"].failed, len(rows["D8"].known)) == ("known", [], 2)
    assert rows["D8"].failed_level is None
    assert (rows["D9"].verdict, len(rows["D9"].failed), rows["D9"].known) == ("fail", 1, [])


def test_a_new_failure_of_a_known_clause_still_fails_it() -> None:
    rows = {row.id: row for row in judged(entry("one")).rows}

    assert (rows["D8"].verdict, len(rows["D8"].failed), len(rows["D8"].known)) == ("fail", 1, 1)


def test_a_clause_that_could_not_be_judged_stays_so_behind_what_is_known() -> None:
    rows = {row.id: row for row in judged(entry("two", "D9")).rows}

    assert rows["D9"].verdict == "errored"


@pytest.mark.parametrize(
    ("one", "stale", "unseen"),
    [
        (entry("one"), [], 0),
        (entry("three"), [0], 0),
        (entry("one", "D9"), [0], 0),
        (entry("one", host="socket"), [], 1),
        (entry("four", "D9"), [], 1),
        (entry("five", "D9"), [], 1),
        (entry("never-run"), [], 1),
    ],
    ids=["fails", "holds", "another clause holds", "another host", "broke", "skipped", "was not run"],
)
def test_an_entry_has_to_go_when_its_statement_holds_and_only_then(one: Entry, stale: list[int], unseen: int) -> None:
    done = judged(one)

    assert (done.stale, done.unseen) == (stale, unseen)


def test_what_broke_is_never_known() -> None:
    assert next(one for one in judged(entry("four", "D9")).verdicts if one.scenario == "four").verdict == "errored"


ONE = Scenario(id="one", why="x", clauses=["D8"], hosts=["memory"], drive=[Step(do="spawn")], expect=[Expect(git=0)])
SCENARIOS = {"one": ONE}


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (entry("won"), "there is no scenario 'won'; did you mean 'one'?"),
        (entry("one", host="socket"), "one does not run on socket"),
        (entry("one", "D9"), "one says nothing of 'D9', only of D8"),
        (entry("i4-mapz", "I4", "check"), "there is no check 'i4-mapz'; did you mean 'i4-maps'?"),
        (entry("i4-maps", "D99", "check"), "there is no clause 'D99'"),
    ],
)
def test_an_entry_that_is_about_nothing_is_a_mistake(one: Entry, words: str) -> None:
    [problem] = problems(known(one), SCENARIOS, ["i4-maps"], CLAUSES)

    assert words in problem.message


def test_an_entry_that_is_there_twice_is_a_mistake() -> None:
    [problem] = problems(known(entry("one"), entry("one", why="again")), SCENARIOS, [], CLAUSES)

    assert (problem.key, "same as known[0]" in problem.message) == ("known[1]", True)


def test_a_new_baseline_has_what_fails_the_gate_and_keeps_reasons_and_what_was_not_judged() -> None:
    before = known(entry("one", why="we know"), entry("three"), entry("one", host="socket"))
    levels: dict[str, Level] = {"D8": "must", "D9": "must", "W1": "should"}
    now = renewed(before, RUNS, levels, ["must"])

    assert [(one.key, one.why) for one in now.known] == [
        (("one", "memory", "D8"), "we know"),
        (("one", "socket", "D8"), ""),
        (("two", "memory", "D8"), ""),
        (("two", "memory", "D9"), ""),
    ]
    assert ("six", "memory", "W1") in [one.key for one in renewed(None, RUNS, levels, ["must", "should"]).known]


# ----------------------------------------------------------------- the command

SCENARIO = """\
id = "mine"
why = "One fact."
clauses = ["D8"]
hosts = ["memory", "socket"]

[[drive]]
do = "spawn"
as = "a"
returns = { mode = "terminal" }
"""


def played(scenario: Scenario, host: HostName, modes: dict[str, str]) -> RunRecord:
    told = {"mode": modes.get(host, "terminal")}
    return RunRecord(
        scenario=scenario.id, host=host, steps=[StepRecord(index=0, do="spawn", at_ms=5, took_ms=5, returned=told)]
    )


def engine(**modes: str) -> Engine:
    def play(scenario: Scenario, host: HostName) -> RunRecord:
        return played(scenario, host, modes)

    def run_all(scenarios: Sequence[Scenario], **asked: Any) -> Sequence[RunRecord | RunVerdict]:
        return [play(one, host) for one in scenarios for host in one.hosts if host in asked["hosts"]]

    return Engine(run_all, play, {"i4-maps": "I4"})


BAD = {"memory": "rpc"}


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "mine.toml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path  # type: ignore[return-value]


def check(modes: dict[str, str], *args: str) -> Result:
    return CliRunner().invoke(main, ["check", "--scenario", "mine.toml", *args], obj=engine(**modes))


def baseline(there: Path, *entries: Entry) -> str:
    (there / "known.toml").write_text(baseline_text(known(*entries)), encoding="utf-8")
    return "known.toml"


MINE = entry("mine", why="we are on it")


def test_a_known_failure_leaves_the_gate_open_and_is_shown(there: Path) -> None:
    file = baseline(there, MINE)

    assert check(BAD).exit_code == 1
    result = check(BAD, "--baseline", file)
    assert result.exit_code == 0
    assert "known" in result.output
    assert "D8 in mine (memory)" in result.output
    assert "1 known to fail" in result.output


def test_a_new_failure_fails_beside_a_known_one(there: Path) -> None:
    result = check({**BAD, "socket": "rpc"}, "--baseline", baseline(there, MINE))

    assert result.exit_code == 1
    assert "FAIL D8 in mine (socket)" in result.output
    assert "FAIL D8 in mine (memory)" not in result.output


def test_an_entry_that_holds_fails_the_gate_and_its_line_is_named(there: Path) -> None:
    file = baseline(there, MINE, entry("mine", host="socket"))
    result = check(BAD, "--baseline", file)

    assert result.exit_code == 1
    assert "known.toml:6: D8 holds in mine (socket) now; take this entry out of the baseline" in result.output


@pytest.mark.parametrize("form", ["table", "json", "junit", "github"])
def test_every_format_tells_known_and_outdated_apart(form: str, there: Path) -> None:
    result = check(BAD, "--baseline", baseline(there, MINE, entry("mine", host="socket")), "--format", form)

    assert result.exit_code == 1
    assert "known" in result.stdout
    assert "known.toml" in result.stdout
    assert "6" in result.stdout


def test_json_has_the_baseline_and_marks_what_is_known(there: Path) -> None:
    result = check(BAD, "--baseline", baseline(there, MINE, entry("mine", host="socket")), "--format", "json")
    report = json.loads(result.stdout)

    assert report["baseline"] == {
        "file": "known.toml",
        "known": 1,
        "unseen": 0,
        "stale": [{"line": 6, "scenario": "mine", "host": "socket", "clause": "D8"}],
    }
    [scenario] = report["scenarios"]
    assert (scenario["verdict"], scenario["runs"][0]["findings"][0]["known"]) == ("known", True)
    [row] = report["clauses"]
    assert (row["verdict"], row["failed"], len(row["known"])) == ("known", [], 1)


def test_junit_skips_what_is_known_and_fails_what_has_to_go(there: Path) -> None:
    result = check(BAD, "--baseline", baseline(there, MINE, entry("mine", host="socket")), "--format", "junit")
    root = fromstring(result.stdout)  # noqa: S314 - our own output
    cases = {case.get("name"): case for case in root.iter("testcase")}

    assert [one.tag for one in cases["mine[memory]"]] == ["skipped"]
    stale = cases["mine[socket] D8"]
    assert ([one.tag for one in stale], stale.get("file"), stale.get("line")) == (["failure"], "known.toml", "6")


def test_github_points_at_the_line_that_has_to_go(there: Path) -> None:
    result = check(BAD, "--baseline", baseline(there, MINE, entry("mine", host="socket")), "--format", "github")

    assert "::error file=known.toml,line=6,title=known no longer%3A D8::" in result.stdout
    assert "::notice file=known.toml,line=1,title=baseline::1 statement known to fail" in result.stdout
    assert "::error file=mine.toml" not in result.stdout


def test_an_entry_about_something_that_was_not_run_is_counted_and_no_more(there: Path) -> None:
    file = baseline(there, MINE, entry("mine", host="socket"))
    result = check(BAD, "--baseline", file, "--host", "memory", "--format", "json")

    assert (result.exit_code, json.loads(result.stdout)["baseline"]["unseen"]) == (0, 1)


def test_a_written_baseline_is_one_that_the_same_run_passes_with(there: Path) -> None:
    written = check({**BAD, "socket": "rpc"}, "--write-baseline", "new.toml")

    assert written.exit_code == 0
    assert "new.toml: 2 known failures written (2 new, 0 taken out)" in written.output
    assert check({**BAD, "socket": "rpc"}, "--baseline", "new.toml").exit_code == 0
    assert check(BAD, "--baseline", "new.toml").exit_code == 1


def test_a_baseline_can_be_renewed_in_place_and_keeps_its_reasons(there: Path) -> None:
    file = baseline(there, MINE, entry("mine", host="socket"))
    result = check(BAD, "--baseline", file, "--write-baseline", file)

    assert result.exit_code == 0
    assert "known.toml: 1 known failure written (0 new, 1 taken out)" in result.output
    assert "we are on it" in (there / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema = 1\nknown = [", "known.toml:"),
        ("schema = 2\n", "known.toml:1: schema: is 2; this version reads 1"),
        ("known = []\n", "known.toml:1: "),
        ('schema = 1\n[[known]]\nscenario = "mine"\n', "known.toml:2: known[0]"),
        ('schema = 1\nknown = [{scenario = "mine", host = "moon", clause = "D8"}]', "known[0].host"),
        (
            'schema = 1\n\n[[known]]\nscenario = "nine"\nhost = "memory"\nclause = "D8"\n',
            "known.toml:4: known[0].scenario",
        ),
        ('schema = 1\nknown = [{scenario = "mine", host = "memory", clause = "D8", when = "x"}]', "when"),
    ],
    ids=[
        "no TOML",
        "another version",
        "no version",
        "half an entry",
        "no such host",
        "no such scenario",
        "unknown key",
    ],
)
def test_a_baseline_that_cannot_be_used_is_bad_usage_with_its_line(text: str, words: str, there: Path) -> None:
    (there / "known.toml").write_text(text, encoding="utf-8")
    result = check(BAD, "--baseline", "known.toml")

    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_a_baseline_that_is_not_there_or_cannot_be_written_is_bad_usage(there: Path) -> None:
    for args in (("--baseline", "nowhere.toml"), ("--write-baseline", "no/folder.toml")):
        result = check(BAD, *args)
        assert result.exit_code == 2
        assert args[1].split("/")[0] in result.output


def test_the_clauses_and_checks_of_the_product_can_be_named() -> None:
    assert not list(problems(known(entry("i4-maps", "I4", "check")), {}, ["i4-maps"], load_clauses()))
