"""The core as one object: calls go in with the time they came, answers come out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hc_sim.core.answers import Answer, Answered, FileEffect, Pending, RefusalError
from hc_sim.core.calls import TERMINAL_CALLS, Handler, check_name
from hc_sim.core.documents import DOCUMENT_CALLS
from hc_sim.core.ending import end
from hc_sim.core.glances import Glances
from hc_sim.core.lifetime import happen, rival
from hc_sim.core.parameters import MAX_QUOTED, decode_params
from hc_sim.core.programs import Program, Starter, exited, printed, reported
from hc_sim.core.rules import effective_env
from hc_sim.core.server_calls import SERVER_CALLS
from hc_sim.core.status import change, make_status
from hc_sim.core.terminal import Entry, view
from hc_sim.core.timeline import act, begin, observed, play, play_due
from hc_sim.core.views import STREAM_CALLS, ViewerAct, carry_out
from hc_sim.core.waits import forget_waits
from hc_sim.core.watches import News
from hc_sim.core.world import World
from hc_sim.faults import Moment, Rival
from hc_sim.model import REFUSED, Status, Terminal, WireError
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, StatusWord, Step
from hc_sim.script.load import check_agent
from hc_sim.trace import Trace


def always(_: str) -> bool:
    """Every directory is there."""
    return True


class Core:
    """A fake core. It has no clock: every entry takes `now`, in ms, which must not go back (it is held if it does).

    `agents` play the terminals that `terminal.run` starts. `env` is laid over the minimal environment of the core.
    `started_ms` is the core's own time at `now` = 0, the base of `created_ms`. `socket` is the value of
    HC_TERMINAL_SOCKET. `cwd_exists` says whether a directory is there. `start_program` really starts what no agent
    plays; whoever has the programs says by `reported`, `printed` and `exited` what becomes of them.
    Raises `ValueError` for a timeline that cannot be played.
    """

    def __init__(
        self,
        profile: WireProfile | None = None,
        *,
        agents: Sequence[Agent] = (),
        env: Mapping[str, str] | None = None,
        core_id: str = "core-1",
        started_ms: int = 1_000,
        socket: str = "/run/hc.sock",
        cwd_exists: Callable[[str], bool] = always,
        start_program: Starter | None = None,
    ) -> None:
        _check(agents)
        self._world = World(
            WireProfile() if profile is None else profile, agents, env or {}, core_id, started_ms, socket, cwd_exists,
            start_program,
        )  # fmt: skip
        self.glances = Glances(self._world)
        """Answers to looks, for whoever calls nothing else between `advance` and them."""

    @property
    def profile(self) -> WireProfile:
        """The choices that this core follows."""
        return self._world.profile

    @property
    def trace(self) -> Trace:
        """What happened so far."""
        return self._world.trace

    @property
    def core_id(self) -> str:
        """The permanent id; a rebirth with `new_core_id` changes it."""
        return self._world.core_id

    def call(self, method: str, params: Any, now: int, *, conn: int = 0) -> Answer | Pending:
        """Carry out one call. `params` are as decoded from JSON (None: no parameters)."""
        now = self._run_to(now)
        try:
            result = self._dispatch(method, params, now, conn)
        except RefusalError as refused:
            result = Answer(error=refused.error)
        if isinstance(result, Pending):
            self._world.asked[result.ticket] = conn
        self._tell_timelines(now)
        return result if isinstance(result, (Answer, Pending)) else Answer(result)

    def advance(self, now: int) -> list[Answered]:
        """Do everything that is due up to `now`, in order of time, and return the answers that were owed."""
        due = self._world.timers.next_due()
        if due is not None and due <= now:
            self._run_to(now)
        self._world.now = max(self._world.now, now)
        answered, self._world.answered = self._world.answered, []
        return answered

    def next_due(self) -> int | None:
        """When `advance` has something to do next; the present if answers wait to be fetched; None if never."""
        return self._world.now if self._world.answered else self._world.timers.next_due()

    def fire(self, name: str, now: int) -> int:
        """Fire the armed `by_hand` steps called `name`, and return how many there were."""
        now = self._run_to(now)
        count = 0
        for entry in list(self._world.actors.values()):
            fired = entry.player.named(name, now) if entry.player is not None else None
            if fired is not None:
                count += 1
                play(self._world, entry, now, fired)
        self._tell_timelines(now)
        return count

    def hand_names(self) -> list[str]:
        """The names of all `by_hand` steps, armed or not."""
        players = [entry.player for entry in self._world.actors.values() if entry.player is not None]
        agents = [*self._world.agents, *(player.agent for player in players)]
        return sorted({step.by_hand for agent in agents for step in agent.step if step.by_hand is not None})

    def drain_files(self) -> list[FileEffect]:
        """What programs did to files since the last time, in order. To be done before replies are passed on."""
        files, self._world.files = self._world.files, []
        return files

    def drain_news(self) -> list[News]:
        """What subscribers and viewers hear since the last time; it goes out after the replies of its time."""
        news = list(self._world.watches.news)
        self._world.watches.news.clear()
        return news

    @property
    def has_news(self) -> bool:
        """Whether `drain_news` has something."""
        return bool(self._world.watches.news)

    def viewer(self, channel: int, act: ViewerAct, now: int) -> None:
        """Somebody who looks at a terminal does something to it; nothing happens if that stream has ended."""
        now = self._run_to(now)
        carry_out(self._world, channel, act, now)
        self._tell_timelines(now)

    def end_stream(self, channel: int) -> None:
        """A stream is no longer wanted."""
        self._world.watches.close(channel)

    def terminals(self) -> list[Terminal]:
        """All terminals, finished ones too, in the order of their creation."""
        return [view(entry) for entry in self._world.table]

    def find(self, target: str) -> Terminal | None:
        """The terminal with this address or name, or None. Looking is no observation."""
        entry = self._world.table.find(target)
        return None if entry is None else view(entry)

    def add_terminal(
        self,
        *,
        name: str | None = None,
        argv: Sequence[str] = ("/bin/bash",),
        labels: Mapping[str, str] | None = None,
        turn: int = 0,
        status: StatusWord = "none",
        finished: int | None = None,
        parent: str | None = None,
        played: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        now: int = 0,
    ) -> str:
        """Put a terminal there without any call, and return its address. `finished` is an exit code.

        Raises `ValueError` for a name that is not valid or not free, or a parent that is not there.
        """
        world = self._world
        now = self._run_to(now)
        try:
            if name is not None and finished is None:
                check_name(world, name)
            parent = None if parent is None else world.find(parent).address
        except RefusalError as refused:
            raise ValueError(refused.error.message) from refused
        address = world.table.new_address()
        effective = effective_env(world.profile, world.env, env or {}, address, world.socket)
        entry = world.new_entry(
            address, name, list(argv), cwd or world.profile.core_cwd, labels or {}, effective, parent, now,
            die_with_parent=parent is not None and world.profile.die_with_parent,
        )  # fmt: skip
        entry.turn, entry.status = turn, make_status(status, None if status == "none" else "pi")
        if finished is not None:
            entry.state, entry.exit_code = "finished", finished
        try:
            begin(world, entry, now, played=played)
        except RefusalError as refused:
            raise ValueError(refused.error.message) from refused
        return address

    def set_state(
        self,
        target: str,
        *,
        turn: int | None = None,
        status: StatusWord | None = None,
        kind: str | None = None,
        msg: str | None = None,
        finish: Finish | None = None,
        now: int,
    ) -> None:
        """Move a terminal (address or name) by hand. Raises `KeyError` if it is not there."""
        world = self._world
        now = self._run_to(now)
        entry = world.table.find(target)
        if entry is None:
            raise KeyError(target)
        new = None if status is None else make_status(status, entry.app or "pi", kind=kind, msg=msg)
        change(world, entry, now, turn=turn, status=new, report=status is not None)
        if finish is not None:
            end(world, entry, now, code=finish.code, signal=finish.signal)
        self._tell_timelines(now)

    def act(self, target: str, step: Step, now: int) -> None:
        """Play a terminal (address or name) by hand: the effects of `step` happen now, whatever its trigger says.

        The terminal's own timeline stands still from then on. Raises `KeyError` if the terminal is not there.
        """
        now = self._run_to(now)
        entry = self._world.table.find(target)
        if entry is None:
            raise KeyError(target)
        act(self._world, entry, now, step)
        self._tell_timelines(now)

    def reported(self, address: str, program: Program, status: Status | None, now: int) -> None:
        """The program of this terminal reports its status; nothing happens if it runs there no more."""
        entry = self._hosted(address, program, now)
        if entry is not None:
            reported(self._world, entry, status, self._world.now)
            self._tell_timelines(self._world.now)

    def printed(self, address: str, program: Program, data: bytes, lines: Sequence[str], now: int) -> None:
        """The program of this terminal printed bytes in which these lines ended."""
        entry = self._hosted(address, program, now)
        if entry is not None:
            printed(self._world, entry, data, lines)

    def exited(self, address: str, program: Program, code: int | None, signal: str | None, now: int) -> None:
        """The program of this terminal has ended, by exit code or by signal."""
        entry = self._hosted(address, program, now)
        if entry is not None:
            exited(self._world, entry, code, signal, self._world.now)
            self._tell_timelines(self._world.now)

    def _hosted(self, address: str, program: Program, now: int) -> Entry | None:
        self._run_to(now)
        entry = self._world.table.find(address)
        return entry if entry is not None and entry.program is program else None

    def add_agents(self, agents: Sequence[Agent]) -> None:
        """Agents for terminals that start from now on; they are asked before the ones that were there.

        Raises `ValueError` for a timeline that cannot be played.
        """
        _check(agents)
        world = self._world
        world.agents = (*agents, *world.agents)
        world.plays[:0] = [0] * len(agents)

    def happen(self, moment: Moment, now: int) -> None:
        """Something befalls the core as a whole: a restart, a document that another client writes, a clock that is set.

        Connections are not ended by it: whoever has them does that.
        """
        now = self._run_to(now)
        happen(self._world, moment, now)
        self._tell_timelines(now)

    def rival(self, method: str, params: Any, how: Rival, now: int) -> Answer | None:
        """Another client does the same just before this call; returns its answer when it is decided by that."""
        return rival(self._world, method, params, how, self._run_to(now))

    def hang_up(self, conn: int) -> None:
        """A connection is gone: forget what it said about itself, what it waits for, and its streams."""
        self._world.greeted.discard(conn)
        self._world.watches.hang_up(conn)
        forget_waits(self._world, conn)

    def _run_to(self, now: int) -> int:
        world = self._world
        self.glances.expire()
        now = max(now, world.now)
        while (due := world.timers.next_due()) is not None and due <= now:
            world.now = max(world.now, due)
            world.timers.run_one()
            self._tell_timelines(world.now)
        world.now = now
        return now

    def _tell_timelines(self, now: int) -> None:
        world = self._world
        while world.shown or world.prompted:
            shown, world.shown = world.shown, []
            prompted, world.prompted = world.prompted, []
            for entry in shown:
                observed(world, entry, now)
            for entry in prompted:
                play_due(world, entry, now)

    def _dispatch(self, method: str, params: Any, now: int, conn: int) -> Any:
        world = self._world
        handler = _HANDLERS.get(method)
        if handler is None:
            raise RefusalError(_unknown(world, method))
        if world.profile.strict_hello and method != "hello" and conn not in world.greeted:
            raise world.refusal("hello_required", f'"{method[:MAX_QUOTED]}" before hello')
        return handler(world, decode_params(world, method, params), now, conn)


def _check(agents: Sequence[Agent]) -> None:
    for index, agent in enumerate(agents):
        for problem in check_agent(agent):
            raise ValueError(f"agent[{index}].{problem.key}: {problem.message}")


def _unknown(world: World, method: str) -> WireError:
    name = method[:MAX_QUOTED]
    if method in REFUSED:
        return world.profile.error("not_faked", f'"{name}" is not faked', "this is a fake core; see its README")
    return world.profile.error("unknown_method", f'unknown method "{name}"', "see `hc schema` for the methods")


_HANDLERS: Mapping[str, Handler] = {**SERVER_CALLS, **TERMINAL_CALLS, **DOCUMENT_CALLS, **STREAM_CALLS}
