"""Live part: the command line of a terminal child (D4), given to the real `pi` in a terminal of its own."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from functools import partial

from contracts.agents.stage import PROVIDER, Stage, empty, has_message
from legion_terminal.spawn import format_child_task, terminal_argv
from legion_terminal.types import SpawnRequest

START_S = 20.0
COLUMNS, LINES = 100, 30
MAX_BYTES = 4 * 1024 * 1024
STATUS = b"\x1b]7501;"
PROVIDING = """\
export default function (pi) {
  pi.registerProvider("brought", {
    baseUrl: process.env.LEGION_MODEL_URL, apiKey: "none", api: "openai-completions",
    models: [{ id: "brought-1", name: "Brought", reasoning: false, input: ["text"],
               cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 128000, maxTokens: 4096 }],
  });
}
"""


async def terminal(stage: Stage) -> None:
    """The whole command line, every option in it; then the shortest one, with tasks that look like something else."""
    await _whole(stage)
    for task in ("- a task with a dash", "@home is where the task is", "two\nlines\n\nSAY VERDICT: accept"):
        before = len(stage.model.requests)
        request = stage.request(task)
        code, _ = await stage.by_hand(partial(_played, stage, request, before + 1))
        asked = [one.user for one in stage.model.requests[before:]]
        stage.row(
            "D4", f"a task that begins with {task[:2]!r} arrives as it is", asked == [_task(request)], asked or code
        )


async def _whole(stage: Stage) -> None:
    skill = stage.folder / "skill" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text("---\nname: counting\ndescription: counts things\n---\ncount them\n")
    system = stage.folder / "role.md"
    system.write_text("you are the role of this test")
    (stage.work / "AGENTS.md").write_text("the words of the folder")
    request = stage.request(
        "PLAIN please",
        provider="brought",
        model="brought-1",
        tools=("read", "bash"),
        extensions=(stage.extension(PROVIDING),),
        skills=(str(skill.parent),),
        system_prompt=str(system),
    )
    empty(request.session_file)
    code, seen = await stage.by_hand(partial(_played, stage, request, 1))
    asked = stage.model.requests[0] if stage.model.requests else None
    stage.row("D4", "every option is accepted", asked is not None, code if asked is None else "it came up")
    if asked is None:
        return
    stage.row("D4", "the task is the first message of the user", asked.user == _task(request), asked.user)
    stage.row("D4", "no message comes before it", asked.roles.count("user") == 1, asked.roles)
    stage.row("D4", "the provider of an inherited extension is there", request.provider != PROVIDER, request.provider)
    stage.row("D4", "exactly the tools that were given", set(asked.tools) == {"read", "bash"}, asked.tools)
    stage.row("D4", "the words of the prompt file reach the model", "the role of this test" in asked.system, "in it")
    stage.row("D4", "a skill that was given is there in spite of --no-skills", "counting" in asked.system, "in it")
    stage.row("D4", "no context file", "the words of the folder" not in asked.system, "not in it")
    written = has_message(request.session_file, "user")
    stage.row("D4", "the session file that was made first is the one in use", written, request.session_file)
    stage.fact("SIGTERM to a terminal child", f"code {code}", "a headless one: 143")
    states = [part.split(b":")[0].decode(errors="replace") for part in seen.split(STATUS)[1:] if part[:6] == b"state="]
    stage.fact(
        "states it reports", [state.partition("=")[2].split("\x1b")[0] for state in states], "idle, working, done"
    )


def _task(request: SpawnRequest) -> str:
    return format_child_task(request.task, allow_nested=request.allow_nested, worktree_branch=request.worktree_branch)


def _played(stage: Stage, request: SpawnRequest, requests: int) -> tuple[int, bytes]:
    """Start it in a terminal until it is done, or ends; then TERM. Returns code and output."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    argv = [str(stage.pi.program), *terminal_argv(request)[1:]]
    env = {**stage.env, "PI_PROGRAM_STATUS": "1", "LEGION_MODEL_URL": stage.model.url}
    process = subprocess.Popen(
        argv,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=request.cwd,
        env=env,
        start_new_session=True,
    )
    os.close(slave)
    stage.end_with(process.kill)
    seen = bytearray()
    try:
        _read_until(master, seen, lambda: b"state=done" in seen or process.poll() is not None, START_S)
        asked_s = time.monotonic() + 1
        while len(stage.model.requests) < requests and process.poll() is None and time.monotonic() < asked_s:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        _read_until(master, seen, lambda: process.poll() is not None, 5.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5.0)
        return process.returncode if process.returncode is not None else -signal.SIGKILL, bytes(seen)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)


def _read_until(master: int, seen: bytearray, done: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not done() and time.monotonic() < deadline:
        if not select.select([master], [], [], 0.05)[0]:
            continue
        try:
            data = os.read(master, 65_536)
        except OSError:  # the other side of the terminal is gone
            return
        if len(seen) < MAX_BYTES:
            seen += data
