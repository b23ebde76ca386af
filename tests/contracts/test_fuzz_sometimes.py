"""Every state that a campaign should reach can be reached, and belongs to a clause that there is."""

from collections.abc import Mapping

import pytest

from contracts.clauses import load_clauses
from contracts.fuzz.features import faults_in, pairs_in
from contracts.fuzz.one import Result, Runner
from contracts.fuzz.sometimes import SOMETIMES
from contracts.scenario import Scenario, Step, Terminal, World
from hc_sim.faults import Fault, FaultError
from hc_sim.script.format import Agent, FileWrite, Finish, Match, Reborn
from hc_sim.script.format import Step as Act

NAME = "lgl-run00001-alpha"
SPAWN = Step(do="spawn", as_="alpha", args={"handle": "alpha"})
BEGIN = Act(after_ms=10, turn=1, status="working")


def wait(ms: int = 1_000) -> Step:
    return Step(do="wait", child="alpha", args={"timeoutMs": ms})


def do(name: str) -> Step:
    return Step(do=name, child="alpha", args={"text": "steer 1."} if name == "steer" else {})


def pause(ms: int) -> Step:
    return Step(do="pause", args={"ms": ms})


def world(*acts: Act, fault: tuple[Fault, ...] = (), terminal: tuple[Terminal, ...] = (), **manners: object) -> World:
    agent = Agent(match=Match(name=NAME), step=list(acts), **manners)  # type: ignore[arg-type]
    return World(agent=[agent], fault=list(fault), terminal=list(terminal))


def look(nth: int, **what: object) -> Fault:
    return Fault(method="terminal.get", nth=nth, **what)  # type: ignore[arg-type]


MISSING = FaultError(kind="no_such_terminal")
BUSY = FaultError(kind="limit_reached")
PROMPT = '{"type":"message","id":"p","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"go"}]}}'
ANSWER = (
    '{"type":"message","id":"a","parentId":"p","message":{"role":"assistant","content":[{"type":"text","text":"%s"}],'
    '"stopReason":"stop"}}'
)


def session(text: str, after_ms: int = 0) -> tuple[Act, ...]:
    return (
        Act(after_ms=0, file=FileWrite(append=PROMPT)),
        Act(after_ms=after_ms, file=FileWrite(append=ANSWER % text)),
    )


