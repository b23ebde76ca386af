"""`legion-contracts show`: run one scenario and draw it."""

import sys
from typing import get_args

import click

from contracts.clauses import load_clauses
from contracts.commands.driven import HELP, asked, host_of
from contracts.commands.output import BrokenError, echo, width
from contracts.commands.selecting import engine_of, selected
from contracts.judging.tally import clause_table, exit_code, outcome
from contracts.scenario import HostName, Scenario


@click.command
@click.argument("scenario", metavar="SCENARIO")
@click.option("--host", type=click.Choice(get_args(HostName)), help="Default: the first host of the scenario.")
@click.option("--sut", default="python", metavar="CMD", help=HELP)
@click.option("--show-secrets", is_flag=True, help="Draw what looks like a secret as it is; it is hidden otherwise.")
@click.pass_context
def show(context: click.Context, scenario: str, host: HostName | None, sut: str, show_secrets: bool) -> None:
    """Run one scenario and draw it: the drive, each child's turn and status, the calls, the poll that settled.

    Ends as a check of it would: 1 when a must fails, 0 for a warning.
    """
    from contracts.judging.judge import judge
    from contracts.picture import draw
    from contracts.report.redacted import record_without_secrets, verdict_without_secrets

    engine, selection = asked(sut, engine_of(context), selected((), (scenario,), host_of(sut, host), None), None)
    found = selection.scenarios
    if len(found) > 1:
        raise click.UsageError(
            f"{scenario!r} matches {len(found)} scenarios: {', '.join(one.id for one in found[:5])} ..."
        )
    one: Scenario = found[0]
    try:
        record = engine.run_scenario(one, host or one.hosts[0])
    except Exception as error:
        raise BrokenError(f"the run broke: {type(error).__name__}: {error}") from error
    verdict = judge(one, record)
    if not show_secrets:
        record, verdict = record_without_secrets(record), verdict_without_secrets(verdict)
    for line in draw(one, record, verdict, width(sys.stdout)):
        echo(line)
    said = outcome(clause_table(load_clauses(), [verdict]), [verdict], whole=False)
    raise SystemExit(exit_code(said))
