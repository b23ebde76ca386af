"""The pure builders of a start: argv (D4), environment (D5), labels (D6) and terminal name (D7)."""

from legion_terminal.spawn.argv import MAX_ARGUMENT_BYTES, TASK_PREFIX, build_pi_args, format_child_task, terminal_argv
from legion_terminal.spawn.env import overlay
from legion_terminal.spawn.labels import child_labels
from legion_terminal.spawn.names import MAX_NAME, terminal_name

__all__ = [
    "MAX_ARGUMENT_BYTES",
    "MAX_NAME",
    "TASK_PREFIX",
    "build_pi_args",
    "child_labels",
    "format_child_task",
    "overlay",
    "terminal_argv",
    "terminal_name",
]
