"""Probes of programs and what they report: start, environment, status, turn, texts, the stop key, ends."""

from typing import Any, Final

from contracts.live.corner import terminal_of
from contracts.live.shapes import models
from contracts.live.stage import (
    QUIET_MS,
    SEE_MS,
    ProbeSkippedError,
    Program,
    Stage,
    is_finished,
    nearly,
    shows,
    word_of,
)

ODD: Final = ("two words", "", "$HOME *", "'q' \"q\"", "`x`\\n", "“ünï”")
"""Arguments that only arrive as they are if no shell reads them."""
GRACE_MS: Final = 30_000
"""How long a program that does not want to end may take to be killed."""


async def started(stage: Stage) -> None:
    """What a started program finds: its arguments, its folder, a terminal, the two markers, the overlay."""
    stage.need_programs()
    sheet, corner = stage.sheet, stage.corner
    path = f"{corner.folder}/bin:/usr/local/bin:/usr/bin:/bin"
    overlay = {"LGV_OVERLAY": "a b=c", "LGV_EMPTY": "", "LGV_ODD": ODD[2], "PATH": path}
    program = await stage.run("prog", "idle", more=ODD, env=overlay)
    entry = await _first(stage, program)
    if entry is None:
        sheet.fact("run.starts", "C3", False, True, level="must", say="a started program runs")
        return
    env = entry.get("env", {})
    argv = [*corner.acts(program.log, "idle")[2:], *ODD]
    sheet.fact(
        "run.argv_given", "C3", entry.get("argv") == argv, True, level="must", say="argv arrives as it was given"
    )
    sheet.fact("run.env", "C3", {key: env.get(key) for key in overlay} == overlay, True, level="must",
               say="the environment of a start is laid over the core's own")  # fmt: skip
    marked = env.get("HC_TERMINAL_ID") == program.address and bool(env.get("HC_TERMINAL_SOCKET"))
    sheet.fact("run.markers", "C3", marked, True, level="must", say="a program finds its address and the core's socket")
    shown = await stage.get(program.address) or {}
    sheet.fact("run.pid", "C3", isinstance(shown.get("pid"), int), True, say="the process of a live terminal is shown")
    sheet.fact("run.tty", "C3", entry.get("tty"), True, level="must", say="a program has a terminal")
    sheet.fact("run.in_folder", "C3", entry.get("cwd") == str(corner.folder / "work"), True, say="the folder is given")
    plain = await stage.run("path", "idle")
    entry = await _first(stage, plain)
    if entry is not None and isinstance(path := entry.get("env", {}).get("PATH"), str):
        sheet.learn("core_path", path)
    await _path_lookup(stage, overlay)
    await stage.end(program)
    await stage.end(plain)


async def _path_lookup(stage: Stage, overlay: dict[str, str]) -> None:
    """Whether a bare name is looked for on the PATH of the start: only then is the supervisor's `pi` ours."""
    stand_in = stage.corner.folder / "bin" / f"lgv-{stage.corner.owner.token}"
    stand_in.write_bytes((stage.corner.folder / "bin" / "pi").read_bytes())
    stand_in.chmod(0o700)
    log = stage.corner.log("lookup")
    found = False
    reply = await stage.peer.ask(
        "terminal.run",
        {
            "argv": [stand_in.name, "acts", str(log), "exit:0"],
            "env": overlay,
            "labels": stage.corner.labels,
            "name": stage.corner.name("lookup"),
            **({stage.caller_key: stage.home} if stage.caller_key else {}),
        },
    )
    if (terminal := terminal_of(reply)) is not None:
        stage.corner.took(terminal)
        found = await stage.corner.entries(log, within_ms=SEE_MS) is not None
    stage.sheet.core["finds_by_given_path"] = found
    stage.sheet.fact("run.path", "C3", found, True, say="a program is looked for on the PATH that was given")


async def _first(stage: Stage, program: Program) -> dict[str, Any] | None:
    entries = await stage.corner.entries(program.log)
    return entries[0] if entries else None


async def exits(stage: Stage) -> None:
    """How the end of a program shows: exit code, signal, what stays of its status."""
    stage.need_programs()
    sheet = stage.sheet
    by_code = await stage.run("code", "working sleep:30 exit:7")
    by_signal = await stage.run("signal", "done signal:SIGKILL")
    well = await stage.run("well", "exit:0")
    shown = await stage.seen(by_code.address, is_finished)
    sheet.fact("exit.finishes", "C7", shown is not None, True, level="must", say="a program that ends is finished")
    if shown is not None:
        key = _key_of(shown, 7)
        sheet.fact("exit.code", "C7", key is not None, True, level="must", say="the exit code is shown")
        if key is not None:
            sheet.learn("exit_code_key", key)
            ended = await stage.seen(well.address, is_finished) or {}
            sheet.fact(
                "exit.zero", "C7", ended.get(key), 0, level="must", say="a program that ends well has exit code 0"
            )
        word = word_of(shown)
        sheet.fact("exit.working", "C5", word != "working", True, say="what has ended does not work any more")
    shown = await stage.seen(by_signal.address, is_finished)
    if shown is not None:
        key = _key_of(shown, "SIGKILL") or _key_of(shown, 9)
        spelt = key or _renamed(stage, shown)
        if spelt is not None:
            sheet.learn("signal_key", spelt)
        code = shown.get(sheet.value("exit_code_key"))
        sheet.learn("signal_style", "exit-128" if code == 137 else "key")
        sheet.fact("exit.signal", "C7", key is not None or code == 137, True, say="the signal that ended it is shown")
        if not stage.reports:
            return
        sheet.fact("exit.done", "C5", word_of(shown), "done", say="done outlives its program")


