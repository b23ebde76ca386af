"""The whole supervisor as a hypothesis state machine: any calls in any order, every invariant after every step.

Each child's agent and the faults of the run are drawn as well. A failure is shrunk by hypothesis, and its drive and
world stand in `scenario()`, to be written down. Needs hypothesis (extra `test`).
"""

from typing import Any

import msgspec
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

from contracts.fuzz.faulty import faults
from contracts.fuzz.lean import LeanLoop, Make, correct, fresh_loop
from contracts.fuzz.plans import CLAUSE, HANDLES, PAUSES_MS, TIMEOUTS_MS, WHY, name_of, text_of
from contracts.fuzz.stage import Stage, settle_down
from contracts.fuzz.strategies import Drawn, agents
from contracts.scenario import Scenario, Step, Terminal, World
from hc_sim.clock import VirtualDeadlock

MEANWHILE_MS = 3_000
"""How long a wait that goes on meanwhile may take."""


class SupervisorMachine(RuleBasedStateMachine):
    """Spawns, steers, aborts, waits, collects and retires several children at once, through random faults.

    Subclasses set `make` to put another supervisor under test.
    """

    make: Make = staticmethod(correct)
    children: Bundle[str] = Bundle("children")
    under_way: Bundle[str] = Bundle("under_way")

    def __init__(self) -> None:
        super().__init__()
        self._loop = fresh_loop()
        self._world = World()
        self._drive: list[Step] = []
        self._stage: Stage | None = None
        self._spoilt = False

    @initialize(data=st.data(), holder=st.sampled_from([None, None, None, 0, 1, "live"]))
    def _begin(self, data: st.DataObject, holder: Any) -> None:
        standing = [Terminal(name=name_of(HANDLES[0]), finished=None if holder == "live" else holder)]
        self._world = World(
            fault=faults(Drawn(data.draw)),
            profile={"finished_names_block": True} if holder is not None else {},
            terminal=[] if holder is None else standing,
        )
        self._stage = Stage(self._world, self._loop, make=type(self).make)

    @rule(target=children, handle=st.sampled_from(HANDLES), data=st.data())
    def spawn(self, handle: str, data: st.DataObject) -> Any:
        """Start a child; its name may be taken by another one."""
        played = data.draw(agents(name_of(handle)))
        self._world = msgspec.structs.replace(self._world, agent=[played, *self._world.agent])
        self._here.world.core.add_agents([played])
        name = f"{handle}-{len(self._drive)}"
        self._do(Step(do="spawn", as_=name, args={"handle": handle}))
        return name if name in self._here.children else multiple()

    @rule(child=children)
    def steer(self, child: str) -> None:
        """Send a text that no other one contains."""
        self._do(Step(do="steer", child=child, args={"text": text_of(len(self._drive))}))

    @rule(child=children, timeout_ms=st.sampled_from(TIMEOUTS_MS))
    def wait(self, child: str, timeout_ms: int) -> None:
        """Wait for the answer."""
        self._do(Step(do="wait", child=child, args={"timeoutMs": timeout_ms}))

    @rule(child=children, do=st.sampled_from(["abort", "status", "collect", "retire"]))
    def call(self, child: str, do: str) -> None:
        """Any of the other calls."""
        self._do(Step(do=do, child=child))

    @rule(target=under_way, child=children, do=st.sampled_from(["wait", "wait", "steer", "abort", "retire"]))
    def meanwhile(self, child: str, do: str) -> str:
        """A call that goes on while others are made."""
        name = f"m{len(self._drive)}"
        known: dict[str, dict[str, Any]] = {
            "wait": {"timeoutMs": MEANWHILE_MS},
            "steer": {"text": text_of(len(self._drive))},
        }
        args = known.get(do, {})
        self._do(Step(do=do, as_=name, child=child, background=True, args=args))
        return name

    @rule(name=under_way, do=st.sampled_from(["join", "cancel"]))
    def come_back(self, name: str, do: str) -> None:
        """Let a call that is under way come back, or call it off if it is a wait."""
        self._do(Step(do=do, of=[name]))

    @rule(ms=st.sampled_from(PAUSES_MS))
    def pause(self, ms: int) -> None:
        """Time goes by."""
        self._do(Step(do="pause", args={"ms": ms}))

    @precondition(lambda self: self._stage is not None)
    @invariant()
    def nothing_is_broken(self) -> None:
        """What must hold holds."""
        assert not self._here.broken, self._here.broken  # noqa: S101 - this is how a machine says that it failed

    def teardown(self) -> None:
        """Close the supervisor; then nothing may be left."""
        try:
            if self._stage is not None and not self._spoilt:
                self._run(self._stage.leave())
                self.nothing_is_broken()
        finally:
            self._close()

    def scenario(self) -> Scenario:
        """The run so far."""
        return Scenario(id="random-run", why=WHY, clauses=[CLAUSE], world=self._world, drive=list(self._drive))

    @property
    def _here(self) -> Stage:
        if self._stage is None:
            raise RuntimeError("the machine has not begun")
        return self._stage

    def _do(self, step: Step) -> None:
        self._drive.append(step)
        self._run(self._here.carry_out(step))

    def _run(self, work: Any) -> None:
        try:
            self._loop.run_until_complete(work)
        except VirtualDeadlock as error:
            self._spoilt = True
            self._here.hangs(str(error))
        if self._here.broken:
            self._spoilt = True
            note(f"the run: {msgspec.json.encode(self.scenario()).decode()}")

    def _close(self) -> None:
        loop: LeanLoop = self._loop
        try:
            loop.run_until_complete(settle_down())
        except (VirtualDeadlock, RuntimeError):
            pass
        finally:
            loop.close()