SCENES: Mapping[str, tuple[World, tuple[Step, ...]]] = {
    "settled in the very poll of done": (world(BEGIN, Act(after_ms=240, status="done")), (SPAWN, wait())),
    "settled by exit code 0": (world(BEGIN, Act(after_ms=9, finish=Finish(code=0))), (SPAWN, wait())),
    "settled by another exit code": (world(BEGIN, Act(after_ms=9, finish=Finish(code=3))), (SPAWN, wait())),
    "settled by a signal": (world(BEGIN, Act(after_ms=9, finish=Finish(signal="SIGKILL"))), (SPAWN, wait())),
    "settled on the first look": (world(BEGIN, Act(after_ms=9, status="done")), (SPAWN, pause(100), wait())),
    "settled after a failed look": (
        world(BEGIN, Act(after_ms=9, status="done"), fault=(look(2, error=BUSY),)), (SPAWN, wait()),
    ),
    "settled after one miss": (
        world(BEGIN, Act(after_ms=9, status="done"), fault=(look(2, error=MISSING),)), (SPAWN, wait()),
    ),
    "timeout with blocked": (world(BEGIN, Act(after_ms=9, status="blocked")), (SPAWN, wait())),
    "timeout with working": (world(BEGIN), (SPAWN, wait())),
    "timeout with an old done": (world(status="done"), (SPAWN, wait())),
    "timeout with idle in a new turn": (world(BEGIN, Act(after_ms=9, status="idle")), (SPAWN, wait())),
    "timeout with error in a new turn": (world(BEGIN, Act(after_ms=9, status="error")), (SPAWN, wait())),
    "timeout although done came and went": (
        world(BEGIN, Act(after_ms=50, status="done"), Act(after_ms=50, status="idle")), (SPAWN, wait()),
    ),
    "timeout with a look in flight": (world(BEGIN, fault=(look(0, delay_ms=3_000),)), (SPAWN, wait())),
    "gone after two misses": (world(BEGIN, Act(after_ms=9, vanish=True)), (SPAWN, wait())),
    "gone because another incarnation answers": (world(BEGIN, Act(after_ms=9, reborn=Reborn())), (SPAWN, wait())),
    "a wait called off": (
        world(BEGIN),
        (
            SPAWN,
            Step(do="wait", as_="w", child="alpha", background=True, args={"timeoutMs": 900}),
            pause(50),
            Step(do="cancel", of=["w"]),
        ),
    ),
    "a wait with a steer in its middle": (
        world(BEGIN),
        (
            SPAWN,
            Step(do="wait", as_="w", child="alpha", background=True, args={"timeoutMs": 900}),
            pause(50),
            do("steer"),
        ),
    ),
    "a wait through a fault": (world(BEGIN, fault=(look(3, error=BUSY),)), (SPAWN, wait())),
    "NAME_TAKEN with a finished holder": (
        World(profile={"finished_names_block": True}, terminal=[Terminal(name=NAME, finished=0)]), (SPAWN,),
    ),
    "NAME_TAKEN with a live holder": (world(BEGIN, terminal=(Terminal(name=NAME),)), (SPAWN,)),
    "the name of another child": (
        world(BEGIN), (SPAWN, Step(do="spawn", as_="other", args={"handle": "alpha"})),
    ),
    "a start whose reply was lost, adopted": (
        world(BEGIN, fault=(Fault(method="terminal.run", reply=False),)), (SPAWN,),
    ),
    "a start of unknown outcome": (world(BEGIN, fault=(Fault(method="terminal.run", apply=False),)), (SPAWN,)),
    "a start lost with its effect applied": (
        world(BEGIN, fault=(Fault(method="terminal.run", close="instead"),)), (SPAWN,),
    ),
    "a steer lost with its effect applied": (
        world(BEGIN, fault=(Fault(method="terminal.send", reply=False),)), (SPAWN, pause(50), do("steer")),
    ),
    "an interrupt lost with its effect applied": (
        world(BEGIN, fault=(Fault(method="terminal.interrupt", reply=False),)), (SPAWN, pause(50), do("abort")),
    ),
    "a steer that was taken": (world(BEGIN), (SPAWN, pause(50), do("steer"))),
    "a steer that was not confirmed": (world(BEGIN, send="unconfirmed"), (SPAWN, pause(50), do("steer"))),
    "a steer refused while blocked": (
        world(BEGIN, Act(after_ms=9, status="blocked")), (SPAWN, pause(50), do("steer")),
    ),
    "a steer refused before the first turn": (world(status="idle"), (SPAWN, do("steer"))),
    "a steer at a child that is gone": (world(Act(after_ms=9, vanish=True)), (SPAWN, pause(50), do("steer"))),
    "an abort that pressed the key": (world(BEGIN), (SPAWN, pause(50), do("abort"))),
    "an abort that pressed no second key": (world(BEGIN), (SPAWN, pause(50), do("abort"), do("abort"))),
    "retired": (world(BEGIN), (SPAWN, do("retire"))),
    "a program that no kill ends": (world(BEGIN, kill_ms=None), (SPAWN, do("retire"))),
    "ended and not removed": (
        world(BEGIN, fault=(Fault(method="terminal.rm", nth=0, error=BUSY),)), (SPAWN, do("retire")),
    ),
    "a retirement through a fault": (
        world(BEGIN, fault=(Fault(method="terminal.kill", reply=False),)), (SPAWN, do("retire")),
    ),
    "verdict accept": (world(*session("VERDICT: accept")), (SPAWN, pause(50), do("collect"))),
    "verdict reject": (world(*session("VERDICT: reject")), (SPAWN, pause(50), do("collect"))),
    "verdict unknown": (world(*session("all done")), (SPAWN, pause(50), do("collect"))),
    "a verdict that came while it was waited for": (
        world(*session("VERDICT: accept", after_ms=100)), (SPAWN, pause(10), do("collect")),
    ),
}  # fmt: skip


def carried_out(name: str) -> Result:
    stage, drive = SCENES[name]
    with Runner() as runner:
        return runner.carry_out(Scenario(id="x", why="A test.", clauses=["D8"], world=stage, drive=list(drive)))


@pytest.mark.parametrize("name", SOMETIMES)
def test_a_state_is_noticed_when_it_is_there(name: str) -> None:
    result = carried_out(name)

    assert name in result.seen
    assert result.broken == ()


@pytest.mark.parametrize("name", [name for name in SOMETIMES if name not in ("timeout with working", "retired")])
def test_a_state_is_not_noticed_in_the_plainest_runs(name: str) -> None:
    with Runner() as runner:
        run = Scenario(
            id="x",
            why="A test.",
            clauses=["D8"],
            world=world(BEGIN),
            drive=[SPAWN, do("status"), wait(300), do("retire")],
        )
        assert name not in runner.carry_out(run).seen


def test_every_state_belongs_to_a_clause_that_there_is() -> None:
    known = load_clauses()

    assert {state.clause for state in SOMETIMES.values()} <= {clause.id for clause in known.values()}


def test_features_name_what_a_look_showed_and_the_fault_it_met() -> None:
    features = carried_out("settled after a failed look").features

    assert "look/first/failed/error" in features
    assert any(feature.endswith("/new-done/well") for feature in pairs_in(features))
    assert faults_in(features) == {"error"}
