"""`legion-contracts schema`: compare the committed JSON Schemas with the types, or write them again."""

import click


@click.command
@click.option("--write", "do_write", is_flag=True, help="Write the files again.")
def schema(do_write: bool) -> None:
    """Compare the committed JSON Schemas with the types, or write them again."""
    from contracts.loading.schema import FOLDER, drift, write

    if do_write:
        changed = write()
        for path in changed:
            click.echo(f"written: {path}")
        click.echo(f"{len(changed)} files changed in {FOLDER}")
        return
    stale = drift()
    for name in stale:
        click.echo(f"out of date: {name} (run legion-contracts schema --write)", err=True)
    click.echo("the schemas are out of date" if stale else f"the schemas in {FOLDER} agree with the types")
    raise SystemExit(1 if stale else 0)
