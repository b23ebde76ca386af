"""WireProfile: every choice that public sources leave open, a field each, with default, reason and certainty."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from hc_sim.knobs import Knob
from hc_sim.model import Certainty, FrameKind, Kind, WireError
from hc_sim.notifications import EventName
from hc_sim.script.format import Strict


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a default is what it is, and how well it is known."""

    text: str
    certainty: Certainty


STANDARD_CODES: dict[Kind, int] = {
    "parse_error": -32700,
    "invalid_request": -32600,
    "batch_refused": -32600,
    "unknown_method": -32601,
    "not_faked": -32601,
    "invalid_params": -32602,
}
"""Codes that JSON-RPC itself assigns; -32601 of `unknown_method` is measured."""

FRAME_NUMBERS: dict[FrameKind, int] = {
    "data": 0,
    "credit": 1,
    "close": 2,
    "resize": 3,
    "focus": 4,
    "facts": 5,
    "viewer_reply": 6,
}
"""The kinds of frames; 0 to 5 are documented, the last one exists and its number is read between the lines."""

HelloMember = Literal["core_id", "generation", "pid", "version"]
"""What the result of hello has, by our names."""

Bytes = Annotated[int, msgspec.Meta(ge=1)]
ByteNumber = Annotated[int, msgspec.Meta(ge=0, le=255)]
Number = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Millis = Annotated[int, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class WireProfile(Strict):
    """How the fake core behaves where nobody can say how a real one does. All times are ms, all sizes bytes."""

    # hello and envelopes
    version: Annotated[str, Reason("the newest version that clients name", "documented")] = "0.1.20"
    generation: Annotated[int, Reason("clients refuse a core that does not speak generation 1", "inferred")] = 1
    refuse_other_generation: Annotated[bool, Reason("an error is the clearest answer", "unknown")] = True
    strict_hello: Annotated[bool, Reason("a request without hello was answered", "inferred")] = False
    hello_aliases: Annotated[
        dict[HelloMember, list[str]], Reason("result names are not public: several plausible ones", "unknown")
    ] = msgspec.field(default_factory=lambda: {"core_id": ["id"], "generation": ["protocol"], "version": ["core"]})
    hello_extra: Annotated[dict[str, Any], Reason("members to add to the result of hello", "unknown")] = msgspec.field(
        default_factory=dict
    )
    hello_reply: Annotated[
        Literal["line", "frame"], Reason("whether the answer to a hello that asks for frames is one", "unknown")
    ] = "line"
    pid: Annotated[int, Reason("the core's process id, as shown; no process stands behind it", "documented")] = 4242
    require_jsonrpc: Annotated[bool, Reason('every client sends "jsonrpc": "2.0"', "inferred")] = True
    batches: Annotated[
        Literal["refuse", "accept", "close"],
        Knob("what a batch of requests meets", 2),
        Reason("no source shows a batch", "unknown"),
    ] = "refuse"
    positional: Annotated[
        Literal["accept", "refuse"], Reason("JSON-RPC allows both; clients name their parameters", "unknown")
    ] = "accept"
    id_types: Annotated[
        Literal["any", "standard"], Reason("a text is echoed; JSON-RPC has text, number and null", "inferred")
    ] = "any"
    sorted_keys: Annotated[bool, Reason("seen in one reply, at every level", "inferred")] = True
    max_line_bytes: Annotated[
        Bytes,
        Knob("the longest line that the core reads", 1),
        Reason("16 MiB is the ceiling of the plain hello line", "documented"),
    ] = 16 * 1024 * 1024
    oversize: Annotated[
        Literal["error-close", "error", "close"],
        Knob("what follows a longer one: an error, the end of the connection, both", 1),
        Reason("what follows an oversized line is not public", "unknown"),
    ] = "error-close"

    # errors
    kind_style: Annotated[
        Literal["mixed", "lower", "upper"],
        Reason("unknown_method is measured, NAME_TAKEN is how a client prints it", "unknown"),
    ] = "mixed"
    kinds: Annotated[dict[Kind, str], Reason("another spelling for single kinds, by our name", "unknown")] = (
        msgspec.field(default_factory=dict)
    )
    codes: Annotated[dict[Kind, int], Reason("another code for single kinds, by our name", "unknown")] = msgspec.field(
        default_factory=dict
    )
    other_code: Annotated[int, Reason("only the standard codes are known", "unknown")] = -32000
    unknown_params: Annotated[
        Literal["refuse", "ignore"], Reason("a fake must not let a misspelt parameter pass", "unknown")
    ] = "refuse"
    caller_key: Annotated[str, Reason("the parameter that says who asks is not public", "unknown")] = "caller"
    force_key: Annotated[str, Reason("the parameter that sends to a blocked one is not public", "unknown")] = "force"
    timeout_key: Annotated[str, Reason("the parameter that bounds a wait is not public", "unknown")] = "timeout_ms"
    ended_key: Annotated[str, Reason("the one name of a wait's result that clients show", "inferred")] = "ended"
    target_key: Annotated[str, Reason("the parameter that names a terminal is not public", "unknown")] = "terminal"

    # terminals
    address_style: Annotated[
        Literal["decimal", "suffix"], Reason("t7 in most sources, t5c in one: opaque", "documented")
    ] = "decimal"
    reuse_addresses: Annotated[
        bool,
        Knob("the address of a removed terminal is given out again", 5),
        Reason("clients guard against it; off keeps traces readable", "inferred"),
    ] = False
    live_state: Annotated[str, Reason("only finished is certain", "unknown")] = "running"
    exit_code_key: Annotated[str, Reason("the key is not public", "unknown")] = "exit_code"
    signal_key: Annotated[str, Reason("the key is not public", "unknown")] = "signal"
    signal_style: Annotated[Literal["key", "exit-128"], Reason("a name beside a null code says most", "unknown")] = (
        "key"
    )
    absent_keys: Annotated[Literal["omit", "null"], Reason("keys of a status that were not reported", "unknown")] = (
        "omit"
    )
    no_status: Annotated[Literal["null", "omit"], Reason("status of a terminal that reports nothing", "unknown")] = (
        "null"
    )
    wrap_terminal: Annotated[bool, Reason("whether a terminal result sits in a member `terminal`", "unknown")] = False
    finished_names_block: Annotated[
        bool,
        Knob("a finished terminal keeps its name from others", 10),
        Reason("unique among live terminals", "documented"),
    ] = False
    rm_live: Annotated[
        Literal["refuse", "kill"],
        Knob("whether a live terminal is refused by rm or ended by it", 9),
        Reason("rm is described for finished ones only", "inferred"),
    ] = "refuse"
    get_removed: Annotated[
        Literal["error", "last"], Reason("whether what was removed is still shown as it last was", "unknown")
    ] = "error"
    kill_finished: Annotated[
        Literal["refuse", "accept"],
        Knob("whether a kill of a finished terminal is an error", 9),
        Reason("no source shows it", "unknown"),
    ] = "refuse"
    shell: Annotated[str, Reason("the default shell of a machine", "unknown")] = "/bin/bash"
    core_path: Annotated[
        str,
        Knob("the PATH of the core and of what it starts", 5),
        Reason("the PATH inside a terminal of one install", "measured"),
    ] = "/usr/local/bin:/usr/bin"
    core_cwd: Annotated[str, Reason("the core's own folder", "unknown")] = "/"
    die_with_parent: Annotated[
        bool,
        Knob("whether a child ends with its parent if it is not said", 9),
        Reason("a child of a caller ends with it unless told otherwise", "documented"),
    ] = True
    cascade: Annotated[
        Literal["hangup", "children", "none"],
        Knob("who ends with a parent: all below it, its children alone, nobody", 9),
        Reason("children end with their parent, and theirs with them; children: grandchildren do not", "documented"),
    ] = "hangup"
    cascade_ms: Annotated[Millis, Knob("how long after it", 9), Reason("timing is not public", "unknown")] = 0
    hangup_signal: Annotated[
        str, Knob("the signal of a hangup", 9), Reason("a kill begins with a hangup", "documented")
    ] = "SIGHUP"

    # turn and status
    first_turn: Annotated[
        int,
        Knob("the turn of a terminal that has just started", 6),
        Reason("at boot the counter equals the remembered value", "inferred"),
    ] = 0
    turn_rule: Annotated[
        Literal["script", "work-starts"],
        Knob("whether only the script moves the turn, or every beginning of work", 6),
        Reason("+1 when work starts is the natural reading; by default only the script moves it", "inferred"),
    ] = "script"
    blocked_to_working_counts: Annotated[
        bool,
        Knob("under work-starts: whether work that goes on after a dialog is a new turn", 6),
        Reason("under work-starts; not public", "unknown"),
    ] = False
    torn: Annotated[
        Literal["no", "turn-first", "status-first"],
        Knob("a change of turn and status shows in two halves, either one first", 6),
        Reason("one atomic snapshot unless asked", "unknown"),
    ] = "no"
    torn_ms: Annotated[
        Millis, Knob("for how long only its first half shows", 6), Reason("how long a torn pair shows", "unknown")
    ] = 50
    derive_done: Annotated[
        bool,
        Knob("idle after work is shown as done", 6),
        Reason("idle after work shows as done to nobody looking; app or core?", "unknown"),
    ] = False
    read_sees: Annotated[
        bool,
        Knob("done is withdrawn when somebody reads the screen", 6),
        Reason("whether terminal.read turns done into idle", "unknown"),
    ] = False

    # send, interrupt, wait
    send_started: Annotated[
        bool,
        Knob("false: no send is ever confirmed to have begun a turn", 7),
        Reason("an accepted text starts a turn", "documented"),
    ] = True
    send_turn: Annotated[bool, Reason("whether the answer carries turn", "unknown")] = False
    send_blocked: Annotated[
        Literal["refuse", "accept"],
        Knob("whether a text that is sent into a dialog is refused or answers it", 7),
        Reason("a blocked status can refuse a normal send", "documented"),
    ] = "refuse"
    interrupt_idles: Annotated[
        bool,
        Knob("false: Esc is pressed and status stays as it is", 8),
        Reason("Esc ends work in idle, at once", "measured"),
    ] = True
    interrupt_watch_ms: Annotated[
        Millis,
        Knob("how long the answer to an interrupt waits for its effect", 8),
        Reason("a client says 10 s; 0 answers at once with what is seen", "unknown"),
    ] = 0
    wait_default_ms: Annotated[Millis, Reason("a check-in after 180 s", "documented")] = 180_000
    wait_no_status: Annotated[
        Literal["exit", "ends"], Reason("a program that reports nothing is waited for to its exit", "inferred")
    ] = "exit"

    # programs that are really started
    program_turn: Annotated[
        Literal["work-starts", "work-ends"],
        Reason("a real program has no script; +1 when work starts is the natural reading", "inferred"),
    ] = "work-starts"
    program_status: Annotated[
        Literal["root", "most-urgent"],
        Reason("which of several records is the status is not public: the program's own", "unknown"),
    ] = "root"
    program_paste: Annotated[
        Literal["asked", "always", "never"],
        Reason("whether a text is pasted in brackets; terminals do it for programs that asked for it", "unknown"),
    ] = "asked"
    program_watch_ms: Annotated[
        Millis, Reason("how long an interrupt waits for a real program; a client says 10 s, that is long", "unknown")
    ] = 2_000
    program_grace_ms: Annotated[
        Millis, Reason("between hangup, terminate and kill; the order is documented, the times are not", "unknown")
    ] = 1_000

    # documents
    doc_version: Annotated[
        Literal["integer", "string"],
        Knob("the type of the versions of documents", 13),
        Reason("the type is not public", "unknown"),
    ] = "integer"
    doc_first: Annotated[
        int, Knob("the version of a new document", 13), Reason("the start value is not public", "unknown")
    ] = 1
    doc_create: Annotated[
        bool,
        Knob("whether a write without a version makes a document", 13),
        Reason("a write without version makes a new document", "unknown"),
    ] = True

    # frames, events, viewers
    frames_key: Annotated[str, Reason("which member of hello asks for binary frames is not public", "unknown")] = (
        "frames"
    )
    frames_value: Annotated[
        Any, Reason("with which value is not public either; null: any value that is not false", "unknown")
    ] = None
    frame_kinds: Annotated[
        dict[FrameKind, ByteNumber], Reason("other numbers for kinds; viewer_reply's is not public", "inferred")
    ] = msgspec.field(default_factory=dict)
    frame_newline: Annotated[bool, Reason("whether JSON in frames still ends in a line feed", "unknown")] = True
    first_channel: Annotated[Number, Reason("the core picks the numbers; from where is not public", "unknown")] = 1
    channel_step: Annotated[Number, Reason("from one channel to the next; not public", "unknown")] = 1
    credit_first: Annotated[
        Literal["implied", "explicit"], Reason("whether both sides may send a window before any credit", "unknown")
    ] = "implied"
    window_bytes: Annotated[Bytes, Reason("bytes of data that may be under way on a channel", "unknown")] = 1024 * 1024
    bad_frames: Annotated[
        Literal["error-close", "close"], Reason("what follows a violation is not public", "unknown")
    ] = "error-close"
    close_words: Annotated[bool, Reason("whether a close says in its payload why", "unknown")] = True
    attach_replay: Annotated[bool, Reason("whether a viewer is first sent the present screen", "unknown")] = True
    attach_facts: Annotated[bool, Reason("whether a viewer is sent the terminal as facts, in JSON", "unknown")] = True
    attach_sees: Annotated[bool, Reason("whether attaching turns done into idle", "unknown")] = False
    focus_sees: Annotated[bool, Reason("whether a focused viewer turns done into idle", "unknown")] = False
    event_names: Annotated[
        dict[EventName, str], Reason("every name is invented; another one for single events", "unknown")
    ] = msgspec.field(default_factory=dict)
    slow_reader: Annotated[
        Literal["skip", "close"], Reason("events that do not fit are left out and counted, or all ends", "unknown")
    ] = "skip"

    # limits
    max_frame_bytes: Annotated[Bytes, Reason("16 MiB is the ceiling of one payload", "documented")] = 16 * 1024 * 1024
    max_channels: Annotated[Count, Reason("streams of one connection", "unknown")] = 64
    max_stream_bytes: Annotated[Bytes, Reason("of one stream that wait for its reader", "unknown")] = 1024 * 1024
    max_terminals: Annotated[Count, Reason("bounds memory", "unknown")] = 4096
    max_documents: Annotated[Count, Reason("bounds memory", "unknown")] = 256
    max_document_bytes: Annotated[
        Bytes, Knob("the largest value of a document", 13), Reason("bounds memory", "unknown")
    ] = 4 * 1024 * 1024
    max_labels: Annotated[Count, Reason("labels of one terminal", "unknown")] = 256
    max_waiting: Annotated[Count, Reason("answers that are still owed", "unknown")] = 4096
    max_arg_bytes: Annotated[Bytes, Reason("Linux: one argument or variable, without its end mark", "measured")] = (
        131_071
    )
    max_args_bytes: Annotated[Bytes, Reason("Linux: argv and environment together, usual stack limit", "measured")] = (
        2 * 1024 * 1024
    )

    def __post_init__(self) -> None:
        numbers = self.frame_numbers()
        if len(set(numbers.values())) < len(numbers):
            raise ValueError("frame_kinds: two kinds of frames have one number")

    def spelt(self, kind: Kind) -> str:
        """How `kind` is spelt on the wire."""
        if kind in self.kinds:
            return self.kinds[kind]
        if self.kind_style == "upper" or (self.kind_style == "mixed" and kind == "name_taken"):
            return kind.upper()
        return kind

    def event(self, name: EventName) -> str:
        """How the notification `name` is spelt on the wire."""
        return self.event_names.get(name, name)

    def frame_numbers(self) -> dict[FrameKind, int]:
        """The number of each kind of frame."""
        return {**FRAME_NUMBERS, **self.frame_kinds}

    def parameter_names(self) -> dict[str, str]:
        """Our names of parameters to those on the wire, where they can differ."""
        return {
            "terminal": self.target_key,
            "caller": self.caller_key,
            "force": self.force_key,
            "timeout_ms": self.timeout_key,
        }

    def error(self, kind: Kind, message: str, hint: str, **extra: Any) -> WireError:
        """An error of `kind`, with the code and the spelling that this profile has for it."""
        code = self.codes.get(kind, STANDARD_CODES.get(kind, self.other_code))
        return WireError(code, message, self.spelt(kind), hint, tuple(sorted(extra.items())))


def reasons() -> dict[str, Reason]:
    """Field name to the reason of its default, for every field of `WireProfile`."""
    found: dict[str, Reason] = {}
    for name, hint in get_type_hints(WireProfile, include_extras=True).items():
        found[name] = next(item for item in hint.__metadata__ if isinstance(item, Reason))
    return found
