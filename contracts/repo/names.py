"""What the names of one source file stand for: declarations, each with the text in which it holds, and exports."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from tree_sitter import Node

from contracts.repo.parsing import FUNCTIONS, Source, bare, parts, said, text_of_string, walk

Kind = Literal["import", "value", "function", "class", "unknown"]
DEFAULT: Final = "default"
ALL: Final = "*"
_BLOCKS: Final = FUNCTIONS | {"statement_block", "class_body", "for_statement", "for_in_statement", "program"}


@dataclass(frozen=True, slots=True)
class Declared:
    """One declaration of a name, good from byte `start` to `end`.

    `node` is the value, function or class; `keys` leads into the value, where it is taken apart. For an import, `spec`
    is the module's specifier and `keys` holds the imported name (`*` for all, `default`).
    """

    kind: Kind
    start: int
    end: int
    node: Node | None = None
    spec: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """The names of one file. `exports` maps to (specifier or "", name there); `stars` are modules exported whole.

    `imports` holds the specifier and the place of every module needed at run time; None for one that is computed.
    """

    source: Source
    names: dict[str, list[Declared]] = field(default_factory=dict)
    exports: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    imports: list[tuple[str | None, Node]] = field(default_factory=list)

    def declared(self, name: str, at: int) -> Declared | None:
        """What the name means at a byte of the text: the declaration whose stretch is the narrowest there."""
        fitting = [one for one in self.names.get(name, ()) if one.start <= at < one.end]
        return min(fitting, key=lambda one: one.end - one.start, default=None)


def read_module(source: Source) -> Module:
    """Collect the declarations, imports and exports of one file."""
    module = Module(source)
    for node in walk(source.root):
        reader = _READERS.get(node.type)
        if reader is not None:
            reader(module, node)
    return module


def _declare(module: Module, name: str, declared: Declared) -> None:
    module.names.setdefault(name, []).append(declared)


def _stretch(node: Node) -> tuple[int, int]:
    """The stretch of text in which a declaration holds: the block around it."""
    one = node.parent
    while one is not None and one.type not in _BLOCKS:
        one = one.parent
    return (one.start_byte, one.end_byte + 1) if one is not None else (0, node.end_byte + 1)


def _spec(node: Node) -> str | None:
    source = node.child_by_field_name("source")
    return text_of_string(source) if source is not None and source.type == "string" else None


def _is_type_only(node: Node) -> bool:
    return any(child.type in ("type", "typeof") for child in node.children)


def _import(module: Module, node: Node) -> None:
    if _is_type_only(node):
        return
    clause = next((child for child in node.children if child.type == "import_clause"), None)
    required = next((child for child in node.children if child.type == "import_require_clause"), None)
    spec = _spec(required if required is not None else node)
    if spec is None:
        return
    whole = (0, module.source.root.end_byte + 1)
    if required is not None:
        _declare(module, said(parts(required)[0]), Declared("import", *whole, spec=spec, keys=(ALL,)))
    taken = list(_imported(clause)) if clause is not None else []
    for local, name in taken:
        _declare(module, local, Declared("import", *whole, spec=spec, keys=(name,)))
    if taken or clause is None:
        module.imports.append((spec, node))


def _imported(clause: Node) -> Iterator[tuple[str, str]]:
    """Local name and imported name of everything that an import takes at run time."""
    for child in clause.named_children:
        if child.type == "identifier":
            yield said(child), DEFAULT
        elif child.type == "namespace_import":
            yield said(parts(child)[0]), ALL
        elif child.type == "named_imports":
            for one in child.named_children:
                if one.type == "import_specifier" and not _is_type_only(one):
                    name = one.child_by_field_name("name")
                    yield said(one.child_by_field_name("alias") or name), _plain(name)


def _plain(node: Node | None) -> str:
    return text_of_string(node) if node is not None and node.type == "string" else said(node)


def _export(module: Module, node: Node) -> None:
    if _is_type_only(node):
        return
    spec = _spec(node)
    is_default = any(child.type == DEFAULT for child in node.children)
    for child in node.named_children:
        if child.type == "export_clause":
            for one in child.named_children:
                if one.type == "export_specifier" and not _is_type_only(one):
                    name = _plain(one.child_by_field_name("name"))
                    module.exports[_plain(one.child_by_field_name("alias")) or name] = (spec or "", name)
        elif child.type == "namespace_export" and spec:
            module.exports[_plain(parts(child)[0])] = (spec, ALL)
    if spec is not None:
        module.imports.append((spec, node))
        if any(child.type == "*" for child in node.children):
            module.stars.append(spec)
    declaration = node.child_by_field_name("declaration")
    if declaration is not None:
        for name in _declared_names(declaration):
            module.exports[DEFAULT if is_default else name] = ("", name)
    value = node.child_by_field_name("value")
    if value is not None:
        module.exports[DEFAULT] = ("", "<default>")
        _declare(module, "<default>", Declared("value", 0, module.source.root.end_byte + 1, value))


def _declared_names(declaration: Node) -> Iterator[str]:
    name = declaration.child_by_field_name("name")
    if name is not None:
        yield said(name)
    for child in declaration.named_children:
        if child.type == "variable_declarator":
            target = child.child_by_field_name("name")
            if target is not None:
                yield from (local for local, _ in _targets(target, ()))


def _targets(pattern: Node, keys: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names that a pattern declares, each with the keys that lead to its value."""
    if pattern.type in ("identifier", "shorthand_property_identifier_pattern"):
        yield said(pattern), (*keys, said(pattern)) if pattern.type != "identifier" else keys
    elif pattern.type == "pair_pattern":
        value = pattern.child_by_field_name("value")
        if value is not None:
            yield from _targets(value, (*keys, _plain(pattern.child_by_field_name("key"))))
    elif pattern.type in ("assignment_pattern", "object_assignment_pattern"):
        yield from _targets(pattern.named_children[0], keys)
    elif pattern.type == "array_pattern":
        for index, child in enumerate(parts(pattern)):
            yield from _targets(child, (*keys, str(index)))
    elif pattern.type in ("object_pattern", "rest_pattern"):
        for child in pattern.named_children:
            yield from _targets(child, keys if pattern.type == "object_pattern" else (*keys, ALL))


