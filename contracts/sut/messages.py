"""The messages of the SUT protocol as types: the one source of its JSON Schema and of the checks on what a driver says.

Parameters travel from the suite to the driver, results and errors back. Keys are in camelCase. A key that is not listed
in a result is let through: the judge looks for what a result must not claim.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

PROTOCOL_VERSION: Final = 1
"""What `initialize` says; raised when a driver that was right becomes wrong by a change."""

FEATURES: Final[Mapping[str, str]] = {
    "terminal": "spawn of a centurion with a worktree inside hc; steer, abort, wait, status and retire of its child",
    "verdict": "collect",
    "host": "host.available",
    "arbitration": "arbitrate, and spawn choosing its mode and refusing what must not start",
    "cards": "card.load",
    "capabilities": "capabilities",
    "cancel": "cancel of an open wait",
    "inprocess": "spawn in mode inprocess",
    "memory": "settings.memoryEnv reaches the child",
    "rpc": "spawn in mode rpc, and for its child prompt, follow_up, clear_queue, dialogs, answer and the exit table",
}
"""Every feature, and what it turns on."""
MANDATORY: Final = "terminal"
"""The feature that the frozen contract is about."""
CHILDREN: Final = frozenset({"terminal", "rpc"})
"""The features of which a driver needs one: without children there is nothing to check."""

Mode = Literal["inprocess", "rpc", "terminal"]
Text = Annotated[str, Meta(min_length=1)]
Strings = dict[str, str]


class Message(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Base of parameters and results."""


class Settings(Message):
    """How the supervisor is set for this run."""

    poll_ms: Annotated[int, Meta(ge=1, description="Rest between two looks of a wait, in ms")] = 250
    memory_env: Annotated[Strings, Meta(description="What the memory feature adds to a child (D5)")] = {}


class Client(Message):
    """Who asks."""

    name: str
    version: str


class InitializeParams(Message):
    """The first call."""

    protocol_version: Annotated[int, Meta(description="The version that the suite speaks")]
    client: Client
    settings: Settings


class InitializeResult(Message):
    """Who answers, and what it can do."""

    protocol_version: Annotated[int, Meta(description="The version that the driver speaks")]
    name: Annotated[Text, Meta(max_length=100, description="The supervisor's name, for reports")]
    version: Annotated[str, Meta(max_length=100, description="The supervisor's version; empty if it has none")]
    language: Annotated[str, Meta(max_length=100, description="What it is written in")]
    features: Annotated[list[str], Meta(description="What it can do; see Features")]


class HostAvailableParams(Message):
    """Is this environment inside hc (D2)?"""

    env: Annotated[Strings | UnsetType, Meta(description="The whole environment to judge; left out: its own")] = UNSET


class HostAvailableResult(Message):
    """Yes or no."""

    available: bool


class ArbitrateParams(Message):
    """Which mode would an agent get (D1, D2, I5)?"""

    agent: Annotated[str, Meta(description="Its role")] = "centurion"
    worktree: bool = True
    env: Annotated[Strings | UnsetType, Meta(description="The whole environment to judge; left out: its own")] = UNSET


class ArbitrateResult(Message):
    """The mode."""

    mode: Mode


class CardLoadParams(Message):
    """Read an agent card (D13)."""

    text: Annotated[str, Meta(description="The whole card")]
    source: Annotated[str, Meta(description="Name of its file, for messages")] = "card.md"


class CardLoadResult(Message):
    """The card."""

    name: Annotated[str | UnsetType, Meta(description="The card's own name")] = UNSET
    source: str | UnsetType = UNSET
    body: Annotated[str | UnsetType, Meta(description="The text below the front matter")] = UNSET


