"""`legion-contracts fuzz` without --exhaustive: a campaign from its options to its exit code."""

import secrets
import sys
import time
from pathlib import Path

import click

from contracts.fuzz import kept
from contracts.fuzz.batch import Failure, Report
from contracts.fuzz.broken import supervisor
from contracts.fuzz.campaign import Until, pursue
from contracts.fuzz.dice import Dice, Replay
from contracts.fuzz.engines import EngineError, engine
from contracts.fuzz.live import watching
from contracts.fuzz.one import PLANS
from contracts.fuzz.outcome import Kept, as_json, lines, never_seen
from contracts.fuzz.plans import plan
from contracts.fuzz.saved import SavedError, Setting, State, load, save
from contracts.scenario import Scenario

DEFAULT_SECONDS = 60.0
SAVE_S = 5.0
"""How often a campaign is saved while it goes on."""
BROKE = 3


class BrokenError(click.ClickException):
    """The search itself broke: nothing was found out."""

    exit_code = BROKE


def run_campaign(
    setting: Setting,
    until: Until,
    *,
    form: str = "table",
    workers: int | None = None,
    engine_name: str = "local",
    scheduler: str = "",
    saved: Path | None = None,
    keep_in: Path | None = None,
    require_coverage: bool = False,
) -> int:
    """Carry a campaign out, print what it found, and return the exit code.

    Raises click's UsageError for an engine that cannot be had and a file that cannot be gone on with; `BrokenError`.
    """
    state = _loaded(saved, setting)
    try:
        chosen = engine(engine_name, workers=workers, scheduler=scheduler)
    except EngineError as error:
        raise click.UsageError(str(error)) from error
    saver = _Saver(saved)
    try:
        with watching(until, shown=sys.stderr.isatty(), begun_runs=state.runs) as tell:

            def told(state: State, report: Report) -> None:
                saver.sometimes(state)
                tell(state, report)

            pursue(state, chosen, until, on_report=told)
    except EngineError as error:
        raise BrokenError(f"{error}; {saver.words(state)}") from error
    except KeyboardInterrupt:
        click.echo(f"stopped after {state.runs:,} runs; {saver.words(state)}", err=True)
        raise
    finally:
        saver.now(state)
        chosen.close()
    files = _keep(state, keep_in)
    if form == "json":
        click.echo(as_json(state, files, deaths=chosen.deaths))
    else:
        for line in lines(state, files, deaths=chosen.deaths):
            click.echo(line)
    return _exit_code(state, require_coverage=require_coverage)


def any_seed() -> int:
    """A seed for a campaign that was given none."""
    return secrets.randbelow(10**9)


class _Saver:
    """Writes a campaign into its file, if it has one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._last = time.monotonic()

    def sometimes(self, state: State) -> None:
        """Write when the last time was long ago."""
        if time.monotonic() - self._last >= SAVE_S:
            self.now(state)

    def now(self, state: State) -> None:
        """Write. A file that cannot be written ends the campaign: it could not be gone on with."""
        self._last = time.monotonic()
        if self._path is None:
            return
        try:
            save(self._path, state)
        except OSError as error:
            raise BrokenError(f"{self._path} cannot be written: {error.strerror}") from error

    def words(self, state: State) -> str:
        """What became of what was found so far."""
        return f"the same command goes on with {self._path}" if self._path else "it was not saved (see --saved)"


def _loaded(path: Path | None, setting: Setting) -> State:
    if path is None:
        return State(setting=setting)
    if not path.parent.is_dir():
        raise click.UsageError(f"--saved: there is no folder {path.parent}")
    try:
        return load(path, setting)
    except SavedError as error:
        raise click.UsageError(str(error)) from error


def _keep(state: State, folder: Path | None) -> Kept:
    """Shrink the first failure of each invariant and write it as a scenario."""
    files: list[tuple[str, Path]] = []
    if folder is None:
        return files
    for failure in state.failures:
        if failure.invariant == "harness" or failure.invariant in dict(files):
            continue
        origin = f"--seed {failure.seed} --examples 1" if failure.seed is not None else f"run {failure.number}, guided"
        try:
            with supervisor(state.setting.plant) as make:
                scenario, broken = kept.shrunk(_scenario(failure), failure.invariant, make)
            files.append((failure.invariant, kept.write(folder, scenario, broken, f"legion-contracts fuzz {origin}")))
        except LookupError as error:
            click.echo(f"run {failure.number} is not repeatable: {error}", err=True)
        except OSError as error:
            raise BrokenError(f"{folder} cannot be written: {error.strerror}") from error
    return files


def _scenario(failure: Failure) -> Scenario:

    return plan(Replay(failure.choices) if failure.seed is None else Dice(failure.seed, PLANS))


def _exit_code(state: State, *, require_coverage: bool) -> int:
    broke = any(failure.invariant != "harness" for failure in state.failures)
    if broke or state.disagreements or (require_coverage and never_seen(state)):
        return 1
    return BROKE if state.failures else 0
