"""How headless children are run: the program, the policies, and every limit of time."""

from dataclasses import dataclass

from legion_terminal.rpc.memory import DEFAULT_MIN_FREE_MB
from legion_terminal.types import OnBlocked


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlessSettings:
    """How headless children are run. Times in ms.

    `program`: what is started, before the options. `approve`: append `--approve`. `on_blocked`: the policy for their
    questions. `min_free_mb`: limit of the memory gate, 0 for none. `start_ms`: how long a start may take until the
    first prompt is taken. `call_ms`: for any later command, `abort_ms` for an abort. `grace_ms`: between the request to
    end and the kill, `kill_ms`: how long a kill may take. `drain_ms`: how long output may stay open after the exit.
    `dialog_ms`: after this a question that nobody answered is cancelled.
    """

    program: tuple[str, ...] = ("pi",)
    approve: bool = False
    on_blocked: OnBlocked = "forward"
    min_free_mb: int = DEFAULT_MIN_FREE_MB
    start_ms: int = 30_000
    call_ms: int = 30_000
    abort_ms: int = 10_000
    grace_ms: int = 1_000
    kill_ms: int = 2_000
    drain_ms: int = 1_000
    dialog_ms: int = 600_000
