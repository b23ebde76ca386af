"""The script of a headless `pi`: which keys there are, what they default to, and what is wrong with a given one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_ENTRIES = 10_000
"""Entries of one list of a script."""
MAX_FLOOD_BYTES = 256 * 1024 * 1024
"""Bytes of one flood."""
MAX_MS = 3_600_000
"""The longest time that a script can name."""
SIGNALS = ("SIGABRT", "SIGHUP", "SIGINT", "SIGKILL", "SIGSEGV", "SIGTERM", "SIGUSR1", "SIGUSR2")
IGNORABLE = ("SIGTERM", "SIGHUP", "SIGINT", "EOF")
STREAMS = ("stdin", "stdout", "stderr")
DIALOGS = ("confirm", "select", "input", "editor")
NOTES = ("notify", "setStatus", "setWidget", "setTitle", "set_editor_text")

ASK: dict[str, Any] = {
    "method": "confirm",
    "title": "Allow bash?",
    "message": None,
    "options": None,
    "placeholder": None,
    "prefill": None,
    "timeout_ms": None,
}
REPLY: dict[str, Any] = {
    "do": "answer",
    "when": "",
    "times": 1,
    "text": None,
    "words": None,
    "gap_ms": 0,
    "delay_ms": 0,
    "hangs": False,
    "stop": "stop",
    "name": "bash",
    "args": None,
    "output": "hi\n",
    "ms": 0,
    "error": False,
    "ask": None,
    "process": False,
    "pid_file": "",
    "message": "400: the model said no",
    "retry": False,
    "retry_ms": None,
    "records": None,
    "hex": None,
    "bytes": 0,
    "method": "confirm",
    "title": "Allow bash?",
    "options": None,
    "placeholder": None,
    "prefill": None,
    "timeout_ms": None,
}
TWIST: dict[str, Any] = {
    "at": None,
    "nth": 1,
    "drop": False,
    "delay_ms": 0,
    "hold_until": "",
    "set": None,
    "copies": 1,
    "chunk_bytes": 0,
    "chunk_ms": 0,
}
ACT: dict[str, Any] = {
    "at": "start",
    "nth": 1,
    "after_ms": 0,
    "do": "exit",
    "code": None,
    "signal": None,
    "holds_pipe_ms": 0,
    "late_ms": 0,
    "noise": False,
    "detached": False,
    "stream": "stdin",
    "records": None,
    "text": None,
    "hex": None,
    "bytes": 0,
}
STOP: dict[str, Any] = {"ignores": None, "code": None, "signal": None, "after_ms": 0, "holds_pipe_ms": 0}
SCRIPT: dict[str, Any] = {
    "boot_ms": 0,
    "model": True,
    "version": "1.6.0",
    "stderr": "",
    "stderr_bytes": 0,
    "speed": 1.0,
    "log": "",
    "handled": None,
    "leaves_queue": False,
    "reply": None,
    "twist": None,
    "act": None,
    "stop": None,
}
MODEL_CALLS = ("answer", "tool", "error", "hang")
_WORDS: dict[str, tuple[str, ...]] = {
    "reply.do": (*MODEL_CALLS, "pause", "dialog", "say", "raw", "stderr"),
    "reply.stop": ("stop", "length"),
    "reply.method": (*DIALOGS, *NOTES),
    "ask.method": DIALOGS,
    "act.do": ("exit", "close", "stderr", "say", "raw", "stop_reading", "stop_writing", "grandchild", "run"),
    "act.stream": STREAMS,
    "act.signal": SIGNALS,
    "stop.signal": SIGNALS,
}
_TEXTS = ("when", "text", "name", "output", "message", "hex", "at", "title", "hold_until", "stderr", "version")
_MORE_TEXTS = ("placeholder", "prefill", "pid_file", "do", "stop", "method", "stream", "signal", "log")
_LISTS = ("handled", "words", "options", "records", "ignores", "reply", "twist", "act")


def complete(script: Mapping[str, Any]) -> dict[str, Any]:
    """The script with every key in it; raises `ValueError`, one line that begins with the place, for a wrong one."""
    whole = _filled("script", "", script, SCRIPT)
    if (
        not isinstance(whole["speed"], (int, float))
        or isinstance(whole["speed"], bool)
        or not 0 <= whole["speed"] <= 100
    ):
        raise ValueError("speed: must be a number from 0 to 100")
    for name, known in (("reply", REPLY), ("twist", TWIST), ("act", ACT)):
        entries = whole[name] or []
        if len(entries) > MAX_ENTRIES:
            raise ValueError(f"{name}: more than {MAX_ENTRIES}")
        whole[name] = [_filled(name, f"{name}[{place}]", entry, known) for place, entry in enumerate(entries)]
    for place, reply in enumerate(whole["reply"]):
        if reply["ask"] is not None:
            reply["ask"] = _filled("ask", f"reply[{place}].ask", reply["ask"], ASK)
    for place, twist in enumerate(whole["twist"]):
        if not twist["at"]:
            raise ValueError(f"twist[{place}].at: says which record is meant, and is missing")
    whole["handled"] = list(whole["handled"] or ())
    if not all(isinstance(words, str) for words in whole["handled"]):
        raise ValueError("handled: must be a list of texts")
    whole["stop"] = _filled("stop", "stop", whole["stop"] or {}, STOP)
    whole["stop"]["ignores"] = list(whole["stop"]["ignores"] or ())
    for word in whole["stop"]["ignores"]:
        if word not in IGNORABLE:
            raise ValueError(f"stop.ignores: {word!r} is none of {', '.join(IGNORABLE)}")
    return whole


def _filled(table: str, place: str, given: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"{place or 'the script'}: must be a table of keys")
    for key, value in given.items():
        if key not in known:
            raise ValueError(f"{_at(place, key)}: there is no such key; known are {', '.join(known)}")
        mistake = _mistake(table, key, value, known[key])
        if mistake:
            raise ValueError(f"{_at(place, key)}: {mistake}")
    whole = {**known, **given}
    if whole.get("code") is not None and whole.get("signal") is not None:
        raise ValueError(f"{_at(place, 'signal')}: cannot stand beside code")
    return whole


def _mistake(table: str, key: str, value: Any, default: Any) -> str:
    allowed = _WORDS.get(f"{table}.{key}")
    if value is None:
        return "" if default is None else "must not be null"
    if allowed and value not in allowed:
        return f"{value!r} is none of {', '.join(allowed)}"
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "must be true or false"
    if key in ("args", "set", "ask") or (table, key) == ("script", "stop"):
        return "" if isinstance(value, dict) else "must be a table of keys"
    if key in _TEXTS or key in _MORE_TEXTS:
        return _mistake_of_text(key, value)
    if key in _LISTS:
        return "" if isinstance(value, list) else "must be a list"
    if key.endswith("_ms") or key in ("ms", "nth", "times", "copies", "bytes", "chunk_bytes", "stderr_bytes", "code"):
        return _mistake_of_number(key, value)
    return ""


def _mistake_of_text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        return "must be a text"
    if key == "hex":
        try:
            bytes.fromhex(value)
        except ValueError:
            return "is not hexadecimal"
    return ""


def _mistake_of_number(key: str, value: Any) -> str:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return "must be a whole number, 0 or more"
    limit = {"code": 255, "bytes": MAX_FLOOD_BYTES, "stderr_bytes": MAX_FLOOD_BYTES}.get(key, MAX_MS)
    return "" if value <= limit else f"must be at most {limit}"


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
