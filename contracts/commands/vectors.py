"""`legion-contracts vectors`: ask a core every question of JSON-RPC."""

from pathlib import Path

import click

from contracts.commands.output import BrokenError, echo


@click.command
@click.option("--socket", "path", type=click.Path(path_type=Path), help="Ask the core that listens at this socket.")
def vectors(path: Path | None) -> None:
    """Run the vectors of JSON-RPC 2.0 on the fake core, or on another one, and say of each whether it holds."""
    from contracts.report.as_vectors import vectors_as_lines
    from contracts.vectors import fake_wire, load_vectors, run_vectors, socket_wire

    try:
        outcomes = run_vectors(load_vectors(), fake_wire if path is None else socket_wire(path))
    except OSError as error:
        raise BrokenError(f"{path}: {error.strerror or error}") from error
    for line in vectors_as_lines(outcomes):
        echo(line)
    raise SystemExit(1 if any(outcome.holds is False for outcome in outcomes) else 0)
