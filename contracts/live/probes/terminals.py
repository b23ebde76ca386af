"""Probes of terminals that need no status: start, look, list, names, labels, ends, removal."""

from typing import Any, Final

from contracts.live.corner import rows, terminal_of
from contracts.live.problem import LiveError
from contracts.live.stage import QUIET_MS, SEE_MS, ProbeSkippedError, Program, Stage, is_finished, turn_of, word_of

CALLER_KEYS: Final = ("caller", "parent", "from", "terminal_id")
TARGET_KEYS: Final = ("terminal", "target", "address", "id", "name")
_OF_A_START: Final = frozenset(
    ("argv", "line", "env", "labels", "cwd", "name", "keep", "rm", "die_with_parent", "on", "task", "cols", "rows")
)
"""Parameters of a start that are known not to say who asks."""
_MS_SINCE: Final = 1_000_000_000_000
"""A time in milliseconds since the epoch is larger than this (2001), one in seconds far smaller."""


async def home(stage: Stage) -> None:
    """Start the terminal that all others are children of, and learn how a core wants to be asked about it."""
    corner, sheet = stage.corner, stage.sheet
    log = corner.log("home")
    params = {
        "argv": corner.home(log),
        "name": corner.name("home"),
        "labels": corner.home_labels,
        "cwd": str(corner.folder / "work"),
    }
    reply = await stage.peer.ask("terminal.run", params)
    terminal = terminal_of(reply)
    address = None if terminal is None else terminal.get("address")
    if terminal is None or not isinstance(address, str):
        raise ProbeSkippedError(f"no terminal can be started: terminal.run says {reply.kind or reply.result!r}")
    corner.took(terminal)
    stage.home = address
    sheet.learn("wrap_terminal", terminal is not reply.result)
    sheet.learn("address_style", "decimal" if address.removeprefix("t").isdecimal() else "suffix")
    await _target_key(stage)
    entries = await corner.entries(log, within_ms=PROGRAM_MS)
    stage.programs = entries is not None
    sheet.core["starts_programs"] = stage.programs
    if stage.programs:
        await _caller_key(stage)


PROGRAM_MS: Final = 3_000
"""How long a started program may take to write its first line."""


async def _target_key(stage: Stage) -> None:
    candidates = stage.candidates("terminal.get", TARGET_KEYS, ())
    for key in candidates:
        stage.corner.target_key = key
        shown = terminal_of(await stage.on("terminal.get", stage.home))
        if shown is not None and shown.get("address") == stage.home:
            stage.sheet.learn("target_key", key)
            return
    tried = ", ".join(candidates)
    raise LiveError(f"terminal.get finds nothing under any of the parameters that were tried ({tried})")


async def _caller_key(stage: Stage) -> None:
    """Which parameter makes a started terminal a child of the one that asks."""
    for key in stage.candidates("terminal.run", CALLER_KEYS, _OF_A_START):
        stage.caller_key = key
        try:
            program = await stage.run("kin", "", argv=["/bin/true"])
        except ProbeSkippedError:
            continue
        if program.terminal.get("parent") == stage.home:
            stage.sheet.learn("caller_key", key)
            return
    stage.caller_key = ""


async def start(stage: Stage) -> None:
    """A start: everything that was given is shown again, and the terminal is there."""
    labels = {**stage.corner.labels, "live.a": "1", "live.b": "two words"}
    program = await stage.run("start", labels=labels)
    shown, sheet = program.terminal, stage.sheet
    sheet.fact("run.name", "C3", shown.get("name"), program.name, level="must", say="the name of a started terminal")
    argv = stage.corner.acts(program.log, "")
    sheet.fact("run.argv", "C3", shown.get("argv") == argv, True, level="must", say="argv is shown as it was given")
    cwd = str(stage.corner.folder / "work")
    sheet.fact("run.cwd", "C3", shown.get("cwd") == cwd, True, say="the folder is shown as it was given")
    stage.labels = shown.get("labels") == labels
    sheet.fact("run.labels", "C3", stage.labels, True, level="must", say="labels are kept")
    parent = shown.get("parent") == stage.home
    stage.known |= {"parent"} if parent else set()
    sheet.fact("run.parent", "C3", parent, True, level="must", say="the caller is the parent")
    if isinstance(shown.get("state"), str):
        sheet.learn("live_state", shown["state"])
    if (turn := turn_of(shown)) is not None:
        sheet.learn("first_turn", turn)
    if parent and isinstance(shown.get("die_with_parent"), bool):
        sheet.learn("die_with_parent", shown["die_with_parent"])
    if word_of(shown) == "none":
        sheet.learn("no_status", "null" if "status" in shown else "omit")
    _created(stage, shown)
    await _looks(stage, program)
    await _labels(stage, program)
    await stage.end(program)


