"""What holds for a core whatever happens to it."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hc_sim.core import Answer, Core, Pending
from hc_sim.model import METHODS, Terminal
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, Match, Reborn, Step

NAMES = ["a", "b", "c"]
TARGETS = [*NAMES, "t1", "t2", "t5", "nobody"]

steps = st.one_of(
    st.builds(Step, at_ms=st.integers(0, 300), status=st.sampled_from(["idle", "working", "done", "none"])),
    st.builds(Step, after_ms=st.integers(0, 100), finish=st.just(Finish(code=1))),
    st.builds(Step, on_call=st.just("terminal.get"), nth=st.integers(1, 3), status=st.just("blocked")),
    st.builds(Step, after_observations=st.integers(0, 3), send=st.sampled_from(["accept", "hold", "refuse", "fuse"])),
    st.builds(Step, by_hand=st.just("go"), rename=st.sampled_from([*NAMES, ""])),
    st.builds(Step, on_call=st.just("terminal.send"), composer=st.just("draft")),
)
agents = st.builds(
    Agent,
    match=st.builds(Match, name=st.sampled_from([None, *NAMES])),
    status=st.sampled_from(["none", "idle", "working"]),
    kill_ms=st.sampled_from([0, 150, None]),
    hold_ms=st.integers(0, 300),
    queued=st.booleans(),
    step=st.lists(steps, max_size=5),
)
profiles = st.builds(
    WireProfile,
    reuse_addresses=st.booleans(),
    address_style=st.sampled_from(["decimal", "suffix"]),
    torn=st.sampled_from(["no", "turn-first", "status-first"]),
    cascade_ms=st.sampled_from([0, 40]),
    rm_live=st.sampled_from(["refuse", "kill"]),
    max_terminals=st.just(12),
    max_waiting=st.just(3),
)


class CoreMachine(RuleBasedStateMachine):
    """Calls, time and hands on one core whose scripts never move a turn and never bring anything back."""

    @initialize(profile=profiles, played=st.lists(agents, max_size=3))
    def begin(self, profile: WireProfile, played: list[Agent]) -> None:
        self.core = Core(profile, agents=played)
        self.now = 0
        self.ended: dict[str, Terminal] = {}
        self.owed: set[int] = set()

    def call(self, method: str, **params: Any) -> None:
        found = self.core.call(method, params, self.now)
        if isinstance(found, Pending):
            assert found.ticket not in self.owed
            self.owed.add(found.ticket)
        else:
            assert isinstance(found, Answer)
            assert found.error is None or found.error.kind != "parse_error"

    @rule(name=st.sampled_from([None, *NAMES, "Bad"]), caller=st.sampled_from([None, "t1", "a"]), rm=st.booleans())
    def run(self, name: str | None, caller: str | None, rm: bool) -> None:
        self.call("terminal.run", argv=["pi", "go"], name=name, caller=caller, rm=rm)

    @rule(
        method=st.sampled_from(["get", "interrupt", "kill", "rm", "keep", "wait", "read"]), who=st.sampled_from(TARGETS)
    )
    def act(self, method: str, who: str) -> None:
        self.call(f"terminal.{method}", terminal=who)

    @rule(who=st.sampled_from(TARGETS), force=st.booleans())
    def send(self, who: str, force: bool) -> None:
        self.call("terminal.send", terminal=who, text="x", force=force)

    @rule(everything=st.booleans())
    def look(self, everything: bool) -> None:
        self.call("terminal.list", all=everything)

    @rule(by=st.integers(0, 200))
    def pass_time(self, by: int) -> None:
        self.now += by
        for answered in self.core.advance(self.now):
            assert answered.ticket in self.owed
            self.owed.remove(answered.ticket)

    @rule()
    def fire(self) -> None:
        self.core.fire("go", self.now)

    @invariant()
    def names_are_unique_among_live_terminals(self) -> None:
        live = [terminal.name for terminal in self.core.terminals() if terminal.state == "running" and terminal.name]
        assert len(live) == len(set(live))

    @invariant()
    def addresses_are_unique(self) -> None:
        addresses = [terminal.address for terminal in self.core.terminals()]
        assert len(addresses) == len(set(addresses))

    @invariant()
    def the_turn_never_moves_by_itself(self) -> None:
        assert {terminal.turn for terminal in self.core.terminals()} <= {0}

    @invariant()
    def what_finished_stays_finished_as_it_was(self) -> None:
        listed = {terminal.address: terminal for terminal in self.core.terminals()}
        for address, before in list(self.ended.items()):
            after = listed.get(address)
            if after is None:
                del self.ended[address]
            else:
                assert msgspec.structs.replace(after, name=before.name, keep=before.keep) == before
        for address, terminal in listed.items():
            if terminal.state == "finished":
                assert (terminal.exit_code is None) != (terminal.signal is None)
                self.ended[address] = terminal

    @invariant()
    def counts_agree(self) -> None:
        found = self.core.call("server.status", {}, self.now)
        assert isinstance(found, Answer)
        states = [terminal.state for terminal in self.core.terminals()]
        assert (found.result["running"], found.result["finished"]) == (
            states.count("running"), states.count("finished"),
        )  # fmt: skip

    @invariant()
    def every_name_and_address_leads_to_a_terminal_that_has_it(self) -> None:
        terminals = self.core.terminals()
        before = len(self.core.trace.events)
        for terminal in terminals:
            assert self.core.find(terminal.address) == terminal
            if terminal.name is not None and terminal.name not in {other.address for other in terminals}:
                found = self.core.find(terminal.name)
                assert found is not None
                assert found.name == terminal.name
                assert found.state == "running" or terminal.state == "finished"
        assert len(self.core.trace.events) == before

    def teardown(self) -> None:
        if hasattr(self, "core"):
            self.now += 10_000_000
            self.pass_time(0)
            assert self.owed == set()
            self.advance_is_done()

    def advance_is_done(self) -> None:
        assert self.core.next_due() is None


CoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestCore = CoreMachine.TestCase


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.sampled_from(TARGETS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.sampled_from(sorted(METHODS)),
    junk | st.dictionaries(st.sampled_from(["terminal", "text", "name", "argv"]), junk),
)
@settings(max_examples=300, deadline=None)
def test_any_parameters_give_an_answer_and_never_an_exception(method: str, params: Any) -> None:
    core = Core()
    core.add_terminal(name="a", status="working")
    assert isinstance(core.call(method, params, 0), (Answer, Pending))


@given(st.text(max_size=300))
def test_any_method_name_gives_an_answer(method: str) -> None:
    found = Core().call(method, {}, 0)
    assert isinstance(found, Answer)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 400)), min_size=1, max_size=8),
    st.lists(st.integers(0, 500), max_size=8),
)
@settings(deadline=None)
def test_how_time_is_cut_never_matters(timeline: list[tuple[int, int]], cuts: list[int]) -> None:
    """Advancing in one leap or in many small ones leaves the same trace."""

    def trace(stops: list[int]) -> list[tuple[int, str, int | None]]:
        played = [Step(after_ms=ms, turn=turn) for turn, ms in timeline]
        core = Core(agents=[Agent(step=[*played, Step(after_ms=0, reborn=Reborn())])])
        core.call("terminal.run", {"argv": ["pi"], "name": "a"}, 0)
        for stop in sorted(stops):
            core.advance(stop)
        core.advance(10_000)
        return [(event.t, event.kind, event.turn) for event in core.trace]

    assert trace(cuts) == trace([])
