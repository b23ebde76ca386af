"""Probes of the wire itself: hello, envelopes, errors, the vectors of JSON-RPC. They change nothing in a core."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from contracts.live.peer import Peer, error_seen, shown
from contracts.live.problem import GoneError, LiveError
from contracts.live.stage import QUIET_MS, Stage
from contracts.vectors import Vector, load_vectors, run_vector
from contracts.vectors.run import PROBE, PROBE_ID
from hc_sim.profile import STANDARD_CODES

ANSWER_MS: Final = 5_000
CORE_IDS: Final = ("core_id", "coreId", "core", "id")
"""Where the permanent id of a core may stand in the result of hello, as its clients look for it."""
_OTHER_GENERATION: Final = 99
_KEPT_EXTRAS: Final = 20


_CHOICES: Final[Mapping[str, Mapping[str, Any]]] = {
    "parameters-misspelt": {"unknown_params": "refuse"},
    "parameters-empty": {"positional": "accept"},
    "version-missing": {"require_jsonrpc": True},
    "version-other": {"require_jsonrpc": True},
}
"""Vectors that show what is learned as a choice: they are not asked of a core that has chosen otherwise."""
_TEXT_ID: Final = re.compile(rb'"id":"(-?[0-9]+(?:\.[0-9]+)?)"')


async def hello(stage: Stage) -> None:
    """Who answers: id, generation, version, pid, and under which names."""
    reply = await stage.ask("hello", generation=1)
    if reply.error is not None:
        raise LiveError(f"the core refuses hello: {reply.error.message or reply.kind}")
    if not isinstance(reply.result, dict):
        raise LiveError(f"what answers is no core: hello was answered with {shown(reply.raw)}")
    result = reply.result
    core_id = core_id_of(result)
    sheet = stage.sheet
    stage.corner.core_id = core_id
    sheet.core |= {
        "id": core_id,
        "version": str(result.get("version") or ""),
        "generation": result.get("generation"),
        "hello": sorted(result),
    }
    sheet.fact("hello.core_id", "C2", bool(core_id), True, level="must", say="hello names the core")
    sheet.fact("hello.generation", "C2", result.get("generation"), 1, level="must", say="the generation in hello")
    sheet.fact("hello.version", "C2", isinstance(result.get("version"), str), True, say="hello says a version")
    again = await stage.ask("hello")
    same = core_id_of(again.result if isinstance(again.result, dict) else {}) == core_id
    sheet.fact("hello.again", "C2", same, True, say="a second hello names the same core")
    _learn_hello(stage, result)


def core_id_of(result: Mapping[str, Any]) -> str:
    """The permanent id of a core in the result of hello, "" when it gives none."""
    core = result.get("core")
    fields = {**core, **result} if isinstance(core, dict) else result
    found = [value for key in CORE_IDS if isinstance(value := fields.get(key), str) and value]
    return next((value for value in found if value != fields.get("version")), "")


def _learn_hello(stage: Stage, result: Mapping[str, Any]) -> None:
    """The names of hello's members: what has the value of a known one under another name is an alias of it."""
    sheet = stage.sheet
    known = {name: result[name] for name in ("core_id", "generation", "version", "pid") if name in result}
    aliases: dict[str, list[str]] = {}
    extra: dict[str, Any] = {}
    for key, value in sorted(result.items()):
        member = next((name for name, one in known.items() if type(one) is type(value) and one == value), None)
        if key in known:
            continue
        if member is not None:
            aliases.setdefault(member, []).append(key)
        elif isinstance(value, str | bool | int) and len(extra) < _KEPT_EXTRAS:
            extra[key] = value
    if known:
        sheet.learn("hello_aliases", aliases)
        sheet.learn("hello_extra", extra)
    if isinstance(known.get("version"), str):
        sheet.learn("version", known["version"])
    if isinstance(known.get("generation"), int):
        sheet.learn("generation", known["generation"])
    if isinstance(known.get("pid"), int):
        sheet.learn("pid", known["pid"])


async def first_calls(stage: Stage) -> None:
    """What a new connection may begin with: another generation, no hello at all."""
    async with stage.another("generation", greet=False) as peer:
        reply = await peer.ask("hello", {"generation": _OTHER_GENERATION})
        stage.sheet.learn("refuse_other_generation", not reply.ok)
        stage.sheet.error("other_generation", reply.error)
    async with stage.another("no-hello", greet=False) as peer:
        reply = await peer.ask("terminal.list", {"labels": stage.corner.labels})
        stage.sheet.learn("strict_hello", not reply.ok)
        if not reply.ok:
            stage.sheet.error("hello_required", reply.error)


