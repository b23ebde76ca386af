"""JSON-RPC 2.0 envelopes: a line becomes a request or a refusal, an answer becomes a line.

Ids go back byte for byte as they came, whatever JSON type they have. Duplicate member names, NaN and Infinity are
refused: a lenient decoder would hide what a client did wrong. The fast decoder keeps the last of two equal names
without a word, so each line's names are counted against its colons: only a line with more colons than names (one
stands in a text, or a name comes twice) is read again, slowly, by a decoder that looks at every pair.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hc_sim.model import WireError
from hc_sim.profile import WireProfile

NULL_ID = msgspec.Raw(b"null")

_SORTED = msgspec.json.Encoder(order="sorted")
_PLAIN = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `id` is the decoded id and `raw_id` its bytes. A notification has `answer` false: it gets none."""

    id: Any
    raw_id: msgspec.Raw
    method: str
    params: Any
    answer: bool = True


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that is no request: what to answer, under which id (null when none can be read), and whether to close."""

    error: WireError
    id: Any = None
    raw_id: msgspec.Raw = field(default_factory=lambda: NULL_ID)
    close: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Several requests in one line, and what is none among them."""

    items: tuple[Request | Refusal, ...]


class _Envelope(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    jsonrpc: Any = None
    method: Any = None
    params: Any = None


MAX_BATCH = 1_000
"""Requests in one batch; more are refused together."""

_PLACE = re.compile(r"\(byte ([0-9]+)\)")
_PIECES = msgspec.json.Decoder(list[msgspec.Raw])
_ANY = msgspec.json.Decoder()
_ENVELOPE = msgspec.json.Decoder(_Envelope)


class _TwiceError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def decode(line: bytes, profile: WireProfile) -> Request | Batch | Refusal:
    """Read one line (without its 0A)."""
    try:
        value = _ANY.decode(line)
        if line.count(b":") != _names_in(value):
            json.loads(line, object_pairs_hook=_each_once)
    except _TwiceError as error:
        return Refusal(profile.error("parse_error", f'member "{error.name}" comes twice', "say each member once"))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return Refusal(profile.error("parse_error", _not_json(error), "one JSON object a line, in UTF-8"))
    except RecursionError:
        return Refusal(profile.error("parse_error", "not JSON: nested too deeply", "nest less deeply"))
    if isinstance(value, list):
        return _batch(value, line, profile)
    if not isinstance(value, dict):
        return Refusal(_invalid(profile, "a request must be an object"))
    return _request(value, _ENVELOPE.decode(line), profile)


def _not_json(error: Exception) -> str:
    """What is said of a line that cannot be read: where, if that is known, and nothing of the inside of the core."""
    place = _PLACE.search(str(error))
    return f"not JSON, from byte {place.group(1)} on" if place else "not JSON"


def refuse_line(profile: WireProfile) -> Refusal | None:
    """What to answer to a line over the limit; None when the profile only closes the connection."""
    if profile.oversize == "close":
        return None
    message = f"line is longer than {profile.max_line_bytes} bytes"
    error = profile.error("line_too_long", message, "send less in one line")
    return Refusal(error, close=profile.oversize == "error-close")


def encode_result(id_: Any, result: Any, profile: WireProfile) -> bytes:
    """The line that answers `id_` with `result`. `id_` may be any JSON value, or raw bytes of one."""
    return _encode({"jsonrpc": "2.0", "id": id_, "result": result}, profile)


def encode_error(id_: Any, error: WireError, profile: WireProfile) -> bytes:
    """The line that answers `id_` with `error`."""
    return _encode({"jsonrpc": "2.0", "id": id_, "error": error.body()}, profile)


def encode_notification(method: str, params: Any, profile: WireProfile) -> bytes:
    """A line that answers nothing."""
    return _encode({"jsonrpc": "2.0", "method": method, "params": params}, profile)


def _batch(value: list[Any], line: bytes, profile: WireProfile) -> Batch | Refusal:
    if profile.batches != "accept":
        refused = profile.error("batch_refused", "batches are not supported", "send one request a line")
        return Refusal(refused, close=profile.batches == "close")
    if not value:
        return Refusal(_invalid(profile, "a batch must hold at least one request"))
    if len(value) > MAX_BATCH:
        return Refusal(profile.error("limit_reached", f"more than {MAX_BATCH} requests in a batch", "send fewer"))
    pairs = zip(value, _PIECES.decode(line), strict=True)
    return Batch(tuple(_member(item, bytes(raw), profile) for item, raw in pairs))


def _member(value: Any, raw: bytes, profile: WireProfile) -> Request | Refusal:
    if not isinstance(value, dict):
        return Refusal(_invalid(profile, "a request must be an object"))
    return _request(value, _ENVELOPE.decode(raw), profile)


def _request(value: dict[str, Any], envelope: _Envelope, profile: WireProfile) -> Request | Refusal:
    asks = not isinstance(envelope.id, msgspec.UnsetType)
    raw = envelope.id if isinstance(envelope.id, msgspec.Raw) else NULL_ID
    id_ = value.get("id")
    method = envelope.method
    if profile.require_jsonrpc and envelope.jsonrpc != "2.0":
        return Refusal(_invalid(profile, 'member "jsonrpc" must be "2.0"'), id_, raw)
    if not isinstance(method, str) or not method:
        return Refusal(_invalid(profile, 'member "method" must be a non-empty string'), id_, raw)
    if profile.id_types == "standard" and (isinstance(id_, bool) or not isinstance(id_, str | int | float | None)):
        return Refusal(_invalid(profile, 'member "id" must be a text, a number or null'))
    if envelope.params is not None and not isinstance(envelope.params, dict | list):
        return Refusal(_invalid(profile, 'member "params" must be an object or an array'), id_, raw)
    return Request(id_, raw, method, envelope.params, asks)


def _invalid(profile: WireProfile, message: str) -> WireError:
    return profile.error("invalid_request", message, "see `hc schema` for the form of a request")


def _encode(message: dict[str, Any], profile: WireProfile) -> bytes:
    try:
        body = (_SORTED if profile.sorted_keys else _PLAIN).encode(message)
    except OverflowError:
        message = {
            key: json.loads(bytes(item)) if isinstance(item, msgspec.Raw) else item for key, item in message.items()
        }
        text = json.dumps(message, separators=(",", ":"), ensure_ascii=False, sort_keys=profile.sorted_keys)
        body = text.encode()
    return body + b"\n"


def _names_in(value: Any) -> int:
    count = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) is dict:
            count += len(item)
            waiting += item.values()
        elif type(item) is list:
            waiting += item
    return count


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        raise _TwiceError(next(name for name, times in counted.items() if times > 1))
    return found