def _variable(module: Module, node: Node) -> None:
    target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if target is None:
        return
    for name, keys in _targets(target, ()):
        kind: Kind = "unknown" if value is None else "value"
        _declare(module, name, Declared(kind, *_stretch(node), node=value, keys=keys))


def _function(module: Module, node: Node) -> None:
    name = node.child_by_field_name("name")
    if node.type.endswith("_declaration") and name is not None:
        _declare(module, said(name), Declared("function", *_stretch(node), node=node))
    inside = (node.start_byte, node.end_byte)
    single = node.child_by_field_name("parameter")
    several = node.child_by_field_name("parameters")
    patterns = [single] if single is not None else [] if several is None else parts(several)
    given = _given(node)
    for index, one in enumerate(patterns):
        pattern = one.child_by_field_name("pattern") or one
        for local, keys in _targets(pattern, ()):
            known = given if index == 0 else None
            kind: Kind = "value" if known is not None else "unknown"
            _declare(module, local, Declared(kind, *inside, node=known, keys=keys))


def _given(node: Node) -> Node | None:
    """What a callback of `import(...).then(...)` is given: the promise's own expression."""
    call = node.parent.parent if node.parent is not None and node.parent.type == "arguments" else None
    called = call.child_by_field_name("function") if call is not None else None
    if called is None or said(called.child_by_field_name("property")) != "then":
        return None
    return called.child_by_field_name("object")


def _class(module: Module, node: Node) -> None:
    name = node.child_by_field_name("name")
    if name is not None:
        _declare(module, said(name), Declared("class", *_stretch(node), node=node))


def _enum(module: Module, node: Node) -> None:
    _declare(module, said(node.child_by_field_name("name")), Declared("value", *_stretch(node), node=node))


def _call(module: Module, node: Node) -> None:
    """`import(...)` and `require(...)`: modules that are needed when the call is reached."""
    called = bare(node.child_by_field_name("function"))
    if called is None or not (called.type == "import" or said(called) == "require"):
        return
    given = node.child_by_field_name("arguments")
    first = bare(parts(given)[0]) if given is not None and parts(given) else None
    if first is not None and first.type == "string":
        module.imports.append((text_of_string(first), node))
    elif first is not None and first.type == "template_string" and "${" not in said(first):
        module.imports.append((said(first).strip("`"), node))
    else:
        module.imports.append((None, node))


_READERS: Final = {
    "import_statement": _import,
    "export_statement": _export,
    "variable_declarator": _variable,
    "class_declaration": _class,
    "abstract_class_declaration": _class,
    "enum_declaration": _enum,
    "call_expression": _call,
    **dict.fromkeys(FUNCTIONS, _function),
}
