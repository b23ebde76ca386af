"""`hc-sim tunnel`: a core on another machine, over TLS with certificates on both sides."""

import asyncio
import shlex
import shutil
import signal
import sys
from pathlib import Path

import click

from hc_sim.folder import private_folder
from hc_sim.server import SocketPathError
from hc_sim.tunnel import FarEnd, NearEnd, TunnelError, parse_address, tls_context

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--listen", metavar="HOST:PORT", help="Beside the core: where to take connections.")
@click.option("--connect", metavar="HOST:PORT", help="Beside the program: where the other end listens.")
@click.option("--socket", type=FILE, help="The core's socket (--listen), or the one to make (--connect).")
@click.option("--cert", type=FILE, required=True, help="Our certificate (PEM, with its chain).")
@click.option("--key", type=FILE, required=True, help="Its private key (PEM, without a password).")
@click.option(
    "--ca", type=FILE, required=True, help="The authority that signed both ends' certificates, and no others."
)
@click.option("--name", help="The name in the other end's certificate, if it is not HOST (--connect).")
def tunnel(
    listen: str | None, connect: str | None, socket: Path | None, cert: Path, key: Path, ca: Path, name: str | None
) -> None:
    """Carry a core's socket to another machine: TLS 1.3, a certificate on each side.

    Whoever holds a certificate of the authority is trusted like the owner of the core's socket, so make an authority
    for this alone. Everybody else gets nothing. Ctrl-C ends it.

    \b
    Beside the core:    hc-sim tunnel --listen 0.0.0.0:7443 --socket CORE.sock --cert a.pem --key a.key --ca ca.pem
    Beside the program: hc-sim tunnel --connect core.lan:7443 --cert b.pem --key b.key --ca ca.pem
    and paste the export lines that it prints.
    """
    if (listen is None) == (connect is None):
        raise click.UsageError("say --listen or --connect, one of them")
    if listen is not None and socket is None:
        raise click.UsageError("--listen needs --socket, the core's")
    folder = private_folder() if socket is None else None
    try:
        address = parse_address(listen or connect or "")
        context = tls_context(server=listen is not None, cert=cert, key=key, ca=ca)
        path = socket or Path(str(folder), "core.sock")
        if listen is not None:
            asyncio.run(_far(FarEnd(path, context, report=_report), address))
        else:
            asyncio.run(_near(NearEnd(path, address, context, name=name, report=_report)))
    except (TunnelError, SocketPathError, OSError) as error:
        click.echo(f"hc-sim: {error}", err=True)
        sys.exit(1)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


async def _far(end: FarEnd, address: tuple[str, int]) -> None:
    ending = _until_signal()
    port = await end.start(*address)
    try:
        click.echo(f"listening {address[0]}:{port}")
        await ending.wait()
    finally:
        await end.close()


async def _near(end: NearEnd) -> None:
    ending = _until_signal()
    await end.check()
    async with end:
        for variable in ("HC_SOCKET", "HC_TERMINAL_SOCKET"):
            click.echo(f"export {variable}={shlex.quote(str(end.path))}")
        await ending.wait()


def _until_signal() -> asyncio.Event:
    ending = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    return ending


def _report(words: str) -> None:
    click.echo(f"hc-sim tunnel: {words}", err=True)
