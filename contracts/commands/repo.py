"""`legion-contracts repo`: judge a pi-legion checkout against the terminal backend contract."""

import importlib.util
import sys
from pathlib import Path
from typing import IO

import click

from contracts.commands.output import BrokenError, draw, refuse_unwritable
from contracts.judging.tally import FAILS, HOLDS
from contracts.repo.findings import TITLES, GitBrokeError, RepoError, RepoReport
from contracts.running.surroundings import reader_may_leave

NEEDED = ("tree_sitter", "tree_sitter_typescript")


@click.command
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--base", required=True, metavar="REV", help="The commit from which the work began.")
@click.option("--head", default="", metavar="REV", help="Judge this commit instead of the work tree.")
@click.option("--clause", "only", multiple=True, type=click.Choice(list(TITLES)), help="Only this (repeatable).")
@click.option("--allow", multiple=True, metavar="GLOB", help="These files may change, too (repeatable).")
@click.option("--format", "form", type=click.Choice(["table", "json", "github"]), default="table", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
def repo(
    path: Path, base: str, head: str, only: tuple[str, ...], allow: tuple[str, ...], form: str, out: Path | None
) -> None:
    """Judge a pi-legion checkout: what the terminal backend contract says of its files, launch path and modes.

    Without --head the work tree is judged as it lies there, with everything uncommitted and untracked in it (but not
    what .gitignore names). Nothing of the checkout is run.

    I3 is judged from the text alone. It follows imports, aliases, re-exports, callbacks, constants and lists; it does
    not see a program name that is computed, read from a file or the environment (such starts of unknown programs are
    shown as notes), code inside packages, how often a loop runs, or whether the frozen tests are green.

    \b
    Examples:
      legion-contracts repo ../pi-legion --base origin/main
      legion-contracts repo . --base v1.4.0 --head HEAD --format github
      legion-contracts repo . --base main --allow CHANGELOG.md --allow 'docs/*'

    Exit codes: 0 every clause passes, 1 one fails or stays unproven, 2 bad usage (no repository, no such commit),
    3 git broke.
    """
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        raise click.UsageError(
            "reading TypeScript needs tree-sitter, which is not installed; run: pip install 'legion-contracts[repo]'"
        )
    from contracts.repo.gate import judge_repo
    from contracts.repo.report import readable

    refuse_unwritable(out)
    try:
        report = readable(judge_repo(path, base, head=head, allowed=allow, only=only))
    except RepoError as error:
        raise click.UsageError(str(error)) from error
    except GitBrokeError as error:
        raise BrokenError(str(error)) from error
    with reader_may_leave():
        _emit(report, form, out)
    raise SystemExit(HOLDS if report.outcome == "holds" else FAILS)


def _emit(report: RepoReport, form: str, out: Path | None) -> None:
    from contracts.repo.report import summary

    if out is None:
        _write(report, form, sys.stdout)
        return
    try:
        with out.open("w", encoding="utf-8") as stream:
            _write(report, form, stream)
    except OSError as error:
        raise BrokenError(f"{out} cannot be written: {error.strerror}") from error
    click.echo(summary(report))


def _write(report: RepoReport, form: str, stream: IO[str]) -> None:
    from contracts.repo.report import as_github, as_json, paint

    if form == "table":
        draw(stream, lambda console: paint(report, console))
    else:
        text = as_json(report) if form == "json" else as_github(report)
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
