"""Every recorded exchange with the real program comes out of the scripted one again, up to ids, times and prompts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.agents.alike import alike
from contracts.agents.raw import RawPi
from hc_sim.programs import install_pi

RECORDINGS = Path(__file__).resolve().parents[2] / "contracts" / "recordings" / "rpc"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))
TOOL = {"command": "sleep 1; echo hi"}
SAID_OK = {"do": "answer", "words": ["tool ", "said ", "ok."]}
SLOW = {"do": "answer", "hangs": True}
LONG_TOOL = {"do": "tool", "args": {"command": "sleep 30"}, "ms": 30_000}
FAILED = {"message": '{code}: {{"message":"fake failure {code}","type":"fake"}}'}


def failed(code: int) -> str:
    return FAILED["message"].format(code=code)


SCRIPTS: dict[str, dict[str, Any]] = {
    "one-prompt": {"reply": [{"do": "answer", "words": ["Hello ", "from ", "fake."]}]},
    "steer": {"speed": 0.5, "reply": [{"do": "tool", "args": TOOL, "ms": 1000}]},
    "abort": {"reply": [{**SLOW, "words": ["w0 ", "w1 ", "w2 ", "w3 ", "w4 "]}]},
    "abort-tool": {"reply": [LONG_TOOL]},
    "clear-queue-abort": {"reply": [LONG_TOOL]},
    "extension-ui": {
        "speed": 0.1,
        "reply": [
            {
                "do": "tool",
                "args": TOOL,
                "ms": 1000,
                "ask": {"title": "Allow bash?", "message": '{"command":"sleep 1; echo hi"}'},
            },
            SAID_OK,
        ],
    },
    "http400": {"reply": [{"do": "error", "message": failed(400)}]},
    "http500-retry": {"speed": 0.0, "reply": [{"do": "error", "message": failed(500), "retry": True, "times": 0}]},
    "no-model": {"model": False},
    "null-crash": {},
    "sigterm-midturn": {"reply": [{**SLOW, "words": ["w0 ", "w1 ", "w2 ", "w3 "]}]},
}


def entries(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]


def short(value: Any) -> Any:
    """The value without the folder in which the real program was installed."""
    if isinstance(value, dict):
        return {name: short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [short(one) for one in value]
    return value.replace("/opt/pi/docs", "docs") if isinstance(value, str) else value


def batches(recorded: list[dict[str, Any]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """How many records came before the next words of the supervisor, and these words."""
    before, words = 0, list[dict[str, Any]]()
    for entry in recorded:
        if entry["from"] == "supervisor" and "ends" not in entry:
            words.append(entry)
            continue
        if words:
            yield before, words
            words = []
        before += "record" in entry
    if words:
        yield before, words


def replay_by_hand(pi: RawPi, recorded: list[dict[str, Any]]) -> int:
    """Say to the program what was said to the real one, each when as much had come; returns how it ended."""
    for before, words in batches(recorded):
        while len(pi.records) < before and pi.read(20):
            pass
        requests = [record["id"] for record in pi.records if record["type"] == "extension_ui_request"]
        data = b""
        for entry in words:
            record = dict(entry["record"]) if "record" in entry else None
            if record is not None and record["type"] == "extension_ui_response":
                record["id"] = requests[-1]
            data += (entry["line"] if record is None else json.dumps(record)).encode() + b"\n"
        pi.write(data)
    wanted = sum("record" in entry and entry["from"] == "pi" for entry in recorded)
    while len(pi.records) < wanted and pi.read(20):
        pass
    for entry in recorded:
        if entry.get("ends") == "EOF":
            pi.end_input()
        elif "ends" in entry:
            pi.signal(entry["ends"])
    return pi.wait()


def as_returncode(how: dict[str, Any]) -> int:
    return int(how["code"]) if "code" in how else -9


@pytest.mark.parametrize("name", NAMES)
def test_a_timeline_says_what_the_real_program_was_recorded_saying(name: str, tmp_path: Path) -> None:
    recorded = entries(name)
    program = install_pi(tmp_path / "bin", SCRIPTS[name])

    with RawPi([str(program), "--mode", "rpc"], cwd=tmp_path, env={"HOME": str(tmp_path)}) as pi:
        code = replay_by_hand(pi, recorded)

    said = [short(entry["record"]) for entry in recorded if entry["from"] == "pi" and "record" in entry]
    assert [alike(one) for one in pi.records] == [alike(one) for one in said]
    assert code == as_returncode(recorded[-1]["exit"])
    for entry in recorded:
        if "stderr" in entry and "/opt/" not in entry["stderr"]:
            assert entry["stderr"] in pi.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_played_as_it_stands(name: str, tmp_path: Path) -> None:
    recorded = entries(name)
    program = install_pi(tmp_path / "bin", {"speed": 0}, recording=RECORDINGS / f"{name}.jsonl")

    with RawPi([str(program), "--mode", "rpc"], cwd=tmp_path, env={"HOME": str(tmp_path)}) as pi:
        code = replay_by_hand(pi, recorded)

    assert pi.records == [entry["record"] for entry in recorded if entry["from"] == "pi" and "record" in entry]
    assert code == as_returncode(recorded[-1]["exit"])
    assert pi.stderr.splitlines() == [entry["stderr"] for entry in recorded if "stderr" in entry]


def test_a_replay_gives_the_callers_ids_back_and_refuses_what_was_not_recorded(tmp_path: Path) -> None:
    program = install_pi(tmp_path / "bin", {"speed": 0}, recording=RECORDINGS / "http400.jsonl")

    with RawPi([str(program), "--mode", "rpc"], cwd=tmp_path, env={"HOME": str(tmp_path)}) as pi:
        pi.send({"id": "no", "type": "abort"})
        refused = pi.answer("abort")
        pi.send({"id": {"any": 1}, "type": "prompt", "message": "other words"})
        started = pi.answer("prompt")
        pi.until("agent_settled")

    assert (refused["success"], "entry 1" in refused["error"]) == (False, True)
    assert started["id"] == {"any": 1}


def test_the_recordings_name_no_path_of_a_machine() -> None:
    for path in RECORDINGS.glob("*.jsonl"):
        text = path.read_text()
        assert "/home/user" in text or "sessionFile" not in text
        assert "node_modules" not in text


def test_a_command_that_comes_sooner_than_the_recorded_one_cuts_the_pauses_short(tmp_path: Path) -> None:
    program = install_pi(tmp_path / "bin", {"speed": 100.0}, recording=RECORDINGS / "abort-tool.jsonl")
    with RawPi([str(program), "--mode", "rpc"], cwd=tmp_path, env={"HOME": str(tmp_path)}) as pi:
        pi.send({"id": "p", "type": "prompt", "message": "go"}, {"id": "a", "type": "abort"})
        pi.answer("prompt", 5)
        assert pi.until("tool_execution_start")
