"""Headless children: the protocol of `pi --mode rpc`, the exit table, dialogs by policy, and the process itself."""

from legion_terminal.rpc.dialogs import CANCEL, POLICIES, DialogAnswer
from legion_terminal.rpc.exit_table import EXIT_ROWS, Ending, Exit, NodeState, exit_ending, settle_result
from legion_terminal.rpc.memory import MemoryShortage, check_memory_gate
from legion_terminal.rpc.messages import Dialog
from legion_terminal.rpc.settings import HeadlessSettings

__all__ = [
    "CANCEL",
    "EXIT_ROWS",
    "POLICIES",
    "Dialog",
    "DialogAnswer",
    "Ending",
    "Exit",
    "HeadlessSettings",
    "MemoryShortage",
    "NodeState",
    "check_memory_gate",
    "exit_ending",
    "settle_result",
]
