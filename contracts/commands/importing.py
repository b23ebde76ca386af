"""`legion-contracts import-recording`: turn recordings into scenario files."""

from pathlib import Path

import click


@click.command("import-recording")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for the scenarios."
)
def import_recording(file: Path, out: Path) -> None:
    """Turn recorded status timelines of real programs into scenario files."""
    from contracts import importing

    try:
        written = importing.write(importing.import_recording(file), out)
    except (importing.RecordingError, OSError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{len(written)} scenarios written to {out}")
