"""Mistakes of scenarios that have the right types: each is refused with file, line, field and a plain sentence."""

from pathlib import Path

import pytest

from contracts.loading.arguments import path_fault
from contracts.loading.files import ScenarioError, load_scenario

HEAD = """\
id = "my-case"
why = "One fact."
clauses = ["D8"]
"""
DRIVE = """
[[drive]]
do = "spawn"
as = "a"
returns = { mode = "terminal" }
"""
LAST = 10
"""The line of what a test appends to both."""


def problems(folder: Path, text: str) -> list[tuple[int, str, str]]:
    path = folder / "my-case.toml"
    path.write_text(text)
    try:
        load_scenario(path)
    except ScenarioError as error:
        return [(one.line, one.key, one.message) for one in error.problems]
    return []


@pytest.mark.parametrize(
    ("args", "field", "says"),
    [
        ("do = 'steer'\nchild = 'a'", "args.text", "is missing; steer needs it"),
        ("do = 'steer'\nchild = 'a'\nargs = { text = 5 }", "args.text", "must be a text, not 5"),
        ("do = 'card.load'", "args.text", "is missing; card.load needs it"),
        ("do = 'spawn'\nargs = { tools = 5 }", "args.tools", "must be a list of texts, not 5"),
        ("do = 'spawn'\nargs = { tools = ['a', 5] }", "args.tools[1]", "must be a text, not 5"),
        ("do = 'spawn'\nargs = { branch = 5 }", "args.branch", "must be a text, not 5"),
        ("do = 'spawn'\nargs = { model = [1] }", "args.model", "must be a text, not [1]"),
        ("do = 'spawn'\nargs = { worktree = 'no' }", "args.worktree", "must be true or false, not the text 'no'"),
        ("do = 'spawn'\nargs = { env = { 'A=B' = 'x' } }", "args.env.A=B", "is no name of a variable"),
        ("do = 'spawn'\nargs = { env = { A = 5 } }", "args.env.A", "must be a text or { unset = true }, not 5"),
        ("do = 'arbitrate'\nargs = { env = 5 }", "args.env", "must be a table of variables, not 5"),
        ("do = 'wait'\nchild = 'a'\nargs = { timeoutMs = 'x' }", "args.timeoutMs", "must be a number"),
        ("do = 'pause'\nargs = { ms = 'x' }", "args.ms", "must be a whole number, not the text 'x'"),
        ("do = 'pause'\nargs = { ms = -5 }", "args.ms", "must be from 0"),
        ("do = 'restart'\nargs = { ms = true }", "args.ms", "must be a whole number, not true"),
        ("do = 'until'\nargs = { calls = 'hello', count = 0 }", "args.count", "must be from 1"),
        ("do = 'write'\nargs = { file = '/etc/x', text = 'x' }", "args.file", "is outside the run's folder"),
        ("do = 'write'\nargs = { file = '.', text = 'x' }", "args.file", "names no file"),
        ("do = 'fire'\nargs = { name = 'go' }", "args.name", "no agent has a step with by_hand = 'go'"),
        ("do = 'status'\nchild = 'a'\nat_ms = -1", "at_ms", "must not be negative"),
        ("do = 'status'\nchild = 'a'\nat = { mni = 5 }", "at", "is a number of ms or a test on it"),
    ],
)
def test_a_step_is_refused_for(args: str, field: str, says: str, tmp_path: Path) -> None:
    [(line, key, message)] = problems(tmp_path, f"{HEAD}{DRIVE}\n[[drive]]\n{args}\n")

    assert line >= LAST
    assert key == f"drive[1].{field}"
    assert says in message


@pytest.mark.parametrize(
    "args",
    [
        "do = 'spawn'\nargs = { env = { A = { unset = true }, B = '' }, tools = ['a'], worktree = false }",
        "do = 'wait'\nchild = 'a'\nargs = { timeoutMs = inf }",
        "do = 'write'\nargs = { file = '{session:a}', text = 'x', append = true }",
    ],
)
def test_a_step_may_have(args: str, tmp_path: Path) -> None:
    assert problems(tmp_path, f"{HEAD}{DRIVE}\n[[drive]]\n{args}\n") == []


