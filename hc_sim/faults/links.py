"""What goes wrong with a whole connection, or with the process that carries it."""

from typing import Annotated, Literal

import msgspec

from hc_sim.knobs import Knob
from hc_sim.script.format import Strict


class LinkFault(Strict, frozen=True):
    """One thing that is wrong with a connection.

    Which: the `nth` that is opened (from 1; 0: every one) and the `times` - 1 after it; with `from_ms` and `until_ms`
    only connections that are opened in that time are meant and counted. The first that fits is taken.
    """

    nth: int = 1
    times: int = 1
    from_ms: int | None = None
    until_ms: int | None = None

    refuse: Annotated[bool, Knob("it is accepted and ends without a byte", 4)] = False
    greeting: Annotated[str, Knob("text that comes before anything else", 1)] = ""
    greeting_hex: Annotated[str, Knob("the same as bytes", 1)] = ""
    chunk_bytes: Annotated[int, Knob("everything leaves in writes of at most so many bytes (0: as it comes)", 1)] = 0
    chunk_ms: Annotated[int, Knob("time between these writes", 1)] = 0
    silent_after: Annotated[int | None, Knob("after so many calls none is answered, and it stays open", 4)] = None
    half_close_after: Annotated[
        int | None, Knob("after so many replies the core's own side is shut; calls are still carried out", 4)
    ] = None
    close_after: Annotated[int | None, Knob("it ends after so many replies", 4)] = None
    close_ms: Annotated[int | None, Knob("it ends so long after it was opened, between two calls or within one", 4)] = (
        None
    )
    stall_after: Annotated[int | None, Knob("after so many calls the core reads no further: backpressure", 1, 4)] = None
    stall_ms: Annotated[int | None, Knob("it reads on after so long; unset: never", 1, 4)] = None


class Bridge(Strict, frozen=True):
    """What is wrong with the `hc connect` process itself (each connection, or only the n-th: `nth`, 0 = every one).

    `stderr` is written at start (`stderr_bytes`: that many bytes of noise). `exit_code`/`signal` end the process after
    `after_requests` request lines were read (0 = at once), `after_ms` its start, or in the middle of what it passes on.
    With `group` the signal reaches its whole process group (socket host; in memory there is no other process in it).
    """

    nth: int = 1
    stderr: Annotated[str, Knob("what `hc connect` says on stderr at its start", 4)] = ""
    stderr_bytes: Annotated[int, Knob("so many bytes of noise on its stderr: a flood", 4)] = 0
    exit_code: Annotated[int | None, Knob("the process ends with this code", 4)] = None
    signal: Annotated[str | None, Knob("the process is ended by this signal", 4)] = None
    group: Annotated[bool, Knob("the signal goes to its whole process group, and so to whoever shares it", 4)] = False
    after_requests: Annotated[int, Knob("it ends once so many requests were read; 0: before the first byte", 4)] = 0
    after_ms: Annotated[int | None, Knob("it ends so long after its start, between two polls", 4)] = None
    after_reply_bytes: Annotated[
        int | None, Knob("it ends once so many bytes of replies were passed on, in the middle of one", 4)
    ] = None
    closes: Annotated[
        Literal["", "stdin", "stdout", "stderr"],
        Knob("after so many requests it does not end, but lets go of this one stream and lives on", 4),
    ] = ""


class ChildExit(Strict, frozen=True):
    """How a headless child ends: the program that `hc_sim.programs.ending.install_ending` writes follows it.

    `retiring`: whether this is its end when it is told to stop (end of its input, or TERM) or the end it comes to by
    itself. `code` or `signal`.
    """

    retiring: Annotated[bool, Knob("the end it meets when told to stop, rather than its own", 11)] = False
    code: Annotated[int | None, Knob("it exits with this code", 11)] = None
    signal: Annotated[str | None, Knob("it is ended by this signal", 11)] = None
    after: Annotated[
        Literal["start", "request", "reply", "event"],
        Knob(
            "its own end comes before any data, on a request, after the reply, or in the instant of its last event", 11
        ),
    ] = "reply"
    ignores: Annotated[list[str], Knob("signals, and EOF, that do not end it", 11)] = msgspec.field(
        default_factory=list
    )
    order: Annotated[
        Literal["reply-first", "event-first", "event-only"],
        Knob("whether its last event comes after the reply, before it, or without any", 11),
    ] = "reply-first"
    holds_pipe_ms: Annotated[int, Knob("a grandchild holds its stdout open for so long after its end", 11)] = 0
