"""`hc-sim ctl`: move a running fake core from another shell."""

import contextlib
import os
import sys
from pathlib import Path

import click

from hc_sim.control.commands import HELP, ControlError
from hc_sim.control.listener import ask, control_path

NOBODY = 3
"""Exit code when no core takes commands there."""


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="\b\n" + HELP + "\nwatch [N]                    each call and change as it comes, without N until Ctrl-C",
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    help="The core's socket; without it HC_SOCKET or HC_TERMINAL_SOCKET says where it is.",
)
@click.argument("words", nargs=-1, required=True, metavar="COMMAND...")
def ctl(socket: Path | None, words: tuple[str, ...]) -> None:
    """List the terminals of a running `hc-sim serve`, play its agents, plan faults, watch it.

    Exit codes: 0 done, 1 refused, 2 bad usage, 3 no such core.
    """
    core = socket or os.environ.get("HC_SOCKET") or os.environ.get("HC_TERMINAL_SOCKET")
    if not core:
        raise click.UsageError("say which core: --socket, or HC_SOCKET as `hc-sim serve` prints it")
    try:
        with contextlib.suppress(KeyboardInterrupt):
            for line in ask(control_path(core), words, watch=words[0] == "watch"):
                click.echo(line)
    except ControlError as error:
        click.echo(f"hc-sim: {error}", err=True)
        sys.exit(1)
    except ConnectionError as error:
        click.echo(f"hc-sim: {error}", err=True)
        sys.exit(NOBODY)
