"""The `hc-sim` command: a fake core for a person to develop against."""

from importlib import import_module
from importlib.resources import files

import click

COMMANDS = {
    "bench": "hc_sim.commands.bench",
    "parity": "hc_sim.commands.parity",
    "tunnel": "hc_sim.commands.tunnel",
    "ctl": "hc_sim.commands.ctl",
    "faults": "hc_sim.commands.faults",
    "serve": "hc_sim.commands.serve",
}
"""Commands in modules of their own: the module, in which the command bears the same name."""


class _Commands(click.Group):
    """A group whose commands are imported when somebody calls them or asks for their help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, by name."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(COMMANDS[cmd_name]), cmd_name.replace("-", "_"))
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="legion-contracts", prog_name="hc-sim")
def main() -> None:
    """A fake hc core whose agents act out a script."""


@main.command()
def example() -> None:
    """Print a script file with comments, to begin with."""
    click.echo(files("hc_sim.script").joinpath("example.toml").read_text(), nl=False)


if __name__ == "__main__":
    main()
