"""How a terminal child is started: one `terminal.run`, a name collision cleared once, a lost reply looked into (A4).

A start makes at most two `terminal.run` calls: the second only after the core has refused the first because the name
was taken, and only when the holder had finished, was nobody's child here, and could be removed by its address.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from legion_terminal.client import HcClient
from legion_terminal.errors import SupervisorError
from legion_terminal.sight import NAME_TAKEN_KINDS, Sight, is_missing, read_sight

_FRESH = (None, "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Everything `terminal.run` is told. `caller` is the parent's terminal, None when there is none."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    labels: Mapping[str, str]
    cwd: str
    caller: str | None

    def params(self) -> dict[str, Any]:
        """The parameters of the call. A caller that is not known is left out."""
        params: dict[str, Any] = {
            "name": self.name,
            "argv": list(self.argv),
            "env": dict(self.env),
            "labels": dict(self.labels),
            "cwd": self.cwd,
        }
        return params if self.caller is None else params | {"caller": self.caller}


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A started terminal, and the turn after which its first prompt counts (D8)."""

    sight: Sight
    prompt_turn: int


async def start(client: HcClient, wanted: Start, owns: Callable[[Sight], bool]) -> Started:
    """Start a terminal. `owns` says whether a terminal belongs to another child of this supervisor.

    Raises SupervisorError: `name-taken` with the holder left as it is, `outcome-unknown` when a terminal of this name
    may or may not have been started, `call-failed` when the core refused.
    """
    try:
        return await _run(client, wanted)
    except SupervisorError as error:
        if error.kind not in NAME_TAKEN_KINDS:
            raise
        await _clear_name(client, wanted.name, owns, error)
    try:
        return await _run(client, wanted)
    except SupervisorError as error:
        if error.kind not in NAME_TAKEN_KINDS:
            raise
        raise _taken(wanted.name, "another terminal took it meanwhile", error) from error


async def _run(client: HcClient, wanted: Start) -> Started:
    try:
        answer = await client.ask("terminal.run", wanted.params())
    except SupervisorError as error:
        if error.code == "outcome-unknown":
            return await _adopt(client, wanted, error)
        raise _in_directory(error, wanted) from error
    try:
        sight = read_sight(answer)
    except SupervisorError as error:
        return await _adopt(client, wanted, error)
    if sight.name not in (None, wanted.name):
        raise SupervisorError(
            "protocol", f"the core answered with terminal {sight.name!r}", child=wanted.name, known="unknown"
        )
    return Started(sight=sight, prompt_turn=sight.observation.turn)


def _in_directory(error: SupervisorError, wanted: Start) -> SupervisorError:
    message = f"{error.message} (to be started in {wanted.cwd})" if error.code == "call-failed" else error.message
    return SupervisorError(error.code, message, child=wanted.name, known=error.known, kind=error.kind, hint=error.hint)


async def _clear_name(client: HcClient, name: str, owns: Callable[[Sight], bool], taken: SupervisorError) -> None:
    """Remove the holder of `name` if it has finished and is nobody's here; raise `name-taken` in every other case."""
    try:
        holder = read_sight(await client.ask("terminal.get", {"terminal": name}))
    except SupervisorError as error:
        raise _taken(name, "and its holder cannot be seen", taken) from error
    if holder.name != name or not holder.address:
        raise _taken(name, "and its holder cannot be told for certain", taken)
    where = f"by terminal {holder.address} ({holder.words})"
    if not holder.finished:
        raise _taken(name, where, taken)
    if owns(holder):
        raise _taken(name, f"{where}, another child of this supervisor", taken)
    try:
        await client.ask("terminal.rm", {"terminal": holder.address}, on_link=holder.link)
    except SupervisorError as error:
        if not is_missing(error):
            raise _taken(name, f"{where}, which could not be removed: {error.message}", taken) from error


def _taken(name: str, holder: str, error: SupervisorError) -> SupervisorError:
    return SupervisorError(
        "name-taken",
        f"the name {name} is taken {holder}",
        child=name,
        known="not-applied",
        kind=error.kind,
        hint="the holder was left as it is; retire it, or use another handle",
    )


async def _adopt(client: HcClient, wanted: Start, lost: SupervisorError) -> Started:
    """The reply to a start was lost: take the terminal of this name if it is that very start, else say so."""
    try:
        found = read_sight(await client.ask("terminal.get", {"terminal": wanted.name}))
    except SupervisorError as error:
        raise _unknown(wanted, lost, f"looking for it failed: {error.message}") from error
    if doubt := _doubt(wanted, found):
        raise _unknown(wanted, lost, f"the terminal of this name has {doubt}")
    turn = found.observation.turn
    begun = found.observation.status not in _FRESH
    return Started(sight=found, prompt_turn=max(0, turn - 1) if begun else turn)


def _doubt(wanted: Start, found: Sight) -> str | None:
    """Why a found terminal may not be the one whose reply was lost, None when everything matches.

    A finished one is not taken: it may be left from an earlier, equal start.
    """
    if found.name != wanted.name:
        return f"another name, {found.name!r}"
    if found.argv != wanted.argv:
        return "another argv"
    if any(found.labels.get(key) != value for key, value in wanted.labels.items()):
        return "other labels"
    if found.parent != wanted.caller:
        return "another parent"
    if found.finished:
        return "already finished, and may be an earlier one"
    return None


def _unknown(wanted: Start, lost: SupervisorError, why: str) -> SupervisorError:
    return SupervisorError(
        "outcome-unknown",
        f"{lost.message}; {why}",
        child=wanted.name,
        known="unknown",
        hint=f"a terminal {wanted.name} may be running: look before starting it again",
    )
