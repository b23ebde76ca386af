"""Live runs against a fake core that is a program of its own, behind its own hc."""

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from contracts.cli import main
from contracts.live.proof import OPTIONS, live_run
from contracts.live.separate import ROOT, served
from contracts.live.writing import profile_toml
from hc_sim.profile import WireProfile

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def core() -> Iterator[dict[str, str]]:
    with served() as env:
        yield env


class Client:
    """Another client of the same core, with terminals of its own."""

    def __init__(self, path: str) -> None:
        self._link = socket.socket(socket.AF_UNIX)
        self._link.settimeout(PATIENCE_S)
        self._link.connect(path)
        self._stream = self._link.makefile("rb")

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._link.close()

    def call(self, method: str, **params: Any) -> Any:
        self._link.sendall(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + b"\n")
        reply = msgspec.json.decode(self._stream.readline())
        return reply.get("result", reply.get("error"))

    def terminals(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("terminal.list", all=True)["terminals"]
        return found


def legion(core: dict[str, str], *words: str) -> Result:
    env = {**dict.fromkeys(("HC_SOCKET", "HC_TERMINAL_SOCKET", "HC_TERMINAL_ID", "HC_BIN")), **core}
    return CliRunner().invoke(main, list(words), env=env)


def started(core: dict[str, str], *words: str) -> "subprocess.Popen[bytes]":
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("HC_")}, **core, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "contracts", *words]
    return subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def own(client: Client) -> list[dict[str, Any]]:
    """Terminals of live runs that are in the core now."""
    return [one for one in client.terminals() if str(one["name"]).startswith(("lgv-", "lgl-"))]


