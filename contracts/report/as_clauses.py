"""The list of clauses, for a person and for a program."""

import json
from typing import Final

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contracts.clauses import Clause, Clauses

_STYLES: Final = {"must": "bold", "should": "", "hazard": "magenta"}


def clauses_as_json(clauses: Clauses) -> str:
    """All that is known of the clauses, as one JSON list."""
    return json.dumps([_entry(clause) for clause in clauses.values()], indent=2, ensure_ascii=False) + "\n"


def print_clauses(clauses: Clauses, console: Console, *, details: bool = False) -> None:
    """One row a clause, or with `details` everything that is known of each."""
    if details:
        for clause in clauses.values():
            _print_details(clause, console)
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("clause", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("statement", overflow="fold")
    for clause in clauses.values():
        statement = Text.assemble((f"{clause.title}. ", "bold"), clause.statement)
        table.add_row(clause.id, Text(clause.level, style=_STYLES[clause.level]), statement)
    console.print(table)


def _print_details(clause: Clause, console: Console) -> None:
    console.print(
        Text.assemble((f"{clause.id}  {clause.title}", "bold"), "  (", (clause.level, _STYLES[clause.level]), ")")
    )
    console.print(Padding(Text(clause.statement), (0, 0, 0, 2)))
    if clause.decision:
        console.print(Padding(Text.assemble(("decided: ", "dim"), clause.decision.strip()), (0, 0, 0, 2)))
    for line in clause.proof:
        console.print(Padding(Text.assemble(("shown by: ", "dim"), line), (0, 0, 0, 2)))
    console.print(Padding(Text.assemble(("source: ", "dim"), clause.source), (0, 0, 0, 2)))
    console.print()


def _entry(clause: Clause) -> dict[str, object]:
    return {name: getattr(clause, name) for name in msgspec.structs.asdict(clause)}
