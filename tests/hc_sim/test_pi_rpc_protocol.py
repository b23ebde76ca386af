"""What the scripted pi answers and says: queues, aborts, dialogs, retries, wrong input, and the script's own twists."""

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.agents.raw import RawPi
from hc_sim.programs import install_pi

LONG = {"reply": [{"do": "tool", "ms": 60_000}]}
DELAYED = {"reply": [{"do": "answer", "delay_ms": 60_000}]}


@pytest.fixture
def start(tmp_path: Path) -> Any:
    pis: list[RawPi] = []

    def begin(script: dict[str, Any] | None = None, *args: str, env: dict[str, str] | None = None) -> RawPi:
        program = install_pi(tmp_path / "bin", script)
        argv = [str(program), "--mode", "rpc", "--no-session", *args]
        pis.append(RawPi(argv, cwd=tmp_path, env={"HOME": str(tmp_path), **(env or {})}))
        return pis[-1]

    yield begin
    for pi in pis:
        pi.__exit__(None, None, None)


def prompt(pi: RawPi, text: str = "go", **more: Any) -> None:
    pi.send({"id": "p", "type": "prompt", "message": text, **more})


def kinds(pi: RawPi) -> list[str]:
    return [one["type"] for one in pi.records]


def said_by_user(pi: RawPi) -> list[str]:
    ended = [one["message"] for one in pi.records if one["type"] == "message_end"]
    return [one["content"][0]["text"] for one in ended if one["role"] == "user"]


def texts(pi: RawPi) -> list[str]:
    ended = [one["message"] for one in pi.records if one["type"] == "message_end"]
    return ["".join(part.get("text", "") for part in one["content"]) for one in ended if one["role"] == "assistant"]


@pytest.mark.parametrize("given", ["a", 7, 1.5, None, True, {"a": [1]}, ["x"]])
def test_an_id_of_any_type_comes_back(given: Any, start: Any) -> None:
    pi = start()
    pi.send({"id": given, "type": "get_state"})

    assert pi.answer("get_state")["id"] == given


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"5", "Unknown command: undefined"),
        (b'"x"', "Unknown command: undefined"),
        (b"{}", "Unknown command: undefined"),
        (b"[1,2]", "Unknown command: undefined"),
        (b'{"type":"frobnicate"}', "Unknown command: frobnicate"),
        (b'{"type":"prompt"}', "Cannot read properties of undefined (reading 'startsWith')"),
        (b'{"type":"prompt","message":5}', "text.startsWith is not a function"),
        (b'{"type":"steer"}', "Cannot read properties of undefined (reading 'startsWith')"),
        (b"", "Failed to parse command: Unexpected end of JSON input"),
        (b"nul", "Failed to parse command: Unexpected end of JSON input"),
        (b"\xff\xfe", "Failed to parse command"),
        (b'{"type":"compact"}', "this scripted pi does not fake the command compact"),
    ],
)
def test_wrong_input_is_answered_and_it_lives_on(line: bytes, error: str, start: Any) -> None:
    pi = start()
    pi.write(line + b"\n")
    answer = pi.until("response")
    pi.send({"id": 1, "type": "get_state"})

    assert (answer["success"], answer["error"].startswith(error), "id" in answer) == (False, True, False)
    assert pi.answer("get_state")["success"] is True


def test_lines_may_come_in_pieces_end_in_crlf_hold_separators_and_be_long(start: Any) -> None:
    pi = start()
    text = "\u2028" + "x" * 1_000_000
    pi.write(b'{"id":1,"type":"prom')
    pi.write(b'pt","message":"' + text.encode() + b'"}\r\n')
    pi.until("agent_settled")

    assert said_by_user(pi) == [text]


