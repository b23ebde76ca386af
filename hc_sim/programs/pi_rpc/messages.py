"""The messages and events of a run, in the shape in which the real program was recorded saying them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

API = "openai-completions"
TOOLS = ("read", "bash", "edit", "write")
STREAM_ABORTED = "Request was aborted"
UNSTARTED_ABORTED = "Request aborted"
TURN_ABORTED = "This operation was aborted"
TOOL_ABORTED = "Command aborted"
ASK_ABORTED = "Operation aborted"
REFUSED = "refused by the person"


def usage(*, used: bool) -> dict[str, Any]:
    """What a model call cost: nothing yet, or the numbers of the recorded fake model."""
    cost: dict[str, Any] = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    if not used:
        return {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": cost}
    cost["totalFromProvider"] = False
    return {
        "input": 11,
        "output": 3,
        "cacheRead": 0,
        "cacheWrite": 0,
        "reasoning": 0,
        "totalTokens": 14,
        "cost": cost,
    }


def system(now_ms: int, cwd: str, tools: tuple[str, ...]) -> dict[str, Any]:
    """The system message of a session; its texts are ours."""
    return {
        "role": "system",
        "content": "",
        "sections": {
            "preamble": "a scripted pi",
            "tools": ", ".join(tools),
            "rules": "none",
            "docs": "none",
            "cwd": f"the current folder is {cwd}",
        },
        "timestamp": now_ms,
        "toolsAdded": [{"name": name, "description": "scripted", "parameters": {}} for name in tools],
    }


def user(text: str, now_ms: int) -> dict[str, Any]:
    """What the supervisor said."""
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": now_ms}


def assistant(content: list[Any], model: tuple[str, str], stop: str, now_ms: int, *, used: bool) -> dict[str, Any]:
    """A message of the model that has begun (`pending`) or ended."""
    return {
        "role": "assistant",
        "content": content,
        "api": API,
        "provider": model[0],
        "model": model[1],
        "usage": usage(used=used),
        "stopReason": stop,
        "timestamp": now_ms,
    }


def ended(message: dict[str, Any], raw_stop: str, duration_ms: int) -> dict[str, Any]:
    """The same message with what stands in it once the model has finished."""
    return {
        **message,
        "responseId": "chatcmpl-1",
        "rawStopReason": raw_stop,
        "durationMs": duration_ms,
        "thinkingLevel": "off",
    }


def failed(message: dict[str, Any], why: str, duration_ms: int, *, answered: bool = False) -> dict[str, Any]:
    """The same message when it ended in an error or an abort; `answered`: some of it had come."""
    response = {"responseId": "chatcmpl-1"} if answered else {}
    return {**message, **response, "errorMessage": why, "durationMs": duration_ms, "thinkingLevel": "off"}


def update(event: dict[str, Any], *, used: bool) -> dict[str, Any]:
    """One step of a message that is coming in."""
    return {"type": "message_update", "usage": usage(used=used), "assistantMessageEvent": event}


def text_of(message: dict[str, Any]) -> str:
    """The joined text parts of a message."""
    return "".join(part.get("text", "") for part in message["content"] if isinstance(part, dict))


def tool_result(
    call: dict[str, Any], content: list[Any], now_ms: int, *, error: bool, more: dict[str, Any]
) -> dict[str, Any]:
    """The message that carries the outcome of a tool back to the model."""
    base = {"role": "toolResult", "toolCallId": call["id"], "toolName": call["name"], "content": content}
    details: dict[str, Any] = {"details": {}} if error else {}
    return {**base, **details, "isError": error, **more, "timestamp": now_ms}


def ask(request_id: str, asked: dict[str, Any]) -> dict[str, Any]:
    """A request of an extension to the person at the other end."""
    request: dict[str, Any] = {"type": "extension_ui_request", "id": request_id, "method": asked["method"]}
    for key in ("title", "message", "options", "placeholder", "prefill"):
        if asked[key] is not None:
            request[key] = asked[key]
    if asked["timeout_ms"] is not None:
        request["timeout"] = asked["timeout_ms"]
    return request


def agrees(asked: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether an answer to a request lets the tool run: a yes, the first of the options, or any text."""
    if answer.get("cancelled"):
        return False
    if asked["method"] == "confirm":
        return answer.get("confirmed") is True
    if asked["method"] == "select":
        return bool(asked["options"]) and answer.get("value") == asked["options"][0]
    return isinstance(answer.get("value"), str)
