"""What commands make of `--sut`: a driver that has introduced itself, the engine that asks it, and what it is asked."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from contracts.commands.output import BrokenError
from contracts.loading.selection import Selection
from contracts.running.engine import Engine
from contracts.scenario import HostName

if TYPE_CHECKING:
    from contracts.sut.messages import InitializeResult
    from contracts.sut.stdio import StdioFactory

BUILT_IN: Final = "python"
"""The supervisor that is part of the product."""
HELP: Final = 'The supervisor to ask: "python" (the one built in, the default), or a command such as "node driver.mjs".'


def is_driver(sut: str) -> bool:
    """Whether `--sut` names a command. Raises UsageError for nothing at all, as an unset variable leaves it."""
    if not sut.strip():
        raise click.UsageError(
            "--sut: the command is empty; name a program, or leave the option out for the built-in one"
        )
    return sut.strip() != BUILT_IN


def host_of(sut: str, host: HostName | None) -> HostName | None:
    """The host to select by: a driver plays everything over the socket, whatever a scenario says. Raises UsageError."""
    if not is_driver(sut):
        return host
    if host == "memory":
        raise click.UsageError("--host memory: a driver is another process, and runs over the socket only")
    return None


def driver(sut: str) -> "tuple[StdioFactory, InitializeResult]":
    """The driver of a command, which has introduced itself.

    Raises UsageError for no program, and `BrokenError` for no driver.
    """
    from contracts.sut.command import CommandError, read_command
    from contracts.sut.introduction import BadDriverError, NoDriverError, introduce
    from contracts.sut.messages import CHILDREN
    from contracts.sut.stdio import StdioFactory

    try:
        factory = StdioFactory(read_command(sut))
        declared = introduce(factory)
    except (CommandError, NoDriverError) as error:
        raise click.UsageError(f"--sut: {error}") from error
    except BadDriverError as error:
        raise BrokenError(f"--sut {sut}: {error}") from error
    if not CHILDREN & set(declared.features):
        raise BrokenError(
            f"--sut {sut}: the driver declares neither terminal nor rpc, so there are no children to check;"
            " legion-contracts sut doctor says what it lacks"
        )
    return factory, declared


def asked(sut: str, engine: Engine, selection: Selection, host: HostName | None) -> tuple[Engine, Selection]:
    """Engine and selection for this supervisor. Raises what `driver` raises."""
    if not is_driver(sut):
        return engine, selection
    from contracts.running.foreign import foreign_gate

    factory, declared = driver(sut)
    if host is not None:
        selection = replace(selection, checks=False, filtered=True, by_clause=False)
    return foreign_gate(factory, declared, selection)
