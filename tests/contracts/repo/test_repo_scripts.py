"""A1: the test scripts of package.json clear the two markers, in any of the usual ways."""

import json

import pytest

from contracts.repo.findings import ClauseResult
from contracts.repo.scripts import judge_scripts, without_clearing
from contracts.repo.trees import Entry, Tree

BOTH = "-u HC_TERMINAL_SOCKET -u HC_TERMINAL_ID"
EMPTY = "HC_TERMINAL_SOCKET= HC_TERMINAL_ID="


def tree(text: str) -> Tree:
    data = text.encode()
    return Tree("x", {"package.json": Entry("100644", "", len(data))}, {"package.json": data})


def judged(**scripts: str) -> ClauseResult:
    return judge_scripts(tree(json.dumps({"scripts": scripts}, indent=2)))


CLEARED = [
    f"env {BOTH} vitest run",
    f"env {BOTH} -u OTHER A=1 vitest run",
    "env -uHC_TERMINAL_SOCKET --unset=HC_TERMINAL_ID vitest run",
    "env --unset HC_TERMINAL_SOCKET --unset HC_TERMINAL_ID -- vitest",
    "env -i PATH=/bin vitest run",
    f"/usr/bin/env {BOTH} vitest",
    f"{EMPTY} vitest run",
    "HC_TERMINAL_SOCKET='' HC_TERMINAL_ID=\"\" vitest run",
    f"cross-env {EMPTY} vitest run",
    f"npx cross-env {EMPTY} vitest run",
    "unset HC_TERMINAL_SOCKET HC_TERMINAL_ID && vitest run && node more.mjs",
    "unset -v HC_TERMINAL_SOCKET; unset HC_TERMINAL_ID; vitest run",
    f"export {EMPTY} && vitest run",
    f"{EMPTY}; vitest run",
    f"tsc -p . && env {BOTH} vitest run",
    f"cd test && env {BOTH} vitest run | tee log",
    "sh -c 'unset HC_TERMINAL_SOCKET HC_TERMINAL_ID; vitest'",
    f"env {BOTH} sh -c 'vitest && node x.mjs'",
    f"env {BOTH} npm run plain",
    "npm run clean",
    "npm run clean -- --watch",
    "npm run build && npm run clean",
    "yarn clean",
    "npm ci && npm run clean",
    f"env {BOTH} pnpm vitest run",
    f"env {BOTH} npm exec -- vitest run",
    "pnpm run clean",
    "node --run clean",
    "run-s build clean",
    "npm-run-all cl*",
    f"env {BOTH} nice -n 5 vitest",
    f"exec env {BOTH} vitest",
    f"HC_TERMINAL_ID=x env {BOTH} vitest",
]


@pytest.mark.parametrize("script", CLEARED)
def test_a_script_that_clears_both_markers_passes(script: str) -> None:
    result = judged(test=script, clean=f"env {BOTH} vitest run", plain="vitest run", build="tsc -p .")

    assert (result.verdict, result.findings) == ("pass", [])


KEPT = [
    "vitest run",
    "(unset HC_TERMINAL_SOCKET HC_TERMINAL_ID); vitest run",
    "unset HC_TERMINAL_SOCKET HC_TERMINAL_ID & vitest run",
    "unset HC_TERMINAL_SOCKET HC_TERMINAL_ID | cat; vitest run",
    "true || unset HC_TERMINAL_SOCKET HC_TERMINAL_ID; vitest run",
    "unset -f HC_TERMINAL_SOCKET HC_TERMINAL_ID; vitest run",
    "true # ; unset HC_TERMINAL_SOCKET HC_TERMINAL_ID\nvitest run",
    f"env {BOTH} true; npm --prefix . run plain",
    "env -u HC_TERMINAL_SOCKET vitest run",
    "env -u HC_TERMINAL_ID vitest run",
    "env -u HC_TERMINAL -u HC_TERMINAL_IDS vitest",
    "env -u PI_SUBAGENT_DEPTH vitest run",
    "HC_TERMINAL_SOCKET= vitest run",
    "HC_TERMINAL_SOCKET= HC_TERMINAL_ID=0 vitest run",
    f"{EMPTY} true && vitest run",
    f"env {BOTH} true && vitest run",
    f"env {BOTH} vitest run && node more.mjs",
    "vitest run; unset HC_TERMINAL_SOCKET HC_TERMINAL_ID",
    "unset HC_TERMINAL_SOCKET HC_TERMINAL_ID && HC_TERMINAL_ID=a vitest",
    f"env {BOTH} HC_TERMINAL_ID=a vitest",
    f"echo env {BOTH} && vitest run",
    f"vitest run -- {BOTH}",
    "sh -c 'unset HC_TERMINAL_SOCKET HC_TERMINAL_ID' && vitest",
    "npm run plain",
    "npm run build && npm run plain",
    "npm run build",
    "yarn plain",
    "run-s clean plain",
    "echo nothing",
    "npx vitest",
    "npm exec vitest",
    "pnpm vitest run",
    "bun test",
    "nice vitest",
]