class TestQueues:
    def test_steering_and_follow_ups_are_taken_in_one_run_a_steer_first(self, start: Any) -> None:
        pi = start({"reply": [{"do": "tool", "ms": 200}, {"do": "answer", "text": "one"}]})
        prompt(pi)
        pi.until("tool_execution_update")
        pi.send(
            {"id": 1, "type": "follow_up", "message": "later"},
            {"id": 2, "type": "prompt", "message": "now", "streamingBehavior": "steer"},
        )
        pi.until("agent_settled")

        assert said_by_user(pi) == ["go", "now", "later"]
        assert texts(pi) == ["", "one", "Hello from fake."]
        assert (kinds(pi).count("agent_end"), kinds(pi).count("agent_settled")) == (1, 1)

    def test_one_at_a_time_is_a_setting(self, start: Any) -> None:
        for mode, turns in (("one-at-a-time", 3), ("all", 2)):
            pi = start({"reply": [{"do": "tool", "ms": 200}]})
            pi.send({"type": "set_steering_mode", "mode": mode})
            prompt(pi)
            pi.until("tool_execution_update")
            pi.send({"type": "steer", "message": "a"}, {"type": "steer", "message": "b"})
            pi.until("agent_settled")

            assert (said_by_user(pi), kinds(pi).count("turn_end")) == (["go", "a", "b"], turns)

    def test_steering_while_idle_is_parked_until_the_next_prompt(self, start: Any) -> None:
        pi = start()
        pi.send({"id": 1, "type": "steer", "message": "parked"}, {"id": 2, "type": "get_state"})
        parked = pi.answer("get_state")["data"]
        prompt(pi)
        pi.until("agent_settled")

        assert (parked["pendingMessageCount"], parked["isStreaming"]) == (1, False)
        assert said_by_user(pi) == ["go", "parked"]
        assert kinds(pi).count("turn_start") == 1

    def test_an_abort_burns_what_is_queued_unless_it_was_cleared(self, start: Any) -> None:
        for clear in (True, False):
            pi = start(LONG)
            prompt(pi)
            pi.until("tool_execution_update")
            pi.send({"type": "steer", "message": "queued"})
            pi.answer("steer")
            pi.send(*([{"type": "clear_queue"}] if clear else []), {"id": "ab", "type": "abort"})
            pi.answer("abort")

            assert said_by_user(pi) == (["go"] if clear else ["go", "queued"])
            assert kinds(pi)[-2:] == ["agent_settled", "response"]

    def test_a_follow_up_outlives_an_abort_parked(self, start: Any) -> None:
        pi = start({"reply": [{"do": "answer", "words": ["w "], "hangs": True}]})
        prompt(pi)
        pi.until("message_update")
        pi.send({"type": "follow_up", "message": "later"}, {"type": "abort"}, {"type": "get_state"})

        assert pi.answer("get_state")["data"]["pendingMessageCount"] == 1


class TestAborts:
    def test_before_the_first_word_there_is_an_empty_aborted_answer(self, start: Any) -> None:
        for script in ({"reply": [{"do": "hang"}]}, DELAYED, {"reply": [{"do": "pause", "ms": 60_000}]}):
            pi = start(script)
            prompt(pi)
            pi.send({"type": "abort"})
            settled = pi.until("agent_settled")

            last = next(one["message"] for one in reversed(pi.records) if one["type"] == "message_end")
            assert (settled["aborted"], last["stopReason"], last["content"]) == (True, "aborted", [])

    def test_two_are_both_answered_and_settle_once_and_an_idle_one_says_nothing(self, start: Any) -> None:
        pi = start(LONG)
        prompt(pi)
        pi.until("tool_execution_update")
        pi.send({"id": 1, "type": "abort"}, {"id": 2, "type": "abort"})
        pi.answer("abort")
        pi.answer("abort")

        assert kinds(pi).count("agent_settled") == 1

    def test_while_a_dialog_is_open_it_waits_for_the_answer(self, start: Any) -> None:
        pi = start({"reply": [{"do": "tool", "ask": {"title": "May I?"}}]})
        prompt(pi)
        request = pi.until("extension_ui_request")
        pi.send({"id": 2, "type": "abort"}, {"id": 3, "type": "get_state"})
        pi.answer("get_state")
        unanswered = "agent_settled" not in kinds(pi)
        pi.send({"type": "extension_ui_response", "id": request["id"], "cancelled": True})
        settled = pi.until("agent_settled")
        answer = pi.answer("abort")

        assert (unanswered, settled["aborted"], answer["id"]) == (True, True, 2)

    @pytest.mark.parametrize(("command", "aborted"), [("abort", True), ("abort_retry", False)])
    def test_in_the_wait_for_a_retry_it_cancels_the_retry(self, command: str, aborted: bool, start: Any) -> None:
        pi = start({"reply": [{"do": "error", "message": "500: no", "retry": True, "retry_ms": 60_000}]})
        prompt(pi)
        pi.until("entry_appended")
        pi.send({"id": 1, "type": command})
        over = pi.until("auto_retry_end")

        assert (over["success"], over["finalError"]) == (False, "Retry cancelled")
        assert pi.until("agent_settled")["aborted"] is aborted


