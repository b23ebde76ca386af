"""The exit table of a headless child: what happened goes in, settle result and node state come out. Pure.

    event            settled  abnormal  reason             node
    agent-settled    yes      no        -                  settled    may say `aborted`
    exit-retiring    no       no        retired            retired    exit code or signal as delivered
    exit-zero        no       yes       gone               failed     exit code 0
    exit-other       no       yes       gone               failed     the exit code, if it is known
    exit-signal      no       yes       gone               failed     the signal
    timeout          no       no        timeout            timeout    the process lives on
    called-off       no       no        aborted by parent  aborted

An exit counts as `exit-retiring` when the retire was asked for before the supervisor saw the exit; neither code nor
signal decide that. 143 and 137 are codes like any other: nothing is made of them.
"""

from dataclasses import dataclass
from typing import Final, Literal

from legion_terminal.settle import SettleResult

NodeState = Literal["settled", "retired", "failed", "timeout", "aborted"]
Ending = Literal["agent-settled", "exit-retiring", "exit-zero", "exit-other", "exit-signal", "timeout", "called-off"]


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: a code, or the name of a signal (`SIGKILL`), or neither when nobody knows."""

    code: int | None = None
    signal: str | None = None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"signal {self.signal}"
        return "an unknown exit code" if self.code is None else f"exit code {self.code}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    settled: bool
    abnormal: bool
    reason: str | None
    node: NodeState


EXIT_ROWS: Final[dict[Ending, Row]] = {
    "agent-settled": Row(settled=True, abnormal=False, reason=None, node="settled"),
    "exit-retiring": Row(settled=False, abnormal=False, reason="retired", node="retired"),
    "exit-zero": Row(settled=False, abnormal=True, reason="gone", node="failed"),
    "exit-other": Row(settled=False, abnormal=True, reason="gone", node="failed"),
    "exit-signal": Row(settled=False, abnormal=True, reason="gone", node="failed"),
    "timeout": Row(settled=False, abnormal=False, reason="timeout", node="timeout"),
    "called-off": Row(settled=False, abnormal=False, reason="aborted by parent", node="aborted"),
}
"""The table, by event."""


def exit_ending(exit_: Exit, *, retiring: bool) -> Ending:
    """Which row an exit belongs to."""
    if retiring:
        return "exit-retiring"
    if exit_.signal is not None:
        return "exit-signal"
    return "exit-zero" if exit_.code == 0 else "exit-other"


def settle_result(
    ending: Ending,
    *,
    exit_: Exit | None = None,
    aborted: bool | None = None,
    unconfirmed: int = 0,
    last_turn: int | None = None,
    last_status: str | None = None,
    detail: str | None = None,
) -> SettleResult:
    """The result of a wait that ended so. `exit_` counts in the rows of an exit only, `aborted` when settled only."""
    row = EXIT_ROWS[ending]
    ended = exit_ if exit_ is not None and ending.startswith("exit") else Exit()
    return SettleResult(
        settled=row.settled,
        abnormal=row.abnormal,
        reason=row.reason,
        exit_code=ended.code,
        signal=ended.signal,
        last_turn=last_turn,
        last_status=last_status,
        node=row.node,
        aborted=aborted if row.settled else None,
        unconfirmed=unconfirmed or None if row.settled else None,
        detail=detail,
    )