@pytest.mark.parametrize("script", KEPT)
def test_a_script_that_leaves_a_marker_fails_at_its_line(script: str) -> None:
    result = judged(build="tsc", clean=f"env {BOTH} vitest run", plain="vitest run", test=script)

    assert result.verdict == "fail"
    assert [one.line for one in result.findings] == [6]
    assert "env -u HC_TERMINAL_SOCKET" in result.findings[0].todo


def test_every_script_whose_name_begins_with_test_is_judged() -> None:
    result = judged(**{"test": f"env {BOTH} vitest", "test:watch": "vitest --watch", "pretest": "vitest"})

    assert [one.say.split("'")[1] for one in result.findings] == ["test:watch"]


@pytest.mark.parametrize(
    ("script", "says"),
    [("vitest 'run", "quotation"), ("npm run gone", "no script of package.json"), ("npm test", "without end")],
)
def test_a_script_that_cannot_be_followed_is_unproven(script: str, says: str) -> None:
    result = judged(test=script)

    assert result.verdict == "unproven"
    assert says in result.findings[0].say


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ('{"scripts": {}}', "no test script", 1),
        ('{"scripts": [1]}', "no test script", 1),
        ('{"name": "x"}', "no test script", 1),
        ("[]", "no test script", 1),
        ('{\n"scripts": {,}', "no JSON", 2),
        ("[" * 5000, "", 1),
    ],
)
def test_a_package_that_says_nothing_of_tests_is_unproven(text: str, says: str, line: int) -> None:
    result = judge_scripts(tree(text))

    assert result.verdict == "unproven"
    assert says in result.findings[0].say
    assert result.findings[0].line == line


def test_no_package_is_unproven() -> None:
    assert judge_scripts(Tree("x", {})).verdict == "unproven"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("vitest run", f"env {BOTH} vitest run"),
        ("env -u A vitest run", f"env {BOTH} -u A vitest run"),
        ("env -u A vitest run", "env -u A -uHC_TERMINAL_ID --unset=HC_TERMINAL_SOCKET vitest run"),
        ("vitest run", f"{EMPTY} vitest run"),
        ("cross-env A=1 vitest", f"cross-env {EMPTY} A=1 vitest"),
        ("vitest run", f"cross-env {EMPTY} vitest run"),
        ("a && b", "unset HC_TERMINAL_SOCKET HC_TERMINAL_ID && a && b"),
        ("a", "unset HC_TERMINAL_SOCKET HC_TERMINAL_ID; a"),
        ("a", f"export {EMPTY}; a"),
    ],
)
def test_the_clearing_can_be_told_from_other_changes(before: str, after: str) -> None:
    assert without_clearing(before) == without_clearing(after)


@pytest.mark.parametrize("after", ["vitest", f"env {BOTH} vitest run; true", f"env {BOTH} vitest run || true", "true"])
def test_other_changes_are_not_taken_for_the_clearing(after: str) -> None:
    assert without_clearing("vitest run") != without_clearing(after)


@pytest.mark.parametrize("script", ['vitest "run', "vitest `date`"])
def test_a_script_that_cannot_be_read_is_compared_as_it_is(script: str) -> None:
    assert without_clearing(script) == [script]
    assert judged(test=script).verdict == "unproven"