class TestDialogs:
    @pytest.mark.parametrize(
        ("ask", "answer", "runs"),
        [
            ({"method": "confirm"}, {"confirmed": True}, True),
            ({"method": "confirm"}, {"confirmed": False}, False),
            ({"method": "select", "options": ["yes", "no"]}, {"value": "yes"}, True),
            ({"method": "select", "options": ["yes", "no"]}, {"value": "no"}, False),
            ({"method": "input", "placeholder": "name"}, {"value": "x"}, True),
            ({"method": "editor", "prefill": "text"}, {"cancelled": True}, False),
        ],
    )
    def test_a_tool_runs_only_with_leave(
        self, ask: dict[str, Any], answer: dict[str, Any], runs: bool, start: Any
    ) -> None:
        pi = start({"reply": [{"do": "tool", "ask": ask}]})
        prompt(pi)
        request = pi.until("extension_ui_request")
        pi.send({"type": "extension_ui_response", "id": "somebody else's", **answer})
        pi.send({"type": "extension_ui_response", "id": request["id"], **answer})
        end = pi.until("tool_execution_end")

        assert request.items() >= ask.items()
        assert end["isError"] is not runs
        assert pi.until("agent_settled")["aborted"] is False

    def test_one_with_a_time_limit_closes_itself_and_a_late_answer_is_nobodys(self, start: Any) -> None:
        pi = start({"reply": [{"do": "tool", "ask": {"timeout_ms": 30}}]})
        prompt(pi)
        request = pi.until("extension_ui_request")
        end = pi.until("tool_execution_end")
        pi.send({"type": "extension_ui_response", "id": request["id"], "confirmed": True})

        assert (request["timeout"], end["isError"]) == (30, True)
        assert pi.until("agent_settled")["aborted"] is False

    def test_a_note_needs_no_answer(self, start: Any) -> None:
        pi = start({"reply": [{"do": "dialog", "method": "notify", "message": "hello"}]})
        prompt(pi)

        assert pi.until("extension_ui_request")["message"] == "hello"
        assert pi.until("agent_settled")["aborted"] is False


class TestRetries:
    def test_a_retry_that_helps_says_so(self, start: Any) -> None:
        pi = start({"reply": [{"do": "error", "message": "500: no", "retry": True, "retry_ms": 0, "times": 2}]})
        prompt(pi)
        pi.until("agent_settled")

        ends = [one["willRetry"] for one in pi.records if one["type"] == "agent_end"]
        over = next(one for one in pi.records if one["type"] == "auto_retry_end")
        assert (ends, over["success"], over["attempt"]) == ([True, True, False], True, 2)

    def test_they_can_be_switched_off(self, start: Any) -> None:
        pi = start({"reply": [{"do": "error", "message": "500: no", "retry": True}]})
        pi.send({"type": "set_auto_retry", "enabled": False})
        prompt(pi)
        pi.until("agent_settled")

        assert "auto_retry_start" not in kinds(pi)


