"""`legion-contracts clauses`: list the clauses, or tell all about some."""

import sys

import click

from contracts.clauses import load_clauses
from contracts.commands.output import draw
from contracts.loading import Catalogue
from contracts.loading.selection import NothingSelectedError, select


@click.command
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.argument("ids", nargs=-1, metavar="[ID]...")
def clauses(form: str, ids: tuple[str, ...]) -> None:
    """List the clauses: id, level and statement. With ids, everything that is known of them."""
    from contracts.report.as_clauses import clauses_as_json, print_clauses

    known = load_clauses()
    try:
        chosen = select(Catalogue(), known, ids=ids).clauses
    except NothingSelectedError as error:
        raise click.UsageError(str(error)) from error
    if form == "json":
        click.echo(clauses_as_json(chosen), nl=False)
    else:
        draw(sys.stdout, lambda console: print_clauses(chosen, console, details=bool(ids)))
