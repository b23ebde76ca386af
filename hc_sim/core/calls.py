"""The terminal methods, each a function from decoded parameters to a result."""

from collections.abc import Callable, Mapping
from typing import Any

from hc_sim.core.answers import Answer, Pending
from hc_sim.core.composer import answer_dialog
from hc_sim.core.ending import begin_end, end, remove
from hc_sim.core.events import tell_terminal
from hc_sim.core.kin import wait_for_children
from hc_sim.core.onlookers import look_on
from hc_sim.core.programs import press_stop, send_to
from hc_sim.core.rules import NAME_RULE, effective_env, env_fault, size_fault, valid_name
from hc_sim.core.status import change, deliver, give_back, make_status, press
from hc_sim.core.terminal import SCREEN_LINES, Entry, show
from hc_sim.core.timeline import begin, called, escape, play_due
from hc_sim.core.waits import ended, stop_key
from hc_sim.core.world import World
from hc_sim.model import (
    KeepParams,
    LabelParams,
    ListParams,
    ReadParams,
    RunParams,
    SendParams,
    Target,
    WaitParams,
)


def run(world: World, params: RunParams, now: int, conn: int) -> Any:
    """`terminal.run`: start a program."""
    profile = world.profile
    caller = None if params.caller is None else world.find(params.caller).address
    if params.name is not None:
        check_name(world, params.name)
    if len(world.table) >= profile.max_terminals:
        raise world.refusal("limit_reached", f"there are {profile.max_terminals} terminals already")
    argv = _program(world, params)
    check_labels(world, params.labels)
    fault = env_fault(params.env)
    if fault is not None:
        raise world.refusal("invalid_params", fault)
    cwd = params.cwd or profile.core_cwd
    if not world.cwd_exists(cwd):
        raise world.refusal("spawn_failed", f'no such directory: "{cwd}"', "make the directory first")
    address = world.table.new_address()
    env = effective_env(profile, world.env, params.env, address, world.socket)
    fault = size_fault(profile, argv, env)
    if fault is not None:
        raise world.refusal("spawn_failed", fault, "send less: write long texts to a file")
    bound = params.die_with_parent if params.die_with_parent is not None else profile.die_with_parent
    entry = world.new_entry(
        address, params.name, argv, cwd, params.labels, env, caller, now,
        die_with_parent=bound and caller is not None, keep=params.keep, rm=params.rm,
    )  # fmt: skip
    begin(world, entry, now, played=True)
    called(world, entry, now, "terminal.run")
    return _terminal(world, entry)


def get(world: World, params: Target, now: int, conn: int) -> Any:
    """`terminal.get`: one terminal."""
    if params.terminal in world.removed and world.table.find(params.terminal) is None:
        shown = world.removed[params.terminal]
        return {"terminal": shown} if world.profile.wrap_terminal else shown
    entry = _find(world, params, now, "terminal.get")
    world.shown.append(entry)
    return _terminal(world, entry)


def list_(world: World, params: ListParams, now: int, conn: int) -> Any:
    """`terminal.list`: live terminals, or all of them."""
    wanted = params.labels.items()
    for entry in [entry for entry in world.table if entry.player is not None and (params.all or entry.live)]:
        called(world, entry, now, "terminal.list")
    entries = [entry for entry in world.table if (params.all or entry.live) and wanted <= entry.labels.items()]
    world.shown += entries
    return {"terminals": [show(entry, world.profile) for entry in entries]}


def send(world: World, params: SendParams, now: int, conn: int) -> Any:
    """`terminal.send`: type a prompt and submit it."""
    busy = world.find(params.terminal).word == "working"
    entry = _find(world, params, now, "terminal.send")
    must_live(world, entry)
    _may_send(world, entry, force=params.force)
    if entry.program is not None:
        send_to(world, entry, entry.program, params.text, now)
        return _sent(world, entry, started=world.profile.send_started)
    if entry.send == "hold":
        return _hold(world, entry, params.text, now)
    if entry.send == "swallow" or entry.word == "blocked":
        answer_dialog(world, entry, now, "Enter")
        press(world, entry, now, "Enter")
        return _sent(world, entry, started=True)
    started = entry.send != "unconfirmed" and world.profile.send_started
    deliver(world, entry, now, params.text, busy=busy)
    play_due(world, entry, now)
    return _sent(world, entry, started=started)


