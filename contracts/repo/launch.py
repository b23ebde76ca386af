"""I3: no git process can be reached from the launch path that could not be reached in the base.

Whatever the launch path can lead to is found in both trees, and the git processes there are counted and compared.
The text alone does not tell: programs whose name is computed, read or configured (a note asks a person to look), what
packages do inside, how often a loop or a condition lets a call happen, and methods of objects that are handed in, other
than by their names. A new use of an old git function counts as a new process.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from tree_sitter import Node

from contracts.repo.findings import ClauseResult, Finding, Weight, result
from contracts.repo.parsing import Sources, line_of
from contracts.repo.reach import Graph, Unit, reach
from contracts.repo.terms import is_launch
from contracts.repo.values import Program

MAX_CHAIN: Final = 8
REMEDY: Final = "launch without it: what has to be known of the repository is known before (contract I3)"


def judge_launch(base: Sources, judged: Sources) -> ClauseResult:
    """Compare the git processes within reach of the launch path in two trees."""
    roots = [path for path in judged.paths if is_launch(path)]
    before, now = reach(Program(base)), reach(Program(judged))
    findings = [*_missing_roots(base, judged), *_new_starts(before, now), *_new_calls(before, now)]
    findings += [*_unread(base, judged, now), *_loose(before, now)]
    looked_at = (
        f"{len(roots)} modules of the launch path, {len(now.modules)} files and {len(now.reached_by)} functions within "
        f"reach, {_git_count(now)} git processes there ({_git_count(before)} in the base)"
    )
    return result("I3", looked_at, findings)


def _git_count(graph: Graph) -> int:
    return sum(start.what == "git" for unit in graph.reached_by for start in graph.bodies[unit].starts)


# ------------------------------------------------------------------ what is new there


def _new_starts(before: Graph, now: Graph) -> Iterator[Finding]:
    old = Counter((start.what, start.command) for unit in before.reached_by for start in before.bodies[unit].starts)
    for unit in sorted(now.reached_by):
        for start in now.bodies[unit].starts:
            if old[start.what, start.command] > 0:
                old[start.what, start.command] -= 1
                continue
            if start.what == "git":
                say = f"a new git process on the launch path: `{start.command}`{_chain(now, unit)}"
                yield _finding("fail", unit[0], start.node, say, REMEDY)
            elif start.what == "maybe":
                say = f"this may start git, and the text does not tell: `{start.command}`"
                yield _finding("unproven", unit[0], start.node, say + _chain(now, unit), REMEDY)
            else:
                say = f"a new process whose program the text does not tell (`{start.command}`){_chain(now, unit)}"
                yield _finding("note", unit[0], start.node, say, "see for yourself that it is not git")


def _new_calls(before: Graph, now: Graph) -> Iterator[Finding]:
    """Further uses of functions that start git: a probe that is called twice starts two processes."""
    old_git, new_git = _git_functions(before), _git_functions(now)
    old = Counter(key for unit in before.reached_by for key, _ in _uses(before, unit, old_git, every=True))
    fresh: set[object] = set()
    for unit in sorted(now.reached_by):
        for key, node in _uses(now, unit, new_git):
            if old[key] > 0:
                old[key] -= 1
            elif not _is_known(key, before) and key not in fresh:
                fresh.add(key)  # taken out of another function; what it starts itself is counted on its own
            else:
                say = f"a further call on the launch path of {key[1]}, which starts git{_chain(now, unit)}"
                yield _finding("fail", unit[0], node, say, REMEDY)


Use = tuple[str, str, str]
"""File, name and, as far as it matters, arguments of a function that is used. No file: a method found by name."""


def _uses(graph: Graph, unit: Unit, git: set[Unit], *, every: bool = False) -> Iterator[tuple[Use, Node]]:
    """The uses of functions that start git (with `every`, of all functions), and calls of methods of their names."""
    for target, node, given in graph.bodies[unit].names:
        if given is not None and (every or target in git):
            yield (*_identity(graph, target), given), node
    names = {name for name, units in graph.aliases.items() if units <= git}
    for name, node in graph.bodies[unit].by_name:
        if every or name in names:
            yield ("", name, ""), node


def _is_known(use: Use, before: Graph) -> bool:
    path, name, _ = use
    if not path:
        return name in before.aliases
    return any(unit[0] == path and body.name == name for unit, body in before.bodies.items())


def _identity(graph: Graph, unit: Unit) -> tuple[str, str]:
    return unit[0], graph.bodies[unit].name


def _git_functions(graph: Graph) -> set[Unit]:
    """All functions that start git, or name one that does."""
    callers: dict[Unit, set[Unit]] = {}
    for unit, body in graph.bodies.items():
        for target, _, _ in body.names:
            callers.setdefault(target, set()).add(unit)
    found = {unit for unit, body in graph.bodies.items() if any(start.what == "git" for start in body.starts)}
    todo = list(found)
    while todo:
        for caller in callers.get(todo.pop(), set()) - found:
            found.add(caller)
            todo.append(caller)
    return found


def _chain(graph: Graph, unit: Unit) -> str:
    """How the launch path leads to a function, from its beginning."""
    steps: list[str] = []
    via = graph.reached_by[unit]
    while via is not None and len(steps) < MAX_CHAIN:
        steps.append(f"{via[0][0]}:{line_of(via[1])}")
        via = graph.reached_by.get(via[0])
    return f", reached through {' > '.join(reversed(steps))}" if steps else ""


# ------------------------------------------------------------------ what cannot be told


def _missing_roots(base: Sources, judged: Sources) -> Iterator[Finding]:
    for sources, in_base in ((base, True), (judged, False)):
        if not any(is_launch(path) and path.startswith("src/") for path in sources.paths):
            where = "the base" if in_base else "the judged tree"
            say = f"{where} has no module of the launch path (src/runs/orchestrator.ts, src/supervisor, src/hc)"
            todo = "give a base and a tree of pi-legion"
            yield Finding(
                clause="I3",
                weight="unproven",
                path="src/runs/orchestrator.ts",
                line=1,
                say=say,
                todo=todo,
                in_base=in_base,
            )


def _unread(base: Sources, judged: Sources, now: Graph) -> Iterator[Finding]:
    """Files within reach that cannot be read or do not parse, unless they are as they were in the base."""
    old: Mapping[str, object] = base.tree.entries
    for path in sorted(now.modules):
        if old.get(path) == judged.tree.entries.get(path):
            continue
        source = judged.get(path)
        why = judged.unread[path] if source is None else "does not parse" if source.broken_line else ""
        if why:
            line = source.broken_line if source is not None else 1
            say = f"{path} is on the launch path and {why}, so a new git process in it might go unseen"
            yield Finding(clause="I3", weight="unproven", path=path, line=line, say=say, todo="put the file in order")


def _loose(before: Graph, now: Graph) -> Iterator[Finding]:
    old = Counter((path, say) for path, _, say in before.loose)
    for path, node, say in now.loose:
        if old[path, say] > 0:
            old[path, say] -= 1
            continue
        todo = "import by a plain path, so that what stands behind it can be looked at"
        yield _finding("unproven", path, node, f"{path} {say}", todo)


def _finding(weight: Weight, path: str, node: Node, say: str, todo: str) -> Finding:
    return Finding(clause="I3", weight=weight, path=path, line=line_of(node), say=say, todo=todo)
