"""A recording of a real headless `pi`, as a supervisor can meet it. Pure.

Who made a recording also asked for other things (states, entries, junk lines), and wrote several commands at once. A
supervisor of children asks for nothing else and waits for its answers. So what is no part of a child's life is left
out, together with its answer, and every other answer comes behind its command; that of an abort stays where it was, for
it tells that the run has ended. What `pi` said of its own accord is as it was, and so is its end.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

Entry = dict[str, Any]
COMMANDS: Final = frozenset(("prompt", "steer", "follow_up", "abort", "clear_queue", "extension_ui_response"))
"""What a supervisor says to a child."""
AS_PROMPT: Final = {"steer": "steer", "follow_up": "followUp"}
"""Commands that travel as a prompt which says how it is meant: to an idle child they would be parked otherwise."""


def played(entries: Sequence[Entry]) -> list[Entry]:
    """The entries of a recording as a supervisor can meet them."""
    answers = {_id(entry): entry for entry in entries if _is_answer(entry)}
    found: list[Entry] = []
    late: set[str] = set()
    for entry in entries:
        if _is_answer(entry):
            found += [entry] if _id(entry) in late else []
        elif entry["from"] == "pi" or "ends" in entry:
            found.append(entry)
        elif (command := _command(entry)) in COMMANDS:
            found.append(_command_said(entry))
            if command == "abort":
                late.add(_id(entry))
            elif _id(entry) in answers:
                found.append({**_answer_said(answers[_id(entry)]), "at_ms": entry.get("at_ms", 0)})
    return found


def _record(entry: Entry) -> dict[str, Any]:
    record = entry.get("record")
    return record if isinstance(record, dict) else {}


def _command(entry: Entry) -> object:
    return _record(entry).get("type")


def _is_answer(entry: Entry) -> bool:
    return bool(entry["from"] == "pi" and _record(entry).get("type") == "response")


def _id(entry: Entry) -> str:
    return json.dumps(_record(entry).get("id"))


def _command_said(entry: Entry) -> Entry:
    record = _record(entry)
    how = AS_PROMPT.get(record["type"])
    return entry if how is None else {**entry, "record": {**record, "type": "prompt", "streamingBehavior": how}}


def _answer_said(entry: Entry) -> Entry:
    record = _record(entry)
    return {**entry, "record": {**record, "command": "prompt"}} if record.get("command") in AS_PROMPT else entry
