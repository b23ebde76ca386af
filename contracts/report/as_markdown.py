"""The README's tables, made from the data that they describe, so that they cannot lag behind it."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from contracts.clauses import load_clauses
from contracts.loading import load_all
from hc_sim.profile import WireProfile, reasons

_SECTION: Final = re.compile(r"(<!-- generated: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def clauses_table() -> str:
    """Every clause: id, level, and what it is about."""
    rows = [(clause.id, clause.level, clause.title) for clause in load_clauses().values()]
    return _table(("clause", "level", "about"), rows)


def hosts_table() -> str:
    """How many scenarios each layer has, and how many of them run on which host."""
    catalogue = load_all(clauses=load_clauses())
    layers = Counter(entry.path.parent.name for entry in catalogue.entries.values())
    on_socket = Counter(
        entry.path.parent.name for entry in catalogue.entries.values() if "socket" in entry.scenario.hosts
    )
    rows = [(layer, str(layers[layer]), str(on_socket[layer])) for layer in sorted(layers)]
    rows.append(("all", str(layers.total()), str(on_socket.total())))
    return _table(("layer", "scenarios", "of them over the socket"), rows)


def profile_table() -> str:
    """Every field of `WireProfile`: its default, how certain it is, and why it is so."""
    defaults = WireProfile()
    rows = [
        (f"`{name}`", f"`{_spell(getattr(defaults, name))}`", reason.certainty, reason.text)
        for name, reason in reasons().items()
    ]
    return _table(("field", "default", "certainty", "reason"), rows)


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "clauses": clauses_table,
    "hosts": hosts_table,
    "profile": profile_table,
}


def renew(text: str) -> str:
    """A Markdown text with every `<!-- generated: NAME -->` section made again.

    Raises KeyError for a section that no table stands behind.
    """
    return _SECTION.sub(lambda found: f"{found[1]}{TABLES[found['name']]()}{found[3]}", text)


def main() -> None:
    """Make the generated sections of the named Markdown files again, in place (README.md when none is named)."""
    for name in sys.argv[1:] or ["README.md"]:
        path = Path(name)
        path.write_text(renew(path.read_text(encoding="utf-8")), encoding="utf-8")


def _spell(default: object) -> str:
    return json.dumps(default)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines)


if __name__ == "__main__":
    main()
