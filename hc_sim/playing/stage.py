"""A fake core to play on by hand: what a test can do to it, whatever event loop or thread it runs in."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from hc_sim.core import Core
from hc_sim.faults import Fault, FaultPlan, LinkFault, Restart
from hc_sim.hub.connection import Hub
from hc_sim.model import Terminal
from hc_sim.picture import WIDTH, draw_trace
from hc_sim.script.format import Agent, FileWrite, Finish, StatusWord, Step
from hc_sim.script.load import Script, read_script
from hc_sim.trace import Trace

T = TypeVar("T")

Blocked = Literal["permission", "question", "auth"]
"""What a blocked agent waits for."""

Part = Agent | Fault | LinkFault | FaultPlan | Script | Path | str
"""What a script can be made of; a path is that of a script file."""


class Stage(ABC):
    """A fake core that runs somewhere, with the means to play its agents, plan faults and look at what happened.

    Every method takes effect at the present moment of the core's own time.
    """

    @abstractmethod
    def _do(self, work: Callable[[Hub, int], T]) -> T:
        """Do `work` to the hub at the present moment, and let go out what follows from it."""

    @property
    @abstractmethod
    def trace(self) -> Trace:
        """What happened so far: a list that grows as the core runs."""

    def agent(self, target: str) -> "PlayedAgent":
        """The agent in this terminal (address or name), to be played by hand. The terminal may be yet to come."""
        return PlayedAgent(self, target)

    def act(self, target: str, step: Step) -> None:
        """Carry out the effects of one step, now; the terminal's own timeline stands still from then on.

        Raises `LookupError` if the terminal is not there.
        """
        self._do(lambda hub, now: _act(hub.core, target, step, now))

    def terminal(self, target: str) -> Terminal:
        """The terminal with this address or name; looking is no observation. Raises `LookupError`."""
        return self._do(lambda hub, _: _find(hub.core, target))

    def terminals(self) -> list[Terminal]:
        """All terminals, finished ones too, in the order of their creation."""
        return self._do(lambda hub, _: hub.core.terminals())

    def add_terminal(
        self,
        name: str | None = None,
        *,
        argv: tuple[str, ...] = ("pi",),
        labels: dict[str, str] | None = None,
        parent: str | None = None,
        status: StatusWord = "none",
        turn: int = 0,
        played: bool = False,
    ) -> str:
        """Put a terminal there that nobody has asked for; returns its address.

        With `played`, an agent of the script plays it. Raises `ValueError` for a name that cannot be.
        """
        return self._do(
            lambda hub, now: hub.core.add_terminal(
                name=name, argv=argv, labels=labels, parent=parent, status=status, turn=turn, played=played, now=now
            )
        )

    def script(self, *parts: Part) -> None:
        """Agents for terminals that start from now on, and faults for calls and connections that come from now on.

        What was there before stays, but is asked later. Raises `FileError` for a script file with a mistake, and
        `ValueError` for a timeline that cannot be played or a fault that a core has to know when it starts.
        """
        agents, plan = collect(*parts)
        late = [name for name in FaultPlan.__struct_fields__ if name not in _INJECTED and getattr(plan, name)]
        if late:
            raise ValueError(f"a core has to know from its start what goes wrong with: {', '.join(late)}")

        def add(hub: Hub, _: int) -> None:
            hub.core.add_agents(agents)
            for fault in reversed(plan.fault):
                hub.inject(fault)
            for link in reversed(plan.link):
                hub.inject(link)

        self._do(add)

    def inject(self, fault: Fault | LinkFault) -> None:
        """Plan a fault; its `nth` counts the calls or connections that come from now on, so 1 is the next one."""
        self._do(lambda hub, _: hub.inject(fault))

    def restart(self, restart: Restart | None = None) -> None:
        """The core ends and comes back, now: every connection ends. What becomes of its terminals, `restart` says."""
        self._do(lambda hub, now: hub.restart(restart or Restart(), now))

    def fire(self, name: str) -> int:
        """Fire the armed `by_hand` steps of this name; returns how many there were."""
        return self._do(lambda hub, now: hub.core.fire(name, now))

    def hand_names(self) -> list[str]:
        """The names that `fire` knows: those of all `by_hand` steps, armed or not."""
        return self._do(lambda hub, _: hub.core.hand_names())

    def now(self) -> int:
        """Milliseconds since the core began."""
        return self._do(lambda _, now: now)

    def picture(self, width: int = WIDTH) -> str:
        """What happened so far, as a small text picture: time goes down, a lane for each terminal and for the calls."""
        return "\n".join(draw_trace(tuple(self.trace), width))


class PlayedAgent:
    """An agent that a test plays by hand. Whatever timeline its terminal had stands still from the first move on.

    Raises `LookupError`, naming the terminals there are, when the terminal is not there.
    """

    def __init__(self, stage: Stage, target: str) -> None:
        self.target = target
        self._stage = stage

    def working(self, msg: str | None = None, *, new_turn: bool | None = None) -> None:
        """It works. A new turn begins unless it works already or was only blocked; `new_turn` says so itself."""

        def start(hub: Hub, now: int) -> None:
            status = _find(hub.core, self.target).status
            fresh = status is None or status.state not in ("working", "blocked") if new_turn is None else new_turn
            counted = fresh and hub.core.profile.turn_rule == "script"
            _act(hub.core, self.target, Step(status="working", msg=msg, turn_add=1 if counted else None), now)

        self._stage._do(start)

    def done(self, msg: str | None = None) -> None:
        """It says that its turn is done."""
        self._report("done", msg)

    def idle(self, msg: str | None = None) -> None:
        """It waits at its prompt, having nothing to show."""
        self._report("idle", msg)

    def blocked(self, kind: Blocked = "permission", msg: str | None = None) -> None:
        """It waits for an answer of this kind."""
        self._stage.act(self.target, Step(status="blocked", kind=kind, msg=msg))

    def error(self, msg: str | None = None) -> None:
        """It reports that something failed."""
        self._report("error", msg)

    def silent(self) -> None:
        """It reports no status (any more)."""
        self._report("none", None)

    def finish(self, code: int | None = None, *, signal: str | None = None) -> None:
        """Its program ends, with an exit code (0 if nothing is said) or by a signal such as `"SIGKILL"`."""
        self._stage.act(self.target, Step(finish=Finish(code=code, signal=signal)))

    def vanish(self) -> None:
        """Its terminal is gone, as if it had never been."""
        self._stage.act(self.target, Step(vanish=True))

    def writes(self, text: str, *, newline: bool = True) -> None:
        """It appends a line to its session file: the file that follows `--session` in its argv."""
        self._stage.act(self.target, Step(file=FileWrite(append=text, newline=newline)))

    def act(self, step: Step) -> None:
        """Whatever else a step can do; its trigger does not matter."""
        self._stage.act(self.target, step)

    @property
    def terminal(self) -> Terminal:
        """Its terminal, as it is now."""
        return self._stage.terminal(self.target)

    @property
    def status(self) -> str:
        """Its status word, `"none"` when it reports none."""
        status = self.terminal.status
        return "none" if status is None else status.state

    @property
    def turn(self) -> int:
        """Its turn counter."""
        return self.terminal.turn

    @property
    def texts(self) -> list[str]:
        """The prompts that have reached it by `terminal.send`, in order."""
        return self._stage.trace.texts(self.target)

    @property
    def keys(self) -> list[str]:
        """The keys that have reached it, in order."""
        return self._stage.trace.keys(self.target)

    def _report(self, word: StatusWord, msg: str | None) -> None:
        self._stage.act(self.target, Step(status=word, msg=msg))


_INJECTED = ("fault", "link")
"""What a plan can still be given while the core runs."""


def collect(*parts: Part) -> tuple[list[Agent], FaultPlan]:
    """The agents and the faults of a script, in the order given. Raises `FileError` for a file with a mistake."""
    agents: list[Agent] = []
    faults: dict[str, list[Any]] = {name: [] for name in FaultPlan.__struct_fields__}
    for part in parts:
        match part:
            case Agent():
                agents.append(part)
            case Fault():
                faults["fault"].append(part)
            case LinkFault():
                faults["link"].append(part)
            case _:
                whole = part if isinstance(part, FaultPlan) else read_script(part)
                agents += whole.agent if isinstance(whole, Script) else []
                for name, planned in faults.items():
                    planned += getattr(whole, name, [])
    return agents, FaultPlan(**faults)


def _act(core: Core, target: str, step: Step, now: int) -> None:
    core.act(_find(core, target).address, step, now)


def _find(core: Core, target: str) -> Terminal:
    found = core.find(target)
    if found is None:
        there = ", ".join(f"{one.address} {one.name or ''}".strip() for one in core.terminals()[:20])
        raise LookupError(f"there is no terminal {target!r}; there {f'are: {there}' if there else 'is none at all'}")
    return found