class SpawnParams(Message):
    """Start an agent on its task (D4 to D7)."""

    handle: Annotated[str, Meta(description="What the caller calls the child; part of the terminal's name")]
    run_id: Annotated[str, Meta(description="The run; its first 8 characters are part of the terminal's name")]
    agent: Annotated[str, Meta(description="The role")]
    task: Annotated[str, Meta(description="What it is to do")]
    cwd: Annotated[str, Meta(description="Where it works")]
    session_file: Annotated[str, Meta(description="Its session file")]
    worktree: Annotated[bool, Meta(description="Whether it holds a worktree (which is its cwd)")] = False
    branch: Annotated[str | UnsetType, Meta(description="The branch of that worktree")] = UNSET
    model: str | UnsetType = UNSET
    provider: str | UnsetType = UNSET
    tools: list[str] = []
    extensions: list[str] = []
    skills: list[str] = []
    no_extensions: bool = True
    no_skills: bool = True
    no_context_files: bool = True
    system_prompt: Annotated[str | UnsetType, Meta(description="Path of a file")] = UNSET
    env: Annotated[dict[str, str | None], Meta(description="The request's own variables; null is not set")] = {}
    allow_nested: Annotated[bool, Meta(description="Whether it may start agents of its own")] = False
    mode: Annotated[str | UnsetType, Meta(description="Past the arbitration: start it in this mode")] = UNSET
    approve: Annotated[bool | UnsetType, Meta(description="Mode rpc: append --approve; left out: as it is set")] = UNSET
    on_blocked: Annotated[
        Literal["forward", "auto-approve", "notify"] | UnsetType,
        Meta(description="Mode rpc: what becomes of its questions; left out: as it is set"),
    ] = UNSET
    min_free_mb: Annotated[int | UnsetType, Meta(description="Mode rpc: limit of the memory gate in MiB; 0: none")] = (
        UNSET
    )


class SpawnResult(Message):
    """The child."""

    mode: Mode
    child: Annotated[Text, Meta(description="The token by which later calls name this child")]
    name: Annotated[str | UnsetType, Meta(description="Name of its terminal; left out without one")] = UNSET
    prompt_turn: Annotated[int | UnsetType, Meta(description="The turn remembered before the first prompt")] = UNSET


class ChildParams(Message):
    """Which child."""

    child: Annotated[str, Meta(description="The token that spawn gave")]


class SteerParams(ChildParams):
    """Send text (D10)."""

    text: str


class SteerResult(Message):
    """What is known of the send."""

    prompt_turn: Annotated[int, Meta(description="The turn remembered before this send")]
    started: Annotated[bool | UnsetType | None, Meta(description="As the core said; left out if it did not")] = UNSET
    disposition: Annotated[
        str | UnsetType, Meta(description="Headless alone: what became of it (started, queued, handled)")
    ] = UNSET


class ClearQueueResult(Message):
    """What was taken back."""

    steering: list[str]
    follow_up: list[str]


class OpenDialog(Message):
    """A question that a headless child has asked and that nobody has answered."""

    id: Text
    method: Annotated[str, Meta(description="confirm, select, input or editor")]
    title: str = ""
    message: str = ""
    options: list[str] = []


class DialogsResult(Message):
    """The open questions, oldest first."""

    open: list[OpenDialog]


class AnswerParams(ChildParams):
    """Answer an open question; without `confirmed` and `value` it is cancelled."""

    dialog: Annotated[str | UnsetType, Meta(description="Its id; left out: the oldest open one")] = UNSET
    confirmed: bool | UnsetType = UNSET
    value: str | UnsetType = UNSET


class AnswerResult(Message):
    """Whether there was such a question."""

    answered: bool


class AbortResult(Message):
    """Interrupted, and nothing else is claimed (D10)."""

    status: Literal["interrupted"]
    cleared: Annotated[
        list[str] | UnsetType, Meta(description="Headless alone: queued texts that were taken back before the abort")
    ] = UNSET


class WaitParams(ChildParams):
    """Wait for the answer to the newest prompt (D8)."""

    timeout_ms: Annotated[float | None, Meta(description="In ms, any number; null: without an end")] = 5_000
    token: Annotated[str, Meta(description="What cancel will call this wait; empty: it is never cancelled")] = ""


class WaitResult(Message):
    """How the wait ended."""

    settled: bool
    abnormal: bool
    reason: Annotated[str | UnsetType, Meta(description="timeout, gone, aborted by parent; left out when settled")] = (
        UNSET
    )
    exit_code: Annotated[int | UnsetType, Meta(description="Of a program that has ended by itself")] = UNSET
    signal: Annotated[str | UnsetType, Meta(description="That ended the program, as in SIGHUP")] = UNSET
    last_turn: Annotated[int | UnsetType, Meta(description="Of the newest look; left out when there was none")] = UNSET
    last_status: Annotated[str | UnsetType, Meta(description="Of the newest look; left out when none was shown")] = (
        UNSET
    )

    node: Annotated[
        Literal["settled", "retired", "failed", "timeout", "aborted"] | UnsetType,
        Meta(description="Headless alone: state of the orchestrator's node, by the exit table"),
    ] = UNSET
    aborted: Annotated[bool | UnsetType, Meta(description="Headless alone: what agent_settled said")] = UNSET
    unconfirmed: Annotated[
        int | UnsetType, Meta(description="Headless alone: queued texts that were not taken up when it settled")
    ] = UNSET
    detail: Annotated[str | UnsetType, Meta(description="Headless alone: how it ended, in words")] = UNSET