def _created(stage: Stage, shown: dict[str, Any]) -> None:
    created = shown.get("created_ms")
    unit = "no number"
    if isinstance(created, int) and not isinstance(created, bool):
        unit = "milliseconds" if created > _MS_SINCE else "something smaller"
    stage.sheet.fact(
        "terminal.created_ms.unit", "C3", unit, "milliseconds", level="must", say="created_ms counts milliseconds"
    )


async def _looks(stage: Stage, program: Program) -> None:
    sheet = stage.sheet
    for word, target in (("address", program.address), ("name", program.name)):
        shown = await stage.get(target)
        same = shown is not None and shown.get("address") == program.address
        stage.known |= {f"by-{word}"} if same else set()
        sheet.fact(f"get.by_{word}", "C3", same, True, level="must", say=f"a terminal is found by its {word}")
    if "by-name" in stage.known:
        part = await stage.get(program.name[:-1])
        sheet.fact("get.exact", "C3", part, None, level="must", say="a part of a name leads nowhere")
    filtered = await stage.listed()
    addresses = [row.get("address") for row in filtered]
    sheet.fact("list.own", "C3", program.address in addresses, True, level="must", say="a live terminal is listed")
    if not stage.labels:
        return
    others = [row for row in filtered if not stage.corner.is_labelled(row)]
    sheet.fact("list.labels", "C3", not others, True, say="a list with labels has only those that carry them")
    both = {**stage.corner.labels, "live.a": "other"}
    none = rows(await stage.ask("terminal.list", labels=both))
    sheet.fact("list.all_labels", "C3", not none, True, say="all of the given labels have to be carried")


async def _labels(stage: Stage, program: Program) -> None:
    before = program.terminal.get("labels") or {}
    reply = await stage.on("terminal.label", program.address, labels={"live.a": None, "live.c": "3"})
    if not reply.ok:
        stage.sheet.refused["terminal.label"] = f"it is answered with {reply.kind}"
        return
    shown = await stage.get(program.address) or {}
    labels = {**before, "live.c": "3"}
    labels.pop("live.a", None)
    stage.sheet.fact("label.set", "C3", shown.get("labels") == labels, True, say="labels are set and taken away")


async def names(stage: Stage) -> None:
    """Names: one live terminal each, free again afterwards; what is no name is refused."""
    sheet = stage.sheet
    holder = await stage.run("name")
    reply = await _run_named(stage, holder.name)
    sheet.fact("name.unique", "C4", not reply.ok, True, level="must", say="a live terminal's name is refused")
    sheet.error("name_taken", reply.error)
    own = f"{holder.name[:12]}-"  # what is taken all the same has to be known as ours by its name too
    reply = await _run_named(stage, f"{own}Not A Name!")
    sheet.fact("name.rule", "C4", not reply.ok, True, say="a name of other characters is refused")
    reply = await _run_named(stage, own.ljust(33, "x"))
    sheet.fact("name.length", "C4", not reply.ok, True, say="a name of 33 characters is refused")
    if await stage.kill(holder.address) is None:
        raise ProbeSkippedError("what was killed has not finished")
    reply = await _run_named(stage, holder.name)
    blocks, successor = not reply.ok, terminal_of(reply)
    if successor is None:
        await stage.on("terminal.rm", holder.address)
        reply = await _run_named(stage, holder.name)
        successor = terminal_of(reply)
    sheet.fact("name.free_again", "C4", successor is not None, True, level="must", say="a name is free again")
    if successor is None:
        return
    sheet.learn("finished_names_block", blocks)
    if "by-name" in stage.known:
        fresh = await stage.get(holder.name) or {}
        newest = fresh.get("address") == successor.get("address")
        sheet.fact(
            "name.finds_live", "C4", newest, True, say="a name leads to the live terminal, not to a finished one"
        )


