"""What a run leaves behind for the judge, and what the judge says of it."""

from typing import Any, Final, Literal

import msgspec

from contracts.scenario import HostName, Level
from hc_sim.trace import Event

Verdict = Literal["pass", "fail", "known", "hazard", "avoided", "skipped", "errored"]
ClauseVerdict = Literal["pass", "fail", "known", "hazard", "unproven", "skipped", "errored"]


UNEXPECTED: Final = "unexpected"
"""The code of what a step raised when that is no failure the system reports, but an exception that it let out."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the values that travel from a worker to the report."""


class StepRecord(Record, frozen=True):
    """How one step of the drive went. Times are ms since the drive began; `returned` xor `raised` once it came back."""

    index: int
    do: str
    name: str = ""
    child: str = ""
    started_ms: int = 0
    at_ms: int | None = None
    took_ms: int | None = None
    returned: dict[str, Any] | None = None
    raised: dict[str, Any] | None = None


class Aftermath(Record, frozen=True):
    """The world after the drive: terminals by name (or address) to state, what was left, git calls, repository, files.

    `left` lists in words everything that should not be there. `files` maps path to (mode as "0600", text).
    """

    terminals: dict[str, str] = {}
    left: list[str] = []
    git_calls: int = 0
    repo_changed: list[str] = []
    files: dict[str, tuple[str, str]] = {}


class PiRecord(Record, frozen=True):
    """One started `pi` of a headless child, as it saw itself.

    `argv`: its arguments; `session`: the file that they name. `leads`: whether it led a process group and a session of
    its own. `lines`: what was written to it. `told`: how it was told to stop, in order: signals, and EOF. `code` or
    `signal`: its own end, None for one that was killed.
    """

    argv: list[str] = []
    session: str = ""
    env: dict[str, str] = {}
    cwd: str = ""
    leads: bool = False
    lines: list[str] = []
    told: list[str] = []
    code: int | None = None
    signal: str | None = None


class RunRecord(Record, frozen=True):
    """Everything one run of one scenario on one host left.

    `children` maps the `as` of a spawn to its terminal name. `fills` maps placeholder to text (`{"dir": "/tmp/x"}`):
    the judge puts it for `{dir}` in what a scenario expects. `refused` names the git processes that virtual time did
    not let run: they count, and nothing that came after them is as it would have been.
    """

    scenario: str
    host: HostName
    steps: list[StepRecord] = []
    trace: list[Event] = []
    pi: list[PiRecord] = []
    aftermath: Aftermath = Aftermath()
    children: dict[str, str] = {}
    fills: dict[str, str] = {}
    refused: list[str] = []
    errored: str | None = None
    real_ms: int = 0
    virtual_ms: int = 0


class Finding(Record, frozen=True):
    """One statement that was checked: where it stands (`drive[2].returns.settled`), what was expected, what came.

    `known`: it does not hold, and a baseline says so.
    """

    clause: str
    ok: bool
    where: str
    expected: Any = None
    got: Any = None
    say: str = ""
    known: bool = False


class RunVerdict(Record, frozen=True):
    """The judge's word on one run."""

    scenario: str
    host: HostName | Literal["check"]
    verdict: Verdict
    level: Level = "must"
    clauses: list[str] = []
    findings: list[Finding] = []
    errored: str | None = None
    cost_ms: int | None = None
    """For a hazard: the time lost between the end of the work and the end of the wait."""
    real_ms: int = 0
    why: str = ""
