"""Terminal, status, document, errors and every method as typed values: the one source of the wire schema."""

from dataclasses import dataclass
from typing import Any, Literal, dataclass_transform

import msgspec

Certainty = Literal["measured", "documented", "inferred", "unknown"]
"""How well a choice is known: seen on a real core, stated by its documents, read between the lines, or picked."""

State = Literal["running", "finished"]

FrameKind = Literal["data", "credit", "close", "resize", "focus", "facts", "viewer_reply"]
"""What a frame of the binary mode is for; `WireProfile.frame_numbers` has the number of each."""

Kind = Literal[
    "parse_error",
    "invalid_request",
    "batch_refused",
    "line_too_long",
    "bad_frame",
    "unknown_method",
    "not_faked",
    "invalid_params",
    "hello_required",
    "other_generation",
    "name_taken",
    "no_such_terminal",
    "spawn_failed",
    "limit_reached",
    "not_live",
    "not_finished",
    "blocked",
    "draft_present",
    "send_refused",
    "no_such_document",
    "version_conflict",
]
"""Our own names of the error kinds; `WireProfile` decides how each is spelt on the wire."""


@dataclass(frozen=True, slots=True)
class WireError:
    """A JSON-RPC error: `code`, `message`, and `data` = `{kind, hint}` plus `extra`. `kind` is spelt as on the wire."""

    code: int
    message: str
    kind: str
    hint: str
    extra: tuple[tuple[str, Any], ...] = ()

    def data(self) -> dict[str, Any]:
        """The `data` member of the error object."""
        return {"hint": self.hint, "kind": self.kind, **dict(self.extra)}

    def body(self) -> dict[str, Any]:
        """The whole error object."""
        return {"code": self.code, "data": self.data(), "message": self.message}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what travels."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of parameters: all are named; one that the method does not have is refused (see `unknown_params`)."""


class Status(Shape, omit_defaults=True):
    """What the program in a terminal reports about itself. A key that was not reported is left out."""

    state: Literal["idle", "working", "blocked", "done", "error"]
    app: str | None = None
    kind: Literal["permission", "question", "auth"] | None = None
    msg: str | None = None
    title: str | None = None
    progress: int | None = None


class Foreground(Shape):
    """The process in front of a live terminal."""

    pid: int
    name: str


class Terminal(Shape):
    """A terminal. `status` is null when nothing is reported, `exit_code` and `signal` are null while it runs.

    `created_ms` is in milliseconds since the epoch of the core's own clock.
    """

    address: str
    name: str | None
    argv: list[str]
    cwd: str
    state: State
    status: Status | None
    turn: int
    exit_code: int | None
    signal: str | None
    labels: dict[str, str]
    parent: str | None
    die_with_parent: bool
    keep: bool
    created_ms: int
    pid: int | None
    foreground: Foreground | None


class Target(Params):
    """A terminal, by address or name."""

    terminal: str


class AttachParams(Target):
    """Which terminal to look at, and how large the viewer is; null leaves the size as it is."""

    cols: int | None = None
    rows: int | None = None


class Opened(Shape):
    """The channel that now carries the stream: frames of its own, or in line mode the `channel` of notifications."""

    channel: int


