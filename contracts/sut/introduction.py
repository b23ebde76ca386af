"""Ask a driver who it is, once, before anything is made of it."""

import asyncio
from pathlib import Path

from contracts.hosts.environment import supervisor_env
from contracts.hosts.folder import world_folder
from contracts.hosts.witness import install_witness
from contracts.running.pool import leaving_on_signals
from contracts.scenario import World
from contracts.sut.base import SutSetup, SutUnstartedError
from contracts.sut.messages import InitializeResult
from contracts.sut.stdio import StdioFactory, StdioSut, SutBrokenError


class NoDriverError(Exception):
    """The command cannot be started at all."""


class BadDriverError(Exception):
    """The command starts, and what answers is no driver of this protocol."""


def introduce(factory: StdioFactory) -> InitializeResult:
    """Start the driver outside of hc, let it introduce itself, and end it.

    Raises `NoDriverError` and `BadDriverError`; the message is one sentence.
    """
    with leaving_on_signals(), world_folder() as folder:
        install_witness(folder.witness)
        env = supervisor_env(World(inside=False), folder, parent="", hc=Path(folder.programs / "hc"))
        return asyncio.run(_introduce(factory(SutSetup(env=env))))


async def _introduce(sut: StdioSut) -> InitializeResult:
    try:
        declared = await sut.introduced()
    except SutUnstartedError as error:
        raise NoDriverError(str(error)) from error
    except SutBrokenError as error:
        raise BadDriverError(str(error)) from error
    finally:
        await sut.close()
    return declared
