"""Scenario files: strict loading, with file, line and field for every mistake."""

from pathlib import Path

import pytest

from contracts.clauses import load_clauses
from contracts.loading.files import (
    SCENARIOS,
    Catalogue,
    ScenarioError,
    line_in,
    lint,
    load_all,
    load_scenario,
    main,
    scenario_files,
)

GOOD = """\
id = "my-case"
why = "One fact."
clauses = ["D8"]

[[world.agent]]
[[world.agent.step]]
at_ms = 100
turn = 1
status = "done"

[[drive]]
do = "spawn"
as = "a"

[[drive]]
do = "wait"
child = "a"
args = { timeoutMs = 1000 }
returns = { settled = true }
"""


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "my-case.toml"
    path.write_text(GOOD)
    return path


def refused(path: Path, old: str, new: str) -> list[tuple[int, str, str]]:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert all(problem.path == str(path) for problem in caught.value.problems)
    return [(problem.line, problem.key, problem.message) for problem in caught.value.problems]


def test_a_good_file_loads_with_its_defaults(case: Path) -> None:
    scenario = load_scenario(case)

    assert scenario.id == "my-case"
    assert scenario.hosts == ["memory"]
    assert scenario.world.parent.labels["herdr.space"] == "space-1"
    assert scenario.drive[1].returns == {"settled": True}


def test_an_unknown_key_names_line_and_nearest_right_name(case: Path) -> None:
    [(line, key, message)] = refused(case, "turn = 1", "trun = 1")

    assert (line, key) == (8, "world.agent[0].step[0].trun")
    assert "did you mean 'turn'?" in message


