"""Which functions the launch path can lead to, by imports, aliases, re-exports, callbacks, and what they start."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from contracts.repo.parsing import FUNCTIONS, WRAPPERS, bare, parts, said, walk
from contracts.repo.processes import Start, leads_elsewhere, set_to_git, start_of
from contracts.repo.terms import is_launch
from contracts.repo.values import GAP, Found, Program, Whole

Unit = tuple[str, int]
"""A function: its file and first byte. Byte -1 stands for what runs when the file is loaded."""
LOADED: Final = -1
_CALLS: Final = frozenset({"call_expression", "new_expression"})
_DECLARING: Final = frozenset(
    {"import_specifier", "import_clause", "namespace_import", "export_specifier", "required_parameter"}
)


@dataclass(slots=True)
class Body:
    """What one function does: the processes that it starts, the functions that it names, with the place of each.

    A function is named with what it is given, or with None where it is led to but not called. `by_name` holds calls of
    methods of objects that the text does not tell.
    """

    name: str
    starts: list[Start] = field(default_factory=list)
    names: list[tuple[Unit, Node, str | None]] = field(default_factory=list)
    by_name: list[tuple[str, Node]] = field(default_factory=list)


@dataclass(slots=True)
class Graph:
    """All functions that were reached, who led to each first, and what could not be followed.

    `aliases` are the functions that a method of a name can be: those of that name, and those held under it.
    """

    program: Program
    bodies: dict[Unit, Body] = field(default_factory=dict)
    reached_by: dict[Unit, tuple[Unit, Node] | None] = field(default_factory=dict)
    loose: list[tuple[str, Node, str]] = field(default_factory=list)
    aliases: dict[str, set[Unit]] = field(default_factory=dict)

    @property
    def modules(self) -> set[str]:
        """The files of all functions that were reached."""
        return {path for path, _ in self.reached_by}


def reach(program: Program) -> Graph:
    """All functions within reach of the launch path of one tree."""
    graph = Graph(program)
    todo: deque[Unit] = deque()

    def lead(unit: Unit, via: tuple[Unit, Node] | None) -> None:
        if unit not in graph.reached_by and unit in graph.bodies:
            graph.reached_by[unit] = via
            todo.append(unit)

    read: set[str] = set()

    def load(path: str, via: tuple[Unit, Node] | None) -> None:
        if path not in read:
            read.add(path)
            _read_bodies(graph, path)
        lead((path, LOADED), via)

    for path in program.sources.paths:
        if is_launch(path):
            load(path, None)
            for unit in [unit for unit in graph.bodies if unit[0] == path]:
                lead(unit, None)
    while todo:
        unit = todo.popleft()
        if unit[1] == LOADED:
            for spec, node in _needed(graph, unit[0]):
                load(spec, (unit, node))
        for target, node, _ in graph.bodies[unit].names:
            load(target[0], (unit, node))
            lead(target, (unit, node))
    return graph


def _needed(graph: Graph, path: str) -> Iterator[tuple[str, Node]]:
    """The files of the checkout that a file needs at run time; notes those that lead nowhere."""
    module = graph.program.module(path)
    for spec, node in module.imports if module is not None else []:
        if spec is None:
            graph.loose.append((path, node, "computes which module it imports"))
        elif (target := graph.program.resolve(spec, path)) is not None:
            yield target, node
        elif spec.startswith((".", "#", "@/", "~/")) and not spec.endswith((".json", ".css", ".node", ".wasm")):
            graph.loose.append((path, node, f"imports {spec}, which leads to no file of the checkout"))


def _read_bodies(graph: Graph, path: str) -> None:
    module = graph.program.module(path)
    graph.bodies[path, LOADED] = Body("loading the file")
    if module is None:
        return
    for node in walk(module.source.root):
        body = graph.bodies[_owner(path, node)]
        if node.type in FUNCTIONS:
            unit = (path, node.start_byte)
            graph.bodies.setdefault(unit, Body(_name(node)))
            graph.aliases.setdefault(_name(node), set()).add(unit)
            if not _is_named(node):
                body.names.append((unit, node, None))
        elif node.type in _CALLS:
            _read_call(graph, path, node, body)
        elif node.type in ("identifier", "shorthand_property_identifier", "member_expression", "subscript_expression"):
            _read_name(graph, path, node, body)
        elif node.type in ("assignment_expression", "public_field_definition"):
            start = set_to_git(graph.program, path, node)
            body.starts += [start] if start is not None else []


def _read_call(graph: Graph, path: str, node: Node, body: Body) -> None:
    if leads_elsewhere(graph.program, path, node):
        graph.loose.append((path, node, "runs another file in a process or thread of its own"))
    start = start_of(graph.program, path, node)
    called = bare(node.child_by_field_name("function"))
    if start is not None:
        body.starts.append(start)
    elif called is not None and called.type == "member_expression" and graph.program.thing(path, called) is None:
        body.by_name.append((said(called.child_by_field_name("property")), node))


def _read_name(graph: Graph, path: str, node: Node, body: Body) -> None:
    parent = node.parent
    if parent is None or parent.type in _DECLARING or node == parent.child_by_field_name("name"):
        return
    targets, is_one = _named_functions(graph.program, path, node)
    body.names += [(target, node, _given(graph.program, path, node) if is_one else None) for target in targets]
    key = said(parent.child_by_field_name("key")) if parent.type == "pair" else said(node)
    if is_one and parent.type in ("pair", "object"):
        graph.aliases.setdefault(key, set()).update(targets)


def _owner(path: str, node: Node) -> Unit:
    one = node.parent
    while one is not None and one.type not in FUNCTIONS:
        one = one.parent
    return (path, one.start_byte) if one is not None else (path, LOADED)


def _is_named(node: Node) -> bool:
    """Whether a function has a name by which others must call it; else whoever holds it may call it."""
    if node.type in ("function_declaration", "generator_function_declaration"):
        return True
    parent = node.parent
    if node.type == "method_definition":
        return parent is not None and parent.type == "class_body"
    return parent is not None and parent.type in ("variable_declarator", "public_field_definition")


def _name(node: Node) -> str:
    own = node.child_by_field_name("name")
    if own is None and node.parent is not None:
        own = node.parent.child_by_field_name("name") or node.parent.child_by_field_name("key")
    return said(own) or "a function"


def _named_functions(program: Program, path: str, node: Node) -> tuple[list[Unit], bool]:
    """The functions that a name in an expression leads to, and whether it is one function rather than a holder of some.

    A class leads to its methods, an object to the functions in it.
    """
    if node.type == "member_expression" and said(node.child_by_field_name("object")) == "this":
        return list(_own_methods(path, node)), True
    thing = program.thing(path, node)
    if isinstance(thing, Whole) and not _is_picked_from(program, path, node):
        return list(_exported(program, thing.path)), True
    if not isinstance(thing, Found):
        return [], False
    if thing.node.type in FUNCTIONS:
        return [(thing.path, thing.node.start_byte)], True
    if thing.node.type in ("class_declaration", "abstract_class_declaration", "class"):
        return list(_methods(thing)), False
    if thing.node.type == "object" and node.type != "member_expression":
        return [(thing.path, one.start_byte) for one in walk(thing.node) if one.type in FUNCTIONS], False
    return [], False


def _is_picked_from(program: Program, path: str, module: Node) -> bool:
    """Whether a name of a whole module stands there to take something out of it that the text tells."""
    one = module
    while one.parent is not None and one.parent.type in WRAPPERS:
        one = one.parent
    parent = one.parent
    if parent is None or parent.child_by_field_name("object") != one:
        return False
    return parent.type == "member_expression" or program.thing(path, parent) is not None


def _exported(program: Program, path: str) -> Iterator[Unit]:
    """The functions that a module exports under their own names."""
    module = program.module(path)
    for name in module.exports if module is not None else ():
        thing = program.exported(path, name)
        if isinstance(thing, Found) and thing.node.type in FUNCTIONS:
            yield (thing.path, thing.node.start_byte)


def _methods(thing: Found) -> Iterator[Unit]:
    body = thing.node.child_by_field_name("body")
    for member in parts(body) if body is not None else []:
        held = member if member.type in FUNCTIONS else member.child_by_field_name("value")
        if held is not None and held.type in FUNCTIONS:
            yield (thing.path, held.start_byte)


def _own_methods(path: str, node: Node) -> Iterator[Unit]:
    one: Node | None = node
    while one is not None and one.type != "class_body":
        one = one.parent
    name = said(node.child_by_field_name("property"))
    for member in parts(one) if one is not None else []:
        if said(member.child_by_field_name("name")) == name:
            held = member if member.type in FUNCTIONS else member.child_by_field_name("value")
            if held is not None and held.type in FUNCTIONS:
                yield (path, held.start_byte)


def _given(program: Program, path: str, node: Node) -> str:
    """The list of arguments that a call passes on, or the command that a function of git is given: "" for the rest.

    It tells one use of a git function from another.
    """
    call = node.parent
    given = call.child_by_field_name("arguments") if call is not None and call.type in _CALLS else None
    if given is None or given.type != "arguments" or not parts(given):
        return ""
    first = parts(given)[0]
    items = program.items(path, first)
    if items is not None:
        return " ".join(next(iter(sorted(one)), GAP) for one in items)
    return " ".join(sorted(program.texts(path, first))) if "git" in said(node).lower() else ""
