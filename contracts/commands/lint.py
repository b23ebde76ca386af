"""`legion-contracts lint`: check scenario files without running them."""

from pathlib import Path

import click

from contracts.judging.tally import BAD_USAGE
from contracts.loading import SCENARIOS, ScenarioError, lint_summary
from contracts.loading import lint as looked_through


@click.command
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def lint(paths: tuple[Path, ...]) -> None:
    """Check scenario files without running them; the product's own when no path is given."""
    try:
        good, lines = looked_through(list(paths) or [SCENARIOS])
    except ScenarioError as error:
        good, lines = 0, [str(problem) for problem in error.problems]
    for line in lines:
        click.echo(line, err=True)
    click.echo(lint_summary(good, len(lines)))
    raise SystemExit(BAD_USAGE if lines else 0)
