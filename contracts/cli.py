"""The command `legion-contracts`: a group whose commands are imported when somebody calls them.

Exit codes: 0 it holds, 1 a must fails (or a should under --strict), 2 bad usage or a bad scenario file, 3 the host, the
system under test or the harness itself broke.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

COMMANDS: Mapping[str, tuple[str, str]] = {
    "check": ("contracts.commands.check:check", "Run everything and say clause by clause what holds."),
    "clauses": ("contracts.commands.clauses:clauses", "List the clauses, or tell all about some."),
    "diff": ("contracts.commands.diff:diff", "Compare two JSON reports."),
    "fuzz": ("contracts.fuzz.cli:fuzz", "Search for orders of events in which a supervisor lies."),
    "import-recording": ("contracts.commands.importing:import_recording", "Turn recordings into scenario files."),
    "live": ("contracts.commands.live:live", "Run the contract against an installed hc core."),
    "lint": ("contracts.commands.lint:lint", "Check scenario files without running them."),
    "repo": ("contracts.commands.repo:repo", "Judge a pi-legion checkout against the terminal backend contract."),
    "record": ("contracts.commands.record:record", "Keep the exchange with an installed core, to play it back."),
    "schema": ("contracts.commands.schema:schema", "Compare or rewrite the JSON Schemas."),
    "show": ("contracts.commands.show:show", "Run one scenario and draw it."),
    "sut": ("contracts.commands.sut:sut", "Begin a driver for a supervisor in another language, or examine one."),
    "table": ("contracts.commands.table:table", "Measure a table of a contract, and set it beside the document's."),
    "violations": ("contracts.commands.violations:violations", "Plant violations and say which checks caught them."),
    "vectors": ("contracts.commands.vectors:vectors", "Ask a core every question of JSON-RPC."),
}
"""Each command: where it is, as `module:attribute`, and what the list of commands says of it."""


class _Commands(click.Group):
    """Commands imported on demand; an error that nobody foresaw ends with the code for a broken harness."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, by name."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone: nothing is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out a command in surroundings that are in order."""
        from contracts.commands.output import BrokenError
        from contracts.running.surroundings import (
            INTERRUPTED,
            READER_GONE,
            SurroundingsError,
            drop_output,
            settle_in,
        )

        try:
            settle_in()
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except SurroundingsError as error:
            raise click.UsageError(str(error)) from error
        except BrokenPipeError:
            drop_output()
            raise SystemExit(READER_GONE) from None
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise SystemExit(INTERRUPTED) from None
        except Exception as error:
            raise BrokenError(f"this is a bug: {type(error).__name__}: {error}") from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="legion-contracts", prog_name="legion-contracts")
def main() -> None:
    """Check the programs that supervise coding agents against their contracts, on a fake hc core."""


if __name__ == "__main__":
    main()
