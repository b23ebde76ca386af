"""Live parts: prompts, tools, steering, aborts, errors and retries of the real `pi`, under our supervisor."""

import asyncio

from contracts.agents.stage import Stage, content, entries, has_message, lives, mode, number, until
from legion_terminal.errors import SupervisorError
from legion_terminal.settle import SettleResult
from legion_terminal.transcript import read_transcript


def well(result: SettleResult, *, aborted: bool = False) -> bool:
    """Whether a wait ended as the first row of the exit table has it."""
    return (result.settled, result.abnormal, result.aborted, result.node) == (True, False, aborted, "settled")


async def prompt(stage: Stage) -> None:
    """One prompt from start to verdict; then the same session once more."""
    request = stage.request("SAY VERDICT: accept")
    path = request.session_file
    async with stage.supervisor() as supervisor:
        child = await supervisor.spawn(request)
        result = await stage.settled(supervisor, child)
        verdict = await supervisor.collect(child)
        modes = [word for word in child.argv if word in ("-p", "--print", "json", "rpc", "--mode")]
        stage.row("H1", "--mode rpc, and no other mode", modes == ["--mode", "rpc"], child.argv[:3])
        asked = stage.users()
        stage.row("H1", "the task arrives as a prompt", len(asked) == 1 and asked[0].endswith(request.task), asked)
        flags = [word for word in child.argv if word in ("--approve", "-a", "--no-approve")]
        stage.row("H3", "no flag of approval", not flags, flags)
        stage.row("H7", "a run that ends by itself", well(result), result)
        stage.row("H-stdin", "the child lives on after its run", supervisor.pid(child) is not None, "alive")
        permissions = mode(path)
        stage.row("H-session-file", "made first, for its owner alone", permissions == "0o600", permissions)
        stage.row("H-verdict", "read from the real session file", verdict.outcome == "accept", verdict)
        await supervisor.retire(child)
        before = content(path)
        again = await supervisor.spawn(stage.request("SAY VERDICT: reject", session_file=path))
        resumed = await stage.settled(supervisor, again)
        second = await supervisor.collect(again)
    roles = stage.model.requests[-1].roles
    stage.row("H7", "a resumed session runs", well(resumed), resumed)
    stage.row("H-session-file", "a second start appends", content(path).startswith(before), "the old text stands")
    stage.row("H-verdict", "of the newest prompt after a resume", second.outcome == "reject", second)
    stage.row("H-session-file", "the history reaches the model", roles.count("user") == 2, roles)
    headers = [entry for entry in entries(path) if entry.get("type") == "session"]
    stage.fact("headers of a session that was gone on with", len(headers), "the scripted program writes one")


async def tool(stage: Stage) -> None:
    """A turn with a tool in it, then text that is steered in, and a steer to a child at rest."""
    async with stage.supervisor() as supervisor:
        child = await supervisor.spawn(stage.request("RUN sleep 1; echo hi"))
        steered = await supervisor.steer(child, "SAY steered")
        result = await stage.settled(supervisor, child)
        stage.row("H-steer-idle", "a steer in a run is queued", steered.disposition == "queued", steered)
        stage.row("H7", "tool and steer are one run", well(result), result)
        stage.row("H-steer-idle", "it was taken up", not result.unconfirmed, stage.users())
        stage.row("H7", "the tool's result came", has_message(child.session_file, "toolResult"), "toolResult")
        text = read_transcript(child.session_file).last_turn_output
        stage.row("H-verdict", "the answer is that to the steer", text == "steered", text)
        late = await supervisor.steer(child, "SAY late")
        after = await stage.settled(supervisor, child)
        text = read_transcript(child.session_file).last_turn_output
        stage.row("H-steer-idle", "a steer at rest starts a run", late.started is True and well(after), late)
        stage.row("H-own-settle", "and that run ends the wait", text == "late", text)


async def follow_up(stage: Stage) -> None:
    """Text that waits for the end of the run, and a prompt that a busy child refuses."""
    async with stage.supervisor() as supervisor:
        child = await supervisor.spawn(stage.request("RUN sleep 1; echo hi"))
        queued = await supervisor.follow_up(child, "SAY followed")
        try:
            await supervisor.prompt(child, "SAY refused")
            refused = "it was taken"
        except SupervisorError as error:
            refused = error.code
        result = await stage.settled(supervisor, child)
        text = read_transcript(child.session_file).last_turn_output
    stage.row("H-steer-idle", "a follow-up is queued and taken up in the run", well(result), queued)
    stage.row("H-own-settle", "one settle for all of it", text == "followed" and not result.unconfirmed, text)
    stage.row("H-ack", "a prompt to a busy child is an error at once", refused == "call-failed", refused)


