"""The commands of the protocol and their answers, those to wrong input too, as the real program was recorded."""

from __future__ import annotations

import json

from . import messages
from .session import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .agent import Agent

NO_MODEL = (
    "No API key found for the selected model.\n\nUse /login to log into a provider via OAuth or API key. See:\n"
    "  docs/providers.md\n  docs/models.md"
)
BUSY = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
NO_TEXT = "Cannot read properties of undefined (reading 'startsWith')"
WRONG_TEXT = "text.startsWith is not a function"
CRASH = (
    "file:///pi_rpc.js:1\n"
    "TypeError: Cannot read properties of null (reading 'id')\n"
    "    at handleInputLine (pi_rpc.js:1:1)\n"
    "    at process.processTicksAndRejections (node:internal/process/task_queues:103:5)\n"
    "\nNode.js v22.23.3\n"
)
REAL = (
    "cycle_model compact bash abort_bash export_html switch_session fork clone get_fork_messages get_tree new_session "
    "set_model set_thinking_level cycle_thinking_level get_available_thinking_levels get_session_stats"
).split()
"""Commands that the real program has and this one does not."""


class Answers:
    """Takes lines; each becomes an answer, an effect on the agent, or both."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._late: list[dict[str, Any]] = []
        self._aborts: list[dict[str, Any]] = []
        self._commands: dict[str, Callable[[dict[str, Any]], None]] = {
            "prompt": self._prompt,
            "steer": self._queued,
            "follow_up": self._queued,
            "abort": self._abort,
            "clear_queue": self._clear_queue,
            "abort_retry": self._abort_retry,
            "extension_ui_response": lambda one: self.agent.answered(one.get("id"), one),
            "get_state": lambda one: self._say(one, self._state()),
            "get_messages": lambda one: self._say(one, {"messages": self.agent.session.messages}),
            "get_entries": self._entries,
            "get_last_assistant_text": self._last_text,
            "get_available_models": lambda one: self._say(one, {"models": [self._model()]}),
            "get_commands": lambda one: self._say(one, {"commands": []}),
            "set_session_name": self._name,
            "set_auto_retry": self._set,
            "set_auto_compaction": self._set,
            "set_steering_mode": self._set,
            "set_follow_up_mode": self._set,
        }

    def line(self, line: bytes) -> None:
        """One line of stdin without its end. The line `null` ends the real program, and this one."""
        try:
            text = line.decode()
            command = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.flush()
            why = f"Failed to parse command: {_why_not_json(line, error)}"
            self.agent.emit({"type": "response", "command": "parse", "success": False, "error": why})
            return
        if command is None:
            self.agent.process.crash(CRASH)
        kind = command.get("type") if isinstance(command, dict) else None
        known = self._commands.get(kind) if isinstance(kind, str) else None
        if known is None or not isinstance(command, dict):
            self.flush()
            self._unknown(command if isinstance(command, dict) else {}, kind)
            return
        if kind not in ("steer", "follow_up", "prompt"):
            self.flush()
        self.agent.process.requested(str(kind))
        known(command)

    def flush(self) -> None:
        """Give the answers that come after everything else of one read."""
        late, self._late = self._late, []
        for answer in late:
            self.agent.emit(answer)

    def run_over(self) -> None:
        """The run has ended: the aborts that waited for that are answered."""
        waiting, self._aborts = self._aborts, []
        for command in waiting:
            self._say(command)

    def _say(self, command: dict[str, Any], data: dict[str, Any] | None = None) -> None:
        self.agent.emit(_answer(command, data))

    def _refuse(self, command: dict[str, Any], why: str) -> None:
        self.agent.emit({**_head(command), "success": False, "error": why})

    def _unknown(self, command: dict[str, Any], kind: object) -> None:
        if kind in REAL:
            self._refuse(command, f"this scripted pi does not fake the command {kind}")
            return
        name = "undefined" if kind is None else kind if isinstance(kind, str) else json.dumps(kind)
        self._refuse(command, f"Unknown command: {name}")

    def _prompt(self, command: dict[str, Any]) -> None:
        agent, text = self.agent, command.get("message")
        if not isinstance(text, str):
            self._refuse(command, NO_TEXT if text is None else WRONG_TEXT)
        elif not agent.script["model"]:
            self._refuse(command, NO_MODEL)
        elif any(words in text for words in agent.script["handled"]):
            self.flush()
            self._say(command, {"disposition": "handled"})
        elif not agent.busy:
            self.flush()
            self._say(command, {"disposition": "started"})
            agent.start(text)
        elif command.get("streamingBehavior") in ("steer", "followUp"):
            self._queued(command)
        else:
            self._refuse(command, BUSY)

    def _queued(self, command: dict[str, Any]) -> None:
        agent, text = self.agent, command.get("message")
        if not isinstance(text, str):
            self._late.append({**_head(command), "success": False, "error": NO_TEXT if text is None else WRONG_TEXT})
            return
        steers = "steer" in (command["type"], command.get("streamingBehavior"))
        (agent.steering if steers else agent.follow_up).append(messages.user(text, agent.now_ms()))
        agent.queue_update()
        self._late.append(_answer(command, {"disposition": "queued"}))

    def _abort(self, command: dict[str, Any]) -> None:
        agent = self.agent
        if not agent.busy:
            self._say(command)
            return
        self._aborts.append(command)
        agent.abort()

    def _abort_retry(self, command: dict[str, Any]) -> None:
        agent = self.agent
        if agent.retrying:
            agent.retry_cancelled = True
            agent.abort()
        self._say(command)

    def _clear_queue(self, command: dict[str, Any]) -> None:
        agent = self.agent
        steering, follow_up = ([messages.text_of(one) for one in queue] for queue in (agent.steering, agent.follow_up))
        agent.steering.clear()
        agent.follow_up.clear()
        agent.queue_update()
        self._say(command, {"steering": steering, "followUp": follow_up})

    def _entries(self, command: dict[str, Any]) -> None:
        session = self.agent.session
        self._say(command, {"entries": session.entries, "leafId": session.leaf})

    def _last_text(self, command: dict[str, Any]) -> None:
        for message in reversed(self.agent.session.messages):
            text = messages.text_of(message).strip() if message["role"] == "assistant" else ""
            if text:
                self._say(command, {"text": text})
                return
        self._say(command, {})

    def _name(self, command: dict[str, Any]) -> None:
        self.agent.emit({"type": "session_info_changed", "name": command.get("name")})
        try:
            self.agent.session.rename(str(command.get("name")))
        except Unusable as error:
            self._refuse(command, str(error))
            return
        self._say(command)

    def _set(self, command: dict[str, Any]) -> None:
        agent, kind = self.agent, command["type"]
        if kind == "set_auto_retry":
            agent.auto_retry = command.get("enabled") is True
        elif kind == "set_auto_compaction":
            agent.auto_compaction = command.get("enabled") is True
        else:
            agent.settings["steering" if "steering" in kind else "follow_up"] = command.get("mode") or "one-at-a-time"
        self._say(command)

    def _state(self) -> dict[str, Any]:
        agent, session = self.agent, self.agent.session
        place = {} if session.path is None else {"sessionFile": session.path}
        name = {} if session.name is None else {"sessionName": session.name}
        return {
            "model": self._model(),
            "thinkingLevel": "off",
            "isStreaming": agent.busy,
            "isCompacting": False,
            "steeringMode": agent.settings["steering"],
            "followUpMode": agent.settings["follow_up"],
            **place,
            "sessionId": session.id,
            **name,
            "autoCompactionEnabled": agent.auto_compaction,
            "messageCount": len(session.messages),
            "pendingMessageCount": len(agent.steering) + len(agent.follow_up),
        }

    def _model(self) -> dict[str, Any]:
        provider, model = self.agent.model
        known = provider != "unknown"
        return {
            "id": model,
            "name": "Fake One" if model == "fake-1" else model,
            "api": messages.API if known else "unknown",
            "provider": provider,
            "baseUrl": "http://127.0.0.1:0/v1" if known else "",
            "reasoning": False,
            "input": ["text"] if known else [],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 128_000 if known else 0,
            "maxTokens": 16_384 if known else 0,
        }


def _head(command: dict[str, Any]) -> dict[str, Any]:
    """The beginning of an answer: the id is repeated whatever its type, and left out if there was none."""
    head: dict[str, Any] = {"id": command["id"]} if "id" in command else {}
    head["type"] = "response"
    if "type" in command:
        head["command"] = command["type"]
    return head


def _answer(command: dict[str, Any], data: dict[str, Any] | None = None) -> dict[str, Any]:
    return {**_head(command), "success": True} | ({} if data is None else {"data": data})


def _why_not_json(line: bytes, error: Exception) -> str:
    """The words of the real program's parser, for the mistakes that were recorded and those like them."""
    text = line.decode("utf-8", "replace")
    place = getattr(error, "pos", 0) if isinstance(error, json.JSONDecodeError) else 0
    if not text.strip() or place >= len(text):
        return "Unexpected end of JSON input"
    start = place
    for word in ("true", "false", "null"):
        while text[start] == word[0] and place < len(text) and word.startswith(text[start : place + 1]):
            place += 1
    if place >= len(text):
        return "Unexpected end of JSON input"
    shown = f'"{text}"' if len(text) <= 40 else f'..."{text[max(0, place - 10) : place + 10]}"...'
    return f"Unexpected token '{text[place]}', {shown} is not valid JSON"
