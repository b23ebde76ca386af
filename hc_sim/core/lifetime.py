"""What befalls a core as a whole: restarts, other clients that were faster, a wall clock that is set."""

from typing import Any

from hc_sim.core.answers import Answer
from hc_sim.core.documents import document_fault, write
from hc_sim.core.ending import be_reborn, end, remove
from hc_sim.core.rules import effective_env, valid_name
from hc_sim.core.status import make_status
from hc_sim.core.terminal import Entry
from hc_sim.core.timeline import begin
from hc_sim.core.world import World
from hc_sim.faults import ClockJump, DocumentFault, Moment, Restart, Rival
from hc_sim.script.format import Reborn
from hc_sim.trace import Event


def happen(world: World, moment: Moment, now: int) -> None:
    """One planned thing happens to the core."""
    match moment:
        case Restart():
            restart(world, moment, now)
        case DocumentFault():
            document_fault(world, moment, now)
        case ClockJump():
            world.started_ms += moment.jump_ms
            world.trace.add(Event(t=now, kind="clock", note=f"the wall clock is set by {moment.jump_ms:+d} ms"))


def restart(world: World, how: Restart, now: int) -> None:
    """The core ends and comes back: what it owed is forgotten, and its terminals are as `how` says."""
    words = f"terminals {how.terminals}" + (", another core id" if how.new_core_id else "")
    world.trace.add(Event(t=now, kind="restart", note=words))
    world.greeted.clear()
    world.started_ms += 1  # whatever is created from here on is younger than what was there, even in the same instant
    world.up_since = now
    for entry in list(world.table):
        _leave(entry)
    if how.documents == "lost":
        world.documents.clear()
    if how.env is not None:
        world.env = dict(how.env)
    if how.new_core_id:
        world.births += 1
        world.core_id = f"{world.first_core_id}-{world.births}"
    if how.terminals != "kept":
        for entry in list(world.table):
            _after_restart(world, entry, how, now)
    world.kin.clear()
    world.owed.clear()
    world.asked.clear()
    world.answered.clear()
    if how.reuse_addresses:
        world.table.start_over()


def rival(world: World, method: str, params: Any, how: Rival, now: int) -> Answer | None:
    """Another client does the same just before: it takes the name, or writes the document.

    Returns the answer to the call when that is decided by it already.
    """
    name = params.get("name") if isinstance(params, dict) else None
    if not isinstance(name, str):
        return None
    if method == "doc.set":
        write(world, name, how.value, now)
    elif method == "terminal.run" and how.unknown:
        return Answer(error=world.refusal("name_taken", f'name "{name}" is taken').error)
    elif method == "terminal.run" and valid_name(name) and world.table.holder(name) is None:
        _run(world, name, how, now)
    return None


def _run(world: World, name: str, how: Rival, now: int) -> None:
    address = world.table.new_address()
    env = effective_env(world.profile, world.env, {}, address, world.socket)
    entry = world.new_entry(address, name, list(how.argv), world.profile.core_cwd, how.labels, env, None, now)
    entry.turn = how.turn or entry.turn
    entry.status = make_status(how.status, None if how.status == "none" else "pi")
    if how.finished is not None:
        entry.state, entry.exit_code = "finished", how.finished
    begin(world, entry, now, played=False)
    if how.dies_ms is not None:
        signal = world.profile.hangup_signal
        world.timers.at(now + how.dies_ms, lambda due: end(world, entry, due, signal=signal))


def _leave(entry: Entry) -> None:
    """Nobody is answered any more: those who wait for it, those whose text is held back."""
    for timer in (*entry.waits.values(), *entry.held.values(), *(entry.stops or {}).values()):
        timer.cancel()
    entry.waits, entry.held, entry.stops = {}, {}, None


def _after_restart(world: World, entry: Entry, how: Restart, now: int) -> None:
    if how.terminals == "lost":
        entry.die_with_parent = False
        remove(world, entry, now)
    elif not entry.live:
        return
    elif how.terminals == "shells" or (how.terminals == "by-keep" and entry.keep):
        be_reborn(world, entry, now, Reborn(argv=[world.profile.shell], parent=entry.parent))
    else:
        entry.exited = True
        end(world, entry, now, signal=world.profile.hangup_signal, alone=True)
    if entry.player is not None:
        entry.player.stop()
        world.actors.pop(id(entry), None)
    if entry.timer is not None:
        entry.timer.cancel()
        entry.timer = None
