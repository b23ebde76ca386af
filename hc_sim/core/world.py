"""Everything that a core holds: terminals, documents, timers, trace, and what it still owes."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from hc_sim.core.answers import Answer, Answered, FileEffect, RefusalError
from hc_sim.core.table import Table
from hc_sim.core.terminal import Entry
from hc_sim.core.timers import Timer, Timers
from hc_sim.core.watches import Watches
from hc_sim.model import Kind
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent
from hc_sim.trace import Trace

if TYPE_CHECKING:
    from hc_sim.core.documents import Kept
    from hc_sim.core.programs import Starter

HINTS: dict[Kind, str] = {
    "name_taken": "choose another name, or end and remove the terminal that holds it",
    "no_such_terminal": "see `hc ls --all` for the terminals there are",
    "not_live": "the program has ended; see `hc get`",
    "not_finished": "end it with `hc kill` first, and wait for its end",
    "blocked": "the program waits for an answer; answer it, or send with force",
    "draft_present": "somebody has unsent text in the input; wait until it is sent or cleared",
    "send_refused": "nothing was typed; look at the terminal before you send again",
    "spawn_failed": "nothing was started; see `hc schema` for terminal.run",
    "limit_reached": "remove what is no longer needed",
    "no_such_document": "write it first, without a version",
    "version_conflict": "read the document again before you write",
    "invalid_params": "see `hc schema` for the parameters",
    "hello_required": "call hello first on each connection",
    "other_generation": "use a client of the core's generation",
    "not_faked": "this is a fake core; see its README for what it does",
}


class World:
    """The state behind a `Core`. Functions in the other modules of this folder move it."""

    def __init__(
        self,
        profile: WireProfile,
        agents: Sequence[Agent],
        env: Mapping[str, str],
        core_id: str,
        started_ms: int,
        socket: str,
        cwd_exists: Callable[[str], bool],
        start_program: "Starter | None" = None,
    ) -> None:
        self.profile = profile
        self.agents = tuple(agents)
        self.plays = [0] * len(self.agents)
        self.env = dict(env)
        self.core_id = core_id
        self.first_core_id = core_id
        self.births = 0
        self.started_ms = started_ms
        self.socket = socket
        self.cwd_exists = cwd_exists
        self.start_program = start_program
        """Starts what no agent plays, if somebody does."""
        self.now = 0
        self.trace = Trace()
        self.timers = Timers()
        self.table = Table(reuse_addresses=profile.reuse_addresses, suffix=profile.address_style == "suffix")
        self.actors: dict[int, Entry] = {}
        """Terminals with a timeline, vanished ones too, by the identity of the object."""
        self.documents: dict[str, Kept] = {}
        self.kin: dict[str, dict[int, tuple[Literal["all", "any"], Timer]]] = {}
        """Who waits for the children of a terminal: by its address, then by ticket."""
        self.up_since = 0
        """When this core was started last, on its own clock."""
        self.files: list[FileEffect] = []
        self.owed: dict[int, Entry] = {}
        """Tickets that have no answer yet."""
        self.shown: list[Entry] = []
        """Terminals that answers have shown since the core last told their timelines."""
        self.prompted: list[Entry] = []
        """Terminals that a text has reached since the core last told their timelines."""
        self.answered: list[Answered] = []
        self.last_ticket = 0
        self.asked: dict[int, int] = {}
        """Ticket to the connection that waits for its answer."""
        self.greeted: set[int] = set()
        self.watches = Watches()
        self.parameter_names = {ours: name for ours, name in profile.parameter_names().items() if ours != name}
        """Parameters that are spelt on the wire otherwise than here."""
        self.removed: dict[str, dict[str, Any]] = {}
        """How removed terminals looked last, by address and name, if the profile shows them still."""
        self.last_pid = 10_000

    def owe(self, entry: Entry) -> int:
        """Promise an answer about `entry` and return its ticket. Raises `RefusalError` when too many are owed."""
        if len(self.owed) >= self.profile.max_waiting:
            raise self.refusal("limit_reached", f"{self.profile.max_waiting} answers are owed already")
        self.last_ticket += 1
        self.owed[self.last_ticket] = entry
        return self.last_ticket

    def settle(self, ticket: int, answer: Answer) -> None:
        """Give the answer that was owed under `ticket`; nothing happens if it is owed no more."""
        self.asked.pop(ticket, None)
        if self.owed.pop(ticket, None) is not None:
            self.answered.append(Answered(ticket, answer))

    def refusal(self, kind: Kind, message: str, hint: str = "", **extra: Any) -> RefusalError:
        """An exception that answers the current call with an error of `kind`."""
        return RefusalError(self.profile.error(kind, message, hint or HINTS[kind], **extra))

    def find(self, target: str) -> Entry:
        """The terminal with this address or name. Raises `RefusalError`."""
        entry = self.table.find(target)
        if entry is None:
            raise self.refusal("no_such_terminal", f'no terminal "{target[:100]}"')
        return entry

    def new_entry(
        self,
        address: str,
        name: str | None,
        argv: list[str],
        cwd: str,
        labels: Mapping[str, str],
        env: dict[str, str],
        parent: str | None,
        now: int,
        *,
        die_with_parent: bool = False,
        keep: bool = False,
        rm: bool = False,
    ) -> Entry:
        """A terminal that is not in the table yet."""
        self.last_pid += 1
        return Entry(
            address=address,
            name=name,
            argv=argv,
            cwd=cwd,
            labels=dict(labels),
            env=env,
            parent=parent,
            die_with_parent=die_with_parent,
            keep=keep,
            rm=rm,
            created_ms=self.started_ms + now,
            pid=self.last_pid,
            turn=self.profile.first_turn,
        )
