"""The session file of the scripted pi: when it is there, what stands in it, how it is gone on with."""

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.agents.raw import RawPi
from hc_sim.programs import install_pi
from legion_terminal.transcript import read_transcript

RECORDED = Path(__file__).resolve().parents[2] / "contracts" / "recordings"
KINDS = ["session", "model_change", "thinking_level_change"]


def pi_in(tmp_path: Path, *args: str, script: dict[str, Any] | None = None, cwd: Path | None = None) -> RawPi:
    program = install_pi(tmp_path / "bin", script)
    return RawPi([str(program), "--mode", "rpc", *args], cwd=cwd or tmp_path, env={"HOME": str(tmp_path / "home")})


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def turn(pi: RawPi, text: str = "hello") -> None:
    pi.send({"id": "p", "type": "prompt", "message": text})
    pi.until("agent_settled")


def state(pi: RawPi) -> dict[str, Any]:
    pi.send({"id": "s", "type": "get_state"})
    data: dict[str, Any] = pi.answer("get_state")["data"]
    return data


def test_a_file_made_beforehand_is_begun_at_once_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.touch(mode=0o600)
    with pi_in(tmp_path, "--session", str(path)) as pi:
        found = state(pi)
        begun = [one["type"] for one in entries(path)]
        turn(pi)

    assert (found["sessionFile"], begun) == (str(path), KINDS)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one["message"]["role"] for one in entries(path)[3:]] == ["system", "user", "assistant"]


def test_a_file_that_is_not_there_appears_with_the_first_prompt(tmp_path: Path) -> None:
    path = tmp_path / "new" / "s.jsonl"
    with pi_in(tmp_path, "--session", str(path)) as pi:
        state(pi)
        before = path.exists()
        turn(pi)

    assert (before, path.stat().st_mode & 0o777) == (False, 0o644)


def test_a_file_made_between_start_and_prompt_ends_the_run_in_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with pi_in(tmp_path, "--session", str(path)) as pi:
        state(pi)
        path.touch()
        turn(pi)
        ended = [one["message"]["stopReason"] for one in pi.records if one["type"] == "turn_end"]

    assert (ended, pi.records[-1], path.read_text()) == (["error"], {"type": "agent_settled", "aborted": False}, "")


def test_without_an_option_it_has_a_place_of_its_own_and_with_no_session_none(tmp_path: Path) -> None:
    with pi_in(tmp_path) as pi:
        place = Path(state(pi)["sessionFile"])
        turn(pi)
    with pi_in(tmp_path, "--no-session") as other:
        turn(other)
        nowhere = state(other)

    assert place.is_relative_to(tmp_path / "home" / ".pi" / "agent" / "sessions")
    assert place.exists()
    assert "sessionFile" not in nowhere


def test_every_entry_names_the_one_before_it_as_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with pi_in(tmp_path, "--session", str(path), script={"reply": [{"do": "tool"}]}) as pi:
        turn(pi)

    chain = entries(path)[1:]
    assert [one["parentId"] for one in chain] == [None, *(one["id"] for one in chain[:-1])]
    assert len({one["id"] for one in chain}) == len(chain)


@pytest.mark.parametrize("name", ["session-two-prompts-with-tool", "session-precreated-one-turn"])
def test_the_entries_have_the_members_that_the_real_ones_have(name: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    args = {"command": "sleep 1; echo hi"}
    tool = [{"do": "answer"}, {"do": "tool", "args": args}, {"do": "answer", "text": "tool said ok."}]
    with pi_in(tmp_path, "--session", str(path), script={"reply": tool}) as pi:
        turn(pi)
        turn(pi) if "two" in name else None

    real = entries(RECORDED / f"{name}.jsonl")
    assert [members(one) for one in entries(path)] == [members(one) for one in real]


def test_a_retry_takes_the_failed_answer_back(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    failing = {"do": "error", "message": "500: no", "retry": True, "retry_ms": 0}
    with pi_in(tmp_path, "--session", str(path), script={"reply": [failing]}) as pi:
        turn(pi)
        pi.send({"type": "get_messages"})
        left = pi.answer("get_messages")["data"]["messages"]

    kinds = [one["type"] for one in entries(path)[-3:]]
    assert kinds == ["message", "context_edit", "message"]
    assert [one["role"] for one in left] == ["system", "user", "assistant"]
    assert read_transcript(str(path)).last_turn_output == "Hello from fake."


def test_a_session_is_gone_on_with_even_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with pi_in(tmp_path, "--session", str(path)) as pi:
        turn(pi)
        first = state(pi)["sessionId"]
    with path.open("a") as file:
        file.write('{"type":"message","id":"torn')

    with pi_in(tmp_path, "--session", str(path)) as pi:
        turn(pi, "again")
        second = state(pi)

    lines = path.read_text().splitlines()
    assert (second["sessionId"], second["messageCount"]) == (first, 5)
    assert lines[6] == '{"type":"message","id":"torn'
    assert json.loads(lines[7])["message"]["role"] == "user"
    assert json.loads(lines[7])["parentId"] == json.loads(lines[5])["id"]


@pytest.mark.parametrize("content", ["rubbish\n", "\n"])
def test_a_file_that_is_no_session_is_left_alone(content: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(content)
    with pi_in(tmp_path, "--session", str(path)) as pi:
        code = pi.wait()

    assert (code, path.read_text()) == (1, content)
    assert "no session" in pi.stderr


def test_a_folder_and_a_session_whose_folder_is_gone_are_refused(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    path = tmp_path / "s.jsonl"
    with pi_in(tmp_path, "--session", str(path), cwd=there) as pi:
        turn(pi)
    there.rmdir()
    with pi_in(tmp_path, "--session", str(path)) as pi:
        gone = pi.wait()
    with pi_in(tmp_path, "--session", str(tmp_path)) as other:
        folder = other.wait()

    assert (gone, folder) == (1, 1)
    assert "is gone" in pi.stderr
    assert "is a folder" in other.stderr


def members(value: Any) -> Any:
    """The names of a record's members, all the way down; the lists of content by their kinds."""
    if isinstance(value, dict):
        return {name: members(one) for name, one in value.items() if name not in ("toolsAdded", "arguments")}
    if isinstance(value, list):
        return [members(one) for one in value]
    return type(value).__name__ if not isinstance(value, (int, float)) else "number"