async def _run_named(stage: Stage, name: str) -> Any:
    """Start something under a name that may be refused; if it is not, it is ours all the same."""
    reply = await stage.peer.ask(
        "terminal.run",
        {
            "argv": stage.corner.acts(stage.corner.log("named"), ""),
            "name": name,
            "labels": stage.corner.labels,
            **({stage.caller_key: stage.home} if stage.caller_key else {}),
        },
    )
    terminal = terminal_of(reply)
    if terminal is not None:
        stage.corner.took(terminal)
    return reply


async def ends(stage: Stage) -> None:
    """Kill and removal: what a kill leaves, what rm takes, and what each says at the wrong time."""
    sheet = stage.sheet
    program = await stage.run("end")
    shown = await stage.get(program.address)
    live_state = None if shown is None else shown.get("state")
    sheet.fact("run.live", "C7", live_state not in (None, "finished"), True, level="must", say="what was started runs")
    reply = await stage.on("terminal.rm", program.address)
    sheet.learn("rm_live", "kill" if reply.ok else "refuse")
    sheet.error("not_finished", reply.error)
    if reply.ok:
        stage.corner.forget(program.address)
        program = await stage.run("end")
    reply = await stage.on("terminal.kill", program.address)
    sheet.fact("kill.answered", "C7", reply.ok, True, level="must", say="a live terminal can be killed")
    ended = await stage.seen(program.address, is_finished, SEE_MS if stage.kills else QUIET_MS)
    sheet.fact(
        "kill.finishes", "C7", ended is not None, True, level="must", say="what was killed is finished and stays"
    )
    if ended is None:
        return
    await _after_end(stage, program)
    listed = await stage.listed()
    live = [row for row in listed if row.get("address") == program.address]
    sheet.fact("list.live_only", "C3", not live, True, say="a list has no finished terminals")
    listed = await stage.listed(finished_too=True)
    there = any(row.get("address") == program.address for row in listed)
    sheet.fact("list.all", "C3", there, True, say="a list of all has finished terminals too")
    await _removal(stage, program)


async def _after_end(stage: Stage, program: Program) -> None:
    sheet = stage.sheet
    reply = await stage.on("terminal.kill", program.address)
    sheet.learn("kill_finished", "accept" if reply.ok else "refuse")
    sheet.error("not_live", reply.error)
    reply = await stage.on("terminal.send", program.address, text="nobody hears this")
    sheet.fact("send.finished", "C6", not reply.ok, True, say="nothing can be sent to what has finished")
    sheet.error("not_live", reply.error)


async def _removal(stage: Stage, program: Program) -> None:
    sheet = stage.sheet
    reply = await stage.on("terminal.rm", program.address)
    sheet.fact("rm.answered", "C4", reply.ok, True, level="must", say="a finished terminal can be removed")
    if reply.ok:
        stage.corner.forget(program.address)
    reply = await stage.on("terminal.get", program.address)
    sheet.learn("get_removed", "last" if reply.ok else "error")
    again = await stage.run("again")
    sheet.learn("reuse_addresses", again.address == program.address)
    stale = await stage.get(program.name)
    sheet.fact("rm.gone", "C4", stale is None or reply.ok, True, level="must", say="what was removed is gone")
    await stage.end(again)


async def small_things(stage: Stage) -> None:
    """Starts without some of the parameters, and starts that must fail."""
    sheet = stage.sheet
    gone = str(stage.corner.folder / "work" / "not-there")
    reply = await stage.peer.ask(
        "terminal.run",
        {"argv": ["/bin/true"], "cwd": gone, "labels": stage.corner.labels, "name": stage.corner.name("x")},
    )
    if (terminal := terminal_of(reply)) is not None:
        stage.corner.took(terminal)
    sheet.error("spawn_failed", reply.error)
    program = await stage.run("plain", cwd=None, argv=None, line="exit 0")
    argv, cwd = program.terminal.get("argv"), program.terminal.get("cwd")
    if isinstance(argv, list) and argv:
        sheet.learn("shell", argv[0])
    if isinstance(cwd, str):
        sheet.learn("core_cwd", cwd)
    await stage.seen(program.address, is_finished, SEE_MS if stage.programs else 0)
    reply = await stage.on("terminal.keep", program.address, keep=True)
    if not reply.ok:
        sheet.refused["terminal.keep"] = f"it is answered with {reply.kind}"
    else:
        shown = terminal_of(reply) or {}
        sheet.fact("keep.set", "C3", shown.get("keep"), True, say="keep can be asked for later")
        await stage.on("terminal.keep", program.address, keep=False)
    await stage.end(program)
