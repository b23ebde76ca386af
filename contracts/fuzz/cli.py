"""The command `legion-contracts fuzz`.

Exit codes: 0 nothing was found, 1 an invariant broke, a disagreement, or under --require-coverage a state that was
never reached, 2 bad usage, an engine that cannot be had, a saved search that cannot be gone on with, 3 it broke.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

MAX_WORKERS = 64
NARROW_FOR = 4
"""Workers up to which the usual look-back is enough to keep them all busy."""
WIDE_WINDOW = 2 * MAX_WORKERS
Form = Literal["table", "json"]
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")


if TYPE_CHECKING:
    _Param = click.ParamType[Any]
else:  # older releases of click do not take the type
    _Param = click.ParamType


class Duration(_Param):
    """A time such as 90s, 10m or 2h; a plain number is in seconds."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, context: click.Context | None) -> float:
        """The time in seconds."""
        if isinstance(value, float):
            return value
        found = _DURATION.fullmatch(str(value).strip().lower())
        if found is None or float(found[1]) == 0:
            self.fail(f"{value!r} is no time; write 90s, 10m or 2h", param, context)
        return float(found[1]) * _UNITS[found[2]]


@click.command(short_help="Search for orders of events in which a supervisor lies.")
@click.option("--exhaustive", type=int, metavar="N", help="Every history of N steps through the settle decision.")
@click.option("--bench", is_flag=True, help="Measure how fast the searches are, and how fast they find planted faults.")
@click.option("--for", "duration", type=Duration(), help="Random runs for so long: 90s, 10m, 2h (default 60s).")
@click.option("--examples", type=click.IntRange(1), metavar="N", help="Random runs, so many.")
@click.option("--seed", type=click.IntRange(0), metavar="S", help="The seed of the first run; run k has seed S + k.")
@click.option("--workers", type=click.IntRange(0, MAX_WORKERS), metavar="N", help="Processes; 0 = in this one.")
@click.option("--engine", metavar="NAME", help="local (default), or dask for the workers of a cluster.")
@click.option("--scheduler", default="", metavar="ADDR", help="The dask scheduler: tcp://HOST:PORT.")
@click.option(
    "--guided/--blind", "guided", default=None, help="Follow runs that reached something new (default), or not."
)
@click.option(
    "--require-coverage", is_flag=True, help="An interesting state that was never reached counts as a failure."
)
@click.option(
    "--saved", type=click.Path(dir_okay=False, path_type=Path), help="Go on from this file, and save into it."
)
@click.option(
    "--keep",
    "keep_in",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each failure, shrunk, as a scenario into this folder.",
)
@click.option("--plant", default="", metavar="NAME", help="Search a supervisor with this fault, to see it found.")
@click.option("--unmerged", is_flag=True, help="With --exhaustive: try symmetric histories one by one, too.")
@click.option("--sut", metavar="CMD", default=None, help="Random lives in real time for a supervisor in any language.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def fuzz(
    context: click.Context,
    exhaustive: int | None,
    bench: bool,
    duration: float | None,
    examples: int | None,
    seed: int | None,
    workers: int | None,
    engine: str | None,
    scheduler: str,
    guided: bool | None,
    require_coverage: bool,
    saved: Path | None,
    keep_in: Path | None,
    plant: str,
    unmerged: bool,
    sut: str | None,
    form: Form,
) -> None:
    """Search for orders of events in which a supervisor lies, hangs, sends twice or ends what is not its own.

    Without --exhaustive: random runs of the whole supervisor in virtual time, with random agents and random faults,
    every invariant looked at after every step. A seed repeats a run to the byte.
    """
    if sut is not None:
        raise SystemExit(_driven(context, sut))
    if exhaustive is not None or bench:
        given = [
            name for name in ("duration", "examples", "seed", "engine", "guided") if context.params[name] is not None
        ]
        if given or scheduler or require_coverage:
            raise click.UsageError("--exhaustive and --bench go without the options of the random search")
    if exhaustive is not None and bench:
        raise click.UsageError("--exhaustive or --bench, not both")
    if exhaustive is not None:
        from contracts.fuzz.commands import run_exhaustive

        raise SystemExit(
            run_exhaustive(
                exhaustive,
                form=form,
                workers=workers,
                saved=saved,
                unmerged=unmerged,
                plant=plant,
                keep_in=keep_in,
            )
        )
    if bench:
        from contracts.fuzz.commands import run_bench

        raise SystemExit(run_bench(form=form))
    _random(
        duration, examples, seed, workers, engine or "local", scheduler, guided is not False, require_coverage, saved,
        keep_in, plant, form,
    )  # fmt: skip


def _driven(context: click.Context, sut: str) -> int:
    from contracts.fuzz.campaign import Until
    from contracts.fuzz.driven import run_driven
    from contracts.fuzz.random_search import DEFAULT_SECONDS, any_seed

    given = context.params
    unfit = [name for name in ("exhaustive", "engine", "guided", "saved") if given[name] is not None]
    if unfit or any(given[name] for name in ("bench", "scheduler", "require_coverage", "plant", "unmerged")):
        raise click.UsageError("--sut goes with --for, --examples, --seed, --workers, --keep and --format only")
    examples, seconds = given["examples"], given["duration"]
    until = Until(examples=examples, seconds=DEFAULT_SECONDS if examples is None and seconds is None else seconds)
    seed = any_seed() if given["seed"] is None else given["seed"]
    workers, keep_in = given["workers"], given["keep_in"]
    return run_driven(sut, seed=seed, until=until, form=given["form"], workers=workers, keep_in=keep_in)


def _random(
    duration: float | None,
    examples: int | None,
    seed: int | None,
    workers: int | None,
    engine: str,
    scheduler: str,
    guided: bool,
    require_coverage: bool,
    saved: Path | None,
    keep_in: Path | None,
    plant: str,
    form: Form,
) -> None:
    from contracts.fuzz.broken import NAMES
    from contracts.fuzz.campaign import Until
    from contracts.fuzz.random_search import DEFAULT_SECONDS, any_seed, run_campaign
    from contracts.fuzz.saved import Setting, seed_in

    if plant and plant not in NAMES:
        raise click.UsageError(f"no planted fault {plant!r}; there are {', '.join(NAMES)}")
    if seed is None:
        seed = seed_in(saved) if saved is not None else None
    setting = Setting(
        seed=any_seed() if seed is None else seed,
        mode="guided" if guided else "blind",
        plant=plant,
        window=WIDE_WINDOW if engine == "dask" or (workers or 0) > NARROW_FOR else Setting(seed=0).window,
    )
    seconds = DEFAULT_SECONDS if duration is None and examples is None else duration
    raise SystemExit(
        run_campaign(
            setting,
            Until(examples=examples, seconds=seconds, first_failure=bool(plant)),
            form=form,
            workers=workers,
            engine_name=engine,
            scheduler=scheduler,
            saved=saved,
            keep_in=keep_in,
            require_coverage=require_coverage,
        )
    )
