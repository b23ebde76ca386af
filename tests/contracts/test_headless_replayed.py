"""Recordings as a supervisor can meet them: nothing that it never asks for, and each answer behind its command."""

import json
from typing import Any

import pytest

from contracts.hosts.replayed import COMMANDS, played
from contracts.loading.scripts import RECORDINGS

Entry = dict[str, Any]


def said(kind: str, name: object, at_ms: int = 0, **rest: Any) -> Entry:
    return {"at_ms": at_ms, "from": "supervisor", "record": {"id": name, "type": kind, **rest}}


def answer(command: str, name: object, at_ms: int = 0) -> Entry:
    return {
        "at_ms": at_ms,
        "from": "pi",
        "record": {"id": name, "type": "response", "command": command, "success": True},
    }


def event(kind: str, at_ms: int = 0) -> Entry:
    return {"at_ms": at_ms, "from": "pi", "record": {"type": kind}}


def kinds(entries: list[Entry]) -> list[str]:
    return [f"{one['from'][0]}:{one['record'].get('command') or one['record']['type']}" for one in entries]


def test_what_a_supervisor_never_asks_for_is_left_out_with_its_answer() -> None:
    junk = [said("get_state", 1), answer("get_state", 1), {"at_ms": 0, "from": "supervisor", "line": "junk"}]
    nameless = {"at_ms": 0, "from": "pi", "record": {"type": "response", "command": "parse", "success": False}}

    assert kinds(played([*junk, nameless, said("prompt", 2), answer("prompt", 2)])) == ["s:prompt", "p:prompt"]


def test_an_answer_comes_behind_its_command_in_the_same_instant() -> None:
    entries = played([said("prompt", 1, 5), event("agent_start", 7), answer("prompt", 1, 9)])

    assert kinds(entries) == ["s:prompt", "p:prompt", "p:agent_start"]
    assert [one["at_ms"] for one in entries] == [5, 5, 7]


def test_the_answer_to_an_abort_stays_behind_the_end_of_the_run() -> None:
    entries = played([said("abort", 1), event("agent_settled"), answer("abort", 1)])

    assert kinds(entries) == ["s:abort", "p:agent_settled", "p:abort"]


@pytest.mark.parametrize(("command", "how"), [("steer", "steer"), ("follow_up", "followUp")])
def test_steers_and_follow_ups_travel_as_prompts(command: str, how: str) -> None:
    [sent, came] = played([said(command, 1, message="S"), answer(command, 1)])

    assert sent["record"] == {"id": 1, "type": "prompt", "message": "S", "streamingBehavior": how}
    assert came["record"]["command"] == "prompt"


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_what_pi_said_of_its_own_accord_is_as_it_was(path: Any) -> None:
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    own = [one for one in entries if one["from"] == "pi" and one.get("record", {}).get("type") != "response"]
    found = played(entries)

    assert [one for one in found if one["from"] == "pi" and one.get("record", {}).get("type") != "response"] == own
    assert {one["record"]["type"] for one in found if one["from"] == "supervisor" and "record" in one} <= COMMANDS