async def errors(stage: Stage) -> None:
    """The errors that can be had for the asking: codes, kinds, hints."""
    sheet = stage.sheet
    reply = await stage.ask("pane.list")
    sheet.error("unknown_method", reply.error)
    seen = reply.error
    fields = sorted(seen.whole) if seen is not None and isinstance(seen.whole, dict) else []
    sheet.fact("error.shape", "C1", fields, ["code", "data", "message"], say="the members of an error")
    sheet.fact("error.hint", "C1", bool(seen and seen.hint), True, say="an error says what to do")
    named = seen is not None and '"pane.list"' in seen.message
    sheet.fact("error.unknown_method.names", "C1", named, True, level="must", say="the method is named in the message")
    reply = await stage.on("terminal.get", "lgv-nobody-has-this-name")
    sheet.fact("error.missing_terminal", "C3", not reply.ok, True, level="must", say="an unknown terminal is an error")
    sheet.error("no_such_terminal", reply.error)
    reply = await stage.peer.ask("terminal.get", stage.target(7))  # type: ignore[arg-type]
    sheet.error("invalid_params", reply.error)
    reply = await stage.ask("doc.get", name=f"lgv-{stage.corner.owner.token}-nothing")
    sheet.error("no_such_document", reply.error)
    reply = await stage.ask("terminal.list", al=True, labels=stage.corner.labels)
    sheet.learn("unknown_params", "ignore" if reply.ok else "refuse")


async def envelopes(stage: Stage) -> None:
    """What is no plain request: no version, a batch, parameters by position, ids of other types."""
    sheet = stage.sheet
    lines = await exchange(stage, "no-version", b'{"id":"x","method":"hello"}\n')
    sheet.learn("require_jsonrpc", not _has_result(lines))
    _keep_error(stage, "invalid_request", lines)
    batch = b'[{"jsonrpc":"2.0","id":"x","method":"hello"}]\n'
    async with stage.another("batch", greet=False) as peer:
        answered, closed = await talk(peer, batch)
        together = any(isinstance(_decoded(line), list) for line in answered)
        sheet.learn("batches", "accept" if together else "close" if closed else "refuse")
        _keep_error(stage, "batch_refused", answered)
    reply = await stage.peer.ask("terminal.get", [stage.home or "t0"])
    missing = stage.sheet.errors.get("no_such_terminal")
    taken = reply.ok or (missing is not None and reply.kind == missing.kind)
    sheet.learn("positional", "accept" if taken else "refuse")
    lines = await exchange(stage, "ids", b'{"jsonrpc":"2.0","id":true,"method":"hello"}\n')
    sheet.learn("id_types", "any" if _has_result(lines) else "standard")
    lines = await exchange(stage, "broken", b"{broken\n")
    _keep_error(stage, "parse_error", lines)


async def vectors(stage: Stage) -> None:
    """Every vector of JSON-RPC that this core can be asked, one after the other on one connection."""
    peer: Peer | None = None
    count = 0
    try:
        for vector in load_vectors():
            if not _can_be_asked(stage, vector):
                continue
            if peer is None or peer.closed:
                if peer is not None:
                    await peer.close()
                count += 1
                peer = Peer(stage.host.connect(f"vectors-{count}"))
                await peer.open()
            asked = _in_this_spelling(stage, vector)
            lines, closed = await talk(peer, asked.data(), _owed(asked))
            _judge(stage, asked, lines, closed=closed)
    finally:
        if peer is not None:
            await peer.close()


def _can_be_asked(stage: Stage, vector: Vector) -> bool:
    """Whether the choices that a vector needs are this core's, and it writes nothing."""
    if any("doc.set" in line for line in vector.send):
        return False
    learned = stage.sheet.learned
    needed = {**vector.profile, **_CHOICES.get(vector.id, {})}
    return all(name in learned and learned[name].value == value for name, value in needed.items())


def _in_this_spelling(stage: Stage, vector: Vector) -> Vector:
    """The vector with the parameter that names a terminal as this core spells it."""
    key = stage.corner.target_key
    if key == "terminal":
        return vector
    named = {"contains": "terminal"}
    replies = [
        msgspec.structs.replace(reply, error={**reply.error, "message": {"contains": key}})
        if isinstance(reply.error, dict) and reply.error.get("message") == named
        else reply
        for reply in vector.replies
    ]
    send = [line.replace('"terminal":', f'"{key}":') for line in vector.send]
    return msgspec.structs.replace(vector, send=send, replies=replies)


def _owed(vector: Vector) -> int:
    return len(vector.replies) + (vector.batch is not None)


