"""`legion-contracts table`: a table of a contract as it is measured now, beside the document's."""

import json
import sys
from collections.abc import Sequence

import click

from contracts.commands.driven import HELP, asked
from contracts.commands.output import BrokenError, draw
from contracts.commands.selecting import engine_of, selected
from contracts.judging.exit_rows import EVENTS, Row, as_json, measured
from contracts.judging.tally import ERRORED, FAILS, HOLDS
from contracts.records import RunRecord, RunVerdict
from contracts.running.surroundings import reader_may_leave


@click.command(
    epilog="""\b
Examples:
  legion-contracts table headless                          how each end of a headless child is told
  legion-contracts table headless --sut "node driver.mjs"  by your supervisor
  legion-contracts table headless --format json | jq '.rows[] | select(.holds | not)'
"""
)
@click.argument("which", type=click.Choice(["headless"]), metavar="headless")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--sut", default="python", metavar="CMD", help=HELP)
@click.pass_context
def table(context: click.Context, which: str, form: str, sut: str) -> None:
    """Measure the exit table of headless children on a scripted pi, and set it beside the document's.

    Every event is played with a real process: what the wait for the child gave is the row. Ends with 0 when every row
    is as the document says, with 1 when one differs, and with 3 when one could not be measured.
    """
    from contracts.report.as_exit_table import print_exit_table

    scenarios = [event.scenario for event in EVENTS]
    engine, selection = asked(sut, engine_of(context), selected((), scenarios, None, None), None)
    try:
        results = engine.run_all(selection.scenarios, workers=None, on_result=None, hosts=("socket",), checks=())
    except Exception as error:
        raise BrokenError(f"the run broke: {type(error).__name__}: {error}") from error
    _refuse_what_has_no_children(results)
    rows = measured(results)
    with reader_may_leave():
        if form == "json":
            click.echo(json.dumps(as_json(rows, engine.sut), indent=2, ensure_ascii=False))
        else:
            draw(sys.stdout, lambda console: print_exit_table(rows, engine.sut, console))
    raise SystemExit(_exit_code(rows))


def _refuse_what_has_no_children(results: Sequence[RunRecord | RunVerdict]) -> None:
    """Raise UsageError for a supervisor that has no headless children to measure."""
    skipped = [result.why for result in results if isinstance(result, RunVerdict) and result.verdict == "skipped"]
    if results and len(skipped) == len(results):
        raise click.UsageError(f"--sut: nothing can be measured: {skipped[0]}")


def _exit_code(rows: Sequence[Row]) -> int:
    if any(row.differs for row in rows):
        return FAILS
    return HOLDS if all(row.holds for row in rows) else ERRORED
