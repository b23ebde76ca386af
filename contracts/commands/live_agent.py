"""`legion-contracts live --agent pi`: the headless clauses against an installed agent."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click


def live_pi(
    *, form: str, require: bool, strict: bool, out: Path | None, tell: Callable[[str], None] = lambda _: None
) -> int:
    """Check the installed `pi` and print the report; returns the exit code.

    Without a `pi` the report is skipped: 0, or 1 under `require`. `out`: a folder that gets `report.json` too.
    """
    from contracts.agents import NoPi, find_pi, run_pi
    from contracts.agents.ended import CalledOffError
    from contracts.agents.shown import as_json, as_text, exit_code, skipped_json
    from contracts.clauses import load_clauses
    from contracts.running.surroundings import reader_may_leave

    found = find_pi(os.environ)
    clauses = load_clauses()
    if isinstance(found, NoPi):
        value, text, code = skipped_json(found), f"skipped: {found.reason}\n", int(require)
    else:
        try:
            report = run_pi(found, tell=tell)
        except CalledOffError as error:
            click.echo(str(error), err=True)
            return error.code
        value, text, code = (
            as_json(report, clauses),
            as_text(report, clauses),
            exit_code(report, clauses, strict=strict),
        )
    data = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    if out is not None:
        from contracts.live.writing import make_folder, write_file

        make_folder(out)
        write_file(out / "report.json", data)
    with reader_may_leave():
        click.echo(data if form == "json" else text, nl=False, file=sys.stdout)
    return code