def until(wanted: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while not wanted():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_a_whole_run_holds_differs_in_nothing_and_leaves_a_foreign_terminal_alone(
    core: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "found"
    with Client(core["HC_SOCKET"]) as client:
        foreign = client.call("terminal.run", argv=["/bin/cat"], name="foreign", labels={"legion.live": "not-a-mark"})
        finished = client.call("terminal.run", argv=["/bin/true"], name="lgv-lvabcdef-1x")
        until(lambda: client.call("terminal.get", terminal=finished["address"])["state"] == "finished")
        before = client.terminals()
        result = legion(core, "live", "--quick", "--require", "--documents", "--out", str(out), "--format", "json")
        after = client.terminals()
        for one in (foreign, finished):
            client.call("terminal.kill", terminal=one["address"])
            client.call("terminal.rm", terminal=one["address"])

    report = json.loads(result.stdout)
    assert result.exit_code == 0, result.output
    assert after == before
    assert (report["outcome"], report["differences"], report["left"]) == ("holds", [], [])
    assert {row["id"] for row in report["clauses"]} >= {"C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"} | {
        "A4", "D3", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11",
    }  # fmt: skip
    assert all(row["verdict"] == "pass" for row in report["clauses"])
    assert out.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in out.iterdir()} == dict.fromkeys(
        ("facts.json", "diff.txt", "profile.toml", "report.json"), 0o600
    )
    assert "do not differ" in (out / "diff.txt").read_text()
    assert msgspec.toml.decode((out / "profile.toml").read_bytes(), type=WireProfile) == WireProfile()
    facts = json.loads((out / "facts.json").read_text())
    assert {"terminal.run", "Terminal.turn", "terminal.get(terminal)", "NAME_TAKEN"} <= set(facts["confirmed"])


def test_a_recording_gives_the_same_report_offline(core: dict[str, str], tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    recorded = legion(core, "record", str(tape), "--quick")
    nobody = dict.fromkeys(core, "/nowhere")
    again = [legion(nobody, "live", "--cassette", str(tape), "--format", "json") for _ in range(2)]

    assert recorded.exit_code == 0, recorded.output
    assert [one.exit_code for one in again] == [0, 0], again[0].output
    reports = [json.loads(one.stdout) for one in again]
    assert [(one["outcome"], one["differences"], one["left"]) for one in reports] == [("holds", [], [])] * 2
    assert reports[0]["checks"] == reports[1]["checks"]
    assert "the contract holds" in recorded.output

    lines = [line for line in tape.read_text().splitlines() if "terminal.kill" not in line]
    lines[-1] = json.dumps({"lines": len(lines) - 2})
    tape.write_text("\n".join(lines) + "\n")
    broken = legion(nobody, "live", "--cassette", str(tape))
    assert broken.exit_code == 2
    assert "the cassette does not hold what is asked" in broken.output
    assert broken.output.count("\n") == 1


CHANGED = """
version = "9.9.9"
kind_style = "upper"
other_code = -32050
exit_code_key = "exit"
signal_key = "killed_by"
ended_key = "over"
timeout_key = "for_ms"
caller_key = "boss"
target_key = "at"
live_state = "alive"
wrap_terminal = true
no_status = "omit"
absent_keys = "null"
unknown_params = "ignore"
require_jsonrpc = false
batches = "accept"
positional = "refuse"
id_types = "standard"
sorted_keys = false
refuse_other_generation = false
address_style = "suffix"
reuse_addresses = true
finished_names_block = true
rm_live = "kill"
kill_finished = "accept"
get_removed = "last"
die_with_parent = false
first_turn = 4
blocked_to_working_counts = true
derive_done = true
read_sees = true
send_turn = true
send_blocked = "accept"
wait_no_status = "ends"
program_paste = "never"
program_watch_ms = 500
program_grace_ms = 250
program_status = "most-urgent"
doc_version = "string"
doc_first = 10
channel_step = 3
frame_newline = false
attach_facts = false
attach_replay = false
credit_first = "explicit"
close_words = false
hello_aliases = { core_id = ["coreId"] }
hello_extra = { build = "x" }
codes = { name_taken = 409 }
"""


TIMED = {"program_watch_ms", "program_grace_ms"}
"""Choices that are durations, and as exact as this machine is quick."""


def test_what_a_profile_changes_is_learned_from_outside(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(CHANGED)
    wanted = msgspec.toml.decode(CHANGED)
    with served(options=("--programs", "--profile", str(path))) as env:
        run = live_run(env, dataclasses.replace(OPTIONS, slow=True))

    learned = {name: one.value for name, one in run.sheet.learned.items() if one.learned}
    differs = {name: (value, learned.get(name)) for name, value in wanted.items() if learned.get(name) != value}
    assert differs.keys() <= TIMED
    assert all(one[1] is not None for one in differs.values())
    assert [one.name for one in run.found if one.name.startswith("vector.")] == ["vector.method-unknown"]
    named = {one.name for one in run.found}
    assert {name for name in wanted if f"profile.{name}" not in named} <= TIMED | {
        "hello_aliases", "codes", "kind_style", "other_code",
    }  # fmt: skip
    assert {"error.name_taken: code", "error.no_such_terminal: kind"} <= named
    assert run.left == []


STRICT = """
strict_hello = true
doc_create = false
signal_style = "exit-128"
signal_key = "sig"
credit_first = "explicit"
close_words = false
"""


def test_a_core_that_insists_on_hello_and_makes_no_documents_is_not_misread(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(STRICT)
    with served(options=("--programs", "--profile", str(path))) as env:
        run = live_run(env, dataclasses.replace(OPTIONS, slow=True))
    again = msgspec.toml.decode(profile_toml(run.sheet), type=WireProfile)

    names = ("strict_hello", "doc_create", "signal_style", "signal_key", "credit_first", "close_words")
    assert {one.name for one in run.found} == {f"profile.{name}" for name in names}
    assert (again.strict_hello, again.doc_create, again.signal_key, again.kinds) == (True, False, "sig", {})


def test_a_core_that_starts_no_programs_says_so_and_what_needs_them_is_skipped() -> None:
    with served(options=()) as env:
        result = legion(env, "live", "--quick", "--require", "--format", "json")

    report = json.loads(result.stdout)
    assert result.exit_code == 1, result.output
    assert "programs: not started" in [one["name"] for one in report["differences"]]
    assert {row["id"]: row["verdict"] for row in report["clauses"]}["D8"] == "skipped"
    assert "fail" not in {row["verdict"] for row in report["clauses"]}


def test_a_run_stops_at_the_first_must_that_fails_and_cleans_up(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text('caller_key = "line"\n')
    with served(options=("--programs", "--profile", str(path))) as env, Client(env["HC_SOCKET"]) as client:
        result = legion(env, "live")
        left = own(client)

    assert result.exit_code == 1, result.output
    assert "FAIL C3 run.parent" in result.output
    assert "stopped after start" in result.output
    assert left == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_ended_removes_what_it_started(core: dict[str, str], number: int, code: int) -> None:
    with Client(core["HC_SOCKET"]) as client, started(core, "live") as process:
        until(lambda: len(own(client)) > 2)
        process.send_signal(number)
        said = process.communicate(timeout=PATIENCE_S)

        assert process.returncode == code, said
        assert own(client) == []
        assert b"Traceback" not in said[1]


def test_what_a_killed_run_has_left_is_removed_by_the_next_one(core: dict[str, str]) -> None:
    with Client(core["HC_SOCKET"]) as client:
        with started(core, "live") as process:
            until(lambda: len(own(client)) > 2)
            process.kill()
        assert own(client)

        path = core["HC_SOCKET"]
        result = legion({"PATH": "/nonexistent", "HOME": "/nonexistent"}, "live", "--quick", "--socket", path)

        assert result.exit_code == 0, result.output
        assert f"(process {process.pid}) had left" in result.output
        assert own(client) == []


def test_what_a_killed_run_has_started_ends_by_itself(core: dict[str, str]) -> None:
    with Client(core["HC_SOCKET"]) as client, started(core, "live") as process:
        until(lambda: any(one["state"] == "running" and one["parent"] for one in own(client)))
        process.kill()
        until(lambda: all(one["state"] == "finished" for one in own(client)))
        for one in own(client):
            client.call("terminal.rm", terminal=one["address"])


def test_a_core_that_dies_in_the_middle_is_one_sentence() -> None:
    with served() as env, Client(env["HC_SOCKET"]) as client, started(env, "live") as process:
        until(lambda: len(own(client)) > 2)
        client.call("terminal.kill", terminal="nobody")
        os.kill(core_process(env), signal.SIGKILL)
        said = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 3, said
    assert said[1].decode().count("\n") == 1
    assert "the core" in said[1].decode()
    assert "may still be there" in said[1].decode()


def core_process(env: dict[str, str]) -> int:
    """The process that serves a core: the one that has its folder's socket open."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(env["HC_SOCKET"])
        return int.from_bytes(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)


def test_the_options_of_a_proof_leave_the_supervisor_out() -> None:
    assert not OPTIONS.supervisor
    assert OPTIONS.keep_going