class TestTwists:
    def test_an_answer_can_be_lost_changed_doubled_or_come_after_the_end(self, start: Any) -> None:
        changes: list[tuple[dict[str, Any], list[Any]]] = [
            ({"drop": True}, []),
            ({"set": {"id": None, "success": False}}, [(None, False)]),
            ({"copies": 2}, [("p", True), ("p", True)]),
            ({"hold_until": "agent_settled"}, [("p", True)]),
            ({"delay_ms": 50}, [("p", True)]),
        ]
        for change, wanted in changes:
            pi = start({"twist": [{"at": "response:prompt", **change}], "reply": [{"do": "answer", "delay_ms": 100}]})
            prompt(pi)
            pi.until("agent_settled")
            pi.end_input()
            pi.wait()

            answers = [(one.get("id"), one["success"]) for one in pi.records if one["type"] == "response"]
            assert answers == wanted
            if "hold_until" in change:
                assert kinds(pi)[-2:] == ["agent_settled", "response"]

    def test_a_record_can_come_in_pieces_and_stays_whole(self, start: Any) -> None:
        pi = start({"twist": [{"at": "agent_settled", "chunk_bytes": 1, "chunk_ms": 1}]})
        prompt(pi)

        assert pi.until("agent_settled") == {"type": "agent_settled", "aborted": False}

    def test_noise_and_foreign_records_come_where_the_script_has_them(self, start: Any) -> None:
        pi = start(
            {
                "reply": [
                    {"do": "raw", "text": "not json\n"},
                    {"do": "raw", "hex": "ff0a"},
                    {"do": "say", "records": [{"type": "compaction_start"}]},
                    {"do": "stderr", "text": "oops\n", "bytes": 10},
                ],
                "act": [{"at": "start", "do": "raw", "text": "banner\n"}],
            }
        )
        prompt(pi)
        pi.until("compaction_start")
        pi.until("agent_settled")

        assert pi.noise == [b"banner", b"not json", b"\xff"]
        assert (pi.stderr[:5], len(pi.stderr)) == ("oops\n", 15)


class TestKnobs:
    def test_a_prompt_can_be_handled_without_a_run(self, start: Any) -> None:
        pi = start({"handled": ["/help"]})
        prompt(pi, "/help me")
        answer = pi.answer("prompt")
        prompt(pi, "do it")
        pi.until("agent_settled")

        assert answer["data"] == {"disposition": "handled"}
        assert kinds(pi).count("agent_start") == 1

    def test_a_run_can_end_with_text_still_queued(self, start: Any) -> None:
        pi = start({"leaves_queue": True, "reply": [{"do": "answer", "delay_ms": 200}]})
        prompt(pi)
        pi.send({"type": "follow_up", "message": "late"})
        pi.until("agent_settled")
        pi.send({"type": "get_state"})

        assert pi.answer("get_state")["data"]["pendingMessageCount"] == 1
        assert said_by_user(pi) == ["go"]

    def test_a_run_can_begin_by_itself(self, start: Any) -> None:
        pi = start({"act": [{"at": "response:abort", "do": "run", "text": "by itself", "after_ms": 20}]})
        pi.send({"type": "abort"})
        pi.until("agent_settled")

        assert said_by_user(pi) == ["by itself"]

    def test_what_it_was_started_with_and_told_is_kept_for_its_owner_alone(self, start: Any, tmp_path: Path) -> None:
        pi = start({"log": "log.jsonl"}, "--approve", env={"MARK": "here"})
        pi.write(b'{"type":"get_state"}\nrubbish\n')
        pi.answer("parse")
        pi.signal("SIGTERM")
        pi.wait()

        path = tmp_path / "bin" / "log.jsonl"
        first, *rest = [json.loads(line) for line in path.read_text().splitlines()]
        assert path.stat().st_mode & 0o777 == 0o600
        assert (first["argv"][1:], first["env"]["MARK"]) == (["--mode", "rpc", "--no-session", "--approve"], "here")
        assert (first["pid"], first["group"], first["cwd"]) == (pi.pid, pi.pid, str(tmp_path))
        assert [one.get("line", one.get("how", one.get("code"))) for one in rest] == [
            '{"type":"get_state"}',
            "rubbish",
            "SIGTERM",
            143,
        ]


