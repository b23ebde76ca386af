"""What commands that run scenarios make of their options: the engine, and what is selected to run on it."""

from collections.abc import Sequence

import click

from contracts.clauses import load_clauses
from contracts.judging.tally import BAD_USAGE
from contracts.loading import Catalogue, ScenarioError, load_all
from contracts.loading.selection import NothingSelectedError, Selection, is_path, select
from contracts.running.engine import Engine, real_engine
from contracts.scenario import HostName, Level


def engine_of(context: click.Context) -> Engine:
    """The engine that the caller handed over, or the real one."""
    return context.obj if isinstance(context.obj, Engine) else real_engine()


def selected(ids: Sequence[str], globs: Sequence[str], host: HostName | None, level: Level | None) -> Selection:
    """What the filters leave. Raises click's UsageError; exits with 2 after naming what is wrong with a file."""
    try:
        known = load_clauses()
        only_paths = bool(globs) and all(is_path(glob) for glob in globs)
        catalogue = Catalogue() if only_paths else load_all(clauses=known)
        return select(catalogue, known, ids=ids, globs=globs, host=host, level=level)
    except NothingSelectedError as error:
        raise click.UsageError(str(error)) from error
    except ScenarioError as error:
        for problem in error.problems:
            click.echo(f"Error: {problem}", err=True)
        raise SystemExit(BAD_USAGE) from error
