"""The supervisor: starts coding agents in terminals of an hc core, watches, steers, interrupts and retires them."""

from legion_terminal.bridge import ProcessTransport
from legion_terminal.cards import AgentCard, load_card
from legion_terminal.client import Answer, HcClient, Hello, Method
from legion_terminal.errors import Code, Known, SupervisorError
from legion_terminal.headless import HeadlessSettings, HeadlessSupervisor
from legion_terminal.host import resolve_hc, terminal_host_available
from legion_terminal.inprocess import InProcessSupervisor
from legion_terminal.link import Transport
from legion_terminal.routing import RoutingSupervisor, arbitrate, mode_label
from legion_terminal.rpc import Dialog, DialogAnswer, MemoryShortage, NodeState
from legion_terminal.settle import Observation, SettleResult, decide
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.transcript import Transcript, read_transcript, verdict
from legion_terminal.types import (
    SPAWN_MODES,
    AbortResult,
    Cancel,
    Capabilities,
    Child,
    Outcome,
    QueueResult,
    RetireResult,
    SpawnMode,
    SpawnRequest,
    SteerResult,
    Supervisor,
    Verdict,
)

__all__ = [
    "SPAWN_MODES",
    "AbortResult",
    "AgentCard",
    "Answer",
    "Cancel",
    "Capabilities",
    "Child",
    "Code",
    "Dialog",
    "DialogAnswer",
    "HcClient",
    "HeadlessSettings",
    "HeadlessSupervisor",
    "Hello",
    "InProcessSupervisor",
    "Known",
    "MemoryShortage",
    "Method",
    "NodeState",
    "Observation",
    "Outcome",
    "ProcessTransport",
    "QueueResult",
    "RetireResult",
    "RoutingSupervisor",
    "SettleResult",
    "SpawnMode",
    "SpawnRequest",
    "SteerResult",
    "Supervisor",
    "SupervisorError",
    "TerminalSupervisor",
    "Transcript",
    "Transport",
    "Verdict",
    "arbitrate",
    "decide",
    "load_card",
    "mode_label",
    "read_transcript",
    "resolve_hc",
    "terminal_host_available",
    "verdict",
]
