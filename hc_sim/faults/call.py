"""Fault: what goes wrong with one call, from the moment at which it is carried out to the bytes of its reply."""

from typing import Annotated, Any, Literal

import msgspec

from hc_sim.faults.life import Restart, Rival
from hc_sim.knobs import Knob
from hc_sim.script.format import Strict


class Until(Strict, frozen=True):
    """Release a held reply when the n-th reply of `method` has gone out."""

    method: str
    nth: int = 1


class FaultError(Strict, frozen=True):
    """A JSON-RPC error to answer with."""

    kind: str
    message: str = "scripted error"
    code: int = -32000
    hint: str = ""


class Fault(Strict, frozen=True):
    """One thing that goes wrong with a call.

    Which call: `method` is exact, or `"*"` for all. With `connection` (from 1) only calls of that connection are meant,
    with `from_ms` and `until_ms` only calls that come from then on, or before then, on the core's clock. `nth` counts
    the calls that are meant, from 1; 0 is every one of them. Of several faults that meet a call the first is taken.
    """

    method: str = "*"
    nth: int = 1
    connection: int | None = None
    from_ms: int | None = None
    until_ms: int | None = None

    apply: Annotated[bool, Knob("false: the core never carries the call out, and nothing answers it", 3, 13)] = True
    apply_ms: Annotated[int, Knob("the core carries the call out so much later, and answers then", 3, 13)] = 0
    reply: Annotated[bool, Knob("false: the call is carried out and its reply is lost", 2, 3, 13)] = True
    delay_ms: Annotated[int, Knob("the call is carried out at once and its reply comes so much later", 2, 3, 8)] = 0
    hold_until: Annotated[
        Until | None, Knob("the reply waits until the n-th reply of another method has gone out: another order", 2)
    ] = None
    error: Annotated[
        FaultError | None, Knob("answers with this error, without carrying the call out: a conflict, a refusal", 2, 13)
    ] = None
    rival: Annotated[
        Rival | None, Knob("somebody else was faster: takes the name, or writes the document, just before", 10, 13)
    ] = None
    restart: Annotated[
        Restart | None, Knob("the core restarts as soon as the call has been carried out; its reply is lost", 5)
    ] = None
    id: Annotated[
        Literal["as-sent", "null", "missing", "empty", "other-type"],
        Knob("the id that the reply bears; other-type turns a number into its text and back", 2),
    ] = "as-sent"
    shape: Annotated[
        Literal["plain", "null-error", "null-result", "neither", "result-first"],
        Knob(
            "the members of the reply: a null error beside the result, a null result, neither of both, another order", 2
        ),
    ] = "plain"
    contradict: Annotated[FaultError | None, Knob("the reply is followed by this error under the same id", 2)] = None
    repeat: Annotated[int, Knob("the reply comes so many times", 2)] = 1
    notifications: Annotated[int, Knob("so many notifications come before the reply", 2)] = 0
    requests: Annotated[int, Knob("so many requests of the core's own, with ids, come before the reply", 2)] = 0
    before: Annotated[str, Knob("text that stands before the reply, on its line or on lines of its own", 1)] = ""
    before_hex: Annotated[str, Knob("bytes that stand before the reply: efbbbf is a byte order mark", 1)] = ""
    after: Annotated[str, Knob("text that follows the reply", 1)] = ""
    raw: Annotated[str | None, Knob("this text stands for the reply, with {id} for the id as sent", 1, 2)] = None
    cut: Annotated[
        list[int], Knob("byte offsets at which the reply is split into writes of their own; [-1]: after every byte", 1)
    ] = msgspec.field(default_factory=list)
    gap_ms: Annotated[int, Knob("time between these writes", 1)] = 0
    join: Annotated[bool, Knob("the reply waits, and leaves in one write with the next one of its connection", 1)] = (
        False
    )
    newline: Annotated[Literal["lf", "crlf", "none"], Knob("how the line of the reply ends", 1)] = "lf"
    pad_bytes: Annotated[
        int, Knob("the result gets a member pad of so many bytes; with newline = none a line without an end", 1, 13)
    ] = 0
    separators: Annotated[
        bool, Knob("the result gets a member text with raw U+2028, U+2029, U+0085 and an emoji in it", 1)
    ] = False
    close: Annotated[
        Literal["", "after", "instead", "mid"],
        Knob("the connection ends after, instead of, or in the middle of the reply", 4),
    ] = ""
    silent: Annotated[bool, Knob("nothing is answered on this connection from here on, and it stays open", 4)] = False


def describe(fault: Fault) -> str:
    """The fault in a few words, for traces: only what differs from a healthy call."""
    parts = [f"{name}={_shown(getattr(fault, name))}" for name in _TURNED if _turned(fault, name)]
    return ", ".join(parts) or "nothing"


_ADDRESS = ("method", "nth", "connection", "from_ms", "until_ms")
_TURNED = tuple(name for name in Fault.__struct_fields__ if name not in _ADDRESS)
_BLANK = Fault()


def _turned(fault: Fault, name: str) -> bool:
    return bool(getattr(fault, name) != getattr(_BLANK, name))


def _shown(value: Any) -> str:
    if not isinstance(value, msgspec.Struct):
        return repr(value)
    said = {name: getattr(value, name) for name in value.__struct_fields__}
    blank = {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(value)
    }
    inner = ", ".join(f"{name}={_shown(one)}" for name, one in said.items() if one != blank.get(name))
    return f"({inner})"
