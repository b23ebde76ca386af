import dataclasses
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from legion_terminal.errors import SupervisorError
from legion_terminal.spawn.argv import build_pi_args, format_child_task, terminal_argv
from legion_terminal.types import SpawnRequest

PLAIN = SpawnRequest(
    agent="centurion",
    run_id="run00001",
    handle="alpha",
    task="do the work",
    cwd="/w",
    session_file="/s/session-alpha.jsonl",
    no_extensions=False,
    no_skills=False,
    no_context_files=False,
)
FULL = dataclasses.replace(
    PLAIN,
    model="fake/fake-1",
    provider="fake",
    tools=("read", "bash"),
    extensions=("/e/provider.ts", "/e/two.ts"),
    no_extensions=True,
    skills=("/k/one", "/k/two"),
    no_skills=True,
    no_context_files=True,
    system_prompt="/p/prompt.md",
)
tasks = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=80).filter(
    lambda text: bool(text.strip())
)


def refusal(request: SpawnRequest) -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        terminal_argv(request)
    assert (caught.value.code, caught.value.known, caught.value.child) == ("bad-request", "not-sent", "alpha")
    return caught.value


def test_the_options_stand_in_one_fixed_order() -> None:
    assert build_pi_args(FULL, include_task=False) == [
        *("--session", "/s/session-alpha.jsonl"),
        *("--model", "fake/fake-1"),
        *("--provider", "fake"),
        *("--tools", "read,bash"),
        "--no-extensions",
        *("-e", "/e/provider.ts"),
        *("-e", "/e/two.ts"),
        *("--skill", "/k/one"),
        *("--skill", "/k/two"),
        "--no-skills",
        "--no-context-files",
        *("--system-prompt", "/p/prompt.md"),
    ]


def test_what_is_not_asked_for_is_not_there() -> None:
    assert build_pi_args(PLAIN, include_task=False) == ["--session", "/s/session-alpha.jsonl"]


def test_a_child_stays_apart_from_the_host_unless_told_otherwise() -> None:
    request = SpawnRequest(
        agent="centurion", run_id="r", handle="h", task="t", cwd="/", session_file="/s", extensions=("/e",)
    )
    assert build_pi_args(request, include_task=False) == [
        *("--session", "/s"),
        "--no-extensions",
        *("-e", "/e"),
        "--no-skills",
        "--no-context-files",
    ]


@pytest.mark.parametrize("request_", [PLAIN, FULL], ids=["plain", "full"])
def test_the_terminal_gets_the_same_options_and_then_the_task_as_one_element(request_: SpawnRequest) -> None:
    argv = terminal_argv(request_)
    assert argv[0] == "pi"
    assert argv[1:-1] == build_pi_args(request_, include_task=False)
    assert argv[-1] == format_child_task("do the work", allow_nested=False, worktree_branch=None)
    assert argv[1:] == build_pi_args(request_, include_task=True)


@pytest.mark.parametrize("path", ["", "session.jsonl", "./s", "~/s"])
def test_a_session_file_that_is_not_absolute_is_refused(path: str) -> None:
    assert "not an absolute path" in refusal(dataclasses.replace(PLAIN, session_file=path)).message


# -- the task --------------------------------------------------------------------------------------------------------


def formatted(task: str, **options: Any) -> str:
    return format_child_task(task, **{"allow_nested": False, "worktree_branch": None, **options})


@given(tasks, st.booleans(), st.none() | st.just("work/alpha"))
@example("- fix the list", False, None)
@example("--help me", False, None)
@example("---\ntitle: x\n---\ndo it", False, None)
@example("-p", True, None)
@example("--session x", False, "b")
@example("@file", False, None)
@example("/new", False, None)
@example("  two\r\nlines\n\n", False, None)
def test_any_task_arrives_whole_and_is_taken_neither_for_an_option_nor_for_a_file(
    task: str, nested: bool, branch: str | None
) -> None:
    text = format_child_task(task, allow_nested=nested, worktree_branch=branch)
    assert text[0].isalpha()
    assert text.endswith("\n\n" + task)


def test_every_task_begins_with_the_same_words() -> None:
    first = {
        formatted(task, **options).split("\n")[0] for task in ("a", "- b") for options in ({}, {"allow_nested": 1})
    }
    assert len(first) == 1


def test_the_heading_says_whether_the_child_may_start_agents_and_which_branch_is_its_own() -> None:
    assert formatted("x", allow_nested=True) != formatted("x", allow_nested=False)
    assert "work/alpha" in formatted("x", worktree_branch="work/alpha")
    assert "branch" not in formatted("x")


def test_the_request_decides_the_heading() -> None:
    request = dataclasses.replace(PLAIN, allow_nested=True, worktree_branch="b1")
    assert terminal_argv(request)[-1] == formatted("do the work", allow_nested=True, worktree_branch="b1")


@pytest.mark.parametrize("task", ["", " ", "\n\t"], ids=repr)
def test_an_empty_task_is_refused(task: str) -> None:
    assert "empty" in refusal(dataclasses.replace(PLAIN, task=task)).message


def test_nul_in_the_task_is_refused() -> None:
    assert "NUL" in refusal(dataclasses.replace(PLAIN, task="a\0b")).message


def test_half_a_surrogate_pair_is_refused_with_its_place_in_the_task() -> None:
    assert "at character 2" in refusal(dataclasses.replace(PLAIN, task="ab\ud83d")).message


def test_a_whole_emoji_passes() -> None:
    assert terminal_argv(dataclasses.replace(PLAIN, task="\U0001f98a"))[-1].endswith("\U0001f98a")


ROOM = 131_071 - len(formatted("x")) + 1


@pytest.mark.parametrize("task", ["x" * ROOM, "€" * (ROOM // 3) + "x" * (ROOM % 3)], ids=["ascii", "three bytes each"])
def test_the_longest_task_is_counted_in_bytes(task: str) -> None:
    argument = terminal_argv(dataclasses.replace(PLAIN, task=task))[-1]
    assert len(argument.encode()) == 131_071
    error = refusal(dataclasses.replace(PLAIN, task=task + "x"))
    assert "131072 bytes" in error.message
    assert "131071" in error.message
    assert error.hint


@pytest.mark.parametrize("size", [131_071, 131_072, 200_000])
def test_a_task_of_the_size_of_a_whole_argument_is_refused_and_not_cut(size: int) -> None:
    heading = len(formatted("x")) - 1
    assert (
        f"{size + heading} bytes ({heading} of them its heading)"
        in refusal(dataclasses.replace(PLAIN, task="x" * size)).message
    )


@pytest.mark.parametrize("branch", ["", "a b", "a\nb", "a\0b"], ids=repr)
def test_a_branch_that_no_repository_could_have_is_refused(branch: str) -> None:
    assert "branch" in refusal(dataclasses.replace(PLAIN, worktree_branch=branch)).message


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"model": "a\0"}, "--model"),
        ({"system_prompt": "x" * 131_072}, "--system-prompt"),
        ({"extensions": ("\ud800",)}, "-e"),
    ],
    ids=["nul", "size", "surrogate"],
)
def test_any_other_argument_that_cannot_travel_is_refused_by_its_option(change: dict[str, Any], where: str) -> None:
    assert f"argument after {where}" in refusal(dataclasses.replace(PLAIN, **change)).message
