"""`hc-sim bench`: how fast the core is on this machine, beside floors measured in the same run."""

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hc_sim.bench import Figure, Report


WIDE = 140


@click.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="How to print it.")
def bench(form: str) -> None:
    """Measure the core, beside floors that are measured in the same run.

    The floor of round trips is an echo of as many bytes on the same kind of socket. Exit code 1: a figure does not
    reach its target, 3: something could not be measured.
    """
    import msgspec

    from hc_sim.bench import BenchError, run_bench

    try:
        report = run_bench(say=lambda what: click.echo(f"hc-sim bench: {what}", err=True))
    except (BenchError, OSError) as error:
        click.echo(f"hc-sim: {error}", err=True)
        sys.exit(3)
    if form == "json":
        click.echo(msgspec.json.encode(report).decode())
    else:
        _show(report)
    sys.exit(0 if report.holds else 1)


def _show(report: "Report") -> None:
    from rich.console import Console
    from rich.table import Table

    from hc_sim.bench import TARGETS

    table = Table("figure", "value", "floor", "ratio", "target", "holds", box=None, pad_edge=False)
    for figure in report.figures:
        target = TARGETS[figure.name]
        bound = f"{'>=' if target.least else '<='} {target.bound:g}"
        table.add_row(target.title, *_numbers(figure), bound, "yes" if figure.holds else "NO")
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    console.print(table)
    most = max(rate for _, rate in report.curve)
    console.print("\ncalls in flight, and terminal.get a second")
    for in_flight, rate in report.curve:
        console.print(f"{in_flight:>6} {rate:>12,.0f}  {'#' * round(40 * rate / most)}")


def _numbers(figure: "Figure") -> tuple[str, str, str]:
    from hc_sim.bench import TARGETS

    target = TARGETS[figure.name]
    floor = "" if figure.floor is None else f"{_short(figure.floor)} ({target.floor})"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return f"{_short(figure.value)} {target.unit}", floor, ratio


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:,.2f}"
