"""I4: the list of modes holds `terminal`, and every switch, map and chain of comparisons over the modes knows it."""

import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from contracts.repo.findings import ClauseResult, Finding, Weight, result
from contracts.repo.parsing import FUNCTIONS, Sources, bare, line_of, parts, said, scope_of, walk
from contracts.repo.places import MODES, Place, places_in
from contracts.repo.terms import MODE_TYPE, MODES_FILE, MODES_NAME, NEW_MODE, OLD_MODES, is_test
from contracts.repo.values import Program

_DERIVED: Final = (f"(typeof{MODES_NAME})[number]", f"typeof{MODES_NAME}[number]")
_TYPESCRIPT: Final = (".ts", ".mts", ".cts", ".tsx")


def judge_modes(base: Sources, judged: Sources) -> ClauseResult:
    """The list of modes and its type, then each place over the modes in the product's own sources."""
    program = Program(judged)
    findings = list(_list_findings(program, Program(base)))
    places = list(places_in(program))
    findings += [finding for place in places for finding in _place_findings(program, place)]
    findings += _unread(judged)
    return result("I4", f"{MODES_NAME} and {len(places)} switches and maps over it", findings)


# ------------------------------------------------------------------ the list and its type


def _list_findings(program: Program, base: Program) -> Iterator[Finding]:
    listed = _listed(program)
    if listed is None:
        say = f"no list {MODES_NAME} is to be found, in {MODES_FILE} or elsewhere"
        yield _finding("unproven", MODES_FILE, 1, say, f"declare {MODES_NAME} in {MODES_FILE} as a list of texts")
        return
    path, node, modes = listed
    if modes is None:
        yield _finding(
            "unproven", path, line_of(node), f"the text does not tell what {MODES_NAME} holds", "write it as a list"
        )
        return
    if NEW_MODE not in modes:
        say = f"{MODES_NAME} does not hold {NEW_MODE!r}; it holds {', '.join(sorted(modes))}"
        yield _finding("fail", path, line_of(node), say, f"add {NEW_MODE!r} to the list")
    earlier = _listed(base)
    before = earlier[2] if earlier is not None and earlier[2] is not None else frozenset(OLD_MODES)
    for mode in sorted(before - modes):
        yield _finding("fail", path, line_of(node), f"{MODES_NAME} lost {mode!r}", "put it back: modes are only added")
    for where, one, union in _unions(program):
        if union is None:
            say = f"the text does not tell whether the type {MODE_TYPE} holds {NEW_MODE!r}"
            yield _finding("unproven", where, line_of(one), say, f"derive it: (typeof {MODES_NAME})[number]")
        elif NEW_MODE not in union:
            say = f"the type {MODE_TYPE} is written out and lacks {NEW_MODE!r}"
            yield _finding("fail", where, line_of(one), say, f"derive it: (typeof {MODES_NAME})[number]")


def _listed(program: Program) -> tuple[str, Node, frozenset[str] | None] | None:
    """Where the list stands, and what it holds (None when the text does not tell)."""
    for path in sorted(program.sources.paths, key=lambda path: (path != MODES_FILE, path)):
        if is_test(path) or MODES_NAME not in (program.sources.tree.text(path) or ""):
            continue
        module = program.module(path)
        for declared in module.names.get(MODES_NAME, ()) if module is not None else ():
            if declared.kind == "value" and declared.node is not None:
                items = _members(program, path, declared.node)
                return path, declared.node, items
    return None


def _members(program: Program, path: str, node: Node) -> frozenset[str] | None:
    found = bare(node)
    if found is not None and found.type == "new_expression":  # new Set([...])
        given = found.child_by_field_name("arguments")
        found = parts(given)[0] if given is not None and parts(given) else None
    items = program.items(path, found)
    if items is None or not all(items):
        return None
    return frozenset(text for item in items for text in item)


def _unions(program: Program) -> Iterator[tuple[str, Node, frozenset[str] | None]]:
    """Where the type of the modes is written out as a union of texts (None: as something else), and not derived."""
    for path in program.sources.paths:
        if is_test(path) or MODE_TYPE not in (program.sources.tree.text(path) or ""):
            continue
        source = program.sources.get(path)
        for node in walk(source.root) if source is not None else ():
            if node.type == "type_alias_declaration" and said(node.child_by_field_name("name")) == MODE_TYPE:
                value = node.child_by_field_name("value")
                is_derived = "".join(said(value).split()) in _DERIVED
                if value is not None and not is_derived:
                    yield path, node, _type_texts(value) or None


def _type_texts(value: Node | None) -> frozenset[str]:
    """The texts of a union of literals; nothing when it is another type."""
    if value is None or value.type not in ("union_type", "literal_type"):
        return frozenset()
    nodes = [node for node in walk(value) if node.type == "literal_type"]
    return frozenset(said(node).strip("\"'`") for node in nodes)


# ------------------------------------------------------------------ what is wrong with a place


def _place_findings(program: Program, place: Place) -> Iterator[Finding]:
    missing = sorted(MODES - place.modes)
    if NEW_MODE not in missing:
        return
    if place.what.startswith(("the switch", "the comparisons", "the filling")) and _is_named_near(program, place):
        return
    line = line_of(place.node)
    if place.is_open:
        say = f"{place.what} names {_listing(place.modes)}, and the text does not tell if the rest holds {NEW_MODE!r}"
        yield _finding("unproven", place.path, line, say, f"name {NEW_MODE!r} there")
        return
    then = {"never": "; the type checker refuses that", "default": "; its default takes it silently"}.get(
        place.defers, ""
    )
    say = f"{place.what} has no {NEW_MODE!r}{then}; it names {_listing(place.modes)}"
    yield _finding("fail", place.path, line, say, f"add {NEW_MODE!r}, to show the new mode and nothing else")


def _is_named_near(program: Program, place: Place) -> bool:
    """Whether the function around a place compares the same with the new mode, so that it never comes here."""
    scope = scope_of(place.node)
    if scope.type not in FUNCTIONS:
        return False
    subject = re.split(r"[ .]", place.what)[-1]
    for node in walk(scope):
        if node.type == "binary_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            for one, other in ((left, right), (right, left)):
                is_same = place.what.startswith("the filling") or said(other).rpartition(".")[2] == subject
                if is_same and program.texts(place.path, one) == {NEW_MODE}:
                    return True
    return False


def _listing(modes: frozenset[str]) -> str:
    return " and ".join(sorted(modes)) or "none"


def _unread(judged: Sources) -> Iterator[Finding]:
    for path in judged.paths:
        text = judged.tree.text(path)
        if is_test(path):
            continue
        if text is None and path.endswith(_TYPESCRIPT) and judged.tree.entries[path].mode.startswith("100"):
            say = f"{path} {judged.tree.why_not(path)}, so a map over the modes in it might go unseen"
            yield _finding("unproven", path, 1, say, "put the file in order")
        elif text is not None and any(word in text for word in (MODE_TYPE, MODES_NAME, OLD_MODES[0])):
            source = judged.get(path)
            if source is None or source.broken_line:
                say = f"{path} speaks of the modes and {judged.unread[path] if source is None else 'does not parse'}"
                line = 1 if source is None else source.broken_line
                yield _finding("unproven", path, line, say, "put the file in order")


def _finding(weight: Weight, path: str, line: int, say: str, todo: str) -> Finding:
    return Finding(clause="I4", weight=weight, path=path, line=line, say=say, todo=todo)
