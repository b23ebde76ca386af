"""How far one connection has come on the way that its fault plans for it."""

from dataclasses import dataclass, field

from hc_sim.faults.links import LinkFault


@dataclass(slots=True)
class Course:
    """One connection: the calls that came in on it, the replies that went out, and what follows from their number."""

    fault: LinkFault = field(default_factory=LinkFault)
    planned: bool = False
    calls: int = 0
    replies: int = 0
    reads: bool = True
    """False while the core reads no further."""

    def greeting(self) -> bytes:
        """What comes before anything else."""
        return self.fault.greeting.encode() + bytes.fromhex(self.fault.greeting_hex)

    def called(self) -> bool:
        """One more call was read; returns whether the core goes silent with it."""
        self.calls += 1
        return self.fault.silent_after is not None and self.calls > self.fault.silent_after

    def stalls(self) -> bool:
        """Whether reading stops here and now; said once."""
        if self.reads and self.fault.stall_after is not None and self.calls == self.fault.stall_after:
            self.reads = False
            return True
        return False

    def shut(self) -> bool:
        """Whether the core's own side ends with the replies so far."""
        return self.fault.half_close_after is not None and self.replies >= self.fault.half_close_after

    def over(self) -> bool:
        """Whether the connection ends with the replies so far."""
        return self.fault.close_after is not None and self.replies >= self.fault.close_after
