import contextlib
import gc
import json
import os
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hc_sim.faults import Bridge, Fault, FaultPlan
from hc_sim.playing.served import ServedCore
from hc_sim.script.format import Agent, Step

WAIT_S = 20


@pytest.fixture
def core() -> Iterator[ServedCore]:
    with ServedCore() as running:
        yield running


def hc(core: ServedCore, *words: str) -> str:
    done = subprocess.run(
        [str(core.hc), *words], env=core.env, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_under_test_meets_the_agent_that_the_test_plays(core: ServedCore) -> None:
    hc(core, "run", "--bg", "--name", "alpha", "--", "pi", "task")
    core.agent("alpha").working()
    core.agent("alpha").blocked("question", "which?")

    shown = json.loads(hc(core, "get", "--json", "alpha"))

    assert (shown["turn"], shown["status"]["state"], shown["status"]["kind"]) == (1, "blocked", "question")
    assert shown["parent"] == core.home


def test_the_environment_leads_to_this_core_and_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HC_SOCKET", "/elsewhere")
    monkeypatch.setenv("PI_SUBAGENT_X", "1")
    monkeypatch.setenv("KEPT", "yes")
    monkeypatch.setenv("PATH", "/usr/bin")
    with ServedCore() as core:
        env = core.env
        assert {name for name in env if name.startswith(("HC_", "PI_"))} == {
            "HC_BIN", "HC_TERMINAL_ID", "HC_TERMINAL_SOCKET",
        }  # fmt: skip
        assert (env["KEPT"], env["PATH"]) == ("yes", f"{core.folder / 'bin'}:/usr/bin")
        assert core.terminal(env["HC_TERMINAL_ID"]).name == "you"


def test_its_folder_is_private_short_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    before = threading.active_count()
    with ServedCore() as core:
        modes = [stat.S_IMODE(os.lstat(path).st_mode) for path in (core.socket, core.folder)]
        assert modes == [0o600, 0o700]
        assert len(os.fsencode(core.socket)) < 107
    assert not core.folder.exists()
    assert threading.active_count() == before


def test_the_trace_can_be_read_after_the_end_and_nothing_else_can(core: ServedCore) -> None:
    hc(core, "ls")
    core.close()
    assert len(core.trace.of("call", "terminal.list")) == 1
    assert "list" in core.picture()
    with pytest.raises(RuntimeError, match="does not run"):
        core.terminals()
    core.close()


def test_what_a_move_causes_has_happened_when_it_returns(core: ServedCore, tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    hc(core, "run", "--bg", "--name", "alpha", "--", "pi", "--session", str(session))
    for number in range(20):
        core.agent("alpha").writes(str(number))
        assert session.read_text().splitlines()[-1] == str(number)


def test_waiting_for_a_call_ends_when_it_comes_and_is_bounded(core: ServedCore) -> None:
    core.add_terminal("alpha", status="idle")
    sender = threading.Thread(target=hc, args=(core, "send", "alpha", "hello"))
    sender.start()
    event = core.wait_for("text", terminal="alpha")
    sender.join(WAIT_S)
    assert event.text == "hello"
    with pytest.raises(TimeoutError, match=r"no call terminal\.kill number 1(.|\n)*<- hello"):
        core.wait_for("call", "terminal.kill", timeout_ms=1)


def test_a_client_that_waits_is_answered_when_the_test_moves_the_agent(core: ServedCore) -> None:
    core.add_terminal("alpha", status="working")
    waiting = subprocess.Popen([str(core.hc), "wait", "alpha", "--timeout", "20"], env=core.env, stdout=subprocess.PIPE)
    core.wait_for("call", "terminal.wait")
    core.agent("alpha").done()
    assert waiting.wait(WAIT_S) == 0
    waiting.communicate()


def test_agents_and_faults_of_a_script_are_in_effect() -> None:
    agent = Agent(status="idle", step=[Step(on_call="terminal.get", status="done")])
    with ServedCore(agents=[agent], faults=[Fault(method="terminal.list", close="instead")]) as core:
        hc(core, "run", "--bg", "--name", "alpha", "--", "pi")
        assert json.loads(hc(core, "get", "--json", "alpha"))["status"]["state"] == "done"
        assert subprocess.run([str(core.hc), "ls"], env=core.env, capture_output=True, check=False).returncode != 0


def test_a_plan_may_have_faults_for_the_executable_as_well() -> None:
    with ServedCore(faults=FaultPlan(bridge=[Bridge(nth=1, stderr="no luck\n", exit_code=7)])) as core:
        connect = [str(core.hc), "connect"]
        first = subprocess.run(connect, env=core.env, capture_output=True, text=True, input="", check=False)
        second = subprocess.run(connect, env=core.env, capture_output=True, text=True, input="", check=False)
    assert (first.returncode, first.stderr, second.returncode) == (7, "no luck\n", 0)


def test_a_mistake_of_the_test_is_raised_in_the_test_and_the_core_goes_on(core: ServedCore) -> None:
    with pytest.raises(LookupError, match="there are: t1 you"):
        core.agent("nobody").done()
    assert hc(core, "ls", "--all")
    assert core.problems == []


def test_many_threads_can_move_agents_at_once(core: ServedCore) -> None:
    names = [core.add_terminal(f"a{number}") for number in range(8)]

    def play(name: str) -> None:
        for _ in range(10):
            core.agent(name).working()
            core.agent(name).done()

    threads = [threading.Thread(target=play, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert [core.agent(name).turn for name in names] == [10] * 8


def test_cores_beside_each_other_share_nothing(core: ServedCore) -> None:
    with ServedCore() as other:
        core.add_terminal("alpha")
        assert core.socket != other.socket
        assert [one.name for one in other.terminals()] == ["you"]


def test_a_timeline_that_cannot_be_played_is_refused_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("hc_sim.playing.served.private_folder", lambda: tmp_path / "folder")
    (tmp_path / "folder").mkdir()
    before = threading.active_count()
    with pytest.raises(ValueError, match="trigger") as caught:
        ServedCore(agents=[Agent(step=[Step(status="done")])])
    del caught
    gc.collect()
    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


def test_a_core_that_was_never_started_or_closed_leaves_nothing() -> None:
    core = ServedCore()
    folder = core.folder
    del core
    gc.collect()
    assert not folder.exists()


def test_a_core_that_cannot_listen_says_why_and_leaves_nothing() -> None:
    core = ServedCore()
    core.socket.mkdir()
    with pytest.raises(Exception, match="directory"):
        core.start()
    assert not core.folder.exists()


def test_a_connection_is_ended_with_the_core() -> None:
    with ServedCore() as core, socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(core.socket))
        peer.settimeout(WAIT_S)
        core.wait_for("link")
        core.close()
        assert peer.recv(1) == b""


@pytest.mark.parametrize("number", range(20))
def test_a_connection_that_is_just_being_accepted_is_ended_too(number: int) -> None:
    with ServedCore() as core, socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(core.socket))
        time.sleep(number / 20_000)
        core.close()
        gc.collect()  # an unclosed transport would complain, and a warning is an error here
        peer.settimeout(WAIT_S)
        with contextlib.suppress(ConnectionResetError):
            assert peer.recv(1) == b""