class TestScript:
    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ({"reply": [{"do": "sing"}]}, "reply[0].do: 'sing' is none of answer"),
            ({"repli": []}, "repli: there is no such key"),
            ({"reply": [{"gap_ms": -1}]}, "reply[0].gap_ms: must be a whole number"),
            ({"reply": [{"hangs": 1}]}, "reply[0].hangs: must be true or false"),
            ({"reply": {}}, "reply: must be a list"),
            ({"reply": [[]]}, "reply[0]: must be a table"),
            ({"reply": [{"do": "raw", "hex": "f"}]}, "reply[0].hex: is not hexadecimal"),
            ({"reply": [{"ask": {"method": "notify"}}]}, "reply[0].ask.method: 'notify' is none of"),
            ({"twist": [{"drop": True}]}, "twist[0].at: says which record is meant"),
            ({"act": [{"signal": "SIGNOPE"}]}, "act[0].signal: 'SIGNOPE' is none of"),
            ({"act": [{"code": 256}]}, "act[0].code: must be at most 255"),
            ({"act": [{"code": 1, "signal": "SIGKILL"}]}, "act[0].signal: cannot stand beside code"),
            ({"stop": {"ignores": ["SIGKILL"]}}, "stop.ignores: 'SIGKILL' is none of"),
            ({"stop": 1}, "stop: must be a table"),
            ({"handled": [1]}, "handled: must be a list of texts"),
            ({"speed": -1}, "speed: must be a number"),
            ({"boot_ms": None}, "boot_ms: must not be null"),
            ({"act": [{"do": "stderr", "bytes": 10**12}]}, "act[0].bytes: must be at most"),
        ],
    )
    def test_a_mistake_is_named_with_its_place(self, script: dict[str, Any], words: str, tmp_path: Path) -> None:
        with pytest.raises(ValueError) as caught:
            install_pi(tmp_path, script)

        assert str(caught.value).startswith(words)

    def test_replies_are_chosen_by_the_words_of_the_user_and_used_up_in_order(self, start: Any) -> None:
        pi = start(
            {
                "reply": [
                    {"when": "B", "text": "for B", "times": 0},
                    {"text": "first"},
                    {"text": "second", "times": 2},
                ]
            }
        )
        for text in ("A", "B", "A", "B", "A", "A"):
            prompt(pi, text)
            pi.until("agent_settled")

        assert texts(pi) == ["first", "for B", "second", "for B", "second", "Hello from fake."]

    def test_a_script_in_toml_is_taken_at_install_and_at_start(self, tmp_path: Path, start: Any) -> None:
        path = tmp_path / "x.toml"
        path.write_text('[[reply]]\ntext = "from a file"\n')
        installed = install_pi(tmp_path / "other", path)
        given = start(None, env={"PI_RPC_SCRIPT": str(path)})
        with RawPi([str(installed), "--mode", "rpc", "--no-session"], cwd=tmp_path, env={}) as pi:
            for one in (pi, given):
                prompt(one)
                one.until("agent_settled")

            assert (texts(pi), texts(given)) == (["from a file"], ["from a file"])

    @pytest.mark.parametrize(("name", "text"), [("x.toml", "= 1"), ("x.json", "{"), ("x.json", "[]")])
    def test_a_file_that_holds_no_script_is_named(self, name: str, text: str, tmp_path: Path) -> None:
        path = tmp_path / name
        path.write_text(text)

        with pytest.raises(ValueError) as caught:
            install_pi(tmp_path / "bin", path)

        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--mode", "json"], "only --mode rpc"),
        (["-p", "hi"], "Unknown option: -p"),
        (["--nope"], "Unknown option: --nope"),
        (["@file"], "@file"),
        (["--provider", "x"], "--provider needs --model"),
        (["-e", "/nowhere.ts"], "no such file"),
    ],
)
def test_a_wrong_command_line_ends_it_with_code_1_and_words(args: list[str], words: str, start: Any) -> None:
    pi = start(None, *args)

    assert pi.wait() == 1
    assert words in pi.stderr
    assert pi.records == []


def test_the_options_of_a_supervisor_are_taken(start: Any, tmp_path: Path) -> None:
    extension = tmp_path / "e.ts"
    extension.touch()
    pi = start(
        None,
        *("--provider", "p", "--model", "m", "--tools", "read,bash", "--no-extensions", "-e", str(extension)),
        *("--skill", "s", "--no-skills", "--no-context-files", "--system-prompt", "x", "--approve", "--name", "n"),
        "a task that is ignored",
    )
    pi.send({"type": "get_state"})
    state = pi.answer("get_state")["data"]

    assert (state["model"]["id"], state["model"]["provider"], state["sessionName"]) == ("m", "p", "n")


def test_it_stands_alone_without_the_packages_of_its_maker(tmp_path: Path) -> None:
    import ast
    import sys

    folder = Path(__file__).resolve().parents[2] / "hc_sim" / "programs" / "pi_rpc"
    slow = {"typing", "dataclasses", "pathlib", "subprocess", "asyncio", "msgspec", "hc_sim", "logging", "tempfile"}
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            tops = {name.split(".")[0] for name in names}
            assert tops <= sys.stdlib_module_names
            assert not tops & slow, path
