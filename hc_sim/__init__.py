"""The other side of the wire: a fake core whose agents act out a script. It imports nothing of its users.

A public name is imported when it is first asked for: the pytest plugin is loaded in every run of everyone who has it
installed, and must cost nothing where no test asks for a core.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` is not imported for it: a Ctrl-C in the first moments finds as little as can be
if TYPE_CHECKING:
    from hc_sim.core import Answer, Answered, Core, FileEffect, Pending
    from hc_sim.faults import Fault, FaultPlan, LinkFault, Restart
    from hc_sim.playing.fake import AsyncFakeCore, FakeCore
    from hc_sim.playing.served import ServedCore
    from hc_sim.profile import WireProfile
    from hc_sim.script.format import Agent, Match, Step
    from hc_sim.script.load import POLITE, Script, read_script
    from hc_sim.script.toml import FileError
    from hc_sim.trace import Event, Trace

__all__ = [
    "POLITE",
    "Agent",
    "Answer",
    "Answered",
    "AsyncFakeCore",
    "Core",
    "Event",
    "FakeCore",
    "Fault",
    "FaultPlan",
    "FileEffect",
    "FileError",
    "LinkFault",
    "Match",
    "Pending",
    "Restart",
    "Script",
    "ServedCore",
    "Step",
    "Trace",
    "WireProfile",
    "read_script",
]

_ROOMS = {
    "core": ("Answer", "Answered", "Core", "FileEffect", "Pending"),
    "playing.fake": ("AsyncFakeCore", "FakeCore"),
    "faults": ("Fault", "FaultPlan", "LinkFault", "Restart"),
    "profile": ("WireProfile",),
    "script.format": ("Agent", "Match", "Step"),
    "script.load": ("POLITE", "Script", "read_script"),
    "script.toml": ("FileError",),
    "playing.served": ("ServedCore",),
    "trace": ("Event", "Trace"),
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        for room, names in _ROOMS.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{room}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
