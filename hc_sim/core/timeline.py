"""Agents acting out their timelines: who plays which terminal, and what a step that fires does."""

from hc_sim.core.answers import FileEffect
from hc_sim.core.composer import answer_dialog, escape_later
from hc_sim.core.ending import be_reborn, begin_end, end, remove
from hc_sim.core.events import tell_terminal
from hc_sim.core.programs import launch
from hc_sim.core.rules import matches, session_file, task_in
from hc_sim.core.status import change, make_status
from hc_sim.core.terminal import Entry
from hc_sim.core.world import World
from hc_sim.script.format import Agent, FileWrite, Step
from hc_sim.script.player import Fired, Player
from hc_sim.trace import Event

MAX_STEPS_AT_ONCE = 100_000
"""More steps of one timeline at one moment are a timeline that never waits; none that was checked gets there."""

MAX_WRITE_BYTES = 64 * 1024 * 1024
"""At most so many bytes go into a session file in one step."""


class ScriptError(Exception):
    """A timeline that cannot be played."""


def begin(world: World, entry: Entry, now: int, *, played: bool) -> None:
    """Put a new terminal into the world, and an agent into it if one matches and it is to be played.

    A program that no agent plays is really started, if the core can; raises `RefusalError` when that fails.
    """
    entry.session_file = session_file(entry.argv, entry.cwd)
    agent = _take_agent(world, entry) if played else None
    if agent is not None:
        entry.player = Player(agent, now)
        if task_in(entry.argv) is not None:
            entry.player.prompted()
        entry.app, entry.send, entry.composer = agent.app, agent.send, agent.composer
        entry.turn = agent.turn or entry.turn
        entry.status = make_status(agent.status, agent.app)
        world.actors[id(entry)] = entry
    elif played:
        launch(world, entry)
    world.table.add(entry)
    world.trace.add(
        Event(
            t=now, kind="run", terminal=entry.address, name=entry.name or "", argv=entry.argv, env=entry.env,
            labels=dict(entry.labels), cwd=entry.cwd, parent=entry.parent, turn=entry.turn, status=entry.word,
            state=entry.state,
        )
    )  # fmt: skip
    tell_terminal(world, "terminal.created", entry)
    if agent is not None and agent.parent_end == "early" and entry.die_with_parent:
        world.timers.at(now + agent.parent_ms, lambda due: begin_end(world, entry, due))
    play_due(world, entry, now)


def escape(world: World, entry: Entry, now: int) -> None:
    """What Esc does to an agent: it ends work in `idle`, and denies an open dialog without ending the run."""
    agent = entry.player.agent if entry.player is not None else None
    if escape_later(world, entry, now):
        return
    if agent is not None and agent.esc_ms > 0:
        if entry.esc is None:
            entry.esc = world.timers.at(now + agent.esc_ms, lambda due: _escape(world, entry, due))
        return
    _escape(world, entry, now)


def _escape(world: World, entry: Entry, now: int) -> None:
    entry.esc = None
    agent = entry.player.agent if entry.player is not None else None
    if entry.word == "blocked":
        answer_dialog(world, entry, now, "Esc")
        change(world, entry, now, turn=entry.turn, status=make_status("working", entry.app), report=True)
    elif entry.word == "working" and world.profile.interrupt_idles:
        change(world, entry, now, status=make_status("idle", entry.app), report=True)
        if entry.player is not None and agent is not None and agent.after_esc is not None:
            entry.player.jump(agent.after_esc, now)
            play_due(world, entry, now)


def _take_agent(world: World, entry: Entry) -> Agent | None:
    for index, agent in enumerate(world.agents):
        if agent.uses and world.plays[index] >= agent.uses:
            continue
        if matches(agent.match, entry.name, entry.argv, entry.env):
            world.plays[index] += 1
            return agent
    return None


def called(world: World, entry: Entry, now: int, method: str) -> None:
    """A call is about to be carried out on this terminal; a step that waits for it fires first."""
    if entry.player is not None:
        play(world, entry, now, entry.player.called(method, now))


def observed(world: World, entry: Entry, now: int) -> None:
    """An answer has shown this terminal; a step that counts answers may fire for the next one."""
    if entry.player is not None:
        play(world, entry, now, entry.player.seen(now))


