"""D13: no agent card of the checkout sets `spawnMode`, at any depth of its front matter."""

import re
from collections.abc import Iterator
from typing import Final

import yaml

from contracts.repo.findings import ClauseResult, Finding, Weight, result
from contracts.repo.terms import CARD_FIELD, is_test
from contracts.repo.trees import Tree

MARKDOWN: Final = (".md", ".mdx", ".markdown")
DATA: Final = (".yaml", ".yml", ".json", ".toml")
TEXT: Final = ".txt"
AGENT_FOLDER: Final = re.compile(r"(?:^|/)agents/")
_OPENING: Final = re.compile(r"\s*(---|\+\+\+|;;;)\s*(?:ya?ml|toml|json)?\s*")
"""How front matter begins; other than after `---` it is no YAML, and the word itself is looked for."""
MAX_FRONT: Final = 2**18
"""Characters of front matter that are read."""
REMEDY: Final = f"remove {CARD_FIELD}: where an agent runs follows from its role and from the host (contract D13)"


def judge_cards(judged: Tree) -> ClauseResult:
    """Every Markdown file with front matter, and the YAML and JSON files of folders called `agents`."""
    fronts: list[tuple[str, int, str]] = []
    findings: list[Finding] = []
    for path in sorted(judged.entries):
        folder = AGENT_FOLDER.search(path)
        if is_test(path[: folder.start() + 1] if folder else path) or not _is_card(path):
            continue
        whole = judged.text(path)
        if whole is None:
            if AGENT_FOLDER.search(path):
                findings.append(
                    _finding("unproven", path, 1, f"{path} {judged.why_not(path)}", "put the card in order")
                )
            continue
        front = _front(path, whole)
        if front is not None:
            fronts.append((path, *front))
    for path, first, text in fronts:
        findings += _judge_front(path, first, text)
    if not fronts:
        say = "no agent card was found, so nothing is proved of them"
        todo = "give a checkout with cards: Markdown files with front matter between two --- lines"
        findings.append(_finding("unproven", "agents", 1, say, todo))
    return result("D13", f"{len(fronts)} cards and other files with front matter", findings)


def _is_card(path: str) -> bool:
    in_folder = AGENT_FOLDER.search(path) is not None
    return path.lower().endswith(MARKDOWN) or (path.lower().endswith((*DATA, TEXT)) and in_folder)


def _front(path: str, text: str) -> tuple[int, str] | None:
    """The first line of the front matter and its text; None for a file without. One left open goes to the end."""
    if path.lower().endswith(DATA):
        return 1, text
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = next((index for index, line in enumerate(lines) if line.strip()), None)
    opened = _OPENING.fullmatch(lines[start]) if start is not None else None
    if start is None or opened is None:
        return None
    end = next((index for index in range(start + 1, len(lines)) if lines[index].rstrip() == opened[1]), len(lines))
    return start + 2, "\n".join(lines[start + 1 : end])


def _judge_front(path: str, first: int, front: str) -> Iterator[Finding]:
    if len(front) > MAX_FRONT:
        say = f"the front matter has {len(front)} characters, and {MAX_FRONT} is the most that is read"
        yield _finding("unproven", path, first, say, "shorten it")
        return
    try:
        nodes = [node for node in yaml.compose_all(front, Loader=yaml.SafeLoader) if node is not None]
    except (yaml.YAMLError, ValueError, RecursionError):
        yield from _judge_broken(path, first, front)
        return
    if all(isinstance(node, yaml.ScalarNode) for node in nodes):  # TOML reads as one long word
        yield from _judge_broken(path, first, front)
        return
    for key in _keys(nodes):
        if key.value == CARD_FIELD:
            line = first + front.count("\n", 0, key.start_mark.index)  # YAML ends lines elsewhere, too
            yield _finding("fail", path, line, f"the card sets {CARD_FIELD}", REMEDY)


def _judge_broken(path: str, first: int, front: str) -> Iterator[Finding]:
    """Front matter that is no YAML: programs may read it line by line, so the word itself is looked for."""
    for index, line in enumerate(front.split("\n")):
        if re.search(rf"(?:^|[^\w]){CARD_FIELD}[\"']?\s*[:=]", line):
            yield _finding("fail", path, first + index, f"the card sets {CARD_FIELD} (and is no YAML)", REMEDY)
            return
    if CARD_FIELD in front or "\\" in front:
        say = f"the front matter is no YAML, and the text does not tell whether it sets {CARD_FIELD}"
        yield _finding("unproven", path, first, say, "put the card in order")


def _keys(roots: list[yaml.Node]) -> Iterator[yaml.ScalarNode]:
    """Every key as it was written, at every depth; aliases make the nodes a graph, possibly a cyclic one."""
    seen: set[int] = set()
    todo = list(roots)
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


def _finding(weight: Weight, path: str, line: int, say: str, todo: str) -> Finding:
    return Finding(clause="D13", weight=weight, path=path, line=line, say=say, todo=todo)
