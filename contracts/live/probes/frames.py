"""Probes of the binary mode, if a hello that asks for it in the way we know gets it: frames, channels, a viewer."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from contracts.live.problem import GoneError
from contracts.live.stage import QUIET_MS, SEE_MS, Stage, shows, word_of
from hc_sim.profile import FRAME_NUMBERS, WireProfile
from hc_sim.wire.frames import Frame, FrameSplitter, encode_frame
from legion_terminal.errors import SupervisorError
from legion_terminal.link import Transport

HELLO: Final = b'{"jsonrpc":"2.0","id":"frames","method":"hello","params":{"frames":true,"generation":1}}\n'
MAX_PAYLOAD: Final = 16 * 1024 * 1024
MAX_FRAMES: Final = 10_000
FOCUS_ON: Final = b"\x01"


@dataclass(slots=True)
class Framed:
    """A connection in the binary mode: what came so far, frame by frame."""

    transport: Transport
    newline: bytes = b"\n"
    frames: list[Frame] = field(default_factory=list)
    _splitter: FrameSplitter = field(default_factory=lambda: FrameSplitter(MAX_PAYLOAD))

    async def send(self, frame: Frame) -> None:
        """Send one frame."""
        await self.transport.write(encode_frame(frame.channel, frame.kind, frame.payload))

    async def ask(self, call_id: str, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """A call on channel 0; its reply, None if none comes in time."""
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params})
        await self.send(Frame(0, FRAME_NUMBERS["data"], body + self.newline))
        await self.until(lambda: self.reply(call_id) is not None, SEE_MS)
        return self.reply(call_id)

    def reply(self, call_id: str) -> dict[str, Any] | None:
        """The reply that has come to a call."""
        for frame in self.frames:
            value = _decoded(frame.payload) if frame.channel == 0 else None
            if isinstance(value, dict) and value.get("id") == call_id:
                return value
        return None

    async def until(self, wanted: Any, within_ms: int) -> bool:
        """Take in what comes until it is as wanted."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within_ms / 1_000
        while not wanted() and len(self.frames) < MAX_FRAMES:
            try:
                async with asyncio.timeout_at(end):
                    data = await self.transport.read()
            except TimeoutError:
                return bool(wanted())
            if not data:
                return bool(wanted())
            self.feed(data)
        return True

    def feed(self, data: bytes) -> None:
        """Bytes that came."""
        self.frames += [one for one in self._splitter.feed(data) if isinstance(one, Frame)]


async def frames(stage: Stage) -> None:
    """The binary mode: whether it can be had, how its frames look, and what a viewer is sent in it."""
    sheet = stage.sheet
    transport = stage.host.connect("frames")
    framed = Framed(transport)
    try:
        await transport.open()
        had = await _switch(stage, framed)
        sheet.fact("hello.frames", "C2", had, True, level="note", say="frames = true asks for the binary mode")
        if had and stage.programs and stage.reports:
            await _view(stage, framed)
    except (OSError, SupervisorError) as error:
        raise GoneError(f"the connection in the binary mode is gone: {error}") from error
    finally:
        await transport.close()


async def _switch(stage: Stage, framed: Framed) -> bool:
    """Say hello for frames, then once more in a frame; whether that was answered in one."""
    sheet = stage.sheet
    await framed.transport.write(HELLO)
    first = b""
    loop = asyncio.get_running_loop()
    end = loop.time() + SEE_MS / 1_000
    while b"}" not in first:
        try:
            async with asyncio.timeout_at(end):
                data = await framed.transport.read()
        except TimeoutError:
            return False
        if not data:
            return False
        first += data
    in_line = first.startswith(b"{")
    framed.feed(first.partition(b"\n")[2] if in_line else first)
    answer = await framed.ask("framed", "hello", {})
    if answer is None or "result" not in answer:
        return False
    sheet.learn("hello_reply", "line" if in_line else "frame")
    sheet.learn("frames_key", "frames")
    whole = next(frame for frame in framed.frames if frame.channel == 0)
    sheet.learn("frame_newline", whole.payload.endswith(b"\n"))
    return True


async def _view(stage: Stage, framed: Framed) -> None:
    """Look at a terminal in the binary mode, from its screen to its end."""
    sheet = stage.sheet
    program = await stage.run("framed", "say:shown-framed working done")
    await stage.seen(program.address, shows("done"))
    answer = await framed.ask("attach", "terminal.attach", stage.target(program.address, cols=90, rows=30))
    result = answer.get("result") if answer is not None else None
    channel = result.get("channel") if isinstance(result, dict) else None
    if not isinstance(channel, int):
        sheet.refused["terminal.attach"] = "it opens no channel in the binary mode"
        return
    await framed.until(lambda: any(b"shown-framed" in one.payload for one in framed.frames), QUIET_MS)
    first = next((one for one in framed.frames if one.channel == channel), None)
    if first is not None and first.kind == FRAME_NUMBERS["credit"]:  # it waits for as much from us
        await framed.send(first)
        await framed.until(lambda: any(b"shown-framed" in one.payload for one in framed.frames), QUIET_MS)
    if "done-stays" in stage.known and not sheet.value("attach_sees"):
        await framed.send(Frame(channel, FRAME_NUMBERS["focus"], FOCUS_ON))
        await stage.host.pause(QUIET_MS)
        sheet.learn("focus_sees", word_of(await stage.get(program.address)) == "idle")
    await stage.kill(program.address)
    await framed.until(lambda: _last(framed, channel) == FRAME_NUMBERS["close"], QUIET_MS * 2)
    came = [one for one in framed.frames if one.channel == channel]  # at the end: what is slow to come has come too
    sheet.learn("attach_facts", any(_shows(one, program.address) for one in came))
    sheet.learn("credit_first", "explicit" if came and came[0].kind == FRAME_NUMBERS["credit"] else "implied")
    _kinds(stage, came, program.address)
    await stage.end(program)


def _kinds(stage: Stage, came: list[Frame], address: str) -> None:
    """The numbers of the kinds that were seen: data, facts, and the last one, which closes."""
    seen = {
        "data": next((one.kind for one in came if b"shown-framed" in one.payload and not _shows(one, address)), None),
        "facts": next((one.kind for one in came if _shows(one, address)), None),
        "close": came[-1].kind if came and stage.kills and not _shows(came[-1], address) else None,
    }
    if seen["close"] in (seen["data"], FRAME_NUMBERS["credit"]):
        seen["close"] = None  # the last that came is no close
    usual = WireProfile().frame_numbers()
    if seen["data"] is not None:
        other = {kind: one for kind, one in seen.items() if one is not None and one != usual[kind]}  # type: ignore[index]
        stage.sheet.learn("frame_kinds", other)
    if seen["close"] is not None:
        stage.sheet.learn("close_words", bool(came[-1].payload))


def _shows(frame: Frame, address: str) -> bool:
    value = _decoded(frame.payload)
    return isinstance(value, dict) and value.get("address") == address


def _last(framed: Framed, channel: int) -> int | None:
    return next((one.kind for one in reversed(framed.frames) if one.channel == channel), None)


def _decoded(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        return None
