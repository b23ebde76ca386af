"""Random runs of a whole supervisor, as scenarios: agents, faults and name holders, and what the supervisor is told."""

from dataclasses import dataclass, field
from typing import Any

from contracts.fuzz.dice import Source, chance, pick
from contracts.fuzz.faulty import faults
from contracts.fuzz.timelines import agent
from contracts.running.drive import DEFAULT_RUN_ID
from contracts.scenario import Scenario, Step, Terminal, World

HANDLES = ("alpha", "beta", "gamma")
TIMEOUTS_MS = (0, 1, 50, 249, 250, 251, 500, 600, 1_000, 1_001, 3_000, 10_000, -1)
PAUSES_MS = (0, 1, 100, 250, 251, 500, 501, 2_000)
POLLS_MS = (250, 250, 250, 20, 100, 1_000)
MOVES = (
    *("wait",) * 6,
    *("steer",) * 4,
    *("status", "abort", "pause", "retire") * 2,
    *("collect", "spawn", "again", "meanwhile", "call-off", "join"),
)
MAX_MOVES = 12
WHY = "A random run."
CLAUSE = "D8"


@dataclass(slots=True)
class _Draft:
    """A drive in the making: who was spawned so far, and which steps are under way."""

    steps: list[Step] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    handles: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    under_way: list[str] = field(default_factory=list)
    texts: int = 0


def plan(source: Source) -> Scenario:
    """A random run. The first choices shape the drive, the later ones the world that it meets."""
    draft = _Draft()
    _spawn(source, draft, HANDLES[0])
    for _ in range(2 + source.below(MAX_MOVES - 1)):
        _move(source, draft)
    files = any(step.do == "collect" for step in draft.steps)
    agents = [agent(source, name_of(handle), files=files) for handle in dict.fromkeys(draft.handles)]
    world = World(
        profile=_profile(source),
        terminal=_holders(source, draft.handles),
        agent=agents,
        fault=faults(source),
    )
    return Scenario(
        id="random-run",
        why=WHY,
        clauses=[CLAUSE],
        poll_ms=pick(source, POLLS_MS),
        world=world,
        drive=draft.steps,
    )


def name_of(handle: str) -> str:
    """The name of a child's terminal (D7)."""
    return f"lgl-{DEFAULT_RUN_ID[:8]}-{handle}"


def wants_files(scenario: Scenario) -> bool:
    """Whether an agent of this run writes to its session file, so that there has to be one."""
    return any(step.file is not None for one in scenario.world.agent for step in one.step)


def _move(source: Source, draft: _Draft) -> None:
    do = pick(source, MOVES)
    child = pick(source, draft.children)
    number = len(draft.steps)
    match do:
        case "wait":
            draft.steps.append(Step(do="wait", child=child, args={"timeoutMs": pick(source, TIMEOUTS_MS)}))
        case "steer":
            draft.texts += 1
            draft.steps.append(Step(do="steer", child=child, args={"text": text_of(draft.texts)}))
        case "pause":
            draft.steps.append(Step(do="pause", args={"ms": pick(source, PAUSES_MS)}))
        case "spawn":
            free = [handle for handle in HANDLES if handle not in draft.handles]
            _spawn(source, draft, free[0] if free else HANDLES[0])
        case "again":
            _spawn(source, draft, pick(source, draft.handles))
        case "meanwhile":
            _meanwhile(source, draft, child, f"w{number}")
        case "call-off" if draft.waits:
            draft.steps.append(Step(do="cancel", of=[draft.waits.pop()]))
        case "join" if draft.under_way:
            name = draft.under_way.pop()
            draft.waits = [wait for wait in draft.waits if wait != name]
            draft.steps.append(Step(do="join", of=[name]))
        case "call-off" | "join":
            draft.steps.append(Step(do="status", child=child))
        case _:
            draft.steps.append(Step(do=do, child=child))


def text_of(number: int) -> str:
    """The n-th text of a run; no text contains another."""
    return f"steer {number}."


def _spawn(source: Source, draft: _Draft, handle: str) -> None:
    name = handle if handle not in draft.children else f"{handle}-{len(draft.steps)}"
    draft.children.append(name)
    draft.handles.append(handle)
    draft.steps.append(Step(do="spawn", as_=name, args={"handle": handle}))


def _meanwhile(source: Source, draft: _Draft, child: str, name: str) -> None:
    """A call that is under way while the drive goes on."""
    do = pick(source, ("wait", "wait", "wait", "retire", "steer", "abort"))
    if do == "wait":
        draft.waits.append(name)
        args = {"timeoutMs": pick(source, TIMEOUTS_MS)}
    elif do == "steer":
        draft.texts += 1
        args = {"text": text_of(draft.texts)}  # type: ignore[dict-item]
    else:
        args = {}
    draft.under_way.append(name)
    draft.steps.append(Step(do=do, as_=name, child=child, background=True, args=args))


def _profile(source: Source) -> dict[str, Any]:
    """Mostly the plain core; at times one that tears turn and status apart, or keeps the names of the finished."""
    torn = {"torn": pick(source, ("turn-first", "status-first")), "torn_ms": pick(source, (1, 250, 600))}
    return (torn if chance(source, 6) else {}) | ({"finished_names_block": True} if chance(source, 3) else {})


def _holders(source: Source, handles: list[str]) -> list[Terminal]:
    """Terminals that hold a child's name before it is spawned."""
    if not chance(source, 6):
        return []
    return [Terminal(name=name_of(pick(source, handles)), finished=pick(source, (0, 0, 1, None)), status="none")]