def play(world: World, entry: Entry, now: int, fired: Fired | None) -> None:
    """Carry out a step that fired, and all that is due right after it."""
    if fired is not None:
        _carry_out(world, entry, now, *fired)
        play_due(world, entry, now)


def act(world: World, entry: Entry, now: int, step: Step) -> None:
    """Somebody plays the terminal by hand: carry out the effects of `step`. Its own timeline is over from here on."""
    if entry.player is not None:
        entry.player.stop()
    if entry.app is None:
        entry.app = Agent().app
    _carry_out(world, entry, now, None, step)
    play_due(world, entry, now)


def play_due(world: World, entry: Entry, now: int) -> None:
    """Fire the steps whose time has come, then set a timer for the next. Raises `ScriptError` if there is no end."""
    player = entry.player
    if player is None:
        return
    for _ in range(MAX_STEPS_AT_ONCE):
        fired = player.timed(now)
        if fired is None:
            break
        _carry_out(world, entry, now, *fired)
    else:
        raise ScriptError(f"timeline of {entry.name or entry.address} fires {MAX_STEPS_AT_ONCE} steps at {now} ms")
    if entry.timer is not None:
        entry.timer.cancel()
        entry.timer = None
    due = player.due()
    if due is not None:
        entry.timer = world.timers.at(due, lambda at: play_due(world, entry, at))
    if player.index is None:
        world.actors.pop(id(entry), None)


def _carry_out(world: World, entry: Entry, now: int, index: int | None, step: Step) -> None:
    world.trace.add(
        Event(t=now, kind="step", terminal=entry.address, name=entry.name or "", step=index, note=step.note or "")
    )
    if step.rename is not None and not entry.gone:
        world.table.rename(entry, step.rename or None)
    if step.labels is not None:
        entry.labels = {**entry.labels, **step.labels}
    if (step.rename is not None or step.labels is not None) and not entry.gone:
        tell_terminal(world, "terminal.changed", entry)
    if step.composer is not None:
        entry.composer, entry.returned = step.composer, False
    if step.send is not None:
        entry.send = step.send
    if step.app is not None:
        entry.app = step.app
    if step.file is not None:
        write_file(world, entry, now, step.file)
    _report(world, entry, now, step)
    if step.finish is not None:
        end(world, entry, now, code=step.finish.code, signal=step.finish.signal)
    if step.vanish:
        remove(world, entry, now)
    if step.reborn is not None:
        be_reborn(world, entry, now, step.reborn)


def _report(world: World, entry: Entry, now: int, step: Step) -> None:
    turn = step.turn
    if step.turn_add is not None:
        now_at = entry.turn if entry.goal is None else entry.goal[0]
        turn = (now_at if turn is None else turn) + step.turn_add
    if step.status is not None:
        status = make_status(step.status, entry.app, kind=step.kind, msg=step.msg)
        change(world, entry, now, turn=turn, status=status, report=True)
        return
    status = entry.status
    if status is not None and (step.msg is not None or step.kind is not None or step.app is not None):
        kind = step.kind or status.kind
        status = make_status(status.state, entry.app, kind=kind, msg=status.msg if step.msg is None else step.msg)
        change(world, entry, now, turn=turn, status=status, report=True)
    elif turn is not None:
        change(world, entry, now, turn=turn)


def write_file(world: World, entry: Entry, now: int, write: FileWrite) -> None:
    """What the agent does to its session file; without a `--session` in its argv only the trace shows it."""
    path = entry.session_file
    end_of_line = b"\n" if write.newline else b""
    if write.remove:
        effect = FileEffect(path or "", "remove")
    elif write.replace is not None:
        effect = FileEffect(path or "", "replace", _times(write, write.replace.encode() + end_of_line))
    elif write.append_hex is not None:
        effect = FileEffect(path or "", "append", _times(write, bytes.fromhex(write.append_hex)))
    else:
        effect = FileEffect(path or "", "append", _times(write, (write.append or "").encode() + end_of_line))
    if path is not None:
        world.files.append(effect)
    note = effect.op if path is not None else "no --session in argv: nothing written"
    world.trace.add(
        Event(
            t=now, kind="file", terminal=entry.address, name=entry.name or "", note=note,
            text=effect.data[:2000].decode("utf-8", "replace"),
        )
    )  # fmt: skip


def _times(write: FileWrite, data: bytes) -> bytes:
    return data * max(1, min(write.times, MAX_WRITE_BYTES // max(1, len(data))))
