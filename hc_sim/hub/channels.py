"""One channel of a connection: what waits on it, and the credit that says how much of it may go.

Credit counts bytes of data frames. We send no more than we were granted, to the byte, and cut a piece in two for it;
the peer that sends more than it was granted has broken the protocol. What is no data (credit, facts, a close) takes its
turn in the queue and costs nothing. In line mode there is no credit: `credit` is None.
"""

from collections import deque
from dataclasses import dataclass, field

from hc_sim.model import FrameKind
from hc_sim.wire.frames import MAX_CREDIT

Piece = tuple[FrameKind, bytes]


@dataclass(slots=True)
class Channel:
    """A stream under way.

    `corked`: the answer that opened it has not gone out yet, so nothing of it may. `closing`: its end waits already,
    and nothing comes after it. `credit`: bytes that we may still send. `window`: bytes that the peer may still send,
    of at most `size`. `queued`: bytes of data that wait, of at most `limit`. `lost`: events that were left out since.
    """

    number: int
    terminal: str
    size: int
    limit: int
    credit: int | None = None
    window: int = 0
    corked: bool = True
    closing: bool = False
    queued: int = 0
    lost: int = 0
    queue: deque[Piece] = field(default_factory=deque)

    def put(self, kind: FrameKind, data: bytes) -> bool:
        """Let a piece wait for its turn; false, and nothing is done, if too many bytes wait already."""
        if self.closing:
            return True
        if kind == "data":
            if self.queued and self.queued + len(data) > self.limit:
                return False
            self.queued += len(data)
        self.queue.append((kind, data))
        return True

    def put_newest(self, kind: FrameKind, data: bytes) -> None:
        """Let a piece wait that makes an earlier one of its kind pointless: that one is left out."""
        if any(waiting == kind for waiting, _ in self.queue):
            self.queue = deque(piece for piece in self.queue if piece[0] != kind)
        self.put(kind, data)

    def close(self, data: bytes) -> None:
        """Let the end wait for its turn."""
        self.put("close", data)
        self.closing = True

    def take(self) -> list[Piece]:
        """Everything that may go out now, in order."""
        out: list[Piece] = []
        while self.queue and not self.corked:
            kind, data = self.queue.popleft()
            if kind != "data" or self.credit is None or len(data) <= self.credit:
                out.append((kind, data))
                self._spend(len(data) if kind == "data" else 0)
                continue
            if self.credit:
                out.append((kind, data[: self.credit]))
            self.queue.appendleft((kind, data[self.credit :]))
            self._spend(self.credit)
            break
        return out

    def clear(self) -> None:
        """Forget what waits."""
        self.queue.clear()
        self.queued = 0

    def grant(self, amount: int) -> bool:
        """The peer lets us send so many bytes more; false if that is more than anybody can be granted."""
        if self.credit is None:
            return True
        self.credit += amount
        return self.credit <= MAX_CREDIT

    def receive(self, size: int) -> int | None:
        """The peer sent so many bytes of data: how many it is granted anew (0: none yet); None if it may not."""
        if size > self.window:
            return None
        self.window -= size
        anew = self.size - self.window
        if anew * 2 < self.size:
            return 0
        self.window = self.size
        return anew

    def _spend(self, size: int) -> None:
        self.queued -= size
        if self.credit is not None:
            self.credit -= size
