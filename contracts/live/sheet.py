"""The fact sheet: what a live run has learned of a core, each piece with what the fake does in its place."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from contracts.live.peer import ErrorSeen, Reply
from contracts.live.shapes import OBJECTS, Seen, models, take_in
from contracts.records import Record
from hc_sim.model import METHODS, Terminal
from hc_sim.profile import WireProfile, reasons

FactLevel = Literal["must", "should", "note"]
"""What a fact that is not as expected means: a failure of the clause, a warning, or a difference and nothing more."""

MAX_TEXT = 300


class Fact(Record, frozen=True):
    """One thing that was looked at: what came, what the fake does, and which clause of the core it is evidence for."""

    id: str
    clause: str
    ok: bool
    value: Any
    fake: Any
    level: FactLevel = "should"
    say: str = ""


class Learned(Record, frozen=True):
    """A field of `WireProfile`: the value that was learned, or why it could not be."""

    field: str
    learned: bool
    value: Any = None
    why: str = ""


class KindSeen(Record, frozen=True):
    """An error that a core answers with, by our name of its kind."""

    ours: str
    code: int | None
    kind: str
    hint: str
    message: str


@dataclass(slots=True)
class Sheet:
    """What is known so far. Everything is put in by the probes; nothing is decided here."""

    facts: list[Fact] = field(default_factory=list)
    learned: dict[str, Learned] = field(default_factory=dict)
    errors: dict[str, KindSeen] = field(default_factory=dict)
    methods: dict[str, bool] = field(default_factory=dict)
    objects: dict[str, Seen] = field(default_factory=dict)
    core: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Probes that could not be made, and why."""
    refused: dict[str, str] = field(default_factory=dict)
    """Methods that the fake has and this core does not answer in a way that could be used, and why."""
    parameters: set[str] = field(default_factory=set)
    """Parameters that were given and taken, as `method(parameter)`."""
    unsorted: int = 0
    replies: int = 0
    _models: Any = field(default_factory=models)

    def saw(self, reply: Reply) -> None:
        """A reply came: its fields, the order of its keys, whether its method is there."""
        self.replies += 1
        self.unsorted += not _is_sorted(reply.raw)
        unknown = reply.error is not None and (reply.error.code == -32601 or reply.kind.lower() == "unknown_method")
        if reply.method in METHODS:
            self.methods[reply.method] = self.methods.get(reply.method, False) or not unknown
        if reply.ok and reply.method in METHODS and reply.method not in ("rpc.discover", "hello"):
            self.parameters |= {f"{reply.method}({name})" for name in reply.given}
            name = OBJECTS.get(METHODS[reply.method].result, reply.method)
            value = reply.result
            if METHODS[reply.method].result is Terminal and isinstance(value, dict):
                value = value["terminal"] if isinstance(value.get("terminal"), dict) else value
            take_in(self.objects, reply.method, name, value, self._models)

    def fact(self, id_: str, clause: str, value: Any, fake: Any, *, level: FactLevel = "should", say: str = "") -> bool:
        """Put down a fact, and say whether it is as the fake has it."""
        ok = type(value) is type(fake) and value == fake
        self.facts.append(Fact(id=id_, clause=clause, ok=ok, value=value, fake=fake, level=level, say=say))
        return ok

    def error(self, ours: str, seen: ErrorSeen | None) -> None:
        """This is how the core says `ours` (our name of the kind); the first time counts."""
        if seen is not None and ours not in self.errors:
            self.errors[ours] = KindSeen(
                ours=ours, code=seen.code, kind=seen.kind, hint=seen.hint[:MAX_TEXT], message=seen.message[:MAX_TEXT]
            )

    def learn(self, name: str, value: Any) -> None:
        """The value of a field of the profile; the first that is learned stays."""
        if name not in reasons():
            raise KeyError(name)
        if name not in self.learned or not self.learned[name].learned:
            self.learned[name] = Learned(field=name, learned=True, value=value)

    def not_learned(self, name: str, why: str) -> None:
        """Why a field could not be learned, unless it was."""
        if name not in reasons():
            raise KeyError(name)
        if name not in self.learned:
            self.learned[name] = Learned(field=name, learned=False, why=why)

    def value(self, name: str) -> Any:
        """What is assumed of a field: what was learned, else the default."""
        one = self.learned.get(name)
        return one.value if one is not None and one.learned else getattr(WireProfile(), name)


def _is_sorted(raw: bytes) -> bool:
    """Whether the keys of all objects in a line stand in alphabetical order."""
    try:
        return bool(raw.strip()) and msgspec.json.encode(msgspec.json.decode(raw), order="sorted") == _dense(raw)
    except (msgspec.DecodeError, RecursionError):
        return True


def _dense(raw: bytes) -> bytes:
    """The line without spaces between its members, in the order in which they stand."""
    return msgspec.json.encode(msgspec.json.decode(raw))
