"""FaultPlan: what goes wrong on the wire and around it, addressed by call, connection or time."""

from hc_sim.faults.call import Fault, FaultError, Until, describe
from hc_sim.faults.life import ClockJump, DocumentFault, Restart, Rival
from hc_sim.faults.links import Bridge, ChildExit, LinkFault
from hc_sim.faults.plan import MAX_FAULTS, FaultPlan, Faults, Moment, Planned, as_plan
from hc_sim.faults.replies import Parcel, answers, carries_out, chunks, deliver, pieces

__all__ = [
    "MAX_FAULTS",
    "Bridge",
    "ChildExit",
    "ClockJump",
    "DocumentFault",
    "Fault",
    "FaultError",
    "FaultPlan",
    "Faults",
    "LinkFault",
    "Moment",
    "Parcel",
    "Planned",
    "Restart",
    "Rival",
    "Until",
    "answers",
    "as_plan",
    "carries_out",
    "chunks",
    "deliver",
    "describe",
    "pieces",
]