async def abort_stream(stage: Stage) -> None:
    """An abort in the middle of an answer; the child goes on with the next prompt."""
    async with stage.supervisor() as supervisor:
        child = await supervisor.spawn(stage.request("SLOW please"))
        await until(lambda: bool(stage.model.requests), "the model was asked")
        await asyncio.sleep(0.4)
        aborted = await supervisor.abort(child)
        result = await stage.settled(supervisor, child)
        verdict = await supervisor.collect(child)
        stage.row("H-abort", "it comes back", aborted.status == "interrupted", aborted)
        stage.row("H7", "settled, and said to be aborted", well(result, aborted=True), result)
        stage.row("H-verdict", "an aborted answer is none", verdict.outcome == "unknown", verdict)
        stage.fact("text that an aborted answer leaves", verdict.text, "kept as far as it came")
        await supervisor.prompt(child, "SAY VERDICT: accept")
        after = await stage.settled(supervisor, child)
        verdict = await supervisor.collect(child)
        stage.row("H-own-settle", "the next prompt has an end of its own", well(after), after)
        stage.row("H-verdict", "and its own verdict", verdict.outcome == "accept", verdict)
        idle = await supervisor.abort(child)
        stage.row("H-abort", "when there is nothing to abort", idle.status == "interrupted", idle)


async def abort_tool(stage: Stage) -> None:
    """An abort while a tool runs and text is queued."""
    pid = stage.folder / "tool.pid"
    async with stage.supervisor() as supervisor:
        child = await supervisor.spawn(stage.request(f"RUN echo $$ > {pid}; sleep 60"))
        await until(lambda: number(pid) > 0, "the tool runs")
        await supervisor.steer(child, "SAY queued words")
        aborted = await supervisor.abort(child)
        result = await stage.settled(supervisor, child)
        kept = content(child.session_file)
        await until(lambda: not lives(number(pid)), "the tool is gone")
    stage.row("H-abort-queue", "the queued text is told", aborted.cleared == ("SAY queued words",), aborted)
    stage.row("H-abort-queue", "and stands nowhere in the session", b"queued words" not in kept, "not in the file")
    stage.row("H7", "settled, and said to be aborted", well(result, aborted=True), result)
    stage.row("H-abort", "the tool has ended", not lives(number(pid)), "gone")


async def errors(stage: Stage) -> None:
    """A model that refuses, and one that fails once."""
    async with stage.supervisor() as supervisor:
        child = await supervisor.spawn(stage.request("E400 please"))
        result = await stage.settled(supervisor, child)
        verdict = await supervisor.collect(child)
        stage.row("H7", "a run that ends in an error of the model", well(result), result)
        stage.row("H-verdict", "an error is no verdict", verdict.outcome == "unknown", verdict)
        stage.fact("what a failed run says of itself", f"aborted {result.aborted}", "agent_settled has no word for it")
        await supervisor.retire(child)
        child = await supervisor.spawn(stage.request("E500ONCE SAY no"))
        result = await stage.settled(supervisor, child)
        asked = len([text for text in stage.users() if "E500ONCE" in text])
        verdict = await supervisor.collect(child)
        stage.row(
            "H7", "agent_end before a retry settles nothing", well(result) and asked == 2, (asked, result.settled)
        )
        text = verdict.text
        stage.row("H-verdict", "the answer is that of the retry", text == "Hello from the model.", text)


async def waits(stage: Stage) -> None:
    """A wait that is too short, one that is called off, and a second start of the same child."""
    request = stage.request("HANG please")
    async with stage.supervisor() as supervisor:
        child = await supervisor.spawn(request)
        late = await supervisor.wait_settled(child, 200)
        ok = (late.settled, late.abnormal, late.reason, late.node) == (False, False, "timeout", "timeout")
        stage.row("H12", "its time is over", ok, late)
        stage.row("H12", "the process lives on", supervisor.pid(child) is not None, "alive")
        off = asyncio.Event()
        off.set()
        called = await supervisor.wait_settled(child, 5_000, off)
        row = (called.settled, called.abnormal, called.reason, called.node)
        stage.row("H13", "called off by the parent", row == (False, False, "aborted by parent", "aborted"), called)
        stage.row("H13", "the process lives on", supervisor.pid(child) is not None, "alive")
        try:
            await supervisor.spawn(request)
            second = "it was started"
        except SupervisorError as error:
            second = error.code
        stage.row("H-no-second", "a second start is refused", second == "name-taken", second)