def interrupt(world: World, params: Target, now: int, conn: int) -> Any:
    """`terminal.interrupt`: press the stop key."""
    before = world.find(params.terminal)
    seen = (before.turn, before.status, before.state)
    if before.player is not None and before.player.agent.interrupt == "esc":
        give_back(before)
    entry = _find(world, params, now, "terminal.interrupt")
    must_live(world, entry)
    key = stop_key(entry)
    if entry.program is not None:
        press_stop(world, entry, entry.program, key, now)
        return _watch_stop(world, entry, now + world.profile.program_watch_ms)
    press(world, entry, now, key)
    if key == "Esc":
        escape(world, entry, now)
    effect = (entry.turn, entry.status, entry.state) != seen
    watch = world.profile.interrupt_watch_ms
    return {"key": key, "effect": effect} if effect or not watch else _watch_stop(world, entry, now + watch)


def kill(world: World, params: Target, now: int, conn: int) -> Any:
    """`terminal.kill`: end the program, now or as its agent has it."""
    entry = _find(world, params, now, "terminal.kill")
    if not entry.live and world.profile.kill_finished == "refuse":
        must_live(world, entry)
    begin_end(world, entry, now)
    return {"killed": True}


def rm(world: World, params: Target, now: int, conn: int) -> Any:
    """`terminal.rm`: remove a finished terminal."""
    entry = _find(world, params, now, "terminal.rm")
    if entry.live:
        if world.profile.rm_live == "refuse":
            raise world.refusal("not_finished", f'terminal "{entry.address}" has not finished')
        end(world, entry, now, signal=world.profile.hangup_signal)
    remove(world, entry, now)
    if entry.player is not None:
        entry.player.stop()
        world.actors.pop(id(entry), None)
    return {"removed": True}


def keep(world: World, params: KeepParams, now: int, conn: int) -> Any:
    """`terminal.keep`: whether a lost program becomes a shell."""
    entry = _find(world, params, now, "terminal.keep")
    entry.keep = params.keep
    tell_terminal(world, "terminal.changed", entry)
    return _terminal(world, entry)


def label(world: World, params: LabelParams, now: int, conn: int) -> Any:
    """`terminal.label`: set labels; null removes one."""
    entry = _find(world, params, now, "terminal.label")
    labels = {**entry.labels, **params.labels}
    left = {key: value for key, value in labels.items() if value is not None}
    check_labels(world, left)
    entry.labels = left
    tell_terminal(world, "terminal.changed", entry)
    return _terminal(world, entry)


def wait(world: World, params: WaitParams, now: int, conn: int) -> Any:
    """`terminal.wait`: answer when the program is not working or has ended; the timeout is a check-in, no error."""
    entry = _find(world, params, now, "terminal.wait")
    timeout = world.profile.wait_default_ms if params.timeout_ms is None else params.timeout_ms
    if timeout < 0:
        raise world.refusal("invalid_params", "timeout_ms must not be negative")
    if params.children is not None:
        return wait_for_children(world, entry, params.children, timeout, now)
    waits_on = entry.word == "working" or (entry.word == "none" and world.profile.wait_no_status == "exit")
    if not entry.live or not waits_on:
        world.shown.append(entry)
        return ended(world, entry, ended=True)
    ticket = world.owe(entry)
    entry.waits[ticket] = world.timers.at(now + timeout, lambda _: _check_in(world, entry, ticket))
    look_on(world, lambda: [entry] if ticket in entry.waits else None, now)
    return Pending(ticket)


def read(world: World, params: ReadParams, now: int, conn: int) -> Any:
    """`terminal.read`: the last lines of the screen."""
    entry = _find(world, params, now, "terminal.read")
    lines = SCREEN_LINES if params.lines is None else params.lines
    if lines < 0:
        raise world.refusal("invalid_params", "lines must not be negative")
    if world.profile.read_sees and entry.word == "done":
        change(world, entry, now, turn=entry.turn, status=make_status("idle", entry.app), report=True)
    screen = entry.screen
    if entry.program is not None and entry.program.unfinished:
        screen = [*screen[-lines:], entry.program.unfinished]
    return {"text": "\n".join(screen[-lines:] if lines else [])}


Handler = Callable[[World, Any, int, int], Any]

