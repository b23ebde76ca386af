"""The supervisor's values: modes, requests, children, results, verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from legion_terminal.settle import Observation as Observation
from legion_terminal.settle import SettleResult as SettleResult

SpawnMode = Literal["inprocess", "rpc", "terminal"]
SPAWN_MODES: tuple[SpawnMode, ...] = get_args(SpawnMode)

OnBlocked = Literal["forward", "auto-approve", "notify"]
"""What happens to a question that a headless child asks: the parent answers, it is approved, or told and cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequest:
    """What the orchestrator asks for: which role, which task, where, with which program options (D4, D5).

    `env` values of None mean "not set" and never travel. `worktree` is true only for the role that holds one (I6).
    The last three are for headless children alone, and None means as the supervisor is set: `approve` the project side
    once (`--approve`), `on_blocked` what becomes of their questions, `min_free_mb` the limit of the memory gate in MiB.
    """

    agent: str
    run_id: str
    handle: str
    task: str
    cwd: str
    session_file: str
    worktree: bool = False
    worktree_branch: str | None = None
    allow_nested: bool = False
    model: str | None = None
    provider: str | None = None
    tools: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    no_extensions: bool = True
    skills: tuple[str, ...] = ()
    no_skills: bool = True
    no_context_files: bool = True
    system_prompt: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    approve: bool | None = None
    on_blocked: OnBlocked | None = None
    min_free_mb: int | None = None


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class Child:
    """One started agent. `name` is the only way the terminal backend addresses it later (D7).

    `address`, `core_id`, `created_ms` and `argv` identify the incarnation (checked before anything that changes it).
    `prompt_turn` is the turn remembered before the last prompt (D8), `prompt_id` the newest prompt that stood in the
    session file then (None: none, or nothing was sent since the start).
    """

    id: str
    mode: SpawnMode
    handle: str
    run_id: str
    session_file: str
    name: str = ""
    address: str = ""
    core_id: str = ""
    created_ms: int | None = None
    argv: tuple[str, ...] = ()
    prompt_turn: int = 0
    spawn_turn: int = 0
    prompt_id: str | None = None
    last: Observation | None = None
    retired: bool = False


Outcome = Literal["accept", "reject", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a session file says (D9): the outcome, the text of the last turn, and why it is unknown where it is."""

    outcome: Outcome
    text: str = ""
    stop_reason: str | None = None
    reason: str | None = None
    bad_lines: int = 0


@dataclass(frozen=True, slots=True)
class AbortResult:
    """The documented answer to an abort (D10): interrupted, and nothing claimed about queued text.

    A headless child's abort takes queued text back first: `cleared`, None when nothing was known to be queued.
    """

    status: Literal["interrupted"] = "interrupted"
    cleared: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueResult:
    """The queued texts that were taken back from a headless child, by the queue they stood in."""

    steering: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SteerResult:
    """What is known of a steer: `started` as the core reported it; false is no error and no licence to resend.

    `disposition`: what a headless child said became of it (`started`, `queued`, `handled`).
    """

    started: bool | None
    prompt_turn: int
    disposition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend claims. The terminal backend claims no disposition of prompts and no event facts (D10, D12)."""

    prompt_disposition: bool = False
    events: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireResult:
    """How a retire ended (D11): `ended` when the end of the program was seen, `removed` when the terminal is gone."""

    ended: bool
    removed: bool
    note: str | None = None


class Cancel(Protocol):
    """Anything that can say that the parent has called a wait off (an `asyncio.Event` does)."""

    def is_set(self) -> bool:
        """Whether the wait was called off."""

    async def wait(self) -> object:
        """Return when it is."""


class Supervisor(Protocol):
    """One backend. All durations are milliseconds; all failures are `legion_terminal.errors.SupervisorError`."""

    @property
    def capabilities(self) -> Capabilities:
        """What this backend claims to be able to do."""

    async def spawn(self, request: SpawnRequest) -> Child:
        """Start an agent on its task."""

    async def steer(self, child: Child, text: str) -> SteerResult:
        """Send text to a running agent; it queues it at its own turn boundary (D10)."""

    async def abort(self, child: Child) -> AbortResult:
        """Interrupt the running turn, keeping process and context (D10)."""

    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        """Wait until the child has settled, is gone, or the time is over (D8). A timeout raises and kills nothing."""

    async def status(self, child: Child) -> Observation:
        """One observation, now."""

    async def collect(self, child: Child) -> Verdict:
        """Read the verdict (D9)."""

    async def retire(self, child: Child) -> RetireResult:
        """End the child and remove its terminal (D11). Never raises."""

    async def close(self) -> None:
        """Release what the backend holds; children go on."""
