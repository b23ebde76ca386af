"""D13: a card that says where its agent is spawned is refused, however it says so."""

from collections.abc import Mapping

from contracts.checks.base import Check, Subject, check, found
from contracts.records import Finding
from legion_terminal import cards
from legion_terminal.errors import SupervisorError

REFUSED: Mapping[str, str] = {
    "terminal": "spawnMode: terminal\n",
    "rpc": "spawnMode: rpc\n",
    "inprocess": "spawnMode: inprocess\n",
    "no value": "spawnMode:\n",
    "quoted key": '"spawnMode": terminal\n',
    "nested": "runtime:\n  limits:\n    spawnMode: rpc\n",
    "in a list": "steps:\n  - name: one\n  - spawnMode: rpc\n",
    "in flow style": "runtime: {a: 1, spawnMode: terminal}\n",
    "through an alias": "base: &b {spawnMode: rpc}\nother:\n  <<: *b\n",
}
"""Front matter that no card may have, by the way in which it has it."""

BROKEN: Mapping[str, str] = {
    "no closing line": "---\nname: centurion\nspawnMode: terminal\nYou are.\n",
    "no closing line, no text": "---\nspawnMode: terminal",
    "a closing line that is none": "---\nspawnMode: terminal\n--\nYou are.\n",
    "a byte order mark": "\ufeff---\nspawnMode: terminal\n---\nYou are.\n",
    "line ends of another system": "---\r\nspawnMode: terminal\r\n---\r\nYou are.\r\n",
    "fences with blanks": "--- \nspawnMode: terminal\n---\t\nYou are.\n",
    "no YAML below it": "---\nspawnMode: terminal\n  : [\n---\nYou are.\n",
}
"""Whole cards whose front matter is odd or broken; what they set is refused all the same."""

LOADED: Mapping[str, str] = {
    "plain": "name: centurion\ndescription: holds a worktree\ntools: [read, bash]\n",
    "word in a value": "name: centurion\ndescription: spawnMode is not for cards\n",
    "another key": "name: centurion\nspawnModes: 3\n",
}


@check("d13-cards", "D13", "spawnMode is refused at any depth of a card; a card without it loads")
def spawn_mode(_: Subject) -> list[Finding]:
    """Every way of saying it, and cards that only look so."""
    refused = [found("D13", where, expected="card-refused", got=_outcome(front)) for where, front in REFUSED.items()]
    refused += [found("D13", where, expected="card-refused", got=_loaded(card)) for where, card in BROKEN.items()]
    loaded = [found("D13", where, expected="centurion", got=_outcome(front)) for where, front in LOADED.items()]
    return refused + loaded


CHECKS: tuple[Check, ...] = (spawn_mode,)


def _outcome(front: str) -> str:
    return _loaded(f"---\n{front}---\nYou are.\n")


def _loaded(card: str) -> str:
    """The name on the card, or the code of the refusal."""
    try:
        return cards.load_card(card, "card.md").name
    except SupervisorError as error:
        return error.code
