"""How terminals end: hangup, end, cascade to children, removal, rebirth.

A finished terminal stays finished until it is removed or reborn.
"""

from typing import TYPE_CHECKING

from hc_sim.core.events import end_views, tell_terminal
from hc_sim.core.kin import drop_kin, tell_parent
from hc_sim.core.rules import session_file
from hc_sim.core.status import complete, note_state
from hc_sim.core.terminal import Entry, show
from hc_sim.core.waits import drop_held, drop_waits, end_stops, end_waits
from hc_sim.core.world import World
from hc_sim.script.format import Agent, Reborn
from hc_sim.trace import Event

if TYPE_CHECKING:
    from hc_sim.core.programs import Program

MAX_REMOVED = 4_096
"""Addresses and names of removed terminals whose last look is kept."""

How = tuple[int | None, str | None]
"""Exit code, or name of the signal."""


def begin_end(world: World, entry: Entry, now: int, *, delay: int = 0) -> None:
    """Hang up on a program: it ends now, later, or never, as its agent has it."""
    agent = entry.player.agent if entry.player is not None else None
    if entry.program is not None:
        _hang_up_on(world, entry, entry.program, now, delay)
        return
    if not entry.live or entry.dying is not None or (agent is not None and agent.kill_ms is None):
        return
    code, signal = _how(world, agent)
    due = now + delay + ((agent.kill_ms or 0) if agent is not None else 0)
    if due <= now:
        end(world, entry, now, code=code, signal=signal)
    else:
        entry.dying = world.timers.at(due, lambda at: end(world, entry, at, code=code, signal=signal))


def _hang_up_on(world: World, entry: Entry, program: "Program", now: int, delay: int) -> None:
    """Hang up on a program that really runs; when it ends is up to the program."""
    grace = world.profile.program_grace_ms
    if not delay:
        program.hang_up(grace)
    elif entry.dying is None:
        entry.dying = world.timers.at(now + delay, lambda _: program.hang_up(grace))


def end(
    world: World, entry: Entry, now: int, *, code: int | None = None, signal: str | None = None, alone: bool = False
) -> None:
    """The program has ended, by exit code or by signal (neither: code 0). Its children are hung up on.

    `alone`: they are left alone.
    """
    ending = [(entry, code, signal)]
    while ending:
        one, its_code, its_signal = ending.pop()
        if not one.live or one.gone or _lingers(world, one, now, its_code, its_signal):
            continue
        _end_one(world, one, now, its_code, its_signal)
        if alone or world.profile.cascade == "none" or (one is not entry and world.profile.cascade == "children"):
            continue
        for child in world.table.children(one.address):
            if child.live and child.die_with_parent:
                _hang_up(world, child, now, ending)


def _hang_up(world: World, child: Entry, now: int, ending: list[tuple[Entry, int | None, str | None]]) -> None:
    """As `begin_end`, but an end that comes at once is put on the list instead of being carried out in depth."""
    agent = child.player.agent if child.player is not None else None
    if agent is not None and agent.parent_end == "outlives":
        return
    wait = world.profile.cascade_ms + (agent.parent_ms if agent is not None and agent.parent_end == "ends" else 0)
    at_once = child.program is None and child.dying is None and (agent is None or agent.kill_ms == 0)
    if wait or not at_once:
        begin_end(world, child, now, delay=wait)
    else:
        ending.append((child, *_how(world, agent)))


def _how(world: World, agent: Agent | None) -> How:
    if agent is None:
        return None, world.profile.hangup_signal
    return (agent.kill_code, None) if agent.kill_code is not None else (None, agent.kill_signal)


def _end_one(world: World, entry: Entry, now: int, code: int | None, signal: str | None) -> None:
    _let_go(world, entry)
    world.table.finish(entry)
    entry.exit_code = 0 if code is None and signal is None else code
    entry.signal = signal
    _leave_processes(world, entry, now)
    note_state(world, entry, now)
    end_waits(world, entry)
    end_stops(world, entry)
    end_views(world, entry, "finished")
    drop_held(world, entry, f'terminal "{entry.address}" has finished')
    if entry.rm:
        remove(world, entry, now)


def _lingers(world: World, entry: Entry, now: int, code: int | None, signal: str | None) -> bool:
    """Whether the program has ended while something holds its terminal open: it will have finished later."""
    agent = entry.player.agent if entry.player is not None else None
    if agent is None or agent.eof_ms <= 0 or entry.exited:
        return False
    entry.exited = True
    _process(world, entry, now, "exited", entry.argv[0])
    entry.dying = world.timers.at(now + agent.eof_ms, lambda due: end(world, entry, due, code=code, signal=signal))
    return True


