"""Recordings of the real pi, read as the headless backend reads its child: what settles, and as what."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion_terminal.rpc.life import Life, Prompt
from legion_terminal.rpc.messages import Noise, Response, RunSettled, RunStarted, decode

RECORDINGS = Path(__file__).parents[2] / "contracts" / "recordings" / "rpc"
PROMPTS = ("prompt", "steer", "follow_up")


def replayed(name: str) -> tuple[Life, dict[str, Prompt]]:
    """The life that a recording tells, and its prompts by id."""
    life, prompts, texts = Life(), {}, {}
    for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        record = entry.get("record")
        if record is None:
            continue
        if entry["from"] == "supervisor":
            if record["type"] in PROMPTS:
                prompts[record["id"]] = life.asked()
                texts[record["id"]] = record["message"]
            continue
        event = decode(json.dumps(record).encode())
        assert not isinstance(event, Noise | None)
        if isinstance(event, Response):
            if event.id in prompts and event.success:
                life.accepted(prompts[event.id], event.disposition, texts[event.id])
            elif event.id in prompts:
                life.refused(prompts[event.id])
            elif event.command == "clear_queue":
                life.cleared()
        else:
            life.take(event)
    return life, prompts


@pytest.mark.parametrize(
    ("name", "first", "aborted", "status"),
    [
        ("one-prompt", "p1", False, "done"),
        ("steer", "p1", False, "done"),
        ("abort", "p1", True, "idle"),
        ("abort-tool", "p1", True, "idle"),
        ("clear-queue-abort", "p", True, "idle"),
        ("http400", "p", False, "error"),
        ("http500-retry", "p", False, "error"),
        ("extension-ui", "p", False, "done"),
    ],
)
def test_a_recorded_run_settles_once(name: str, first: str, aborted: bool, status: str) -> None:
    life, prompts = replayed(name)

    assert life.ending(prompts[first], 0) == "agent-settled"
    assert (life.turn, life.ends) == (1, 1)
    result = life.result("agent-settled")
    assert (result.aborted, result.last_status, result.unconfirmed) == (aborted, status, None)


@pytest.mark.parametrize(("name", "turn"), [("sigterm-midturn", 1), ("no-model", 0)])
def test_a_recorded_run_that_never_ended_settles_nothing(name: str, turn: int) -> None:
    life, prompts = replayed(name)

    assert life.ending(prompts["p"], 0) is None
    assert life.turn == turn


@given(st.lists(st.sampled_from(["ask", "start", "settle", "noise"]), max_size=30))
def test_a_prompt_settles_only_by_a_run_that_ended_after_it_was_asked(story: list[str]) -> None:
    """The oracle knows when each prompt was asked, and which runs began and ended after that."""
    life, asked, running = Life(), [], False
    answered: set[int] = set()
    for step in story:
        match step:
            case "ask":
                prompt = life.asked()
                asked.append((prompt, running))
                life.accepted(prompt, "started", "x")
            case "start":
                life.take(RunStarted())
                running = True
            case "settle" if running:
                life.take(RunSettled(aborted=False))
                running = False
                answered |= {n for n, (_, owed) in enumerate(asked) if not owed}
                asked = [(prompt, False) for prompt, _ in asked]
            case _:
                pass
        settled = {n for n, (prompt, _) in enumerate(asked) if life.settled(prompt, since=-1)}
        assert settled == answered
