"""Programs that are really started: real processes in real pseudo-terminals, and nothing of them left."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hc_sim import programs as executables
from hc_sim.clock import VirtualTimeError, run_virtual
from hc_sim.core import Core
from hc_sim.core.programs import Launch, StartError
from hc_sim.driver import Driver
from hc_sim.hosting import Programs, program
from hc_sim.hosting.program import MAX_ANSWERS_S, READ_BYTES, HostedProgram, Said
from hc_sim.hub.connection import Hub
from hc_sim.playing.fake import AsyncFakeCore
from hc_sim.playing.served import ServedCore
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Match

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")
WAIT_S = 20.0
AGENT = [sys.executable, "-IS", str(Path(executables.__file__).with_name("reporting_agent.py")), "--work-ms", "20"]
QUICK = WireProfile(program_grace_ms=100, program_watch_ms=5_000, core_path=os.environ["PATH"])
STUBBORN = "trap '' HUP TERM; sleep 98 & echo up; while :; do sleep 97; done"


class Calls:
    """A core with real programs, its calls over its socket, and its terminals."""

    def __init__(self, core: ServedCore) -> None:
        self.core = core

    def __call__(self, method: str, **params: Any) -> Any:
        """The result of a call, or the error as `(kind, message)`."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(WAIT_S)
            link.connect(os.fspath(self.core.socket))
            request = {"jsonrpc": "2.0", "id": 1, "method": f"terminal.{method}", "params": params}
            link.sendall(json.dumps(request).encode() + b"\n")
            line = link.makefile("rb").readline()
        reply = json.loads(line)
        return reply["result"] if "result" in reply else (reply["error"]["data"]["kind"], reply["error"]["message"])

    def run(self, *argv: str, **more: Any) -> dict[str, Any]:
        found = self("run", argv=list(argv), **more)
        assert isinstance(found, dict), found
        return found

    def look(self, target: str) -> dict[str, Any]:
        found: dict[str, Any] = self("get", terminal=target)
        return found

    def word(self, target: str) -> str:
        status = self.look(target)["status"]
        return "none" if status is None else status["state"]

    def until(self, target: str, word: str, turn: int | None = None) -> None:
        wait_for(lambda: self.word(target) == word and turn in (None, self.look(target)["turn"]))

    def finished(self, target: str) -> tuple[int | None, str | None]:
        """Exit code and signal, once it has ended."""
        wait_for(lambda: self.look(target)["state"] == "finished")
        return self.look(target)["exit_code"], self.look(target)["signal"]

    def shows(self, target: str, text: str) -> str:
        """What stands on the screen, once it has this text."""
        wait_for(lambda: text in self("read", terminal=target, lines=100)["text"])
        return str(self("read", terminal=target, lines=100)["text"])


