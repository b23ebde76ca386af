"""`hc-sim serve`: a fake core at a socket, for a person or a program to develop against."""

import asyncio
import contextlib
import importlib.util
import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import click

from hc_sim.control.commands import Control, ControlError, Feed, Show, is_command, split
from hc_sim.control.listener import ControlServer, control_path
from hc_sim.core import Core
from hc_sim.driver import Driver
from hc_sim.faults import FaultPlan
from hc_sim.folder import owned_folder
from hc_sim.hosting import Programs
from hc_sim.hub.connection import Hub
from hc_sim.playing.fake import DrivenStage
from hc_sim.playing.served import install_planned
from hc_sim.playing.stage import collect
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent
from hc_sim.script.load import POLITE
from hc_sim.script.toml import FileError, read_toml
from hc_sim.server import SocketPathError, UnixServer
from hc_sim.show import show_event

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end it well."""
MAX_WORD = 1_000
"""Bytes of an unfinished line on stdin that are kept."""
KEPT = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR")
"""Variables that a program which is really started gets from ours; of anything else it gets nothing."""
TERM = "xterm-256color"
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--script", type=FILE, help="What the agents do (TOML); without it every agent is polite.")
@click.option("--socket", type=FILE, help="Where to listen; without it in a temporary folder of its own.")
@click.option("--profile", type=FILE, help="How the core behaves where nobody knows (TOML, see WireProfile).")
@click.option("--quiet", is_flag=True, help="Do not show what happens.")
@click.option("--console", is_flag=True, help="Show the terminals, with keys to play them (extra: console).")
@click.option("--programs", is_flag=True, help="Really start what no agent of the script plays.")
@click.option("--env", "settings", multiple=True, metavar="NAME=VALUE", help="A variable of the core's terminals.")
@click.option("--show-secrets", is_flag=True, help="Show what looks like a secret as it is; it is hidden otherwise.")
def serve(
    script: Path | None,
    socket: Path | None,
    profile: Path | None,
    quiet: bool,
    console: bool,
    programs: bool,
    settings: tuple[str, ...],
    show_secrets: bool,
) -> None:
    """Start a fake core, print the environment that leads to it, and show calls as they come.

    Ctrl-C stops it and removes its socket. A line on stdin is a command (try help), or else a word that fires the
    steps that wait for it (`by_hand`); `hc-sim ctl` gives the same commands from another shell. The lines on stdout can
    be read by a shell; everything else is on stderr.

    \b
    Try, in this terminal and in another one:
      hc-sim example > agents.toml
      hc-sim serve --script agents.toml
      ... paste the lines that it prints, then:
      hc run --bg --name slow-1 -- pi "wait for me"
      hc ls
      hc interrupt slow-1
      hc-sim ctl move slow-1 done

    With --programs the argv of `hc run` is started, in a pseudo-terminal, and what it reports (OSC 7501) is its status:

    \b
      hc-sim serve --programs --env PATH="$PATH"
      hc run --bg --name real-1 -- pi "wait for me"
    """
    if console:
        _need_console()
    env = _variables(settings, programs=programs)
    try:
        agents, plan = ([] if programs else [POLITE], FaultPlan()) if script is None else collect(script)
        chosen = WireProfile() if profile is None else read_toml(profile, WireProfile)
    except (FileError, OSError) as error:
        click.echo(f"hc-sim: {error}", err=True)
        sys.exit(2)
    for number in ENDS:
        signal.signal(number, lambda *_: sys.exit(0))  # until the loop takes over: from here on there is what to remove
    try:
        with owned_folder() as folder, _deaf_at_the_end():
            path = Path(os.path.abspath(socket)) if socket else folder / "core.sock"  # noqa: PTH100 - links stay as given
            show = partial(show_event, secrets=show_secrets)
            hosted = Programs(chosen) if programs else None
            core = _core(chosen, agents, path, env, hosted)
            asyncio.run(
                _serve(core, plan, path, folder, show, hosted, secrets=show_secrets, quiet=quiet, console=console)
            )
    except (SocketPathError, OSError) as error:
        click.echo(f"hc-sim: {error}", err=True)
        sys.exit(1)


@contextlib.contextmanager
def _deaf_at_the_end() -> Iterator[None]:
    """Once it is over, nothing hinders the removal of what was made."""
    try:
        yield
    finally:
        for number in ENDS:
            signal.signal(number, signal.SIG_IGN)


def _variables(settings: tuple[str, ...], *, programs: bool) -> dict[str, str]:
    """The environment of the core's terminals beyond PATH: what was asked for, over what a real program needs."""
    env = {name: os.environ[name] for name in KEPT if name in os.environ} | {"TERM": TERM} if programs else {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise click.UsageError(f"--env {setting!r}: a variable is NAME=VALUE")
        env[name] = value
    return env


def _core(
    profile: WireProfile, agents: list[Agent], path: Path, env: dict[str, str], programs: Programs | None
) -> Core:
    return Core(
        profile,
        agents=agents,
        env=env,
        core_id=f"hc-sim-{os.getpid()}",
        started_ms=time.time_ns() // 1_000_000,
        socket=str(path),
        cwd_exists=os.path.isdir,
        start_program=None if programs is None else programs.start,
    )


async def _serve(
    core: Core,
    plan: FaultPlan,
    path: Path,
    folder: Path,
    show: Show,
    programs: Programs | None,
    *,
    secrets: bool,
    quiet: bool,
    console: bool,
) -> None:
    """Serve until a signal to end comes. Whatever happens, sockets, their folder and programs are gone afterwards."""
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    for number in ENDS:
        loop.add_signal_handler(number, ending.set)
    you = core.add_terminal(name="you", labels={"herdr.space": "space-1"})
    feed = Feed()
    if not quiet and not console:
        feed.watch(lambda event: _say(show(event)))
    driver = Driver(Hub(core, plan), loop, on_event=feed.add, keep_trace=False)
    control = Control(DrivenStage(driver), feed, show, secrets=secrets)
    hosting = contextlib.nullcontext() if programs is None else programs.running(driver)
    async with UnixServer(driver, path), _controlled(path, control), hosting:
        exports = _exports(install_planned(folder / "bin", plan), path, you)
        for line in exports:
            click.echo(line)
        if console:
            await _console(control, ending, path, folder, exports)
        else:
            click.echo(f"hc-sim: a fake core listens at {path}; Ctrl-C ends it", err=True)
            with _words_from(0, loop, lambda line: _typed(control, line)):
                await ending.wait()
    driver.close()
    for problem in driver.problems:
        click.echo(f"hc-sim: {problem}", err=True)
    click.echo("hc-sim: ended", err=True)


@contextlib.asynccontextmanager
async def _controlled(path: Path, control: Control) -> AsyncIterator[None]:
    """Take commands from `hc-sim ctl` as well; where that cannot be, say so and go on."""
    server = ControlServer(control_path(path), control)
    try:
        await server.start()
    except SocketPathError as error:
        click.echo(f"hc-sim: no commands from other shells: {error}", err=True)
    try:
        yield
    finally:
        await server.close()


def _need_console() -> None:
    if importlib.util.find_spec("prompt_toolkit") is None:
        click.echo("hc-sim: the console needs prompt_toolkit: pip install 'legion-contracts[console]'", err=True)
        sys.exit(2)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo("hc-sim: the console needs a terminal; without one, stdin takes the same commands", err=True)
        sys.exit(2)


async def _console(control: Control, ending: asyncio.Event, path: Path, folder: Path, exports: list[str]) -> None:
    from hc_sim.control.console import run_console

    env = folder / "env"
    env.write_text("\n".join(exports) + "\n")
    await run_console(control, ending, f"fake core at {path}   in another shell:  . {env}")


def _typed(control: Control, line: str) -> None:
    """A line on stdin: a command, or else a word that steps wait for."""
    try:
        words = split(line) if is_command(line.split()[0]) else ["fire", line]
        answer = control.do(words)
    except ControlError as error:
        answer = [str(error)]
    for text in answer:
        click.echo(f"hc-sim: {text}", err=True)


@contextlib.contextmanager
def _words_from(fd: int, loop: asyncio.AbstractEventLoop, say: Callable[[str], None]) -> Iterator[None]:
    """Pass on each line of an input, as long as there is one that can be waited for."""
    rest = b""

    def read() -> None:
        nonlocal rest
        if os.isatty(fd) and os.tcgetpgrp(fd) != os.getpgrp():
            return  # in the background: what is typed there is meant for somebody else, and reading it would stop us
        data = os.read(fd, 4_096)
        *lines, rest = (rest[-MAX_WORD:] + data).split(b"\n")
        for line in lines:
            if word := line.decode(errors="replace").strip():
                say(word)
        if not data:
            loop.remove_reader(fd)

    try:
        loop.add_reader(fd, read)
    except OSError:  # a file, or no stdin at all
        yield
        return
    try:
        yield
    finally:
        loop.remove_reader(fd)


def _exports(hc: Path, path: Path, terminal: str) -> list[str]:
    values = {"HC_BIN": hc, "HC_SOCKET": path, "HC_TERMINAL_SOCKET": path, "HC_TERMINAL_ID": terminal}
    lines = [f"export {name}={shlex.quote(str(value))}" for name, value in values.items()]
    return [*lines, f'export PATH={shlex.quote(str(hc.parent))}:"$PATH"']


def _say(line: str | None) -> None:
    if line is not None:
        with contextlib.suppress(OSError):  # nobody watches any more; the core goes on
            click.echo(line, err=True)
