"""Where a program maps over the modes: switches, objects, Maps, chains of comparisons, maps that are filled."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from contracts.repo.parsing import Source, bare, parts, said, scope_of, walk
from contracts.repo.terms import MODE_TYPE, MODES_NAME, NEW_MODE, OLD_MODES, is_test
from contracts.repo.values import Found, Program

MODES: Final = frozenset({*OLD_MODES, NEW_MODE})
_TYPED_MAPS: Final = frozenset({"Record", "Map", "ReadonlyMap"})
_AROUND: Final = frozenset(
    {
        "satisfies_expression",
        "as_expression",
        "parenthesized_expression",
        "call_expression",
        "arguments",
        "array",
        "new_expression",
    }
)
_NEVER_WORDS: Final = ("never", "unreachable", "exhaustive")


@dataclass(frozen=True, slots=True)
class Place:
    """One switch, map or chain over the modes: where, what it is, the modes that it names, and how sure that is all.

    `defers` says what it does with a mode that it does not name: `never` (the type checker refuses it), `default`,
    or nothing. `is_open`: parts of it come from elsewhere, and the text does not tell what they hold.
    """

    path: str
    node: Node
    what: str
    modes: frozenset[str]
    defers: str = ""
    is_open: bool = False


def places_in(program: Program, only: str = "") -> Iterator[Place]:
    """Every place over the modes in sources that are no tests, or in one file."""
    for path in [only] if only else program.sources.paths:
        text = program.sources.tree.text(path) if not is_test(path) else None
        if text is None or not any(word in text for word in (MODE_TYPE, *MODES, MODES_NAME)):
            continue
        source = program.sources.get(path)
        if source is not None:
            yield from _places(program, source)


def _places(program: Program, source: Source) -> Iterator[Place]:
    aliases = _type_names(source)
    for node in walk(source.root):
        if node.type == "switch_statement":
            yield from _switch(program, source.path, node)
        elif node.type == "object":
            yield from _object(program, source.path, node, aliases)
        elif node.type == "new_expression" or said(node.child_by_field_name("function")) == "Object.fromEntries":
            yield from _map(program, source.path, node, aliases)
    yield from _chains(program, source)
    yield from _filled(program, source)


def _type_names(source: Source) -> frozenset[str]:
    """The type of the modes, and the other names that this file gives it."""
    names = {MODE_TYPE}
    for node in walk(source.root):
        if node.type == "import_specifier" and said(node.child_by_field_name("name")) == MODE_TYPE:
            names.add(said(node.child_by_field_name("alias")) or MODE_TYPE)
        elif node.type == "type_alias_declaration":
            value = said(node.child_by_field_name("value"))
            if value in names or value.replace(" ", "") == f"(typeof{MODES_NAME})[number]":
                names.add(said(node.child_by_field_name("name")))
    return frozenset(names)


def _switch(program: Program, path: str, node: Node) -> Iterator[Place]:
    body = node.child_by_field_name("body")
    cases = parts(body) if body is not None else []
    named: set[str] = set()
    for case in cases:
        value = case.child_by_field_name("value")
        if case.type == "switch_case" and value is not None:
            named |= program.texts(path, value) or {said(value)}
    default = next((case for case in cases if case.type == "switch_default"), None)
    subject = said(node.child_by_field_name("value"))
    modes = frozenset(named) & MODES
    if len(modes) < 2 and not (modes and named <= MODES and "mode" in subject.lower()):
        return
    guarded = default is not None and _is_never(default)
    defers = "never" if guarded else "default" if default is not None else ""
    yield Place(path, node, f"the switch over {subject.strip('()')}", modes, defers)


def _is_never(node: Node) -> bool:
    """Whether code lets the type checker refuse a mode that comes to it."""
    for one in walk(node):
        if one.type == "predefined_type" and said(one) == "never":
            return True
        if one.type == "call_expression":
            name = said(one.child_by_field_name("function")).lower()
            if any(word in name for word in _NEVER_WORDS):
                return True
    return False


def _object(program: Program, path: str, node: Node, aliases: frozenset[str]) -> Iterator[Place]:
    keys, is_open = _keys(program, path, node)
    if _map_type(node, aliases) == "whole":
        yield Place(path, node, f"the map {_label(node)}", keys & MODES, "", is_open)
    elif len(keys & MODES) > 1:
        yield Place(path, node, f"the object {_label(node)}", keys & MODES, "", is_open)


def _keys(program: Program, path: str, node: Node) -> tuple[frozenset[str], bool]:
    """The keys of an object, those of what it spreads included, and whether some stay unknown."""
    keys: set[str] = set()
    is_open = False
    for one in parts(node):
        if one.type == "spread_element":
            found = program.thing(path, parts(one)[0])
            if isinstance(found, Found) and found.node.type == "object" and found.node != node:
                inner, inner_open = _keys(program, found.path, found.node)
                keys |= inner
                is_open |= inner_open
            else:
                is_open = True
            continue
        key = one.child_by_field_name("key") or one.child_by_field_name("name")
        texts = frozenset({said(one)}) if key is None else program.key_texts(path, key)
        keys |= texts
        is_open |= not texts
    return frozenset(keys), is_open


def _map_type(node: Node, aliases: frozenset[str]) -> str:
    """`whole` for an object that is declared to be a map over all modes, `partial` for one over some."""
    types: list[Node] = []
    one: Node | None = node
    while one is not None and one.parent is not None and one.parent.type in (
        "satisfies_expression", "as_expression", "parenthesized_expression", "call_expression", "arguments"
    ):  # fmt: skip
        one = one.parent
        types += [child for child in one.named_children if child.type in ("generic_type", "object_type")]
    holder = one.parent if one is not None else None
    if holder is not None and holder.type in ("variable_declarator", "public_field_definition", "required_parameter"):
        declared = holder.child_by_field_name("type")
        types += parts(declared) if declared is not None else []
    elif holder is not None and holder.type == "return_statement":
        declared = scope_of(holder).child_by_field_name("return_type")
        types += parts(declared) if declared is not None else []
    for kind in types:
        if _is_over_modes(kind, aliases):
            return "partial" if said(kind).startswith("Partial") or "]?:" in said(kind).replace(" ", "") else "whole"
    return ""


def _is_over_modes(kind: Node, aliases: frozenset[str]) -> bool:
    """Whether a type is Record<SpawnMode, ...>, {[K in SpawnMode]: ...}, or such a type wrapped once or twice."""
    for one in walk(kind):
        if one.type == "generic_type" and said(one.child_by_field_name("name")) in _TYPED_MAPS:
            given = one.child_by_field_name("type_arguments")
            return given is not None and bool(parts(given)) and said(parts(given)[0]) in aliases
        if one.type == "mapped_type_clause":
            return said(one.child_by_field_name("type")) in aliases
    return False


def _label(node: Node) -> str:
    """The name under which a map is held, for a person to find it by."""
    holder = node.parent
    while holder is not None and holder.type in _AROUND:
        holder = holder.parent
    if holder is None:
        return "over the modes"
    names = (said(holder.child_by_field_name(field)) for field in ("name", "key", "left"))
    return next(filter(None, names), "over the modes")


def _map(program: Program, path: str, node: Node, aliases: frozenset[str]) -> Iterator[Place]:
    """`new Map([["rpc", ...], ...])`, `Object.fromEntries([["rpc", ...], ...])`."""
    made_by = said(node.child_by_field_name("constructor") or node.child_by_field_name("function"))
    if made_by not in ("Map", "WeakMap", "Object.fromEntries"):
        return
    given = node.child_by_field_name("arguments")
    pairs = program.thing(path, parts(given)[0]) if given is not None and parts(given) else None
    if not isinstance(pairs, Found) or pairs.node.type != "array":
        return
    keys: set[str] = set()
    is_open = False
    for one in parts(pairs.node):
        pair = bare(one)
        texts = program.texts(pairs.path, parts(pair)[0]) if pair and pair.type == "array" and parts(pair) else None
        keys |= texts or frozenset()
        is_open |= not texts
    arguments = node.child_by_field_name("type_arguments")
    typed = arguments is not None and bool(parts(arguments)) and said(parts(arguments)[0]) in aliases
    if (typed and keys) or len(keys & MODES) > 1:
        yield Place(path, node, f"the Map {_label(node)}", frozenset(keys) & MODES, "", is_open)


def _chains(program: Program, source: Source) -> Iterator[Place]:
    """Comparisons of one value with several modes in one function: an if-chain, or one of `? :`."""
    found: dict[tuple[int, str], tuple[Node, set[str], bool]] = {}
    for node in walk(source.root):
        if node.type != "binary_expression" or said(node.child_by_field_name("operator")) not in (
            "===",
            "==",
            "!==",
            "!=",
        ):
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        for subject, value in ((left, right), (right, left)):
            texts = program.texts(source.path, value)
            if subject is None or len(texts) != 1 or not texts <= MODES or subject.type == "string":
                continue
            key = (scope_of(node).start_byte, said(subject))
            first, modes, guarded = found.get(key, (node, set(), _is_never(scope_of(node))))
            found[key] = (first, modes | texts, guarded)
    for (_, compared), (first, modes, guarded) in found.items():
        if len(modes) > 1:
            yield Place(
                source.path, first, f"the comparisons of {compared}", frozenset(modes), "never" if guarded else ""
            )


def _filled(program: Program, source: Source) -> Iterator[Place]:
    """Maps that are filled one mode at a time: `m.set("rpc", ...)`, `m["rpc"] = ...`, `m.rpc = ...`."""
    found: dict[tuple[int, str], tuple[Node, set[str]]] = {}
    for node in walk(source.root):
        filled = _set_key(program, source.path, node)
        if filled is not None and filled[1] in MODES:
            key = (scope_of(node).start_byte, filled[0])
            first, modes = found.get(key, (node, set()))
            found[key] = (first, modes | {filled[1]})
    for (_, receiver), (first, modes) in found.items():
        if len(modes) > 1:
            yield Place(source.path, first, f"the filling of {receiver}", frozenset(modes))


def _set_key(program: Program, path: str, node: Node) -> tuple[str, str] | None:
    key: Node | None = None
    owner: Node | None = None
    if node.type == "call_expression":
        called, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if called is None or said(called.child_by_field_name("property")) != "set" or given is None or not parts(given):
            return None
        owner, key = called.child_by_field_name("object"), parts(given)[0]
        while owner is not None and owner.type == "call_expression":  # m.set(...).set(...)
            inner = owner.child_by_field_name("function")
            owner = inner.child_by_field_name("object") if inner is not None else None
    elif node.type == "assignment_expression":
        left = node.child_by_field_name("left")
        owner = left.child_by_field_name("object") if left is not None else None
        key = (left.child_by_field_name("index") or left.child_by_field_name("property")) if left is not None else None
    texts = program.texts(path, key)
    return (said(owner), next(iter(texts))) if owner is not None and len(texts) == 1 else None