def wait_for(so: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not so():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether there is such a process; a zombie that only waits for the system's own first process is none."""
    try:
        os.kill(pid, 0)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[:2] != ["Z", "1"]


def children_of(pid: int) -> list[int]:
    """The processes below one, as the system knows them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.fixture
def calls() -> Iterator[Calls]:
    with ServedCore(profile=QUICK, programs=True, agents=[Agent(match=Match(name="acted-*"), status="idle")]) as core:
        yield Calls(core)
    assert core.problems == []


# ------------------------------------------------------------------ how it is started


def test_a_program_has_a_session_a_terminal_a_folder_and_an_environment_of_its_own(
    calls: Calls, tmp_path: Path
) -> None:
    code = (
        "import os, json, sys; d = os.get_terminal_size(); print(json.dumps([os.getpid(), os.getsid(0), os.getpgrp(),"
        " os.tcgetpgrp(0), os.getcwd(), os.environ['A'], os.environ['HC_TERMINAL_ID'], d.columns, d.lines,"
        " sorted(os.environ), os.open('/dev/tty', os.O_RDWR) > 0, len(os.listdir('/dev/fd'))]), flush=True)"
    )
    one = calls.run(sys.executable, "-IS", "-c", code, cwd=str(tmp_path), env={"A": "b"})
    calls.finished(one["address"])
    facts = json.loads(calls("read", terminal=one["address"])["text"])
    pid = one["pid"]
    assert facts[:4] == [pid] * 4
    assert facts[4:9] == [str(tmp_path), "b", one["address"], 80, 24]
    assert set(facts[9]) - {"LC_CTYPE"} == {"A", "HC_TERMINAL_ID", "HC_TERMINAL_SOCKET", "PATH"}
    assert facts[10:] == [True, 5]  # three of its own, /dev/tty, and the folder that is being read
    assert calls.finished(one["address"]) == (0, None)
    assert not alive(pid)


def test_agents_of_a_script_are_acted_and_everything_else_is_started(calls: Calls) -> None:
    acted = calls.run("nonesuch", name="acted-1")
    assert (acted["status"]["state"], acted["pid"] > 10_000) == ("idle", True)
    assert calls("run", argv=["nonesuch"])[0] == "spawn_failed"


def test_what_cannot_be_started_is_an_error_that_says_why_and_leaves_nothing(calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    (tmp_path / "private").write_text("#!/bin/sh\n")
    for argv, cwd, said in (
        (["nonesuch"], "/", 'the program cannot be started: "nonesuch": No such file'),
        ([str(tmp_path / "text")], "/", "Exec format error"),
        ([str(tmp_path / "private")], "/", "Permission denied"),
        (["./private"], str(tmp_path), "Permission denied"),
        (["sh"], str(tmp_path / "none"), "no such directory"),
    ):
        kind, message = calls("run", argv=argv, cwd=cwd, name="a")
        assert kind == "spawn_failed"
        assert said in message
    assert [one["name"] for one in calls("list", all=True)["terminals"]] == ["you"]
    assert calls.run("true", name="a")["state"] == "running"


# ------------------------------------------------------------------ what it is told, and what it tells


def test_an_agent_lives_through_its_turns(calls: Calls) -> None:
    calls.run(*AGENT, "--ask", "first task", name="a")
    calls.until("a", "done", 1)
    calls("send", terminal="a", text="two\nlines")
    calls.until("a", "done", 2)
    calls("send", terminal="a", text="blocked here")
    calls.until("a", "blocked", 3)
    assert calls.look("a")["status"]["kind"] == "permission"
    assert calls("send", terminal="a", text="yes")[0] == "blocked"
    calls("send", terminal="a", text="yes", force=True)
    calls.until("a", "done", 3)
    calls("send", terminal="a", text="an error")
    calls.until("a", "error", 4)
    assert calls.look("a")["status"] == {"state": "error", "app": "reporting-agent", "msg": "an error"}
    assert "answer to: two lines" in calls.shows("a", "an error")
    words = [event.status for event in calls.core.trace.of("state", terminal="a")]
    assert words[:8] == ["idle", "working", "done", "working", "done", "working", "blocked", "working"]


def test_esc_stops_an_agent_and_ctrl_c_a_program(calls: Calls) -> None:
    calls.run(*AGENT, "wait", name="a")
    calls.until("a", "working")
    assert calls("interrupt", terminal="a") == {"effect": True, "key": "Esc"}
    assert (calls.word("a"), calls.look("a")["turn"], calls.look("a")["state"]) == ("idle", 1, "running")
    calls.run("sleep", "99", name="b")
    assert calls("interrupt", terminal="b") == {"effect": True, "key": "Ctrl+C"}
    assert calls.finished("b") == (None, "SIGINT")


@pytest.mark.parametrize(
    ("text", "end", "word"),
    [("exit 3", (3, None), "none"), ("crash", (None, "SIGKILL"), "none"), ("x", (0, None), "none")],
)
def test_the_end_is_told_with_its_code_or_signal(calls: Calls, text: str, end: tuple[Any, Any], word: str) -> None:
    one = calls.run(*AGENT, text, name="a")
    if text == "x":
        calls.until("a", "done")
        os.kill(one["pid"], signal.SIGTERM)
    assert calls.finished("a") == end
    assert calls.word("a") == word
    assert not alive(one["pid"])
    assert calls("rm", terminal="a") == {"removed": True}


def test_the_last_words_of_a_program_are_heard(calls: Calls) -> None:
    calls.run("sh", "-c", r"yes line | head -n 9000; printf '\033]7501;state=done:app=sh\007last words'", name="a")
    assert calls.finished("a") == (0, None)
    assert calls.word("a") == "done"
    assert calls("read", terminal="a", lines=1)["text"] == "last words"


def test_the_words_of_a_prompt_say_how_the_agent_ends_its_turn(calls: Calls) -> None:
    calls.run(*AGENT, name="a")
    calls.until("a", "idle", 0)
    calls("send", terminal="a", text="idle again")
    calls.until("a", "idle", 1)
    calls("send", terminal="a", text="none of it")
    calls.shows("a", "answer to: none of it")
    assert (calls.word("a"), calls.look("a")["turn"]) == ("idle", 1)
    calls("send", terminal="a", text="wait")
    calls.until("a", "working", 2)
    calls("send", terminal="a", text="queued, and dropped by Esc")
    calls("interrupt", terminal="a")
    calls("send", terminal="a", text="after")
    calls.until("a", "done", 3)
    assert "answer to: queued" not in calls("read", terminal="a")["text"]


def test_a_signal_without_a_name_is_told_by_its_number(calls: Calls) -> None:
    calls.run("sh", "-c", "kill -40 $$", name="a")
    assert calls.finished("a") == (None, "SIG40")


# ------------------------------------------------------------------ how it is ended


def test_a_kill_goes_to_the_whole_group_and_in_the_end_cannot_be_refused(calls: Calls) -> None:
    one = calls.run("sh", "-c", STUBBORN, name="a")
    calls.shows("a", "up")
    below = children_of(one["pid"])
    calls("kill", terminal="a")
    assert calls.finished("a") == (None, "SIGKILL")
    wait_for(lambda: not any(map(alive, below)))


def test_a_stopped_program_can_be_killed_and_does_not_take_input_without_end(calls: Calls) -> None:
    one = calls.run(*AGENT, name="a")
    calls.until("a", "idle")
    os.kill(one["pid"], signal.SIGSTOP)
    text = "x" * 600_000
    answers = [calls("send", terminal="a", text=text) for _ in range(3)]
    assert answers[0] == {"started": True}
    assert answers[2][0] == "send_refused"
    calls("kill", terminal="a")
    assert calls.finished("a")[1] in (None, "SIGHUP", "SIGKILL")


def test_children_end_with_their_parent_unless_they_outlive_it(calls: Calls) -> None:
    calls.run("sleep", "99", name="p")
    calls.run("sleep", "99", name="c", caller="p")
    calls.run("sleep", "99", name="f", caller="p", die_with_parent=False)
    calls("kill", terminal="p")
    assert [calls.finished(name) for name in "pc"] == [(None, "SIGHUP")] * 2
    assert calls.look("f")["state"] == "running"


def test_a_program_has_finished_even_if_it_leaves_somebody_in_its_terminal(calls: Calls) -> None:
    calls.run("sh", "-c", "(trap '' HUP; echo $$ left; exec sleep 96) & sleep 0.1; exit 4", name="a")
    assert calls.finished("a") == (4, None)


def test_a_program_may_close_its_terminal_and_go_on(calls: Calls, tmp_path: Path) -> None:
    script = f"exec <&- >&- 2>&-; sleep 0.3; : > {tmp_path}/on; exit 5"
    calls.run("sh", "-c", script, name="a")
    assert calls.finished("a") == (5, None)
    assert (tmp_path / "on").exists()


def test_closing_the_core_ends_everything_and_gives_everything_back() -> None:
    before = descriptors()
    with ServedCore(profile=QUICK, programs=True) as core:
        calls = Calls(core)
        pids = [calls.run(*AGENT, "wait")["pid"], calls.run("sh", "-c", STUBBORN, name="s")["pid"]]
        script = "(trap '' HUP; exec sleep 95) & echo up; set -m; sleep 94 & sleep 93"
        pids.append(calls.run("sh", "-c", script, name="g")["pid"])
        left = calls.run("sh", "-c", "trap '' HUP; sleep 92 & echo $! is left", name="l")
        calls.finished(left["address"])
        pids.append(int(calls("read", terminal="l")["text"].split()[0]))
        calls.shows("s", "up")
        calls.shows("g", "up")
        pids += [below for pid in list(pids) for below in children_of(pid)]
        assert len(pids) >= 8
        assert alive(pids[3])
    assert core.problems == []
    assert not any(map(alive, pids))
    assert descriptors() == before


def test_without_the_process_that_holds_them_programs_end_and_no_more_are_started() -> None:
    with ServedCore(profile=QUICK, programs=True) as core:
        calls = Calls(core)
        one = calls.run("sleep", "99", name="a")
        holder = int(Path(f"/proc/{one['pid']}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(holder, signal.SIGKILL)
        assert calls.finished("a") == (None, "SIGKILL")
        assert calls("run", argv=["true"])[0] == "spawn_failed"
        assert core.problems == ["the process that holds the programs is gone"]


# ------------------------------------------------------------------ limits


async def hosted(fd: int, heard: list[Any]) -> HostedProgram:
    said = Said(lambda _, one: heard.append(one), lambda *_: None, lambda *_: None)
    return HostedProgram("t1", 1, fd, "root", asyncio.get_running_loop(), said)


def test_output_is_taken_only_as_fast_as_the_limit_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "BUDGET_S", 3_600.0)
    monkeypatch.setattr(program, "MAX_OUTPUT_BYTES_S", 1)

    async def main() -> tuple[int, int]:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        with theirs:
            heard: list[Any] = []
            one = await hosted(ours.detach(), heard)
            sent = theirs.send(b"x" * (2 * READ_BYTES))
            for _ in range(50):
                await asyncio.sleep(0)
            one.close()
            return sent, sum(len(printed.data) for printed in heard)

    sent, taken = asyncio.run(main())
    assert sent > READ_BYTES
    assert 0 < taken <= READ_BYTES


def test_a_terminal_that_echoes_answers_does_not_go_round_for_ever() -> None:
    async def main() -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            one = await hosted(ours.detach(), [])
            theirs.sendall(b"\x1b]7501;?\x07" * (4 * MAX_ANSWERS_S))
            await asyncio.sleep(0.05)
            one.close()
            return theirs.recv(65_536).count(b"7501;?")

    assert asyncio.run(main()) <= 2 * MAX_ANSWERS_S


def test_there_is_a_limit_to_programs_and_none_start_before_or_after() -> None:
    launch = Launch("t1", ["sleep", "99"], "/", {"PATH": os.environ["PATH"]})

    async def main() -> list[str]:
        programs, errors = Programs(QUICK, limit=1), []

        def refused() -> None:
            with pytest.raises(StartError) as error:
                programs.start(launch)
            errors.append(str(error.value))

        refused()
        driver = Driver(Hub(Core()), asyncio.get_running_loop())
        async with programs.running(driver):
            programs.start(launch)
            refused()
            assert len(programs) == 1
        refused()
        driver.close()
        return errors

    assert asyncio.run(main()) == [
        "no programs can be started now", "1 programs run already", "no programs can be started now",
    ]  # fmt: skip


# ------------------------------------------------------------------ clocks


def test_on_virtual_time_no_real_program_is_started() -> None:
    async def main() -> None:
        async with AsyncFakeCore(programs=True):
            pass

    with pytest.raises(VirtualTimeError, match="a real program cannot run on virtual time"):
        run_virtual(main())


def test_in_a_real_loop_a_core_in_memory_has_programs_too() -> None:
    async def main() -> str:
        async with AsyncFakeCore(programs=True, profile=QUICK) as core:
            link = core.open_link()
            link.write(b'{"jsonrpc":"2.0","id":1,"method":"terminal.run","params":{"argv":["sh","-c","exit 7"]}}\n')
            await core.wait_for("run", terminal="t1")
            while core.terminal("t1").state != "finished":
                await core.wait_for("state", terminal="t1")
            return str(core.terminal("t1").exit_code)

    assert asyncio.run(main()) == "7"