def test_unknown_keys_are_looked_for_only_in_a_file_that_does_not_load(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search costs more than all the rest of the loading."""

    def costly(*_: object) -> None:
        raise AssertionError("the search was begun")

    monkeypatch.setattr("hc_sim.script.toml.find_unknown", costly)

    assert load_scenario(case).id == "my-case"
    with pytest.raises(AssertionError):
        refused(case, "turn = 1", "trun = 1")


@pytest.mark.parametrize(
    ("statement", "key", "says"),
    [
        ("returns = { setled = { absent = true } }", "returns.setled", "did you mean 'settled'?"),
        ("returns = { settled = true, exitcode = { absent = true } }", "returns.exitcode", "did you mean 'exitCode'?"),
        ("returns = { lastEventsAt = { absent = true } }", "returns.lastEventsAt", "did you mean 'lastEventAt'?"),
        ("returns = { zzz = 1 }", "returns.zzz", "it has abnormal, aborted, detail"),
        ("returns = { promptTurn = 1 }", "returns.promptTurn", "what wait returns has no key 'promptTurn'"),
        ("raises = { kinds = { absent = true } }", "raises.kinds", "did you mean 'kind'?"),
    ],
)
def test_a_key_that_no_result_has_is_refused_with_the_nearest_right_name(
    statement: str, key: str, says: str, case: Path
) -> None:
    [(line, where, message)] = refused(case, "returns = { settled = true }", statement)

    assert (line, where) == (19, f"drive[1].{key}")
    assert says in message


@pytest.mark.parametrize(
    "statement",
    [
        "returns = { inFlightTool = { absent = true }, lastEventAt = { absent = true } }",
        "returns = { cleared = { absent = true } }",
        "returns = { len = { min = 1 } }",
        "raises = { code = 'x', message = 'x', child = 'x', known = 'x', kind = 'x', hint = 'x' }",
    ],
)
def test_claims_that_are_forbidden_on_purpose_operators_and_all_keys_of_an_error_may_be_named(
    statement: str, case: Path
) -> None:
    case.write_text(GOOD.replace("returns = { settled = true }", statement))

    assert load_scenario(case).drive[1].do == "wait"


JOINED = (
    GOOD.replace("returns = { settled = true }", "as = 'w'\nbackground = true")
    + """
[[drive]]
do = "join"
of = ["w"]
returns = { settled = true }
"""
)


def test_a_join_returns_what_the_joined_step_does(tmp_path: Path) -> None:
    path = tmp_path / "my-case.toml"
    path.write_text(JOINED)

    assert load_scenario(path).drive[2].do == "join"
    [(_, key, message)] = refused(path, "settled = true", "ended = { absent = true }")
    assert key == "drive[2].returns.ended"
    assert "what join returns has no key 'ended'" in message


def test_a_join_of_several_steps_returns_nothing(tmp_path: Path) -> None:
    again = "[[drive]]\ndo = 'wait'\nchild = 'a'\nas = 'v'\nbackground = true\n\n[[drive]]\ndo = \"join\""
    path = tmp_path / "my-case.toml"
    path.write_text(JOINED.replace('[[drive]]\ndo = "join"', again).replace('of = ["w"]', 'of = ["w", "v"]'))

    with pytest.raises(ScenarioError, match="what join returns has no key 'settled' "):
        load_scenario(path)


def test_a_wrong_type_names_line_and_field(case: Path) -> None:
    [(line, key, _)] = refused(case, "at_ms = 100", 'at_ms = "soon"')

    assert (line, key) == (7, "world.agent[0].step[0].at_ms")


def test_a_file_that_is_no_toml_names_the_line(case: Path) -> None:
    [(line, _, message)] = refused(case, 'status = "done"', "status = done")

    assert line == 9
    assert "not TOML" in message


def test_a_key_that_is_written_twice_is_refused(case: Path) -> None:
    [(_, _, message)] = refused(case, 'status = "done"', 'status = "done"\nturn = 2')

    assert "not TOML" in message


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "word"),
    [
        ('id = "my-case"', 'id = "other"', 1, "id", "must be equal"),
        ('why = "One fact."', 'why = " "', 2, "why", "one sentence"),
        ('["D8"]', '["D88"]', 3, "clauses", "did you mean 'D8'?"),
        ('["D8"]', "[]", 3, "clauses", "at least one clause"),
        ('["D8"]', '["D8", "D8"]', 3, "clauses", "twice"),
        ('["D8"]', '["D8"]\nhosts = []', 4, "hosts", "at least one host"),
        ('["D8"]', '["D8"]\nhosts = ["memory", "memory"]', 4, "hosts", "twice"),
        ('["D8"]', '["D8"]\nlimit_ms = 0', 4, "limit_ms", "from 1 to"),
        ('["D8"]', '["D8"]\npoll_ms = 0', 4, "poll_ms", "above 0"),
        ('["D8"]', '["D8"]\ntime = "real"', 4, "time", "virtual time"),
        ("at_ms = 100", "at_ms = 100\nafter_ms = 1", 6, "world.agent[0].step[0]", "exactly one trigger"),
        ("at_ms = 100\n", "", 6, "world.agent[0].step[0]", "it has none"),
        ('turn = 1\nstatus = "done"\n', "", 6, "world.agent[0].step[0]", "no effect"),
        ("turn = 1", "turn = 1\nnth = 2", 9, "world.agent[0].step[0].nth", "belongs to on_call"),
        ("turn = 1", "turn = 1\nturn_add = 1", 9, "world.agent[0].step[0].turn_add", "cannot stand beside"),
        ("turn = 1", "turn = 1\nfinish = {}", 9, "world.agent[0].step[0].finish", "code or a signal"),
        ("turn = 1", "turn = 1\nfile = { newline = false }", 9, "world.agent[0].step[0].file", "exactly one of"),
        ("[[world.agent]]", "[[world.agent]]\nrepeat_from = 1", 6, "world.agent[0].repeat_from", "no step 1"),
        ("[[world.agent]]", '[world]\ncore = "sideways"\n[[world.agent]]', 6, "world.core", "is none of"),
        ("[[world.agent]]", '[world]\nhc = "missing"\n[[world.agent]]', 6, "world.hc", "socket host"),
        ("[[world.agent]]", "[world]\nprofile = { max_terminal = 1 }\n[[world.agent]]", 6,
         "world.profile.max_terminal", "did you mean 'max_terminals'?"),
        ("[[world.agent]]", '[world]\nprofile = { max_terminals = "many" }\n[[world.agent]]', 6,
         "world.profile.max_terminals", "Expected `int`"),
        ("[[world.agent]]", '[world]\nprofile = { kinds = { nmae_taken = "X" } }\n[[world.agent]]', 6,
         "world.profile.kinds", "Invalid enum value"),
        ("[[world.agent]]", '[world]\nfiles = { "../x" = "y" }\n[[world.agent]]', 6, "world.files.../x", "outside"),
        ("[[world.agent]]", '[[world.fault]]\nmethod = "terminal.gte"\n[[world.agent]]', 6,
         "world.fault[0].method", "did you mean 'terminal.get'?"),
        ("at_ms = 100", 'on_call = "terminal.gte"', 7, "world.agent[0].step[0].on_call", "'terminal.get'?"),
        ("[[world.agent]]", "[[world.fault]]\nnth = -1\n[[world.agent]]", 6, "world.fault[0].nth", "counts from 1"),
        ('do = "spawn"', 'do = "spwan"', 12, "drive[0].do", "did you mean 'spawn'?"),
        ('do = "spawn"', 'do = "spawn"\nargs = { task_text = "x" }', 13, "drive[0].args.task_text", "no such argument"),
        ('as = "a"', 'as = "b"', 17, "drive[1].child", "no earlier spawn is named 'a'"),
        ('child = "a"\n', "", 15, "drive[1].child", "is missing"),
        ("settled = true", "lastTurn = { min = 'x' }", 19, "drive[1].returns.lastTurn.min", "takes a number"),
        ("returns =", "raises = {}\nreturns =", 19, "drive[1].raises", "cannot stand beside returns"),
        ("returns = { settled = true }", 'as = "a"\nat = 1', 19, "drive[1].as", "already the name"),
        ("returns = { settled = true }", "", 15, "expect", "nothing could fail"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(case: Path, old: str, new: str, line: int, key: str, word: str) -> None:
    found = refused(case, old, new)

    assert any((at, field) == (line, key) and word in message for at, field, message in found) or (
        key == "expect" and any(field == key and word in message for _, field, message in found)
    ), found


@pytest.mark.parametrize(
    ("step", "key", "word"),
    [
        ('do = "fire"', "drive[2].args.name", "is missing"),
        ('do = "pause"\nargs = { ms = 1 }\nreturns = {}', "drive[2]", "neither returns nor raises"),
        ('do = "until"\nargs = { calls = "terminal.gte" }', "drive[2].args.calls", "did you mean 'terminal.get'?"),
        ('do = "join"', "drive[2].of", "is missing"),
        ('do = "join"\nof = ["a"]', "drive[2].of", "no earlier background step"),
        ('do = "pause"\nargs = { ms = 1 }\nbackground = true', "drive[2].background", "in the background"),
        ('do = "retire"', "drive[2].child", "is missing"),
        ('do = "wait"\nchild = "a"\nargs = { child = "x" }', "drive[2].args.child", "no such argument"),
    ],
)
def test_a_step_that_could_not_be_carried_out_is_refused(case: Path, step: str, key: str, word: str) -> None:
    found = refused(case, "returns = { settled = true }\n", f"returns = {{ settled = true }}\n\n[[drive]]\n{step}\n")

    assert any(field == key and word in message for _, field, message in found), found


@pytest.mark.parametrize(
    ("expect", "key", "word"),
    [
        ('say = "nothing"', "expect[0]", "exactly one subject"),
        ('calls = "hello"\ngit = 0', "expect[0]", "calls and git"),
        ("git = 0\ncount = 1", "expect[0].count", "belongs to calls, not to git"),
        ('calls = "hello"\ncount = 1\nat_most = 1', "expect[0].count", "cannot stand beside"),
        ('calls = "hello"\nchild = "b"', "expect[0].child", "no child or terminal 'b'"),
        ('calls = "hello"\nwhere = { t = { min = "x" } }', "expect[0].where.t.min", "takes a number"),
        ("run = true", "expect[0].with", "is missing"),
        ('file = "x"', "expect[0]", "needs a mode or a text"),
        ('repo = "unchanged"', "expect[0].repo", "world.repo"),
        ('calls = "terminal.kil"\ncount = 0', "expect[0].calls", "did you mean 'terminal.kill'?"),
        ('order = ["hello", "terminal.gt"]', "expect[0].order[1]", "did you mean 'terminal.get'?"),
        ('methods = ["hullo"]', "expect[0].methods[0]", "did you mean 'hello'?"),
        ('calls = "hello"\nclause = "Z1"', "expect[0].clause", "no clause 'Z1'"),
    ],
)
def test_a_statement_that_means_nothing_is_refused(case: Path, expect: str, key: str, word: str) -> None:
    found = refused(case, "returns = { settled = true }\n", f"returns = {{ settled = true }}\n\n[[expect]]\n{expect}\n")

    assert any(field == key and word in message for _, field, message in found), found


def test_virtual_time_with_another_process_is_refused_with_the_reason(case: Path) -> None:
    found = refused(case, '["D8"]', '["D8"]\nhosts = ["socket"]\ntime = "virtual"')

    assert [(line, key) for line, key, _ in found] == [(5, "time")]
    assert "cannot see that another process is still working" in found[0][2]


def test_a_statement_about_a_terminal_of_the_world_is_fine(case: Path) -> None:
    case.write_text(
        f'{GOOD}\n[[world.terminal]]\nname = "other"\n\n[[expect]]\ncalls = "*"\nchild = "other"\ncount = 0\n'
    )

    assert load_scenario(case).expect[0].child == "other"


def test_every_mistake_of_every_file_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "my-case.toml").write_text(GOOD.replace("D8", "D99"))
    (tmp_path / "two.toml").write_text("nothing")

    with pytest.raises(ScenarioError) as caught:
        load_all([tmp_path])
    assert [Path(problem.path).name for problem in caught.value.problems] == ["my-case.toml", "two.toml"]
    assert str(caught.value).count("\n") == 1


def test_an_id_that_two_files_share_is_refused(case: Path, tmp_path: Path) -> None:
    other = tmp_path / "deeper" / "my-case.toml"
    other.parent.mkdir()
    other.write_text(GOOD)

    with pytest.raises(ScenarioError, match="is already the id of"):
        load_all([tmp_path])


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such file or folder"):
        list(scenario_files([tmp_path / "nowhere"]))


def test_scenarios_are_found_by_id_glob_and_layer(tmp_path: Path) -> None:
    (tmp_path / "settle").mkdir()
    (tmp_path / "settle" / "my-case.toml").write_text(GOOD)
    catalogue = load_all([tmp_path])

    assert [found.id for glob in ("my-case", "my-*", "settle/*") for found in catalogue.matching(glob)] == [
        "my-case"
    ] * 3
    assert catalogue.matching("wire/*") == []
    assert catalogue.paths() == {"my-case": tmp_path / "settle" / "my-case.toml"}
    assert Catalogue().scenarios == []


def test_the_line_of_a_field_in_an_inline_table_is_that_of_its_table(case: Path) -> None:
    assert line_in(case, "drive[1].returns.settled") == 19
    assert line_in(case, "drive[0]") == 11


def test_the_command_prints_each_mistake_and_says_so_with_its_exit_code(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(case)]) == 0
    case.write_text(GOOD.replace("turn = 1", "trun = 1"))
    assert main([str(case)]) == 2
    assert main([str(case.parent / "nowhere")]) == 2

    captured = capsys.readouterr()
    assert "my-case.toml:8: world.agent[0].step[0].trun" in captured.err
    assert captured.out.splitlines()[:2] == ["1 scenario is good, 0 mistakes", "0 scenarios are good, 1 mistake"]


def test_lint_counts_good_files_and_goes_on_after_a_bad_one(case: Path) -> None:
    (case.parent / "bad.toml").write_text("x")

    good, lines = lint([case.parent])

    assert good == 1
    assert len(lines) == 1


def test_every_scenario_of_the_product_loads() -> None:
    catalogue = load_all()

    assert len(catalogue.entries) >= 90
    assert all(path.is_relative_to(SCENARIOS) for path in catalogue.paths().values())


def test_the_product_has_a_scenario_for_every_clause_but_those_that_checks_prove() -> None:
    spoken = {clause for scenario in load_all().scenarios for clause in scenario.clauses}

    assert set(load_clauses()) - spoken <= {"I4"}


def test_the_product_has_a_scenario_over_the_socket_for_every_clause_hazards_included() -> None:
    over = [scenario for scenario in load_all().scenarios if "socket" in scenario.hosts]
    spoken: set[str] = set()
    for scenario in over:
        stating = [step for step in scenario.drive if step.returns is not None or step.raises is not None]
        named = [*(step.clause for step in stating), *(one.clause for one in scenario.expect)]
        spoken |= {clause or scenario.clauses[0] for clause in named}

    assert len(over) >= 30
    assert set(load_clauses()) - spoken == set()