def _judge(stage: Stage, vector: Vector, lines: list[bytes], *, closed: bool) -> None:
    spelt = _spelt(stage, vector)
    outcome = run_vector(spelt, lambda _: _Canned(lines, closed))
    if vector.id == "id-number" and not outcome.holds:
        stage.known.add("text-ids")
    elif not outcome.holds and "text-ids" in stage.known:
        numbers = [_TEXT_ID.sub(rb'"id":\1', line) for line in lines]
        outcome = run_vector(spelt, lambda _: _Canned(numbers, closed))
    value = "as expected" if outcome.holds else "; ".join(outcome.differences)[:300]
    level = {"measured": "must", "standard": "should"}.get(vector.basis, "note")
    stage.sheet.fact(f"vector.{vector.id}", "C1", value, "as expected", level=level, say=vector.why)  # type: ignore[arg-type]


def _spelt(stage: Stage, vector: Vector) -> Vector:
    """The vector with another code where this core has its own for a kind: that is said once, as an error's code."""
    codes = {
        STANDARD_CODES[kind]: seen.code  # type: ignore[index]
        for kind, seen in stage.sheet.errors.items()
        if kind in ("unknown_method", "invalid_request", "parse_error", "invalid_params") and seen.code is not None
    }
    changed = {theirs for ours, theirs in codes.items() if ours != theirs}
    if not changed:
        return vector
    replies = [
        msgspec.structs.replace(reply, error=_with_code(reply.error, codes)) if isinstance(reply.error, dict) else reply
        for reply in vector.replies
    ]
    return msgspec.structs.replace(vector, replies=replies)


def _with_code(error: dict[str, Any], codes: Mapping[int, int]) -> dict[str, Any]:
    code = error.get("code")
    return {**error, "code": codes[code]} if isinstance(code, int) and code in codes else error


class _Canned:
    """A wire on which everything has been said already."""

    def __init__(self, lines: list[bytes], closed: bool) -> None:
        self._said = lines, closed

    def exchange(self, data: bytes) -> tuple[list[bytes], bool]:
        """What was said."""
        return self._said


async def exchange(stage: Stage, label: str, data: bytes) -> list[bytes]:
    """Send bytes on a new connection; the lines that were answered."""
    async with stage.another(label, greet=False) as peer:
        return (await talk(peer, data))[0]


async def talk(peer: Peer, data: bytes, owed: int = 0) -> tuple[list[bytes], bool]:
    """Send bytes and the probe of the vectors; the lines that came, and whether the core hung up.

    The answer to the probe shows that no more is coming, but for a core that answers out of order: while fewer lines
    than are `owed` have come, a moment more is waited.
    """
    before = len(peer.heard.strays)
    try:
        await peer.send(data + PROBE)
    except GoneError:
        return peer.heard.strays[before:], True
    await peer.until(lambda heard: any(PROBE_ID.encode() in line for line in heard.strays[before:]), ANSWER_MS)
    if owed and not peer.closed:
        await peer.until(lambda heard: len(heard.strays) - before > owed, QUIET_MS if _short(peer, before, owed) else 0)
    return peer.heard.strays[before:], peer.closed


def _short(peer: Peer, before: int, owed: int) -> bool:
    return len(peer.heard.strays) - before <= owed


async def discover(stage: Stage) -> None:
    """Which methods the core itself lists, and what it says of its state."""
    reply = await stage.ask("rpc.discover")
    listed = reply.result.get("methods") if isinstance(reply.result, dict) else None
    if isinstance(listed, list):
        names = sorted(str(one.get("name")) for one in listed if isinstance(one, dict))
        stage.sheet.core["methods"] = names
        stage.described = {
            str(one.get("name")): [
                str(parameter.get("name")) for parameter in one.get("params") or () if isinstance(parameter, dict)
            ]
            for one in listed
            if isinstance(one, dict) and isinstance(one.get("params") or [], list)
        }
    reply = await stage.ask("server.status")
    result = reply.result if isinstance(reply.result, dict) else {}
    if reply.ok and stage.corner.core_id:
        same = core_id_of(result) == stage.corner.core_id
        stage.sheet.fact("server.core_id", "C2", same, True, say="server.status names the core of hello")
    if isinstance(result.get("pid"), int):
        stage.sheet.learn("pid", result["pid"])


def _keep_error(stage: Stage, ours: str, lines: Iterable[bytes]) -> None:
    for line in lines:
        value = _decoded(line)
        if isinstance(value, dict) and "error" in value and value.get("id") != PROBE_ID:
            stage.sheet.error(ours, error_seen(value["error"]))


def _has_result(lines: Iterable[bytes]) -> bool:
    return any(
        isinstance(value := _decoded(line), dict) and "result" in value and value.get("id") != PROBE_ID
        for line in lines
    )


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
