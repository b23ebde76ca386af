"""The first prompt of a headless child, which is also the proof that it started: there is no other ready sign."""

import asyncio
from typing import Any

from legion_terminal.errors import SupervisorError
from legion_terminal.messages import printable
from legion_terminal.rpc.launch import failed_start
from legion_terminal.rpc.messages import Response
from legion_terminal.rpc.running import Running


async def first_prompt(running: Running, text: str, start_ms: int) -> None:
    """Send the task; back when it was taken, or when the exit table has the word. Raises SupervisorError.

    A program that asks its parent something first counts as started at once: somebody has to be able to answer. So does
    one that has said something and does not answer within `start_ms`.
    """
    answer = _sent(running, text)
    loop = asyncio.get_running_loop()
    until = loop.time() + start_ms / 1000
    while running.life.exit is None and not running.foreign and (left := until - loop.time()) > 0:
        if running.life.dialogs or (answer is not None and answer.done()):
            break
        await _soon(running.news(), left)
    if answer is not None and answer.done() and answer.exception() is None:
        _check_taken(answer.result())
        return
    exit_ = running.life.exit
    failure = failed_start(exit_, spoke=running.spoke, noise=running.noise, stderr=running.process.tail())
    if failure is None and exit_ is None and not running.spoke:
        failure = SupervisorError("call-timeout", f"it said nothing for {start_ms} ms after its start", known="unknown")
    if failure is not None:
        raise failure


def _sent(running: Running, text: str) -> "asyncio.Future[Response] | None":
    """The answer to come; None when it takes no input any more: what it was then shows in a moment."""
    try:
        return running.prompt(text, None, lambda: None)
    except SupervisorError as error:
        if error.code == "bad-request":
            raise
        return None


def _check_taken(answer: Response) -> None:
    if not answer.success:
        raise SupervisorError(
            "call-failed",
            printable(f"it refused its first prompt: {answer.error}", 400),
            known="not-applied",
            hint="give it a model that this machine has a key for",
        )


async def _soon(news: "asyncio.Future[Any]", limit_s: float) -> None:
    try:
        await asyncio.wait({news}, timeout=limit_s)
    finally:
        news.cancel()
