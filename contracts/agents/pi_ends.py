"""Live parts: every way in which the process of the real `pi` ends, under our supervisor and by hand."""

import asyncio
import os
import signal
import time
from functools import partial
from pathlib import Path

from contracts.agents.found import old_node
from contracts.agents.raw import RawPi
from contracts.agents.stage import ENDING, MODEL_ID, POLL_S, PROVIDER, Stage, lives, number, until
from hc_sim.programs.pi_rpc.process import STOPPED
from legion_terminal.errors import SupervisorError
from legion_terminal.headless import HeadlessSupervisor
from legion_terminal.settle import SettleResult
from legion_terminal.types import Child

DOCUMENT_SIGNAL = "the document's row for a signal; the program catches TERM and HUP and exits with a code"


def failed(result: SettleResult) -> bool:
    """Whether a wait ended as an unexpected end of the process has it, whatever code or signal there was."""
    return (result.settled, result.abnormal, result.node) == (False, True, "failed")


async def own_exits(stage: Stage) -> None:
    """The program ends by itself in the middle of a run."""
    extension = stage.extension(ENDING)
    async with stage.supervisor() as supervisor:
        for code, clause in ((0, "H9"), (3, "H10"), (137, "H10")):
            env = {"LEGION_ENDS": str(code)}
            child = await supervisor.spawn(stage.request("TOOL please", extensions=(extension,), env=env))
            result = await stage.settled(supervisor, child)
            ok = failed(result) and (result.exit_code, result.signal) == (code, None)
            stage.row(clause, f"exit {code} before the run has settled", ok, result)
            stage.row("H14", "failed, with its own code", failed(result), result)


async def signals(stage: Stage) -> None:
    """Signals from outside, in the middle of an answer."""
    async with stage.supervisor() as supervisor:
        for name in ("SIGKILL", "SIGINT", "SIGTERM", "SIGHUP"):
            child = await _streaming(stage, supervisor)
            os.kill(supervisor.pid(child) or 0, getattr(signal, name))
            result = await stage.settled(supervisor, child)
            if name in STOPPED:
                ok = failed(result) and (result.exit_code, result.signal) == (STOPPED[name], None)
                stage.row("H10", f"an end by {name}, passed on as it was delivered", ok, result)
                stage.fact(f"{name} in a run", result, DOCUMENT_SIGNAL)
            else:
                ok = failed(result) and (result.exit_code, result.signal) == (None, name)
                stage.row("H11", f"ended by {name}", ok, result)
            stage.row("H14", "failed, with its own code or signal", failed(result), result)


async def early(stage: Stage) -> None:
    """A TERM before the program has handlers for it."""
    async with stage.supervisor() as supervisor:
        request = stage.request("PLAIN please")
        spawning = asyncio.create_task(supervisor.spawn(request))
        pid = await _started(request.session_file)
        os.kill(pid, signal.SIGTERM)
        try:
            child = await spawning
        except SupervisorError as error:
            stage.row("H11", "ended by an early SIGTERM", False, error)
            return
        result = await stage.settled(supervisor, child)
    ok = failed(result) and (result.exit_code, result.signal) in ((None, "SIGTERM"), (143, None))
    stage.row("H11", "ended by an early SIGTERM", ok, result)
    stage.fact("SIGTERM while it boots", result, "the document's row for a signal: no handler is there yet")


async def retiring(stage: Stage) -> None:
    """Retire at rest, in an answer, and while a tool runs."""
    pid = stage.folder / "tool.pid"
    async with stage.supervisor() as supervisor:
        for where, task in (("at rest", "PLAIN please"), ("in an answer", "SLOW please"), ("in a tool", "RUN")):
            text = f"RUN echo $$ > {pid}; sleep 60" if task == "RUN" else task
            child = await supervisor.spawn(stage.request(text))
            if where == "at rest":
                await stage.settled(supervisor, child)
            elif where == "in a tool":
                await until(lambda: number(pid) > 0, "the tool runs")
            waiting = asyncio.create_task(supervisor.wait_settled(child, 20_000))
            await asyncio.sleep(0.05)
            group = supervisor.pid(child) or 0
            both = await asyncio.gather(supervisor.retire(child), supervisor.retire(child))
            result = await waiting
            ended = all(one.ended for one in both)
            if where != "at rest":
                row = (result.settled, result.abnormal, result.node)
                stage.row("H8", f"retired {where}", row == (False, False, "retired"), result)
                stage.fact(f"retired {where}", result, "code 143 where it catches TERM")
            stage.row("H-escalate", f"two retires {where} are one", ended and both[0] == both[1], both[0])
            stage.row("H-group", f"nobody is left of its group {where}", not _lives_group(group), group)
    for _ in range(150):
        if not lives(number(pid)):
            break
        await asyncio.sleep(POLL_S)
    left = "left running" if lives(number(pid)) else "gone"
    stage.fact("the tool of a retired child", left, "it has a group of its own: pi ends it, unless pi was killed")


