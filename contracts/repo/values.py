"""What expressions come to as far as the text alone tells: where a name leads across files, and the texts it can be."""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from contracts.repo.names import ALL, DEFAULT, Declared, Module, read_module
from contracts.repo.parsing import FUNCTIONS, Sources, bare, parts, said, text_of_string

MAX_STEPS: Final = 40
"""No chain of aliases, re-exports and members is followed further."""
MAX_TEXTS: Final = 8
MAX_ITEMS: Final = 64
GAP: Final = "…"
"""Stands in a text for a piece that the source does not tell."""
_TRIED: Final = (".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".mjs", ".cjs", "/index.ts", "/index.tsx", "/index.js")
_WRITTEN: Final = (".js", ".mjs", ".cjs", ".jsx")


@dataclass(frozen=True, slots=True)
class External:
    """Something of a package or of node itself: `child_process` and `execFile`; no name stands for the whole."""

    package: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A module of the checkout as one object."""

    path: str


@dataclass(frozen=True, slots=True)
class Found:
    """An expression, function or class, and the file in which it stands."""

    path: str
    node: Node


Thing = External | Whole | Found | None


class Program:
    """The modules of one tree, read on demand, and the names that lead from one to another."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._modules: dict[str, Module | None] = {}
        self._things: dict[tuple[str, int], Thing] = {}
        self._texts: dict[tuple[str, int], frozenset[str]] = {}

    def module(self, path: str) -> Module | None:
        """The names of a file; None when the file cannot be read."""
        if path not in self._modules:
            source = self.sources.get(path)
            self._modules[path] = None if source is None else read_module(source)
        return self._modules[path]

    def resolve(self, spec: str, start: str) -> str | None:
        """The path that a relative specifier leads to, from the file `start`; None for packages and for nothing."""
        if not spec.startswith("."):
            return None
        target = posixpath.normpath(posixpath.join(posixpath.dirname(start), spec))
        entries = self.sources.tree.entries
        stem = next((target[: -len(end)] for end in _WRITTEN if target.endswith(end)), target)
        tried = [target, *(stem + end for end in _TRIED if not end.startswith("/")), *(target + end for end in _TRIED)]
        return next((path for path in tried if path in entries and "." in path.rpartition("/")[2]), None)

    def thing(self, path: str, node: Node | None, left: int = MAX_STEPS) -> Thing:
        """What an expression of the file `path` stands for."""
        node = bare(node)
        if node is None or left <= 0:
            return None
        key = (path, node.id)
        if key not in self._things:
            self._things[key] = None  # what it is for whoever comes round to it again
            self._things[key] = self._thing(path, node, left)
        return self._things[key]

    def _thing(self, path: str, node: Node, left: int) -> Thing:
        if node.type in ("identifier", "shorthand_property_identifier"):
            return self._named(path, said(node), node.start_byte, left)
        if node.type == "member_expression":
            owner = self.thing(path, node.child_by_field_name("object"), left - 1)
            return self.member(owner, said(node.child_by_field_name("property")), left - 1)
        if node.type == "subscript_expression":
            owner = self.thing(path, node.child_by_field_name("object"), left - 1)
            keys = self.texts(path, node.child_by_field_name("index"), left - 1)
            return self.member(owner, next(iter(keys)), left - 1) if len(keys) == 1 else None
        if node.type == "call_expression":
            return self._called(path, node, left)
        return Found(path, node)

    def member(self, owner: Thing, key: str, left: int = MAX_STEPS) -> Thing:
        """What a thing holds under a key."""
        if left <= 0 or owner is None:
            return None
        if isinstance(owner, External):
            if key == DEFAULT:
                return owner
            return External(owner.package, f"{owner.name}.{key}" if owner.name else key)
        if isinstance(owner, Whole):
            return self.exported(owner.path, key, left - 1)
        return self._inside(owner, key, left)

    def exported(self, path: str, name: str, left: int = MAX_STEPS) -> Thing:
        """What a module of the checkout exports under a name."""
        module = self.module(path)
        if module is None or left <= 0:
            return None
        if name in module.exports:
            spec, there = module.exports[name]
            if not spec:
                return self._named(path, there, 0, left - 1)
            return self._imported(path, spec, there, left - 1)
        for spec in module.stars:
            found = self._imported(path, spec, name, left - 1)
            if found is not None and not (isinstance(found, External) and len(module.stars) > 1 and left < 2):
                return found
        return None

    def texts(self, path: str, node: Node | None, left: int = MAX_STEPS) -> frozenset[str]:
        """The texts that an expression can come to, with `GAP` for unknown pieces; nothing when all is unknown."""
        node = bare(node)
        if node is None or left <= 0:
            return frozenset()
        key = (path, node.id)
        if key not in self._texts:
            self._texts[key] = frozenset()
            self._texts[key] = self._read_texts(path, node, left)
        return self._texts[key]

    def _read_texts(self, path: str, node: Node, left: int) -> frozenset[str]:
        if node.type in ("string", "property_identifier", "string_fragment", "number"):
            return frozenset({text_of_string(node) if node.type == "string" else said(node)})
        if node.type == "template_string":
            return self._joined(path, list(_pieces(node)), "", left)
        if node.type == "binary_expression":
            sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
            operator = said(node.child_by_field_name("operator"))
            if operator == "+":
                return self._joined(path, sides, "", left)
            if operator in ("??", "||"):
                return _few(text for side in sides for text in self.texts(path, side, left - 1))
            return frozenset()
        if node.type == "ternary_expression":
            sides = [node.child_by_field_name("consequence"), node.child_by_field_name("alternative")]
            return _few(text for side in sides for text in self.texts(path, side, left - 1))
        if node.type == "call_expression":
            return self._text_of_call(path, node, left)
        if node.type in ("identifier", "member_expression", "subscript_expression", "shorthand_property_identifier"):
            found = self.thing(path, node, left - 1)
            if isinstance(found, Found) and found.node != node:
                return self.texts(found.path, found.node, left - 1)
        return frozenset()

    def items(self, path: str, node: Node | None, left: int = MAX_STEPS) -> list[frozenset[str]] | None:
        """The items of a list, each as the texts that it can come to; None when the list is unknown."""
        found = self.thing(path, node, left - 1) if left > 0 else None
        if not isinstance(found, Found):
            return None
        if found.node.type == "ternary_expression":
            first = self.items(found.path, found.node.child_by_field_name("consequence"), left - 1)
            return first or self.items(found.path, found.node.child_by_field_name("alternative"), left - 1)
        if found.node.type != "array":
            return None
        known: list[frozenset[str]] = []
        for child in parts(found.node)[:MAX_ITEMS]:
            if child.type == "spread_element":
                inner = self.items(found.path, parts(child)[0], left - 2)
                known += inner if inner is not None else [frozenset()]
            else:
                known.append(self.texts(found.path, child, left - 1))
        return known

    def _named(self, path: str, name: str, at: int, left: int) -> Thing:
        module = self.module(path)
        declared = module.declared(name, at) if module is not None else None
        if declared is None:
            return External("", name) if module is not None and name not in module.names else None
        return self._declared(path, declared, left - 1)

    def _declared(self, path: str, declared: Declared, left: int) -> Thing:
        if declared.kind == "import":
            return self._imported(path, declared.spec, declared.keys[0], left)
        if declared.node is None:
            return None
        if declared.kind != "value":
            return Found(path, declared.node)
        found = self.thing(path, declared.node, left)
        for key in declared.keys:
            found = self.member(found, key, left)
        return found

    def _imported(self, path: str, spec: str, name: str, left: int) -> Thing:
        target = self.resolve(spec, path)
        if target is None:
            return None if spec.startswith(".") else _external(spec, name)
        return Whole(target) if name == ALL else self.exported(target, name, left)

    def _called(self, path: str, node: Node, left: int) -> Thing:
        """What a call comes to, for the few calls that hand on a module or wrap a function."""
        called = bare(node.child_by_field_name("function"))
        given = node.child_by_field_name("arguments")
        arguments = parts(given) if given is not None else []
        callee = External("", "import") if called is not None and called.type == "import" else None
        callee_thing = callee or self.thing(path, called, left - 1)
        if isinstance(callee_thing, External) and arguments:
            name = callee_thing.name.rpartition(".")[2]
            if name in ("import", "require", "getBuiltinModule") or name == "createRequire()":
                return self._first_module(path, arguments[0], left)
            if name in ("promisify", "callbackify"):
                return self.thing(path, arguments[0], left - 1)
            if name == "createRequire":
                return External(callee_thing.package, "createRequire()")
        if called is not None and called.type == "member_expression":
            key = said(called.child_by_field_name("property"))
            if key == "bind":
                return self.thing(path, called.child_by_field_name("object"), left - 1)
            if key == "freeze" and arguments:
                return self.thing(path, arguments[0], left - 1)
        if isinstance(callee_thing, External) and callee_thing.package:
            return External(callee_thing.package, f"{callee_thing.name}()")
        return Found(path, node)

    def _first_module(self, path: str, node: Node, left: int) -> Thing:
        specs = self.texts(path, node, left - 1)
        return self._imported(path, next(iter(specs)), ALL, left - 1) if len(specs) == 1 else None

    def _inside(self, owner: Found, key: str, left: int) -> Thing:
        node = owner.node
        if node.type == "array" and key.isdecimal():
            children = parts(node)
            return self.thing(owner.path, children[int(key)], left - 1) if int(key) < len(children) else None
        if node.type == "enum_declaration":
            body = node.child_by_field_name("body")
            for one in parts(body) if body is not None else []:
                if said(one.child_by_field_name("name")) == key:
                    return self.thing(owner.path, one.child_by_field_name("value"), left - 1)
        if node.type in ("class_declaration", "class"):
            body = node.child_by_field_name("body")
            members = parts(body) if body is not None else []
            member = next((one for one in members if said(one.child_by_field_name("name")) == key), None)
            value = member.child_by_field_name("value") if member is not None else None
            if value is not None:
                return self.thing(owner.path, value, left - 1)
            return Found(owner.path, member) if member is not None else None
        if node.type != "object":
            return None
        for one in parts(node):
            if one.type == "pair" and key in self.key_texts(owner.path, one.child_by_field_name("key")):
                return self.thing(owner.path, one.child_by_field_name("value"), left - 1)
            if one.type == "shorthand_property_identifier" and said(one) == key:
                return self.thing(owner.path, one, left - 1)
            if one.type == "method_definition" and said(one.child_by_field_name("name")) == key:
                return Found(owner.path, one)
            if one.type == "spread_element":
                found = self.member(self.thing(owner.path, parts(one)[0], left - 1), key, left - 1)
                if found is not None:
                    return found
        return None

    def key_texts(self, path: str, key: Node | None) -> frozenset[str]:
        """The texts that the key of an object can come to."""
        if key is not None and key.type == "computed_property_name":
            return self.texts(path, parts(key)[0])
        return self.texts(path, key)

    def _text_of_call(self, path: str, node: Node, left: int) -> frozenset[str]:
        called, given = bare(node.child_by_field_name("function")), node.child_by_field_name("arguments")
        if called is None or given is None:
            return frozenset()
        if given.type == "template_string":  # String.raw and the like
            return self.texts(path, given, left - 1)
        name = said(called.child_by_field_name("property") or called)
        owner = called.child_by_field_name("object")
        arguments: list[Node | None] = list(parts(given))
        if name == "join" and owner is not None:
            items = self.items(path, owner, left - 1)
            if items is not None:
                between = next(iter(self.texts(path, arguments[0], left - 1)), GAP) if arguments else ","
                return _few(_product(items, between))
        if name in ("join", "resolve", "normalize"):
            return self._joined(path, arguments, "/", left)
        if name == "concat":
            return self._joined(path, [owner, *arguments], "", left)
        if name == "toLowerCase":
            return frozenset(text.lower() for text in self.texts(path, owner, left - 1))
        if name in ("trim", "toString", "String"):
            return self.texts(path, owner or (arguments[0] if arguments else None), left - 1)
        return frozenset()

    def _joined(self, path: str, pieces: Sequence[Node | str | None], between: str, left: int) -> frozenset[str]:
        known = [
            frozenset({piece}) if isinstance(piece, str) else self.texts(path, piece, left - 1) for piece in pieces
        ]
        return _few(_product(known, between)) if any(known) or not pieces else frozenset()


def _external(spec: str, name: str) -> External:
    package = spec.removeprefix("node:")
    return External(package, "" if name in (ALL, DEFAULT) else name)


def _pieces(template: Node) -> Iterator[Node | str]:
    for child in template.named_children:
        if child.type == "template_substitution":
            yield parts(child)[0] if parts(child) else GAP
        else:
            yield said(child)


def _product(known: Sequence[frozenset[str]], between: str) -> Iterator[str]:
    """Every text that comes of one choice at each place; beyond `MAX_TEXTS` no further choices are made."""
    made = [""]
    for index, choices in enumerate(known):
        lead = between if index else ""
        made = [text + lead + choice for text in made for choice in sorted(choices) or [GAP]][:MAX_TEXTS]
    yield from made


def _few(texts: Iterator[str]) -> frozenset[str]:
    return frozenset(text for text, _ in zip(texts, range(MAX_TEXTS), strict=False))


def is_function(node: Node) -> bool:
    """Whether a node is a function with a body of its own."""
    return node.type in FUNCTIONS
