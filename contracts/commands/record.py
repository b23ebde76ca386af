"""`legion-contracts record`: keep the exchange with a live core in a file that can be played back."""

import os
from pathlib import Path

import click

from contracts.commands.live import FailedError, about, make_options
from contracts.judging.tally import ERRORED

FILE = click.Path(path_type=Path)


@click.command
@click.argument("cassette", type=FILE)
@click.option("--hc", type=FILE, help="Use this hc; by default HC_BIN, hc on PATH, ~/.local/bin/hc.")
@click.option("--socket", type=FILE, help="Use the core that listens at this socket.")
@click.option("--documents", is_flag=True, help="Write a document too. It stays: a core has no way to remove one.")
@click.option("--quick", is_flag=True, help="Leave out what takes long by nature (about fifteen seconds).")
def record(cassette: Path, hc: Path | None, socket: Path | None, documents: bool, quick: bool) -> None:
    """Run the live checks against an installed core, and keep everything that was said in the file CASSETTE.

    What looks like a secret is hidden in it, and terminals that are not the run's own are left out. The exit code says
    whether it was recorded, not whether the contract holds.

    \b
    Try:
      legion-contracts record monday.jsonl
      legion-contracts live --cassette monday.jsonl
    """
    from contracts.live.finding import find_core, where_looked
    from contracts.live.problem import LiveError
    from contracts.live.report import report_of
    from contracts.live.session import EndedError, record_core

    env = dict(os.environ)
    try:
        found = find_core(env, hc=hc, socket=socket)
        if found is None:
            click.echo(f"nothing was recorded: {where_looked(env)}", err=True)
            raise SystemExit(ERRORED)
        options = make_options(keep_going=True, documents=documents, quick=quick)
        run = record_core(found, env, options, cassette)
    except LiveError as error:
        raise FailedError(error) from error
    except EndedError as error:
        click.echo(str(error), err=True)
        raise SystemExit(error.code) from None
    report = report_of(run, found.words())
    click.echo(f"recorded {found.words()}, {about(run)} in {cassette}: the contract {report.outcome}")
