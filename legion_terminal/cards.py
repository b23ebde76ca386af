"""D13: agent cards, which can say much of an agent but not where it is spawned."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from legion_terminal.errors import SupervisorError

MAX_CARD_CHARACTERS: Final = 2**18
"""The longest card that is read."""
FORBIDDEN: Final = "spawnMode"
"""The field that no card may have: the mode comes from the arbitration alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCard:
    """One agent as its card describes it: the `fields` of the front matter, and the text below."""

    source: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""

    @property
    def name(self) -> str:
        """The card's own `name`, empty when it gives none."""
        name = self.fields.get("name")
        return name if isinstance(name, str) else ""


def load_card(text: str, source: str) -> AgentCard:
    """Read a card: YAML front matter between two `---` lines, then free text. `source` is named in errors.

    Raises SupervisorError `card-refused` for front matter that is broken, not a mapping, or that holds `spawnMode` on
    any level (D13), however the key is quoted, aliased, merged or overwritten.
    """
    if len(text) > MAX_CARD_CHARACTERS:
        raise _refused(source, f"the card has {len(text)} characters, and {MAX_CARD_CHARACTERS} is the most")
    front, body = _split(text, source)
    try:
        root = yaml.compose(front, Loader=yaml.SafeLoader)
        if root is not None:
            _refuse_spawn_mode(root, source)
        fields = yaml.safe_load(front)
    except yaml.YAMLError as error:
        raise _refused(source, f"the front matter is not YAML: {_where(error)}") from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise _refused(source, f"the front matter cannot be read: {error}") from error
    if fields is None:
        fields = {}
    if not isinstance(fields, dict):
        raise _refused(source, "the front matter is not a mapping of fields")
    return AgentCard(source=source, fields=fields, body=body)


def _split(text: str, source: str) -> tuple[str, str]:
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return "", "".join(lines)
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    raise _refused(source, "the front matter has no closing --- line")


def _refuse_spawn_mode(root: yaml.Node, source: str) -> None:
    """Look at every key as it was written: in the finished value a later key of the same name would hide an earlier."""
    for key in _keys(root):
        if key.value == FORBIDDEN:
            raise SupervisorError(
                "card-refused",
                f"{source}, line {key.start_mark.line + 2}: a card cannot set {FORBIDDEN}",
                hint=f"remove {FORBIDDEN}: where an agent runs follows from its role and from the host",
            )


def _keys(root: yaml.Node) -> Iterator[yaml.ScalarNode]:
    seen: set[int] = set()  # aliases make the nodes a graph, possibly a cyclic one
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    yield key
                todo += [key, value]
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value


def _where(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 2}: {error.problem}"
    return str(error)


def _refused(source: str, message: str) -> SupervisorError:
    return SupervisorError("card-refused", f"{source}: {message}")
