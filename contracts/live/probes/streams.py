"""Probes of what a core tells unasked: events, and the stream of a viewer."""

from itertools import pairwise
from typing import Any, Final

import msgspec

from contracts.live.peer import Heard, Peer
from contracts.live.stage import QUIET_MS, SEE_MS, Stage, shows, word_of

STEPS: Final = ("terminal.created", "terminal.changed", "terminal.removed")
MAX_NOTICES: Final = 1_000
MORE_STREAMS: Final = 3


async def events(stage: Stage) -> None:
    """One terminal from its start to its removal, as events show it: which, under which names, in which order."""
    sheet = stage.sheet
    async with stage.another("events") as peer:
        reply = await peer.ask("events.subscribe")
        if not reply.ok:
            sheet.refused["events.subscribe"] = f"it is answered with {reply.kind} in line mode"
            return
        channel = reply.result.get("channel") if isinstance(reply.result, dict) else None
        await _channel_step(peer, channel, stage)
        await _first_channel(stage, channel)
        program = await stage.run("events", "idle" if stage.programs else "")
        if stage.programs and stage.reports:
            await stage.seen(program.address, shows("idle"))
        await stage.on("terminal.label", program.address, labels={"live.seen": "1"})
        await stage.kill(program.address)
        if (await stage.on("terminal.rm", program.address)).ok:
            stage.corner.forget(program.address)
        await peer.until(lambda heard: "terminal.removed" in _names(heard, program.address), 500)
        _judge(stage, peer, program.address)


async def _channel_step(peer: Peer, channel: Any, stage: Stage) -> None:
    """The smallest step between streams of one connection: others may open theirs in between."""
    numbers = [channel]
    for _ in range(MORE_STREAMS):
        reply = await peer.ask("events.subscribe")
        numbers.append(reply.result.get("channel") if isinstance(reply.result, dict) else None)
    if all(isinstance(number, int) for number in numbers):
        steps = [later - before for before, later in pairwise(numbers) if later > before]
        if steps:
            stage.sheet.learn("channel_step", min(steps))


async def _first_channel(stage: Stage, channel: Any) -> None:
    """Where the numbers of channels begin, on a core that counts anew on each connection."""
    async with stage.another("events") as peer:
        reply = await peer.ask("events.subscribe")
        other = reply.result.get("channel") if isinstance(reply.result, dict) else None
        if isinstance(channel, int) and channel > 0 and channel == other:
            stage.sheet.learn("first_channel", channel)


def _about(heard: Heard, address: str) -> list[dict[str, Any]]:
    """Notifications about one terminal, of the first stream that tells of it."""
    found = [one for one in heard.notices[:MAX_NOTICES] if _address(one) == address]
    first = _channel(found[0]) if found else None
    return [one for one in found if _channel(one) == first]


def _channel(notice: dict[str, Any]) -> Any:
    params = notice.get("params")
    return params.get("channel") if isinstance(params, dict) else None


def _address(notice: dict[str, Any]) -> str:
    params = notice.get("params")
    terminal = params.get("terminal") if isinstance(params, dict) else None
    shown = terminal.get("address") if isinstance(terminal, dict) else terminal
    return shown if isinstance(shown, str) else ""


def _names(heard: Heard, address: str) -> list[str]:
    return [str(one["method"]) for one in _about(heard, address)]


def _judge(stage: Stage, peer: Peer, address: str) -> None:
    sheet = stage.sheet
    notices = _about(peer.heard, address)
    names = [str(one["method"]) for one in notices]
    sheet.fact("events.come", "C9", bool(names), True, say="a terminal that lives and goes is told of")
    if not names:
        return
    short = list(dict.fromkeys(names))
    ordered = _in_order(notices)
    if len(short) >= len(STEPS) and ordered:
        spelt = {"terminal.created": names[0], "terminal.removed": names[-1]}
        spelt["terminal.changed"] = next((name for name in short if name not in (names[0], names[-1])), STEPS[1])
        sheet.learn("event_names", {ours: theirs for ours, theirs in spelt.items() if ours != theirs})
    order = "first to last" if ordered else "out of order"
    sheet.fact("events.order", "C9", order, "first to last", say="events come in the order in which things happened")


def _in_order(notices: list[dict[str, Any]]) -> bool:
    """Whether a terminal is created first and removed last, states only go forward, and numbers only grow."""
    params = [one.get("params") for one in notices]
    numbers = [one["number"] for one in params if isinstance(one, dict) and isinstance(one.get("number"), int)]
    states = [
        shown.get("state") for one in params if isinstance(one, dict) and isinstance(shown := one.get("terminal"), dict)
    ]
    ended = [state == "finished" for state in states]
    names = [str(one["method"]) for one in notices]
    created = [place for place, name in enumerate(names) if "creat" in name]
    removed = [place for place, name in enumerate(names) if "remov" in name]
    return (
        numbers == sorted(set(numbers))
        and ended == sorted(ended)
        and created in ([], [0])
        and removed in ([], [len(names) - 1])
    )


async def viewer(stage: Stage) -> None:
    """Look at a terminal as it changes: what a viewer is sent first, and that looking leaves a done alone."""
    stage.need_programs(reports=True)
    sheet = stage.sheet
    program = await stage.run("viewed", "say:shown-before working done")
    await stage.seen(program.address, shows("done"))
    async with stage.another("viewer") as peer:
        reply = await peer.ask("terminal.attach", stage.target(program.address))
        if not reply.ok:
            sheet.refused["terminal.attach"] = f"it is answered with {reply.kind} in line mode"
            await stage.end(program)
            return
        await peer.until(lambda heard: "shown-before" in _text(heard), QUIET_MS)
        sheet.learn("attach_replay", "shown-before" in _text(peer.heard))
        facts = any(isinstance((one.get("params") or {}).get("terminal"), dict) for one in peer.heard.notices)
        if facts:
            sheet.learn("attach_facts", facts)
        if "done-stays" in stage.known:
            sheet.learn("attach_sees", word_of(await stage.get(program.address)) == "idle")
        await stage.on("terminal.send", program.address, text="acts: say:shown-later working done")
        later = await peer.until(lambda heard: "shown-later" in _text(heard), SEE_MS)
        sheet.fact("attach.output", "C9", later, True, say="a viewer is sent what a program prints")
    await stage.end(program)


def _text(heard: Heard) -> str:
    return msgspec.json.encode(heard.notices[:MAX_NOTICES]).decode()
