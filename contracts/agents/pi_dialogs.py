"""Live parts: what becomes of the questions and of the trust of the real `pi`, under our supervisor."""

import asyncio
from pathlib import Path
from typing import Any

from contracts.agents.pi_runs import well
from contracts.agents.stage import APPENDED, ASKING, Stage, entries, until
from legion_terminal.rpc.dialogs import DialogAnswer
from legion_terminal.types import Child


async def policies(stage: Stage) -> None:
    """One question under each policy, and one of a kind that nobody can approve."""
    extension = stage.extension(ASKING)

    async def yes(child: Child, dialog: Any) -> DialogAnswer:
        return DialogAnswer(confirmed=True)

    for policy, ask, asks, runs in (
        ("forward", yes, "confirm", True),
        ("auto-approve", None, "confirm", True),
        ("notify", None, "confirm", False),
        ("auto-approve", None, "select", False),
    ):
        async with stage.supervisor(on_blocked=policy, ask=ask) as supervisor:  # type: ignore[arg-type]
            request = stage.request("TOOL please", extensions=(extension,), env={"LEGION_ASKS": asks})
            child = await supervisor.spawn(request)
            result = await stage.settled(supervisor, child)
            ran = [one["message"]["isError"] for one in _messages(child) if one["message"]["role"] == "toolResult"]
            stage.row("H6", f"{asks} under {policy}: the run goes on", well(result), result)
            stage.row(
                "H6", f"{asks} under {policy}: the tool {'ran' if runs else 'did not run'}", ran == [not runs], ran
            )
            stage.row("H-dialog-once", "no question is left", not supervisor.dialogs(child), supervisor.dialogs(child))
            extras = [word for word in child.argv if "approve" in word]
            stage.row("H5", f"{policy} changes no flag", not extras, extras)


async def open_question(stage: Stage) -> None:
    """A question that the parent leaves open: blocked, answered by hand; aborted; retired."""
    extension = stage.extension(ASKING)
    async with stage.supervisor() as supervisor:
        child = await supervisor.spawn(stage.request("TOOL please", extensions=(extension,)))
        await until(lambda: bool(supervisor.dialogs(child)), "the question came")
        status = (await supervisor.status(child)).status
        answered = await supervisor.answer(child, DialogAnswer(confirmed=True))
        result = await stage.settled(supervisor, child)
        stage.row("H6", "a child with an open question is blocked", status == "blocked", status)
        stage.row("H6", "the parent's answer lets the run go on", answered and well(result), result)
        await supervisor.prompt(child, "TOOL once more")
        await until(lambda: bool(supervisor.dialogs(child)), "the question came")
        aborted = await supervisor.abort(child)
        result = await stage.settled(supervisor, child)
        stage.row("H-abort", "with a question open", well(result, aborted=True), aborted)
        await supervisor.prompt(child, "TOOL a third time")
        await until(lambda: bool(supervisor.dialogs(child)), "the question came")
        waiting = asyncio.create_task(supervisor.wait_settled(child, 20_000))
        retired = await supervisor.retire(child)
        result = await waiting
        row = (result.settled, result.abnormal, result.node)
        in_time = well(result)  # the cancelled question let the run come to its end before the signal did
        stage.row("H8", "retired with a question open", row == (False, False, "retired") or in_time, result)
        stage.row("H-escalate", "a retire with a question open ends it", retired.ended, retired)
        stage.fact("retired with a question open", result, "a lone TERM does not end it then")


async def trust(stage: Stage) -> None:
    """A project with guarded settings, with and without the approve setting."""
    guarded = stage.work / ".pi"
    guarded.mkdir()
    (guarded / "APPEND_SYSTEM.md").write_text(APPENDED)
    for approve in (False, True):
        async with stage.supervisor(approve=approve) as supervisor:
            before = _kept(stage.agent_folder)
            child = await supervisor.spawn(stage.request("PLAIN please"))
            result = await stage.settled(supervisor, child)
            flags = [word for word in child.argv if word in ("--approve", "-a", "--no-approve")]
            loaded = APPENDED in stage.model.requests[-1].system
            clause = "H4" if approve else "H3"
            stage.row(
                clause, f"the flags with approve {'on' if approve else 'off'}", flags == ["--approve"] * approve, flags
            )
            stage.row(clause, f"the project is {'heard' if approve else 'not heard'}", loaded is approve, loaded)
            stage.row("H7", "the run ends by itself", well(result), result)
            stage.row(
                "H2", "trust and settings of the machine are left alone", _kept(stage.agent_folder) == before, before
            )


def _messages(child: Child) -> list[dict[str, Any]]:
    return [entry for entry in entries(child.session_file) if entry.get("type") == "message"]


def _kept(folder: Path) -> dict[str, str]:
    names = ("trust.json", "settings.json", "models.json")
    return {name: (folder / name).read_text() for name in names if (folder / name).exists()}