def _leave_processes(world: World, entry: Entry, now: int) -> None:
    """What the program started and does not take with it; and its own process, while nobody has reaped it."""
    agent = entry.player.agent if entry.player is not None else None
    if agent is None:
        return
    for survivor in agent.survivors:
        _process(world, entry, now, "left", survivor)
    if agent.zombie_ms > 0:
        entry.zombie = True
        _process(world, entry, now, "zombie", entry.argv[0])
        world.timers.at(now + agent.zombie_ms, lambda due: _reap(world, entry, due))


def _reap(world: World, entry: Entry, now: int) -> None:
    if entry.zombie:
        entry.zombie = False
        _process(world, entry, now, "reaped", entry.argv[0])


def _process(world: World, entry: Entry, now: int, note: str, text: str) -> None:
    world.trace.add(Event(t=now, kind="process", terminal=entry.address, name=entry.name or "", note=note, text=text))


def remove(world: World, entry: Entry, now: int) -> None:
    """Take a terminal out of the list. What is left of its timeline is still played, so that it can be reborn."""
    if entry.gone:
        return
    live = entry.live
    if entry.dying is not None:  # an end that was under way has nothing left to end
        entry.dying.cancel()
        entry.dying = None
    _abandon(world, entry)
    children = [child for child in world.table.children(entry.address) if child.live and child.die_with_parent]
    world.table.remove(entry)
    entry.gone = True
    world.trace.add(Event(t=now, kind="gone", terminal=entry.address, name=entry.name or "", state=entry.state))
    _keep_look(world, entry)
    tell_terminal(world, "terminal.removed", entry)
    if world.kin:
        tell_parent(world, entry)
        drop_kin(world, entry)
    drop_waits(world, entry)
    drop_held(world, entry, f'terminal "{entry.address}" is gone')
    end_stops(world, entry)
    end_views(world, entry, "removed")
    if live and world.profile.cascade != "none":
        ending: list[tuple[Entry, int | None, str | None]] = []
        for child in children:
            _hang_up(world, child, now, ending)
        for child, code, signal in ending:
            end(world, child, now, code=code, signal=signal)


def be_reborn(world: World, entry: Entry, now: int, reborn: Reborn) -> None:
    """The terminal comes back as another incarnation, if nobody else has its address by now.

    Its name comes back with it unless a live terminal holds it. `created_ms` is always later than before.
    """
    if entry.gone:
        if world.table.find(entry.address) is not None:
            return
    else:
        if entry.live:
            _let_go(world, entry)
            drop_held(world, entry, f'terminal "{entry.address}" was replaced')
        tell_terminal(world, "terminal.removed", entry)
        end_stops(world, entry)
        end_views(world, entry, "replaced")
        world.table.remove(entry)
    if entry.name is not None and world.table.holder(entry.name) is not None:
        entry.name = None
    entry.gone = False
    entry.argv, entry.parent = list(reborn.argv), reborn.parent
    entry.session_file = session_file(entry.argv, entry.cwd) or entry.session_file
    entry.created_ms = max(entry.created_ms + 1, world.started_ms + now)
    entry.turn, entry.status = world.profile.first_turn, None
    entry.state, entry.exit_code, entry.signal = "running", None, None
    entry.composer, entry.returned, entry.overlay = "", False, False
    entry.exited = entry.zombie = False
    world.last_pid += 1
    entry.pid = world.last_pid
    if reborn.new_core_id:
        world.births += 1
        world.core_id = f"{world.first_core_id}-{world.births}"
    world.table.add(entry)
    note_state(world, entry, now, "terminal.created")


def _keep_look(world: World, entry: Entry) -> None:
    if world.profile.get_removed != "last":
        return
    look = show(entry, world.profile)
    for key in (entry.address, entry.name):
        if key is not None:
            world.removed.pop(key, None)
            world.removed[key] = look
    while len(world.removed) > MAX_REMOVED:
        del world.removed[next(iter(world.removed))]


def _let_go(world: World, entry: Entry) -> None:
    """Nothing that was under way for this incarnation happens any more."""
    complete(entry)
    _abandon(world, entry)
    if entry.dying is not None:
        entry.dying.cancel()
        entry.dying = None
    if entry.esc is not None:
        entry.esc.cancel()
        entry.esc = None
    entry.queue.clear()


def _abandon(world: World, entry: Entry) -> None:
    """What really runs in this terminal is ended, and heard of no more."""
    if entry.program is not None:
        entry.program.abandon(world.profile.program_grace_ms)
        entry.program = None