TERMINAL_CALLS: Mapping[str, Handler] = {
    "terminal.run": run,
    "terminal.get": get,
    "terminal.list": list_,
    "terminal.send": send,
    "terminal.interrupt": interrupt,
    "terminal.kill": kill,
    "terminal.rm": rm,
    "terminal.keep": keep,
    "terminal.label": label,
    "terminal.wait": wait,
    "terminal.read": read,
}


def check_name(world: World, name: str) -> None:
    """Raises `RefusalError` if a new terminal cannot have this name."""
    if not valid_name(name):
        raise world.refusal("invalid_params", f"name {name[:64]!r} is not valid: a name is {NAME_RULE}")
    holder = world.table.holder(name, finished_too=world.profile.finished_names_block)
    if holder is not None:
        message = f'name "{name}" is taken by terminal "{holder.address}" ({holder.state})'
        raise world.refusal("name_taken", message, holder=holder.address)


def check_labels(world: World, labels: Mapping[str, str]) -> None:
    """Raises `RefusalError` if these are too many labels."""
    if len(labels) > world.profile.max_labels:
        raise world.refusal("limit_reached", f"more than {world.profile.max_labels} labels")


def _find(world: World, params: Target, now: int, method: str) -> Entry:
    entry = world.find(params.terminal)
    called(world, entry, now, method)
    return world.find(params.terminal) if entry.gone else entry


def _terminal(world: World, entry: Entry) -> dict[str, Any]:
    shown = show(entry, world.profile)
    return {"terminal": shown} if world.profile.wrap_terminal else shown


def _program(world: World, params: RunParams) -> list[str]:
    if params.argv is not None and params.line is not None:
        raise world.refusal("invalid_params", "give argv or line, not both")
    if params.line is not None:
        argv = [world.profile.shell, "-c", params.line]
    else:
        argv = [world.profile.shell] if params.argv is None else params.argv
    if not argv or not argv[0]:
        raise world.refusal("invalid_params", "argv names no program")
    if any("\0" in argument for argument in argv) or "\0" in (params.cwd or ""):
        raise world.refusal("invalid_params", "argv and cwd cannot hold a NUL byte")
    return argv


def must_live(world: World, entry: Entry) -> None:
    """Raises `RefusalError` if the program has ended."""
    if not entry.live:
        raise world.refusal("not_live", f'terminal "{entry.address}" has finished')


def _may_send(world: World, entry: Entry, *, force: bool) -> None:
    place = f'terminal "{entry.address}"'
    blocked = entry.word == "blocked"
    if entry.send == "refuse":
        if blocked:
            raise world.refusal("blocked", f"{place} is blocked")
        if entry.composer:
            raise world.refusal("draft_present", f"{place} holds unsent text")
        raise world.refusal("send_refused", f"{place} takes no text now")
    scripted = entry.send in ("hold", "swallow")
    if blocked and not force and not scripted and world.profile.send_blocked == "refuse":
        raise world.refusal("blocked", f"{place} is blocked")


def _hold(world: World, entry: Entry, text: str, now: int) -> Pending:
    ticket = world.owe(entry)
    agent = entry.player.agent if entry.player is not None else None
    delay = agent.hold_ms if agent is not None else 0
    entry.held[ticket] = world.timers.at(now + delay, lambda due: _release(world, entry, ticket, text, due))
    return Pending(ticket)


def _release(world: World, entry: Entry, ticket: int, text: str, now: int) -> None:
    del entry.held[ticket]
    deliver(world, entry, now, text, busy=entry.word == "working")
    play_due(world, entry, now)
    world.settle(ticket, Answer(_sent(world, entry, started=world.profile.send_started)))


def _sent(world: World, entry: Entry, *, started: bool) -> dict[str, Any]:
    return {"started": started, "turn": entry.turn} if world.profile.send_turn else {"started": started}


def _watch_stop(world: World, entry: Entry, until: int) -> Pending:
    ticket = world.owe(entry)
    stops = entry.stops = entry.stops or {}
    stops[ticket] = world.timers.at(until, lambda _: _no_effect(world, entry, ticket))
    return Pending(ticket)


def _no_effect(world: World, entry: Entry, ticket: int) -> None:
    if entry.stops is not None:
        entry.stops.pop(ticket, None)
    world.settle(ticket, Answer({"effect": False, "key": stop_key(entry)}))


def _check_in(world: World, entry: Entry, ticket: int) -> None:
    del entry.waits[ticket]
    world.settle(ticket, ended(world, entry, ended=False))
    world.shown.append(entry)
