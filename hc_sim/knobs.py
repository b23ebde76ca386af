"""Knob: a note on a field of a type that people write, from which the reference of faults is generated."""

from dataclasses import dataclass

CLASSES: dict[int, str] = {
    1: "bytes",
    2: "replies",
    3: "apply point",
    4: "connection",
    5: "core lifetime",
    6: "turn and status",
    7: "composer",
    8: "interrupt",
    9: "end of life",
    10: "names",
    11: "exit of headless children",
    12: "session file",
    13: "documents",
    14: "clocks",
    15: "recorder",
}
"""What can be turned, in fifteen classes."""


@dataclass(frozen=True, slots=True)
class Knob:
    """Stands in `Annotated` beside a field: what turning it does, and the classes it belongs to."""

    text: str
    classes: tuple[int, ...]

    def __init__(self, text: str, *classes: int) -> None:
        unknown = set(classes) - CLASSES.keys()
        if not classes or unknown:
            raise ValueError(f"no such class of knobs: {sorted(unknown) or 'none given'}")
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "classes", classes)
