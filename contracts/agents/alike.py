"""Records of a headless `pi` without what differs from run to run, so that two programs can be compared. Pure."""

from typing import Any

CHANGING = frozenset(
    (
        "timestamp",
        "durationMs",
        "sessionFile",
        "sessionId",
        "baseUrl",
        "sections",
        "toolsAdded",
        "wall_time_seconds",
    )
)
"""Members that are there in both, with a value of their own in each run."""
WITH_IDS = frozenset(("extension_ui_request", "message", "model_change", "thinking_level_change", "context_edit"))
"""Types of records whose ids are made anew in each run."""


def alike(value: Any, key: str = "") -> Any:
    """The value with a mark in each place that differs from run to run."""
    if key in CHANGING:
        return f"<{key}>"
    if isinstance(value, dict):
        changed = {name: alike(one, name) for name, one in value.items()}
        if value.get("type") == "message_update":  # when the numbers come depends on how the network is read
            changed["usage"] = "<usage>"
        if value.get("type") in WITH_IDS:
            changed |= {name: "<id>" for name in ("id", "parentId", "targetId") if changed.get(name)}
        return changed | ({"leafId": "<id>"} if "leafId" in value else {})
    if isinstance(value, list):
        return [alike(one) for one in value]
    return value


def first_difference(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> str | None:
    """Where two series of records part, in words; None when they are alike."""
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        here, there = alike(mine), alike(theirs)
        if here != there:
            names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
            detail = ", ".join(f"{name}: {here.get(name)!r} / {there.get(name)!r}" for name in names)
            return f"record {place + 1}, {here.get('type')} / {there.get('type')}: {detail}"
    if len(one) != len(other):
        longer = one if len(one) > len(other) else other
        place = min(len(one), len(other))
        return f"record {place + 1}: only one of them says {longer[place].get('type')}"
    return None
