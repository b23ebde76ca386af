"""How the scripted pi ends: told to, by itself, not at all; and what it leaves behind. Real processes and signals."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.agents.raw import RawPi, TooLate
from hc_sim.faults import ChildExit
from hc_sim.programs import install_pi

WAIT_S = 20
HANGS = {"reply": [{"do": "answer", "words": ["w0 "], "hangs": True}]}
ASKS = {"reply": [{"do": "tool", "ask": {"method": "confirm", "title": "Allow?"}}]}
Start = Callable[..., RawPi]


@pytest.fixture
def start(tmp_path: Path) -> Any:
    pis: list[RawPi] = []

    def begin(script: dict[str, Any] | None = None, *args: str, exits: tuple[ChildExit, ...] = ()) -> RawPi:
        program = install_pi(tmp_path / "bin", script, exits=exits)
        pi = RawPi([str(program), "--mode", "rpc", *args], cwd=tmp_path, env={"HOME": str(tmp_path)})
        pis.append(pi)
        return pi

    yield begin
    for pi in pis:
        pi.__exit__(None, None, None)


def prompted(pi: RawPi, text: str = "go") -> RawPi:
    pi.send({"id": "p", "type": "prompt", "message": text})
    return pi


def streaming(pi: RawPi) -> RawPi:
    prompted(pi).until("message_update")
    return pi


def gone(pid: int) -> bool:
    for _ in range(400):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def last_entry(path: Path) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(path.read_text().splitlines()[-1])
    return entry


def awake(pi: RawPi) -> RawPi:
    pi.send({"id": 0, "type": "get_state"})
    pi.answer("get_state")
    return pi


@pytest.mark.parametrize(
    ("how", "code"), [("EOF", 0), ("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", -2), ("SIGKILL", -9)]
)
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "mid-stream"])
def test_it_ends_as_the_real_one_was_measured_to(how: str, code: int, busy: bool, start: Start) -> None:
    pi = streaming(start(HANGS)) if busy else awake(start())
    seen = len(pi.records)
    pi.until("message_update") if busy else None

    pi.end_input() if how == "EOF" else pi.signal(how)

    assert pi.wait() == code
    assert not [one for one in pi.records[seen + 1 :] if one["type"] in ("agent_end", "agent_settled", "message_end")]


@pytest.mark.parametrize("how", ["EOF", "SIGTERM", "SIGHUP"])
def test_being_told_to_stop_in_a_stream_leaves_an_aborted_answer_in_the_file(
    how: str, start: Start, tmp_path: Path
) -> None:
    session = tmp_path / "s.jsonl"
    pi = streaming(start(HANGS, "--session", str(session)))

    pi.end_input() if how == "EOF" else pi.signal(how)
    pi.wait()

    message = last_entry(session)["message"]
    assert (message["stopReason"], message["content"][0]["text"]) == ("aborted", "w0 ")


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_signal_that_is_not_handled_leaves_the_users_words_last(how: str, start: Start, tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    pi = streaming(start(HANGS, "--session", str(session)))

    pi.signal(how)
    pi.wait()

    assert last_entry(session)["message"]["role"] == "user"


def test_a_term_during_the_boot_ends_it_by_signal(start: Start) -> None:
    pi = start({"boot_ms": 60_000, "stderr": "up\n"})
    while "up" not in pi.stderr:
        time.sleep(0.01)

    pi.signal("SIGTERM")

    assert pi.wait() == -15


def test_usr1_does_not_end_it(start: Start) -> None:
    pi = awake(start())

    pi.signal("SIGUSR1")

    assert awake(pi).ended() is None


def test_a_run_whose_input_ends_at_once_is_dropped(start: Start) -> None:
    pi = prompted(start(HANGS))
    pi.end_input()

    assert pi.wait() == 0
    assert "agent_settled" not in [one["type"] for one in pi.records]


@pytest.mark.parametrize("how", ["EOF", "SIGTERM"])
def test_a_full_stdout_holds_the_end_of_input_back_and_not_a_signal(how: str, start: Start) -> None:
    pi = prompted(start({"reply": [{"do": "answer", "words": ["x" * 1000] * 300}]}))
    pi.until("response")
    pi.end_input()
    time.sleep(0.3)
    held = pi.ended()
    if how == "SIGTERM":
        pi.signal(how)
        while pi.ended() is None:
            time.sleep(0.01)

    assert held is None
    assert pi.wait() == (0 if how == "EOF" else 143)
    assert ("agent_settled" in [one["type"] for one in pi.records]) is (how == "EOF")


def test_a_closed_stdin_is_an_end_of_input(tmp_path: Path) -> None:
    program = install_pi(tmp_path / "bin")

    pid = os.posix_spawn(
        program,
        [str(program), "--mode", "rpc", "--no-session"],
        {"HOME": str(tmp_path)},
        file_actions=[(os.POSIX_SPAWN_CLOSE, 0)],
    )

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_nobody_reading_stdout_ends_it_with_code_1_when_it_speaks(tmp_path: Path) -> None:
    program = install_pi(tmp_path / "bin")
    ours, theirs = os.pipe()
    line = b'{"type":"get_state"}\n'
    in_read, in_write = os.pipe()
    pid = os.posix_spawn(
        program,
        [str(program), "--mode", "rpc", "--no-session"],
        {"HOME": str(tmp_path)},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, in_read, 0),
            (os.POSIX_SPAWN_DUP2, theirs, 1),
            *((os.POSIX_SPAWN_CLOSE, fd) for fd in (ours, theirs, in_read, in_write)),
        ],
    )
    for fd in (ours, theirs, in_read):
        os.close(fd)
    os.write(in_write, line)

    _, status = os.waitpid(pid, 0)

    os.close(in_write)
    assert os.waitstatus_to_exitcode(status) == 1


class TestDialog:
    def asking(self, start: Start, *args: str) -> RawPi:
        pi = prompted(start(ASKS, *args))
        pi.until("extension_ui_request")
        return pi

    def test_a_first_term_is_not_obeyed_while_one_is_open_and_a_second_is(self, start: Start) -> None:
        pi = self.asking(start)
        pi.signal("SIGTERM")
        awake(pi)
        assert pi.ended() is None

        pi.signal("SIGTERM")

        assert pi.wait() == 143

    def test_answering_it_lets_the_term_be_obeyed(self, start: Start) -> None:
        pi = self.asking(start)
        pi.signal("SIGTERM")
        request = next(one for one in pi.records if one["type"] == "extension_ui_request")
        awake(pi)

        pi.send({"type": "extension_ui_response", "id": request["id"], "cancelled": True})

        assert pi.wait() == 143

    @pytest.mark.parametrize(("how", "code"), [("EOF", 0), ("SIGHUP", 129)])
    def test_the_end_of_stdin_and_hup_are_obeyed_and_leave_the_tool_call_last(
        self, how: str, code: int, start: Start, tmp_path: Path
    ) -> None:
        session = tmp_path / "s.jsonl"
        pi = self.asking(start, "--session", str(session))

        pi.end_input() if how == "EOF" else pi.signal(how)

        assert pi.wait() == code
        assert last_entry(session)["message"]["stopReason"] == "toolUse"


class TestToolProcess:
    def working(self, start: Start, tmp_path: Path) -> tuple[RawPi, int]:
        pid_file = tmp_path / "tool.pid"
        tool = {"do": "tool", "ms": 60_000, "process": True, "pid_file": str(pid_file)}
        pi = prompted(start({"reply": [tool]}))
        pi.until("tool_execution_update")
        while not pid_file.exists():
            time.sleep(0.01)
        return pi, int(pid_file.read_text())

    @pytest.mark.parametrize("how", ["EOF", "SIGTERM", "SIGHUP", "abort"])
    def test_it_goes_with_the_program_or_the_abort(self, how: str, start: Start, tmp_path: Path) -> None:
        pi, tool = self.working(start, tmp_path)

        if how == "EOF":
            pi.end_input()
        elif how == "abort":
            pi.send({"type": "abort"})
            pi.until("agent_settled")
        else:
            pi.signal(how)

        assert gone(tool)

    def test_a_kill_leaves_it_running_in_a_group_of_its_own(self, start: Start, tmp_path: Path) -> None:
        pi, tool = self.working(start, tmp_path)

        os.killpg(pi.pid, signal.SIGKILL)
        code = pi.wait()
        os.kill(tool, 0)
        os.kill(tool, signal.SIGKILL)

        assert code == -9


class TestActs:
    @pytest.mark.parametrize("end", [{"code": 0}, {"code": 3}, {"signal": "SIGKILL"}, {"signal": "SIGSEGV"}])
    @pytest.mark.parametrize(
        ("at", "nth", "said"),
        [
            ("start", 1, []),
            ("request:prompt", 1, []),
            ("response:prompt", 1, ["response"]),
            ("agent_start", 1, ["response", "agent_start"]),
            ("message_update", 2, "message_update"),
            ("agent_settled", 1, "agent_settled"),
        ],
    )
    def test_it_ends_by_itself_at_a_moment_and_says_no_more(
        self, end: dict[str, Any], at: str, nth: int, said: list[str] | str, start: Start
    ) -> None:
        pi = prompted(start({"act": [{"at": at, "nth": nth, "do": "exit", **end}]}))

        code = pi.wait()

        kinds = [one["type"] for one in pi.records]
        assert code == (end["code"] if "code" in end else -getattr(signal, end["signal"]))
        assert kinds == said if isinstance(said, list) else (kinds[-1], kinds.count(said)) == (said, nth)

    def test_what_was_said_before_the_end_arrives_whole_however_much_it_is(self, start: Start) -> None:
        words = ["x" * 1000 + " "] * 300
        pi = prompted(
            start(
                {"reply": [{"do": "answer", "words": words}], "act": [{"at": "agent_settled", "do": "exit", "code": 0}]}
            )
        )

        assert pi.wait() == 0
        assert pi.records[-1]["type"] == "agent_settled"
        assert sum(len(json.dumps(one)) for one in pi.records) > 300_000

    @pytest.mark.parametrize("noise", [False, True])
    def test_a_grandchild_holds_the_pipe_after_the_end(self, noise: bool, start: Start) -> None:
        act = {"at": "agent_start", "do": "exit", "code": 1, "holds_pipe_ms": 60_000, "noise": noise}
        pi = prompted(start({"act": [act]}))
        pi.until("agent_start")
        if noise:
            pi.until("noise")
        for _ in range(1000):
            if pi.ended() is not None:
                break
            time.sleep(0.01)

        assert pi.ended() == 1
        assert pi.read(0.05) is noise or noise

    def test_it_can_let_go_of_stdin_and_live_on(self, start: Start) -> None:
        pi = prompted(start({"act": [{"at": "agent_settled", "do": "close", "stream": "stdin"}]}))
        pi.until("agent_settled")

        pi.send({"type": "get_state"})
        with pytest.raises(TooLate):
            pi.answer("get_state", 0.3)
        assert pi.ended() is None

    def test_it_can_let_go_of_stdout_and_live_on(self, start: Start) -> None:
        pi = prompted(start({"act": [{"at": "agent_start", "do": "close", "stream": "stdout"}]}))

        while pi.read(WAIT_S):
            pass

        assert [one["type"] for one in pi.records] == ["response", "agent_start"]
        assert pi.ended() is None

    def test_a_flood_on_stderr_arrives(self, start: Start) -> None:
        pi = start({"stderr": "hello\n", "stderr_bytes": 300_000})
        awake(pi)

        assert (pi.stderr[:6], len(pi.stderr)) == ("hello\n", 300_006)

    def test_it_can_stop_reading_and_stop_writing(self, start: Start) -> None:
        for kind in ("stop_reading", "stop_writing"):
            pi = prompted(start({"act": [{"at": "agent_settled", "do": kind}]}))
            pi.until("agent_settled")
            pi.send({"type": "get_state"})
            with pytest.raises(TooLate):
                pi.answer("get_state", 0.3)
            pi.signal("SIGTERM")
            assert pi.wait() == 143


class TestStop:
    def test_it_can_ignore_being_told_and_only_a_kill_ends_it(self, start: Start) -> None:
        pi = awake(start({"stop": {"ignores": ["SIGTERM", "SIGHUP", "SIGINT", "EOF"]}}))
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            pi.signal(name)
        awake(pi)
        pi.end_input()
        time.sleep(0.1)
        assert pi.ended() is None

        pi.signal("SIGKILL")

        assert pi.wait() == -9

    @pytest.mark.parametrize(
        ("rules", "code"),
        [({"code": 0}, 0), ({"code": 130}, 130), ({"signal": "SIGTERM"}, -15), ({"code": 1, "after_ms": 100}, 1)],
    )
    def test_how_it_ends_when_told_can_be_chosen(self, rules: dict[str, Any], code: int, start: Start) -> None:
        pi = awake(start({"stop": rules}))

        pi.signal("SIGTERM")

        assert pi.wait() == code


@pytest.mark.parametrize(
    ("plan", "kinds", "code"),
    [
        (ChildExit(code=0, after="start"), [], 0),
        (ChildExit(code=1, after="request"), [], 1),
        (ChildExit(code=2, after="reply"), ["response"], 2),
        (ChildExit(signal="SIGKILL", after="event"), ["response", "agent_settled"], -9),
        (ChildExit(code=0, after="event", order="event-first"), ["agent_settled", "response"], 0),
        (ChildExit(code=0, after="event", order="event-only"), ["agent_settled"], 0),
    ],
)
def test_the_entries_of_a_fault_plan_mean_what_they_mean_elsewhere(
    plan: ChildExit, kinds: list[str], code: int, start: Start
) -> None:
    pi = prompted(start(exits=(plan,)))

    assert pi.wait() == code
    assert [one["type"] for one in pi.records if one["type"] in ("response", "agent_settled")] == kinds


def test_a_retiring_entry_of_a_fault_plan_is_how_it_ends_when_told(start: Start) -> None:
    pi = awake(start(exits=(ChildExit(retiring=True, code=5, ignores=["SIGHUP"]),)))
    pi.signal("SIGHUP")
    awake(pi)

    pi.signal("SIGTERM")

    assert pi.wait() == 5


def test_the_last_words_can_come_after_the_exit(start: Start) -> None:
    pi = prompted(start({"act": [{"at": "agent_settled", "do": "exit", "code": 3, "late_ms": 300}]}))

    while pi.ended() is None:
        time.sleep(0.005)
    pi.read(0)
    assert (pi.ended(), pi.records) == (3, [])
    pi.until("agent_settled")


def test_words_at_its_start_leave_before_it_does(start: Start) -> None:
    acts = [{"at": "start", "do": "raw", "text": '{"type":"hello"}\n'}, {"at": "start", "do": "exit", "code": 4}]
    pi = start({"act": acts})

    pi.until("hello")
    assert pi.wait() == 4


def test_what_it_ignores_is_in_its_log_all_the_same(start: Start, tmp_path: Path) -> None:
    pi = awake(start({"log": "log.jsonl", "stop": {"ignores": ["SIGTERM"]}}))
    pi.signal("SIGTERM")
    awake(pi)
    pi.signal("SIGKILL")
    pi.wait()

    entries = [json.loads(line) for line in (tmp_path / "bin" / "log.jsonl").read_text().splitlines()]
    assert [one["how"] for one in entries if one["what"] == "told"] == ["SIGTERM"]
    assert {one["pid"] for one in entries} == {pi.pid}
