"""`legion-contracts live`: the contract against an installed core, in a corner of its own."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from contracts.commands.output import draw

if TYPE_CHECKING:
    from contracts.live.problem import LiveError
    from contracts.live.report import LiveReport
    from contracts.live.run import LiveRun, Options

FILE = click.Path(path_type=Path)


@click.command
@click.option("--hc", type=FILE, help="Use this hc; by default HC_BIN, hc on PATH, ~/.local/bin/hc.")
@click.option("--socket", type=FILE, help="Use the core that listens at this socket.")
@click.option("--cassette", type=FILE, help="Run against a recording instead, offline (see record).")
@click.option(
    "--agent", type=click.Choice(["pi"]), help="Check an installed agent as a headless child instead of a core."
)
@click.option("--keep-going", is_flag=True, help="Go on after a must has failed.")
@click.option("--documents", is_flag=True, help="Write a document too. It stays: a core has no way to remove one.")
@click.option("--quick", is_flag=True, help="Leave out what takes long by nature (about fifteen seconds).")
@click.option("--require", is_flag=True, help="Fail when there is no core, or something was skipped.")
@click.option("--strict", is_flag=True, help="With --agent: a should that fails counts like a must.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for facts.json, diff.txt, profile.toml, report.json."
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def live(
    hc: Path | None,
    socket: Path | None,
    cassette: Path | None,
    agent: str | None,
    keep_going: bool,
    documents: bool,
    quick: bool,
    require: bool,
    strict: bool,
    out: Path | None,
    form: str,
) -> None:
    """Run the contract against an installed hc core, and say where it differs from the fake.

    No model is needed: the children are small scripts that report their status as agents do. Everything that is started
    carries names and labels of this run and is removed at the end; nothing else is touched. Without a core the report
    is skipped and the exit code 0. What `hc` finds is the core of your environment (HC_SOCKET, HC_SESSION); an hc may
    start one that does not run yet.

    \b
    Try it, without a core of your own:
      hc-sim serve --programs          (prints variables; paste them into another shell)
      legion-contracts live --keep-going --out found
      hc-sim serve --profile found/profile.toml

    With `--agent pi` it is an installed pi (PI_BIN, the one of a checkout's tests, or pi on PATH) that is started as a
    headless child, in a home of its own, offline, with a model on this machine; the report says clause by clause (H...)
    what holds.
    """
    from contracts.live.problem import LiveError
    from contracts.live.session import EndedError

    if agent is not None:
        if any((hc, socket, cassette, keep_going, documents, quick)):
            raise click.UsageError("--agent stands for a core; only --require, --strict, --out and --format go with it")
        from contracts.commands.live_agent import live_pi

        raise SystemExit(live_pi(form=form, require=require, strict=strict, out=out, tell=teller()))
    if strict:
        raise click.UsageError("--strict goes with --agent: what a core only should do is reported, and no more")
    if cassette is not None and (hc is not None or socket is not None or documents or quick):
        raise click.UsageError("--cassette stands for a core; what was run is in it: leave out the other options")
    options = make_options(keep_going=keep_going, documents=documents, quick=quick)
    try:
        report = _reported(hc, socket, cassette, options, require=require, out=out)
    except LiveError as error:
        raise FailedError(error) from error
    except EndedError as error:
        click.echo(str(error), err=True)
        raise SystemExit(error.code) from None
    _print(report, form)
    raise SystemExit({"holds": 0, "skipped": 0, "fails": 1, "errored": 3}[report.outcome])


def make_options(*, keep_going: bool, documents: bool, quick: bool) -> "Options":
    """The options of a run, with progress on standard error for a person who looks."""
    from contracts.live.run import Options

    return Options(keep_going=keep_going, documents=documents, slow=not quick, tell=teller())


def teller() -> Callable[[str], None]:
    """Says on a terminal what is being asked, on one line that goes away again."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda words: click.echo(f"\r\x1b[K  asking: {words}\r", nl=False, err=True)


class FailedError(click.ClickException):
    """A live run that broke, or could not begin, with the exit code of its own error."""

    def __init__(self, error: "LiveError") -> None:
        super().__init__(str(error))
        self.exit_code = error.exit_code  # type: ignore[misc]  # click has it as a class variable


def _reported(
    hc: Path | None, socket: Path | None, cassette: Path | None, options: "Options", *, require: bool, out: Path | None
) -> "LiveReport":
    from contracts.live.finding import find_core, where_looked
    from contracts.live.report import report_of, skipped_report
    from contracts.live.session import play_cassette, run_on_core
    from contracts.live.writing import make_folder

    if out is not None:
        make_folder(out)
    if cassette is not None:
        run, core = play_cassette(cassette, options.tell)
        core = f"{core}, {about(run)}"
    else:
        env = dict(os.environ)
        found = find_core(env, hc=hc, socket=socket)
        if found is None:
            report = skipped_report(where_looked(env), require=require)
            _write(report, None, out)
            return report
        run = run_on_core(found, env, options)
        core = f"{found.words()}, {about(run)}"
    report = report_of(run, core, require=require)
    _write(report, run, out)
    return report


def about(run: "LiveRun") -> str:
    """Which core answered, in words."""
    core = run.sheet.core
    return f"version {core.get('version') or 'unknown'}, generation {core.get('generation')}"


def _write(report: "LiveReport", run: "LiveRun | None", out: Path | None) -> None:
    from contracts.live import report as reporting
    from contracts.live import writing
    from contracts.live.session import today

    if out is None:
        return
    writing.write_file(out / "report.json", reporting.as_json(report))
    if run is not None:
        text = json.dumps(writing.facts(run.sheet, date=today()), indent=2, ensure_ascii=False) + "\n"
        writing.write_file(out / "facts.json", text)
        writing.write_file(out / "diff.txt", writing.diff_text(run.found, report.core))
        writing.write_file(out / "profile.toml", writing.profile_toml(run.sheet))


def _print(report: "LiveReport", form: str) -> None:
    from contracts.live.report import as_json, print_report
    from contracts.running.surroundings import reader_may_leave

    with reader_may_leave():
        if form == "json":
            click.echo(as_json(report), nl=False)
        else:
            draw(sys.stdout, lambda console: print_report(report, console))
