"""The scenario format: a world, a drive, and what must come of it."""
# ruff: noqa: RUF012 - msgspec gives every value its own copy of an empty default

from typing import Any, Literal

import msgspec

from hc_sim.faults import Bridge, FaultPlan
from hc_sim.script.format import Agent, StatusWord, Strict

__all__ = ["Bridge", "Expect", "HostName", "Level", "Parent", "Pi", "Scenario", "Step", "Terminal", "World"]

Level = Literal["must", "should", "hazard"]
HostName = Literal["memory", "socket"]


class Terminal(Strict, frozen=True):
    """A terminal that exists before the drive begins (besides the supervisor's own)."""

    name: str | None = None
    argv: list[str] = msgspec.field(default_factory=lambda: ["/bin/bash"])
    labels: dict[str, str] = {}
    turn: int = 0
    status: StatusWord = "none"
    finished: int | None = None
    """Exit code, when it is already finished."""
    parent: str | None = None
    played: bool = False
    """Whether the world's agents may play it; by default it just stands there."""


class Parent(Strict, frozen=True):
    """The terminal that the supervisor itself runs in (its address is HC_TERMINAL_ID)."""

    labels: dict[str, str] = msgspec.field(default_factory=lambda: {"herdr.space": "space-1", "herdr.tab": "tab-7"})
    missing: bool = False


class Pi(Strict, frozen=True):
    """The scripted `pi` on the supervisor's PATH (socket host only): what its model says, and how it misbehaves.

    `recording`: it plays this recording of `contracts/recordings/rpc` instead of a script. `reply`, `twist`, `act` and
    `stop` are the tables of `hc_sim.programs.install_pi`. `speed`: a factor on every time of script or recording.
    `handled`: words of a prompt that an extension takes, so that no run begins. `leaves_queue`: a run ends although
    text is queued.
    """

    recording: str = ""
    boot_ms: int = 0
    model: bool = True
    version: str = "1.6.0"
    stderr: str = ""
    stderr_bytes: int = 0
    speed: float = 1.0
    handled: list[str] = []
    leaves_queue: bool = False
    reply: list[dict[str, Any]] = []
    twist: list[dict[str, Any]] = []
    act: list[dict[str, Any]] = []
    stop: dict[str, Any] = {}


class World(FaultPlan, frozen=True):
    """Core, agents, faults, files and environment around the supervisor.

    `inside` = false leaves out both HC markers. `env` adds to the supervisor's environment (an empty string is a value;
    `unset` removes). `core_env` adds to the core's own environment. `profile` overrides `WireProfile` fields.
    `core` = "down": the socket file is there but nobody listens; "absent": no socket; "down-until:MS": comes up later;
    "directory"/"regular-file": the path is something else. `files`: path under the scenario's folder to text;
    `{session}` etc. are filled in. `repo` = true makes cwd a git repository with one commit. A world is a fault plan as
    well: it has all of its tables (`hc-sim faults` lists them).
    """

    inside: bool = True
    env: dict[str, str] = {}
    unset: list[str] = []
    core_env: dict[str, str] = {}
    decoys: bool = False
    """Whether variables of somebody else's session lie in the environment of the process that the supervisor runs in,
    where it must not look (A1). They lead nowhere."""
    memory_env: dict[str, str] = {}
    """What the supervisor's memory feature adds to a child's environment (D5)."""
    profile: dict[str, Any] = {}
    core: str = "up"
    parent: Parent = Parent()
    terminal: list[Terminal] = []
    agent: list[Agent] = []
    files: dict[str, str] = {}
    repo: bool = False
    hc: Literal["good", "missing", "not-executable", "exits"] = "good"
    """What HC_BIN points to (socket host only)."""
    pi: Pi | None = None
    """The program of headless children; it also ends as the `child` tables say."""


class Step(Strict, frozen=True, rename={"as_": "as"}):
    """One step of the drive.

    `do`: a call on the system under test (`host.available`, `arbitrate`, `card.load`, `spawn`, `steer`, `abort`,
    `wait`, `status`, `collect`, `capabilities`, `retire`, `shutdown`) or a move of the world: `fire` (a `by_hand` step,
    name in `args.name`), `pause` (`args.ms`), `until` (`args.calls` = method, `args.count`), `join` (`of` = background
    steps), `cancel` (cancel the background `wait` in `of`), `write` (`args.file`, `args.text`), `restart` (the core's
    listener).
    `as` names the result; `child` names the child by the `as` of its spawn. `at_ms`: not before this time.
    """

    do: str
    as_: str = ""
    child: str = ""
    of: list[str] = []
    at_ms: int | None = None
    background: bool = False
    args: dict[str, Any] = {}
    returns: dict[str, Any] | None = None
    raises: dict[str, Any] | None = None
    at: dict[str, Any] | int | None = None
    """When it came back, in ms since the drive began: a number or an operator table."""
    took: dict[str, Any] | int | None = None
    clause: str = ""


class Expect(Strict, frozen=True, rename={"with_": "with"}):
    """One statement about the trace or the world afterwards. Exactly one subject is set.

    `calls` (method, or `*`) with `count`/`at_least`/`at_most` and `where` (partial match over params, `after_ms`/
    `before_ms` over time, `child` over the terminal) · `order` (methods in this relative order) · `run` (n-th start,
    `nth`) with `with` = partial match over name, argv, env, labels, cwd, parent · `received` (texts that reached the
    child, exactly) · `keys` (keys that reached it) · `terminals` (names left in the core: partial map to state) ·
    `left` = "nothing" (no bridge process, no connection, no timer, no file beside those the world wrote) ·
    `repo` = "unchanged" · `git` (number of git processes) · `file` (path) with `mode` or `text` · `methods` (only these
    may appear on the wire) · `pi` (the `nth` program of a headless child) with `with` = partial match over argv,
    command, env, cwd, leads, told, code, signal · `lines` (what was written to it, exactly) · `starts` (number of `pi`
    that were started).
    """

    clause: str = ""
    say: str = ""
    child: str = ""
    calls: str | None = None
    count: int | None = None
    at_least: int | None = None
    at_most: int | None = None
    where: dict[str, Any] = {}
    after_ms: int | None = None
    before_ms: int | None = None
    order: list[str] | None = None
    run: bool = False
    nth: int = 1
    with_: dict[str, Any] = {}
    received: list[str] | None = None
    keys: list[str] | None = None
    terminals: dict[str, Any] | None = None
    left: Literal["nothing"] | None = None
    repo: Literal["unchanged"] | None = None
    git: int | None = None
    file: str | None = None
    mode: str | None = None
    text: str | None = None
    methods: list[str] | None = None
    pi: bool = False
    lines: list[Any] | dict[str, Any] | None = None
    starts: int | None = None


class Scenario(Strict, frozen=True, kw_only=True):
    """One scenario file.

    `id` equals the file's stem. `why`: one sentence, the reason it exists. `clauses`: what it proves; the first is the
    default clause of its expectations. `hosts`: `memory` (virtual time, same event loop) and/or `socket` (real socket,
    real `hc connect` process, real time). `source`: where the case comes from. `poll_ms`: the supervisor's interval.
    """

    id: str
    why: str
    clauses: list[str]
    level: Level = "must"
    hosts: list[HostName] = msgspec.field(default_factory=lambda: ["memory"])
    time: Literal["virtual", "real"] | None = None
    source: str = ""
    poll_ms: int = 250
    limit_ms: int = 20_000
    """Hard limit in real time for one run on the socket host."""
    world: World = World()
    drive: list[Step]
    expect: list[Expect] = []