@pytest.mark.parametrize(
    ("world", "field", "says"),
    [
        ("[[world.terminal]]\nargv = []", "terminal[0].argv", "is empty"),
        ("[[world.terminal]]\nname = 'NO WAY'", "terminal[0].name", "is no name of a terminal"),
        ("[[world.terminal]]\nname = 'x'\n[[world.terminal]]\nname = 'x'", "terminal[1].name", "is already the name"),
        ("[[world.terminal]]\nturn = -5", "terminal[0].turn", "must not be negative"),
        ("[[world.terminal]]\nfinished = 4000", "terminal[0].finished", "an exit code is 0 to 255"),
        ("[[world.agent]]\n[[world.agent.step]]\nat_ms = -1\nturn = 1", "agent[0].step[0].at_ms", "negative"),
        ("[[world.agent]]\n[[world.agent.step]]\nat_ms = 1\nturn = -5", "agent[0].step[0].turn", "negative"),
        (
            "[[world.agent]]\nrepeat_from = 0\n[[world.agent.step]]\nat_ms = 1\nturn = 1",
            "agent[0].repeat_from",
            "it would run for ever",
        ),
        (
            "[[world.agent]]\n[[world.agent.step]]\nat_ms = 1\nfinish = { code = 99999 }",
            "agent[0].step[0].finish.code",
            "an exit code is 0 to 255",
        ),
        (
            "[[world.agent]]\n[[world.agent.step]]\nat_ms = 1\nfinish = { signal = 'SIGKIL' }",
            "agent[0].step[0].finish.signal",
            "did you mean 'SIGKILL'?",
        ),
        ("[[world.bridge]]\nsignal = 'FOO'", "bridge[0].signal", "there is no signal 'FOO'"),
        ("[world.files]\n'' = 'x'", "files.", "names no file"),
        ("[world.files]\n'.' = 'x'", "files..", "names no file"),
        ('[world.files]\n"a\\u0000b" = "x"', "files.a\0b", "holds a NUL character"),
        ("[world.files]\n'/etc/x' = 'x'", "files./etc/x", "is outside the run's folder"),
        ("[world.env]\n'A=B' = 'x'", "env.A=B", "is no name of a variable"),
    ],
)
def test_a_world_is_refused_for(world: str, field: str, says: str, tmp_path: Path) -> None:
    [(line, key, message)] = problems(tmp_path, f"{HEAD}\n{world}\n{DRIVE}")

    assert line >= HEAD.count("\n") + 2
    assert key == f"world.{field}"
    assert says in message


def test_an_expectation_cannot_look_at_a_file_outside_the_run(tmp_path: Path) -> None:
    text = f"{HEAD}{DRIVE}\n[[expect]]\nfile = '/etc/shadow'\nmode = '0600'\n"

    assert problems(tmp_path, text) == [(LAST + 1, "expect[0].file", "is outside the run's folder")]


def test_a_hand_that_an_agent_waits_for_may_be_given(tmp_path: Path) -> None:
    agent = "[[world.agent]]\n[[world.agent.step]]\nby_hand = 'go'\nturn = 1"
    fire = "[[drive]]\ndo = 'fire'\nargs = { name = 'go' }"

    assert problems(tmp_path, f"{HEAD}\n{agent}\n{DRIVE}\n{fire}\n") == []
    [(_, key, message)] = problems(tmp_path, f"{HEAD}\n{agent}\n{DRIVE}\n{fire.replace('go', 'goo')}\n")
    assert (key, "did you mean 'go'?" in message) == ("drive[1].args.name", True)


@pytest.mark.parametrize(
    ("path", "good"),
    [
        ("a", True), ("a/b.txt", True), ("{session}", True), ("{session:b}", True), ("{dir}/x", True),
        ("{cwd}/x", True),
        ("", False), (" ", False), (".", False), ("a/", False), ("..", False), ("a/../../b", False), ("/etc/x", False),
        ("{dir}", False), ("{dir}/", False), ("{dir}/../x", False), ("a\0b", False),
    ],
)  # fmt: skip
def test_a_path_is_a_file_of_the_run(path: str, good: bool) -> None:
    assert (path_fault(path) == "") is good
