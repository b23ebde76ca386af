"""D10: what may change a running child: a prompt, an interrupt. Each begins with a look and never happens twice.

A look and the change that it allows go over the same link. When the link changed in between, nothing was sent, and the
pair is done once more from the look on: the core behind the new link may have been restarted.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from legion_terminal.client import HcClient, Method
from legion_terminal.errors import SupervisorError
from legion_terminal.sight import BLOCKED_KINDS, NOT_LIVE_KINDS, Sight, difference, is_missing, read_sight
from legion_terminal.types import Child, SteerResult

ESC_WINDOW_MS = 500
MAX_ATTEMPTS = 2
MAX_TEXT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Esc:
    """The newest interrupt of a child: in which turn, when (loop time), and its failure if its outcome is unknown."""

    turn: int
    at: float
    error: SupervisorError | None = None


async def look(client: HcClient, child: Child) -> Sight:
    """Look at whatever has the child's name."""
    return read_sight(await client.ask("terminal.get", {"terminal": child.name}))


async def identified(client: HcClient, child: Child) -> Sight:
    """Look at the child's terminal. Raises `gone` when there is none, or when it is not the one that was started."""
    try:
        sight = await look(client, child)
    except SupervisorError as error:
        raise (_gone(child, error) if is_missing(error) else error.about(child.name)) from error
    if mismatch := difference(child, sight):
        raise SupervisorError("gone", f"the name belongs to another terminal now ({mismatch})", child=child.name)
    child.last = sight.observation
    return sight


async def prompt(client: HcClient, child: Child, text: str) -> SteerResult:
    """Send `text`, once. The turn just read becomes the child's `prompt_turn` before it leaves (D8).

    When the core certainly did not take the text, the turn remembered before is restored: nothing new is waited for.
    """
    _check_text(child, text)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        sight = await identified(client, child)
        _check_promptable(child, sight)
        before, child.prompt_turn = child.prompt_turn, sight.observation.turn
        try:
            answer = await _change(client, "terminal.send", child, sight, {"text": text})
        except SupervisorError as error:
            if error.known != "unknown":
                child.prompt_turn = before
            if not _link_changed(error) or attempt == MAX_ATTEMPTS:
                raise
        else:
            started = answer.get("started")
            return SteerResult(started=started if isinstance(started, bool) else None, prompt_turn=child.prompt_turn)
    raise AssertionError("the last attempt returns or raises")


async def interrupt(client: HcClient, child: Child, newest: Esc | None) -> Esc:
    """Press the stop key, unless `newest` did so in the same turn less than 500 ms ago; return what is newest now.

    An interrupt whose reply was lost comes back as an `Esc` with its error, for the caller to raise: the key may have
    been pressed, and a second one would open a menu.
    """
    loop = asyncio.get_running_loop()
    for attempt in range(1, MAX_ATTEMPTS + 1):
        sight = await identified(client, child)
        if sight.finished:
            raise SupervisorError("gone", "its program has ended", child=child.name)
        turn = sight.observation.turn
        if newest is not None and newest.turn == turn and loop.time() - newest.at < ESC_WINDOW_MS / 1000:
            return newest
        pressed_at = loop.time()
        try:
            await _change(client, "terminal.interrupt", child, sight, {})
        except SupervisorError as error:
            if error.known == "unknown":
                return Esc(turn, pressed_at, error)
            if not _link_changed(error) or attempt == MAX_ATTEMPTS:
                raise
        else:
            return Esc(turn, pressed_at)
    raise AssertionError("the last attempt returns or raises")


async def _change(
    client: HcClient, method: Method, child: Child, sight: Sight, params: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        return await client.call(method, {"terminal": child.name, **params}, on_link=sight.link)
    except SupervisorError as error:
        if is_missing(error) or error.kind in NOT_LIVE_KINDS:
            raise _gone(child, error) from error
        if error.kind in BLOCKED_KINDS:
            blocked = SupervisorError("blocked", error.message, known=error.known, kind=error.kind, hint=error.hint)
            raise blocked.about(child.name) from error
        raise error.about(child.name) from error


def _check_text(child: Child, text: str) -> None:
    if not text.strip():
        raise SupervisorError("bad-request", "there is no text to send", child=child.name)
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise SupervisorError(
            "bad-request",
            f"the text has {size} bytes, and {MAX_TEXT_BYTES} can be sent",
            child=child.name,
            hint="put it into a file and name the file",
        )


def _check_promptable(child: Child, sight: Sight) -> None:
    seen = sight.observation
    if sight.finished:
        raise SupervisorError("gone", "its program has ended", child=child.name)
    if seen.status == "blocked":
        raise SupervisorError(
            "blocked",
            "it waits for an answer to a question, and a prompt would be taken for that answer",
            child=child.name,
            hint="answer the question in the terminal first",
        )
    if seen.turn <= child.spawn_turn and seen.status != "working":
        raise SupervisorError(
            "not-started",
            "its first prompt has not started yet, so what it shows may be a question and no prompt line",
            child=child.name,
            hint="wait for its first turn",
        )


def _link_changed(error: SupervisorError) -> bool:
    return error.code == "host-unreachable" and error.known == "not-sent"


def _gone(child: Child, error: SupervisorError) -> SupervisorError:
    return SupervisorError("gone", error.message, child=child.name, known=error.known, kind=error.kind, hint=error.hint)