class CancelParams(Message):
    """Call a wait off."""

    token: str


class CancelResult(Message):
    """Whether there was such a wait."""

    cancelled: bool


class StatusResult(Message):
    """One look, now."""

    turn: int
    status: Annotated[str | None, Meta(description="status.state as the core shows it; null when nothing is reported")]
    state: Annotated[str, Meta(description="running or finished")]
    exit_code: int | UnsetType = UNSET
    signal: str | UnsetType = UNSET


class CollectResult(Message):
    """The verdict (D9)."""

    verdict: Literal["accept", "reject", "unknown"]
    text: Annotated[str, Meta(description="The answer to the newest prompt; empty when there is none")]
    stop_reason: Annotated[str | UnsetType, Meta(description="stopReason of the newest message, if it has one")] = UNSET
    reason: Annotated[str | UnsetType, Meta(description="Why it is unknown, in words")] = UNSET
    bad_lines: Annotated[int, Meta(ge=0, description="Stretches of the file that could not be read")] = 0


class CapabilitiesParams(Message):
    """No child: what the terminal backend claims."""

    child: str | UnsetType = UNSET


class CapabilitiesResult(Message):
    """Claims (D10, D12)."""

    prompt_disposition: bool
    events: bool


class RetireResult(Message):
    """How the end of the child came out (D11)."""

    ended: Annotated[bool, Meta(description="Whether the end of its program was seen")]
    removed: Annotated[bool, Meta(description="Whether its terminal is not listed any more")]
    note: Annotated[str | UnsetType | None, Meta(description="What went wrong, in words")] = UNSET


class Nothing(Message):
    """No members."""


class ErrorData(Message):
    """What is known of a failure. `code` is one of the words of the protocol document."""

    code: Text
    child: Annotated[str, Meta(description="Handle or terminal name it happened to")] = ""
    known: Annotated[
        Literal["not-sent", "not-applied", "applied", "unknown"], Meta(description="What is known of the effect")
    ] = "not-sent"
    kind: Annotated[str, Meta(description="The core's own data.kind, in lower case with underscores")] = ""
    hint: Annotated[str, Meta(description="What to do")] = ""


class Error(Message):
    """The error member of a response."""

    code: int
    message: str
    data: ErrorData


class Request(Message):
    """From the suite to the driver."""

    jsonrpc: Literal["2.0"]
    id: int
    method: str
    params: dict[str, Any]


class Response(Message):
    """From the driver to the suite: `result` or `error`, never both."""

    jsonrpc: Literal["2.0"]
    id: int
    result: dict[str, Any] | UnsetType = UNSET
    error: Error | UnsetType = UNSET


CALLS: Final[dict[str, tuple[type[Message], type[Message]]]] = {
    "initialize": (InitializeParams, InitializeResult),
    "host.available": (HostAvailableParams, HostAvailableResult),
    "arbitrate": (ArbitrateParams, ArbitrateResult),
    "card.load": (CardLoadParams, CardLoadResult),
    "spawn": (SpawnParams, SpawnResult),
    "steer": (SteerParams, SteerResult),
    "prompt": (SteerParams, SteerResult),
    "follow_up": (SteerParams, SteerResult),
    "clear_queue": (ChildParams, ClearQueueResult),
    "dialogs": (ChildParams, DialogsResult),
    "answer": (AnswerParams, AnswerResult),
    "abort": (ChildParams, AbortResult),
    "wait": (WaitParams, WaitResult),
    "cancel": (CancelParams, CancelResult),
    "status": (ChildParams, StatusResult),
    "collect": (ChildParams, CollectResult),
    "capabilities": (CapabilitiesParams, CapabilitiesResult),
    "retire": (ChildParams, RetireResult),
    "shutdown": (Nothing, Nothing),
}
"""Every call: its parameters and its result."""
