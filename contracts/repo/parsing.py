"""TypeScript and JavaScript as syntax trees: parsing, walking without recursion, and places in words.

The one module that needs tree-sitter (extra `repo`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from contracts.repo.findings import RepoError
from contracts.repo.trees import Tree

SUFFIXES: Final = (".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx")
MAX_PARSED_BYTES: Final = 2**26
"""All sources that one run of the gate parses."""
MAX_NESTING: Final = 400
MAX_CHILDREN: Final = 5_000
"""Levels and width of a syntax tree; to climb from a node to the one around it costs as much as both."""
FUNCTIONS: Final = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
    }
)
WRAPPERS: Final = frozenset(
    {
        "parenthesized_expression",
        "as_expression",
        "satisfies_expression",
        "non_null_expression",
        "await_expression",
        "type_assertion",
    }
)
"""Nodes that stand around an expression and do not change what it is."""


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file. `broken_line` is the first line that does not parse, 0 when all of it does."""

    path: str
    text: str
    root: Node
    broken_line: int


class Sources:
    """The sources of one tree, parsed when somebody asks for them; `unread` says why some cannot be."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.unread: dict[str, str] = {}
        self._parsed: dict[str, Source | None] = {}
        self._left = MAX_PARSED_BYTES

    @property
    def paths(self) -> list[str]:
        """All source files of the tree, in order."""
        return sorted(path for path in self.tree.entries if path.endswith(SUFFIXES))

    def get(self, path: str) -> Source | None:
        """The parsed file; None when it cannot be read. Raises RepoError beyond `MAX_PARSED_BYTES`."""
        if path not in self._parsed:
            text = self.tree.text(path)
            if text is None:
                self.unread[path] = self.tree.why_not(path)
                self._parsed[path] = None
            else:
                self._left -= len(text)
                if self._left < 0:
                    raise RepoError(f"the sources are longer than {MAX_PARSED_BYTES // 2**20} MiB; is this pi-legion?")
                source = parse(path, text)
                if why := unwieldy(source.root):
                    self.unread[path] = why
                self._parsed[path] = None if path in self.unread else source
        return self._parsed[path]


def parse(path: str, text: str) -> Source:
    """Parse one text. What does not parse leaves error nodes, and the rest of the tree is still of use."""
    root = _parser(path.endswith(("x", "js"))).parse(text.encode("utf-8", "replace")).root_node
    return Source(path, text, root, _first_error(root) if root.has_error else 0)


def unwieldy(root: Node) -> str:
    """Why a tree is not looked into, in words that follow the path; "" when it is."""
    cursor = root.walk()
    depth = 0
    if root.child_count > MAX_CHILDREN:
        return f"has {root.child_count} parts side by side"
    while True:
        if cursor.goto_first_child():
            depth += 1
        else:
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return ""
                depth -= 1
        if depth > MAX_NESTING:
            return f"is nested deeper than {MAX_NESTING} levels"
        node = cursor.node
        if node is not None and node.child_count > MAX_CHILDREN:
            return f"has {node.child_count} parts side by side"


@cache
def _parser(is_tsx: bool) -> Parser:
    language = tree_sitter_typescript.language_tsx() if is_tsx else tree_sitter_typescript.language_typescript()
    return Parser(Language(language))


def walk(node: Node, *, into: frozenset[str] | None = None) -> Iterator[Node]:
    """The node and all below it, in the order of the text. With `into`, nodes of these types are not entered."""
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        if into is None or one is node or one.type not in into:
            stack.extend(reversed(one.children))


def said(node: Node | None) -> str:
    """The text of a node, empty for none."""
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """The line of a node, from 1."""
    return node.start_point[0] + 1


def bare(node: Node | None) -> Node | None:
    """An expression without parentheses, await, and what says its type."""
    while node is not None and node.type in WRAPPERS:
        children = node.named_children
        if not children:
            return node
        node = children[-1] if node.type in ("type_assertion", "await_expression") else children[0]
    return node


def parts(node: Node) -> list[Node]:
    """The named children that are no comments."""
    return [child for child in node.named_children if child.type != "comment"]


def scope_of(node: Node) -> Node:
    """The nearest function around a node, or the whole file."""
    one = node.parent
    while one is not None and one.parent is not None and one.type not in FUNCTIONS:
        one = one.parent
    return one or node


def text_of_string(node: Node) -> str:
    """The value of a string literal, its escapes undone."""
    pieces = []
    for child in node.named_children:
        raw = said(child)
        pieces.append(_unescaped(raw) if child.type == "escape_sequence" else raw)
    return "".join(pieces)


_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


def _unescaped(raw: str) -> str:
    rest = raw[1:]
    if rest[:1] in ("u", "x"):
        digits = rest[1:].strip("{}")
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            return raw
    if rest in ("\n", "\r\n"):
        return ""
    return _ESCAPES.get(rest, rest)


def _first_error(root: Node) -> int:
    """The line of the first error; only branches that hold one are entered."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            return line_of(node)
        stack.extend(child for child in reversed(node.children) if child.has_error)
    return line_of(root)