def _renamed(stage: Stage, shown: dict[str, Any]) -> str | None:
    """The one member without a value that no other is known as, on a core that shows a signal as an exit code."""
    known = {*models()["terminal"], stage.sheet.value("exit_code_key")}
    new = [key for key, value in shown.items() if key not in known and value is None]
    return new[0] if len(new) == 1 and "signal" not in shown else None


def _key_of(shown: dict[str, Any], value: Any) -> str | None:
    keys = [
        key for key, one in shown.items() if type(one) is type(value) and one == value and key not in ("turn", "pid")
    ]
    return keys[0] if keys else None


async def kills(stage: Stage) -> None:
    """A kill begins with a hangup, and goes on to what cannot be refused."""
    stage.need_programs()
    program = await stage.run("hangup")
    await stage.corner.entries(program.log)
    if not stage.kills:
        raise ProbeSkippedError("a kill does not end a program here")
    await stage.on("terminal.kill", program.address)
    entries = await stage.corner.entries(
        program.log, lambda found: any(one["what"] == "signal" for one in found), 1_500
    )
    if entries:
        first = next(entry["name"] for entry in entries if entry["what"] == "signal")
        stage.sheet.learn("hangup_signal", first)
        stage.sheet.fact("kill.hangup", "C7", first, "SIGHUP", say="a kill begins with a hangup")


async def grace(stage: Stage) -> None:
    """How long a kill waits from one step to the next. Slow on purpose."""
    stage.need_programs()
    if not stage.kills:
        raise ProbeSkippedError("a kill does not end a program here")
    program = await stage.run("tough", "tough say:ready")
    await stage.corner.entries(program.log, lambda found: any(one["what"] == "tough" for one in found))
    await stage.on("terminal.kill", program.address)
    await stage.seen(program.address, is_finished, GRACE_MS)
    entries = await stage.corner.entries(program.log) or []
    at = [int(one["at"]) for one in entries if one["what"] == "signal"]
    if len(at) > 1:
        stage.sheet.learn("program_grace_ms", nearly(at[1] - at[0]))


async def family(stage: Stage) -> None:
    """What becomes of children and grandchildren when a parent ends."""
    stage.need_programs()
    if "parent" not in stage.known or not stage.kills:
        raise ProbeSkippedError("a parent is not shown, or does not end by a kill")
    parent = await stage.run("parent")
    child = await stage.run("child", die_with_parent=True, caller=parent.address)
    grandchild = await stage.run("grand", die_with_parent=True, caller=child.address)
    apart = await stage.run("apart", die_with_parent=False, caller=parent.address)
    await stage.kill(parent.address)
    first = await stage.seen(child.address, is_finished, 1_500)
    second = await stage.seen(grandchild.address, is_finished, 1_500 if first else QUIET_MS)
    stage.sheet.learn("cascade", "hangup" if second else "children" if first else "none")
    shown = await stage.get(apart.address)
    lives = shown is not None and not is_finished(shown)
    stage.sheet.fact("parent.apart", "C7", lives, True, say="a child that is not to die with its parent lives on")
    for program in (apart, grandchild, child):
        await stage.end(program)
    if first is not None:
        await _leaves(stage)


async def _leaves(stage: Stage) -> None:
    """A parent that ends by itself, and not by a kill."""
    parent = await stage.run("leaves", "idle")
    child = await stage.run("left", die_with_parent=True, caller=parent.address)
    await stage.corner.entries(parent.log)
    if not (await stage.on("terminal.send", parent.address, text="acts: exit:0")).ok:
        return
    if await stage.seen(parent.address, is_finished) is not None:
        ended = await stage.seen(child.address, is_finished, 1_500)
        stage.sheet.fact(
            "parent.leaves", "C7", ended is not None, True, say="children end with a parent that just ends"
        )
    await stage.end(child)


async def screen(stage: Stage) -> None:
    """What was printed can be read, and reading it leaves a done alone."""
    stage.need_programs(reports=True)
    program = await stage.run("screen", "say:printed-here say:second prompt:unfinished working done")
    await stage.seen(program.address, shows("done"))
    reply = await stage.on("terminal.read", program.address)
    if not reply.ok:
        stage.sheet.refused["terminal.read"] = f"it is answered with {reply.kind}"
        await stage.end(program)
        return
    text = str(reply.result)
    stage.sheet.fact("read.text", "C9", "printed-here" in text, True, say="what a program printed can be read")
    stage.sheet.fact("read.unfinished", "C9", "unfinished" in text, True, say="a line that has not ended can be read")
    few = await stage.on("terminal.read", program.address, lines=1)
    if few.ok:
        stage.sheet.fact(
            "read.lines", "C9", "printed-here" in str(few.result), False, say="only the last lines are read"
        )
    if "done-stays" in stage.known:
        stage.sheet.learn("read_sees", word_of(await stage.get(program.address)) == "idle")
    await stage.end(program)
