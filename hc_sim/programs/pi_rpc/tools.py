"""A tool that the scripted model calls: the call, the leave that an extension asks for, the work, the result."""

from __future__ import annotations

import json
import os
import signal
import time

from . import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .run import Run, Waiting


class Tool:
    """One call of one tool within a run."""

    def __init__(self, run: Run, reply: dict[str, Any]) -> None:
        self.run, self.agent, self.reply = run, run.agent, reply
        args = {"command": "sleep 1; echo hi"} if reply["args"] is None else reply["args"]
        self.call = {
            "type": "toolCall",
            "id": f"call_{self.agent.next_call()}",
            "name": reply["name"],
            "arguments": args,
        }
        self.named = {"toolCallId": self.call["id"], "toolName": self.call["name"]}

    def play(self) -> Waiting:
        """The whole turn; whether another one follows."""
        from .run import Aborted

        turn = self._asked_for()
        self.agent.emit({"type": "tool_execution_start", **self.named, "args": self.call["arguments"]})
        began = self.agent.now_ms()
        allowed = True
        if self.reply["ask"] is not None:
            answer = yield from self.agent.ask(self.reply["ask"])
            allowed = messages.agrees(self.reply["ask"], answer)
        if self.agent.abort_waits:  # an abort is heard only once the person has answered
            return self._ended(turn, messages.ASK_ABORTED, error=True, more={}, aborted=True)
        if not allowed:
            return self._ended(turn, messages.REFUSED, error=True, more={})
        self._update({"content": []})
        worker = Worker(self.reply, self.agent.workers) if self.reply["process"] else None
        try:
            yield self.reply["ms"]
        except Aborted:
            if worker:
                worker.end()
            more = {"durationMs": self.agent.now_ms() - began}
            return self._ended(turn, messages.TOOL_ABORTED, error=True, more=more, aborted=True)
        if worker:
            worker.end()
        spent = self.agent.now_ms() - began
        output = self.reply["output"]
        self._update({"content": [{"type": "text", "text": output}], "details": {}})
        return self._ended(turn, output, error=self.reply["error"], more={"durationMs": spent})

    def _asked_for(self) -> dict[str, Any]:
        emit, call = self.agent.emit, self.call
        message = self.run.pending()
        emit({"type": "message_start", "message": message})
        start = {"type": "toolcall_start", "contentIndex": 0, "id": call["id"], "toolName": call["name"]}
        emit(messages.update(start, used=True))
        for delta in ("", json.dumps(call["arguments"], ensure_ascii=False)):
            emit(messages.update({"type": "toolcall_delta", "contentIndex": 0, "delta": delta}, used=True))
        emit(messages.update({"type": "toolcall_end", "contentIndex": 0, "toolCall": call}, used=True))
        whole = {**message, "content": [call], "stopReason": "toolUse", "usage": messages.usage(used=True)}
        whole = messages.ended(whole, "tool_calls", self.agent.spent_ms())
        self.run.finish(whole)
        return whole

    def _update(self, partial: dict[str, Any]) -> None:
        head = {"type": "tool_execution_update", **self.named, "args": self.call["arguments"]}
        self.agent.emit({**head, "partialResult": partial})

    def _ended(
        self, turn: dict[str, Any], text: str, *, error: bool, more: dict[str, Any], aborted: bool = False
    ) -> bool:
        content = [{"type": "text", "text": text}]
        if error:
            result: dict[str, Any] = {"content": content, "details": {}}
        else:
            seconds = round(self.reply["ms"] / 1000) if self.reply["ms"] >= 1000 else self.reply["ms"] / 1000
            structured = {"output": text, "truncated": False, "exit_code": 0, "wall_time_seconds": seconds}
            result = {"content": content, "structuredContent": structured}
        self.agent.emit({"type": "tool_execution_end", **self.named, "result": result, "isError": error, **more})
        message = messages.tool_result(self.call, content, self.agent.now_ms(), error=error, more=more)
        self.run.say(message)
        self.agent.emit({"type": "turn_end", "message": turn, "toolResults": [message]})
        self.run.answered = False
        return self.run.aborted_turn() if aborted else True


class Worker:
    """A real process of the tool, in a group of its own: it dies when the program can still end it, not with a KILL."""

    def __init__(self, reply: dict[str, Any], running: list[Worker]) -> None:
        """`running`: those that the program ends before it leaves by itself; this one is put there."""
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _work(reply)
            finally:
                os._exit(0)
        self._running = running
        running.append(self)

    def end(self) -> None:
        """End it, and wait until it has gone."""
        if self not in self._running:
            return
        self._running.remove(self)
        for send, whom in ((os.killpg, self.pid), (os.kill, self.pid)):
            try:
                send(whom, signal.SIGKILL)
            except OSError:
                continue
        os.waitpid(self.pid, 0)


def _work(reply: dict[str, Any]) -> None:
    os.setsid()
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(name, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for place in range(3):
        os.dup2(null, place)
    if reply["pid_file"]:
        draft = reply["pid_file"] + ".new"
        with open(draft, "w") as file:
            file.write(str(os.getpid()))
        os.rename(draft, reply["pid_file"])
    time.sleep(max(reply["ms"], 1) / 1000)