async def by_hand(stage: Stage) -> None:
    """The end of its input and signals, at rest, beside what the scripted program does."""

    def one(how: str, *, busy: bool = False) -> int:
        argv = [str(stage.pi.program), "--mode", "rpc", "--no-session", "--provider", PROVIDER, "--model", MODEL_ID]
        with RawPi(argv, cwd=stage.work, env=stage.env) as pi:
            stage.end_with(pi.kill)
            pi.send({"id": 1, "type": "get_state"})
            pi.answer("get_state")
            if busy:
                pi.send({"id": 2, "type": "prompt", "message": "SLOW please"})
                pi.until("message_update")
            if how == "EOF":
                pi.end_input()
            elif how == "null":
                pi.write(b"null\n")
            else:
                pi.signal(how)
            return pi.wait()

    for how, wanted in (*STOPPED.items(), ("null", 1)):
        code = await stage.by_hand(partial(one, how))
        stage.fact(f"{how} at rest", f"code {code}", f"the scripted program: code {wanted}")
    code = await stage.by_hand(partial(one, "EOF", busy=True))
    stage.fact("EOF in an answer", f"code {code}", f"the scripted program: code {STOPPED['EOF']}")


async def starts(stage: Stage) -> None:
    """Starts that fail: a provider that is not known, a folder in place of the session file, no working folder."""
    async with stage.supervisor() as supervisor:
        for what, more, code in (
            ("a provider that is not known", {"provider": "no-such"}, "start-failed"),
            ("a folder in place of the session file", {"session_file": str(stage.work)}, "bad-request"),
            ("a working folder that is not there", {"cwd": str(stage.folder / "nowhere")}, "bad-request"),
        ):
            try:
                await supervisor.spawn(stage.request("PLAIN please", **more))
                stage.row("H-start", what, False, "it was started")
            except SupervisorError as error:
                stage.row("H-start", what, error.code == code, error)


async def old_nodes(stage: Stage) -> None:
    """A start with a node that is too old, where this machine has one."""
    folder = await asyncio.to_thread(old_node, stage.pi.path)
    if folder is None:
        stage.fact("a start with a node that is too old", "not tried", "no such node is on PATH")
        return
    async with stage.supervisor(path=f"{folder}{os.pathsep}{stage.pi.path}") as supervisor:
        try:
            await supervisor.spawn(stage.request("PLAIN please"))
            stage.row("H-start", "a node that is too old", False, "it was started")
        except SupervisorError as error:
            stage.row("H-start", "a node that is too old is named", error.code == "start-failed", error)


async def _streaming(stage: Stage, supervisor: HeadlessSupervisor) -> Child:
    before = len(stage.model.requests)
    child = await supervisor.spawn(stage.request("SLOW please"))
    await until(lambda: len(stage.model.requests) > before, "the model was asked")
    await asyncio.sleep(0.2)
    return child


async def _started(session: str) -> int:
    """The id of the process that was started for this session, as soon as there is one."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        pid = _with_argument(session.encode())
        if pid:
            return pid
        await asyncio.sleep(0.005)
    raise TimeoutError("the program was not started")


def _with_argument(word: bytes) -> int:
    with os.scandir("/proc") as processes:
        names = [entry.name for entry in processes if entry.name.isdigit()]
    for name in names:
        try:
            words = Path("/proc", name, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word in words and b"--mode" in words:
            return int(name)
    return 0


def _lives_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