class HelloParams(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says first. Members that are not listed here are ignored."""

    generation: int | None = None


class Hello(Shape):
    """Which core this is. `core_id` outlives restarts."""

    core_id: str
    generation: int
    version: str
    pid: int


class Nothing(Params):
    """No parameters."""


class RunParams(Params):
    """A program to start: `argv` without any shell, or a shell `line`; neither of the two starts the default shell.

    `env` is laid over the core's environment and cannot delete. `caller` is the terminal that the request comes from:
    it becomes the parent. `die_with_parent` null: true when there is a caller. `rm`: remove it as soon as it ends.
    """

    argv: list[str] | None = None
    line: str | None = None
    env: dict[str, str] = {}
    labels: dict[str, str] = {}
    cwd: str | None = None
    name: str | None = None
    caller: str | None = None
    die_with_parent: bool | None = None
    keep: bool = False
    rm: bool = False


class ListParams(Params):
    """Which terminals: live ones, with `all` finished ones too, narrowed to those that carry all of `labels`."""

    all: bool = False
    labels: dict[str, str] = {}


class ListResult(Shape):
    """Terminals in the order in which they were created."""

    terminals: list[Terminal]


class SendParams(Target):
    """Text to type as a prompt and submit. `force` sends although the status is blocked."""

    text: str
    force: bool = False


class SendResult(Shape):
    """`started` false: the core could not confirm that a turn began. `turn` only if the profile says so."""

    started: bool


class InterruptResult(Shape):
    """Which key was pressed, and whether the status changed by it."""

    key: str
    effect: bool


class KillResult(Shape):
    """The kill was begun; the end of the program shows in `terminal.get`."""

    killed: bool


class RmResult(Shape):
    """The terminal is no longer listed."""

    removed: bool


class KeepParams(Target):
    """Whether a lost program is replaced by a shell in place."""

    keep: bool = True


class LabelParams(Target):
    """Labels to set; a null value removes the label."""

    labels: dict[str, str | None]


class WaitParams(Target):
    """How long to wait, in milliseconds; null takes the core's default.

    With `children` the wait is for the children of the terminal: until none of them works (`all`), or until there is
    news of any (`any`): it stops working, ends or goes.
    """

    timeout_ms: int | None = None
    children: Literal["all", "any"] | None = None


class WaitResult(Shape):
    """`ended` false: the time is over and the program goes on; that is a check-in and no error.

    `children`: the children as they are now, if it was waited for them.
    """

    ended: bool
    terminal: Terminal
    children: list[Terminal] = []


class ReadParams(Target):
    """How many of the last lines to read; null takes the screen."""

    lines: int | None = None


class ReadResult(Shape):
    """What stands on the screen."""

    text: str


class DocGetParams(Params):
    """A document, by name."""

    name: str


class Document(Shape):
    """A named JSON value and the version to give back with the next write."""

    name: str
    version: int | str
    value: Any


class DocSetParams(Params):
    """A whole new value, and the version that it replaces; without one the document has to be new."""

    name: str
    value: Any
    version: Any = None


class DocSetResult(Shape):
    """The version that the write made."""

    name: str
    version: int | str


class ServerStatus(Shape):
    """What the core says about itself. `uptime_ms` counts on the core's own clock."""

    core_id: str
    generation: int
    version: str
    pid: int
    uptime_ms: int
    running: int
    finished: int


@dataclass(frozen=True, slots=True)
class Method:
    """One method: what it takes and gives, which errors it can answer with, and how well it is known.

    `missing` says what a real core does here and this one does not.
    """

    name: str
    summary: str
    params: type[msgspec.Struct]
    result: Any
    certainty: Certainty
    errors: tuple[Kind, ...] = ()
    changes: bool = False
    missing: str = ""


def _methods(*methods: Method) -> dict[str, Method]:
    return {method.name: method for method in methods}


# fmt: off
METHODS: dict[str, Method] = _methods(
    Method("hello", "Say who you are and learn which core answers.", HelloParams, Hello, "documented",
           ("other_generation",)),
    Method("rpc.discover", "This document.", Nothing, dict[str, Any], "documented"),
    Method("server.status", "Identity, version, uptime and counts.", Nothing, ServerStatus, "inferred"),
    Method("terminal.run", "Start a program in a new terminal.", RunParams, Terminal, "documented",
           ("name_taken", "no_such_terminal", "spawn_failed", "limit_reached"), True,
           "templates, first messages, other machines, sizes and palettes"),
    Method("terminal.get", "One terminal, live or finished.", Target, Terminal, "documented",
           ("no_such_terminal",), missing="terminals of other machines"),
    Method("terminal.list", "Live terminals, or all.", ListParams, ListResult, "documented",
           missing="terminals of other machines"),
    Method("terminal.send", "Type a prompt and submit it.", SendParams, SendResult, "documented",
           ("no_such_terminal", "not_live", "blocked", "draft_present", "send_refused", "limit_reached"), True,
           "text without Enter, single keys, cancelling a wait for a draft"),
    Method("terminal.interrupt", "Press the stop key: Esc for an agent, Ctrl+C otherwise.", Target, InterruptResult,
           "documented", ("no_such_terminal", "not_live"), True),
    Method("terminal.kill", "End the program.", Target, KillResult, "documented",
           ("no_such_terminal", "not_live"), True, "the steps of the escalation (scripts say what is left behind)"),
    Method("terminal.rm", "Remove a finished terminal from the list.", Target, RmResult, "documented",
           ("no_such_terminal", "not_finished"), True),
    Method("terminal.keep", "Replace a lost program by a shell in place.", KeepParams, Terminal, "documented",
           ("no_such_terminal",), True, "a program that is lost while the core lives on (scripts do it with `reborn`)"),
    Method("terminal.label", "Set and remove labels.", LabelParams, Terminal, "inferred",
           ("no_such_terminal", "limit_reached"), True),
    Method("terminal.wait", "Wait until the program is not working, or has ended.", WaitParams, WaitResult,
           "inferred", ("no_such_terminal", "limit_reached"), missing="waiting for output"),
    Method("terminal.read", "What stands on the screen.", ReadParams, ReadResult, "inferred",
           ("no_such_terminal",), missing="a real screen: prompts and reported messages stand for it"),
    Method("terminal.attach", "Look at a terminal as it changes, and type into it.", AttachParams, Opened, "documented",
           ("no_such_terminal", "not_live", "limit_reached"), True,
           "a real screen: prompts and reported messages stand for it; typing in line mode"),
    Method("events.subscribe", "Hear of every change of terminals and documents.", Nothing, Opened, "documented",
           ("limit_reached",), missing="filters and replay"),
    Method("doc.get", "A document and its version.", DocGetParams, Document, "documented", ("no_such_document",)),
    Method("doc.set", "Replace a document if its version is still this one.", DocSetParams, DocSetResult,
           "documented", ("version_conflict", "limit_reached"), True),
)
# fmt: on
"""Every method that the fake core carries out, by name."""

REFUSED: dict[str, Certainty] = {
    "terminal.keys": "inferred",
    "machine.add": "documented",
    "machine.connect": "documented",
    "machine.list": "inferred",
    "machine.rename": "documented",
    "machine.rm": "documented",
    "template.list": "inferred",
    "server.stop": "documented",
    "server.restart": "documented",
}
"""Methods that a real core has and this one refuses with `not_faked`, and how well their names are known."""
