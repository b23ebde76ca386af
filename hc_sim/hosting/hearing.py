"""What the output of a program means to its terminal: reports, answers that it waits for, lines, modes. Pure."""

from dataclasses import dataclass

from hc_sim.hosting.lines import Lines
from hc_sim.hosting.records import Records, Which
from hc_sim.hosting.reports import Query, read_command
from hc_sim.hosting.sequences import Command, Piece, Sequence, Splitter, Text
from hc_sim.model import Status

ATTRIBUTES = b"\x1b[?62c"
"""What this terminal says it is (a VT220) when it is asked for its primary device attributes."""

_ASKED = (b"[c", b"[0c")
_PROMPT = (b"133;A",)


@dataclass(frozen=True, slots=True)
class Reported:
    """The status of the terminal is this now."""

    status: Status | None


@dataclass(frozen=True, slots=True)
class Printed:
    """The program printed these bytes, and these lines have ended in them."""

    data: bytes
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Replied:
    """The terminal answers a question of the program with these bytes, as if typed."""

    data: bytes


Heard = Reported | Printed | Replied


class Hearing:
    """Listens to one program. `which` record stands for the terminal is the profile's choice."""

    def __init__(self, which: Which = "root") -> None:
        self._which: Which = which
        self._splitter = Splitter()
        self._records = Records()
        self._lines = Lines()
        self.pastes = False
        """Whether the program asked that pasted text be bracketed."""

    @property
    def unfinished(self) -> str:
        """The line that has not ended yet."""
        return self._lines.unfinished

    def feed(self, data: bytes) -> list[Heard]:
        """What these bytes mean, in order. First of all they are printed, for those who look on."""
        heard: list[Heard] = []
        lines: list[str] = []
        for piece in self._splitter.feed(data):
            if isinstance(piece, Text):
                lines += self._lines.feed(piece.data)
            else:
                heard += self._controlled(piece)
        return [Printed(data, tuple(lines)), *heard]

    def end(self) -> list[Heard]:
        """The program has ended: what it was at is over, what it has reached stays."""
        self._records.stop_work()
        return [Printed(b"", tuple(self._lines.finish())), Reported(self._records.status(self._which))]

    def _controlled(self, piece: Piece) -> list[Heard]:
        match piece:
            case Command(body):
                return self._commanded(body, b"\x07" if piece.bell else b"\x1b\\")
            case Sequence(b"c"):
                self._records.reset()
                self.pastes = False
                return [Reported(self._records.status(self._which))]
            case Sequence(body) if body in _ASKED:
                return [Replied(ATTRIBUTES)]
            case Sequence(body) if body[:2] == b"[?" and b"2004" in body[2:-1].split(b";"):
                self.pastes = body[-1:] == b"h" or (self.pastes and body[-1:] != b"l")
        return []

    def _commanded(self, body: bytes, terminator: bytes) -> list[Heard]:
        if body.startswith(_PROMPT):
            self._records.stop_work()
        else:
            said = read_command(body)
            if said is None:
                return []
            if isinstance(said, Query):
                return [Replied(b"\x1b]7501;?" + terminator)]
            self._records.apply(said)
        return [Reported(self._records.status(self._which))]
