"""What becomes of a text or an Esc on its way into a program: dropped early, cut into lines, taken for Alt, eaten."""

from hc_sim.core.terminal import Entry
from hc_sim.core.world import World
from hc_sim.script.format import Agent
from hc_sim.trace import Event


def take_in(world: World, entry: Entry, now: int, text: str) -> list[str]:
    """The prompts that a text becomes, none if it is lost; says in the trace what went wrong with it."""
    agent = _agent(entry)
    entry.escs = 0
    if agent is None:
        return [text]
    if entry.player is not None and now < entry.player.started + agent.boot_ms:
        _note(world, entry, now, "dropped: it came too early", text)
        return []
    if entry.overlay:
        entry.overlay = False
        _note(world, entry, now, "an overlay took the text", text)
        return []
    if entry.esc is not None and agent.esc_alt:
        entry.esc.cancel()
        entry.esc = None
        _note(world, entry, now, "Esc and the first letter were taken for Alt", text[:1])
        text = text[1:]
    if agent.input == "lines":
        return [line for line in text.split("\n") if line]
    return [text]


def escape_later(world: World, entry: Entry, now: int) -> bool:
    """Whether this Esc takes effect only later, or does something else than to stop the program."""
    agent = _agent(entry)
    if agent is None or agent.interrupt == "no-effect":
        return agent is not None
    entry.escs += 1
    if agent.interrupt == "overlay" and entry.word not in ("working", "blocked"):
        if entry.overlay:
            entry.overlay = False
        elif entry.escs > 1:
            entry.overlay = True
            _note(world, entry, now, "an overlay is open")
        return True
    return False


def answer_dialog(world: World, entry: Entry, now: int, by: str) -> None:
    """An open dialog got an answer."""
    kind = entry.status.kind if entry.status is not None and entry.status.kind is not None else "dialog"
    _note(world, entry, now, f"{kind} answered by {by}")


def _agent(entry: Entry) -> Agent | None:
    return entry.player.agent if entry.player is not None else None


def _note(world: World, entry: Entry, now: int, note: str, text: str = "") -> None:
    world.trace.add(
        Event(t=now, kind="dialog", terminal=entry.address, name=entry.name or "", note=note, text=text[:2000])
    )
