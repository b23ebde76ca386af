"""One run of the agent: from the prompt to `agent_settled`, as a generator that says what it waits for.

It yields milliseconds to wait (None: for ever), or the id of a request to the person, with the time it has; it is sent
the answer. An abort is thrown into it. All of its words go through the agent that runs it.
"""

from __future__ import annotations

from . import messages
from .session import Unusable
from .tools import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from .agent import Agent

    Waiting = Generator["int | tuple[str, int | None] | None", "dict[str, Any] | None", Any]

MAX_ATTEMPTS = 3
FIRST_RETRY_MS = 2_000


class Aborted(Exception):  # noqa: N818 - an event, not an error
    """The supervisor, or the end of the program, stops the run."""


class Run:
    """The messages of one agent loop, and the reply that the script gives to each model call."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.new: list[dict[str, Any]] = []
        self.attempt = 0
        self.aborted = False
        self.last_id = ""
        self.answered = False

    def play(self, text: str) -> Waiting:
        """Everything that one prompt leads to."""
        agent = self.agent
        self._begin()
        try:
            if not any(message["role"] == "system" for message in agent.session.messages):
                self.say(messages.system(agent.now_ms(), agent.session.cwd, agent.tools))
            self.say(messages.user(text, agent.now_ms()))
        except Unusable as error:  # the session file cannot be had: the run is over before it began
            self._over(messages.failed(self._blank("error"), str(error), 0))
            self._settled()
            return
        self._take(agent.steering)
        try:
            while (yield from self._turn()):
                agent.emit({"type": "turn_start"})
                if not self._take(agent.steering) and self.answered:
                    self._take(agent.follow_up)
        except Aborted:  # between two turns: nothing more comes of it
            self.aborted = True
            self._agent_end(retries=False)
        self._settled()

    def say(self, message: dict[str, Any]) -> None:
        """A message that begins and ends in one instant."""
        self.agent.emit({"type": "message_start", "message": message})
        self.finish(message)

    def finish(self, message: dict[str, Any]) -> None:
        """A message that has ended: told, remembered and written down."""
        self.agent.emit({"type": "message_end", "message": message})
        self.new.append(message)
        self.last_id = self.agent.session.message(message)
        if self.attempt and message["role"] == "assistant" and message["stopReason"] not in ("error", "aborted"):
            self.agent.emit({"type": "auto_retry_end", "success": True, "attempt": self.attempt})
            self.attempt = 0

    def _begin(self) -> None:
        self.new = []
        self.agent.emit({"type": "agent_start"})
        self.agent.emit({"type": "turn_start"})

    def _turn(self) -> Waiting:
        """One model answer and its tools; whether another turn follows."""
        agent = self.agent
        try:
            reply = yield from self._next_reply()
            if reply["do"] == "hang":
                yield None
            if reply["delay_ms"]:
                yield reply["delay_ms"]
        except Aborted:
            return self._over(messages.failed(self._blank("aborted"), messages.UNSTARTED_ABORTED, agent.spent_ms()))
        if reply["do"] == "error":
            return (yield from self._error(reply))
        if reply["do"] == "tool":
            return (yield from Tool(self, reply).play())
        return (yield from self._answer(reply))

    def _next_reply(self) -> Waiting:
        """The reply of the script; what the script does on the way there is done."""
        while True:
            reply = self.agent.next_reply()
            kind = reply["do"]
            if kind == "pause":
                yield reply["ms"]
            elif kind == "dialog":
                yield from self.agent.ask(reply)
                if self.agent.abort_waits:
                    raise Aborted
            elif kind in ("say", "raw", "stderr"):
                self.agent.blurt(reply)
            else:
                return reply

    def _answer(self, reply: dict[str, Any]) -> Waiting:
        agent = self.agent
        words = reply["words"]
        if words is None:
            text = "Hello from fake." if reply["text"] is None else reply["text"]
            words = text.split(" ")
            words = [word + " " for word in words[:-1]] + words[-1:]
        message = self._blank("pending")
        agent.emit({"type": "message_start", "message": message})
        agent.emit(messages.update({"type": "text_start", "contentIndex": 0}, used=False))
        said = ""
        try:
            for place, word in enumerate(words):
                if place and reply["gap_ms"]:
                    yield reply["gap_ms"]
                said += word
                delta = {"type": "text_delta", "contentIndex": 0, "delta": word}
                agent.emit(messages.update(delta, used=False))
            yield None if reply["hangs"] else reply["gap_ms"]
        except Aborted:
            content = [{"type": "text", "text": said}]
            agent.emit(messages.update({"type": "text_end", "contentIndex": 0, "content": said}, used=False))
            cut = {**message, "content": content, "stopReason": "aborted"}
            return self._over(messages.failed(cut, messages.STREAM_ABORTED, agent.spent_ms(), answered=True))
        agent.emit(messages.update({"type": "text_end", "contentIndex": 0, "content": said}, used=True))
        whole = {**message, "content": [{"type": "text", "text": said}], "stopReason": reply["stop"]}
        whole["usage"] = messages.usage(used=True)
        whole = messages.ended(whole, reply["stop"], agent.spent_ms())
        self.finish(whole)
        agent.emit({"type": "turn_end", "message": whole, "toolResults": []})
        self.answered = True
        if (agent.steering or agent.follow_up) and not agent.script["leaves_queue"]:
            return True
        self._agent_end(retries=False)
        return False

    def _error(self, reply: dict[str, Any]) -> Waiting:
        agent = self.agent
        message = self._broken_off(reply)
        agent.emit({"type": "turn_end", "message": message, "toolResults": []})
        again = reply["retry"] and agent.auto_retry and self.attempt < MAX_ATTEMPTS
        self._agent_end(retries=again)
        if not again:
            if self.attempt:
                self._retries_end(reply["message"])
            return False
        self.attempt += 1
        wait_ms = reply["retry_ms"] if reply["retry_ms"] is not None else FIRST_RETRY_MS * 2 ** (self.attempt - 1)
        start = {"type": "auto_retry_start", "attempt": self.attempt, "maxAttempts": MAX_ATTEMPTS, "delayMs": wait_ms}
        agent.emit({**start, "errorMessage": reply["message"]})
        agent.emit({"type": "entry_appended", "entry": agent.session.edit(self.last_id)})
        try:
            agent.retrying = True
            yield wait_ms
        except Aborted:
            self._retries_end("Retry cancelled")
            self.aborted = not agent.retry_cancelled
            return False
        finally:
            agent.retrying = False
        self._begin()
        return (yield from self._turn())

    def _broken_off(self, reply: dict[str, Any]) -> dict[str, Any]:
        """The message of a failed call: empty, or the words that came before the failure."""
        agent = self.agent
        words = reply["words"] or ()
        if not words:
            message = messages.failed(self._blank("error"), reply["message"], agent.spent_ms())
            self.say(message)
            return message
        pending = self._blank("pending")
        agent.emit({"type": "message_start", "message": pending})
        agent.emit(messages.update({"type": "text_start", "contentIndex": 0}, used=False))
        for word in words:
            delta = {"type": "text_delta", "contentIndex": 0, "delta": word}
            agent.emit(messages.update(delta, used=False))
        content = [{"type": "text", "text": "".join(words)}]
        cut = {**pending, "content": content, "stopReason": "error"}
        message = messages.failed(cut, reply["message"], agent.spent_ms(), answered=True)
        self.finish(message)
        return message

    def _retries_end(self, why: str) -> None:
        self.agent.emit({"type": "auto_retry_end", "success": False, "attempt": self.attempt, "finalError": why})

    def aborted_turn(self) -> bool:
        """The turn after a tool that was aborted: what is queued is taken in and burnt, and an empty answer ends it."""
        agent = self.agent
        agent.emit({"type": "turn_start"})
        self._take(agent.steering)
        return self._over(messages.failed(self._blank("aborted"), messages.TURN_ABORTED, 0))

    def _over(self, message: dict[str, Any]) -> bool:
        """The run ends with this message; returns that no turn follows."""
        self.aborted = message["stopReason"] == "aborted"
        if message["content"]:
            self.finish(message)
        else:
            self.say(message)
        self.agent.emit({"type": "turn_end", "message": message, "toolResults": []})
        self._agent_end(retries=False)
        return False

    def _agent_end(self, *, retries: bool) -> None:
        self.agent.emit({"type": "agent_end", "messages": self.new, "willRetry": retries})

    def _settled(self) -> None:
        self.agent.emit({"type": "agent_settled", "aborted": self.aborted})

    def _take(self, queue: list[dict[str, Any]]) -> bool:
        """Put what waits in a queue before the model: one message, or all of them as the mode says."""
        agent = self.agent
        took = False
        while queue and (not took or agent.takes_all(queue)):
            took = True
            message = queue.pop(0)
            agent.queue_update()
            self.say(message)
        return took

    def _blank(self, stop: str) -> dict[str, Any]:
        self.agent.mark()
        return messages.assistant([], self.agent.model, stop, self.agent.now_ms(), used=False)

    def pending(self) -> dict[str, Any]:
        """An answer that has just begun."""
        return self._blank("pending")
