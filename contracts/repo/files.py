"""I1, I2 and the contract's list of files: what may not change since the base, and what may."""

import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tree_sitter import Node

from contracts.repo.findings import ClauseResult, Finding, Weight, result
from contracts.repo.parsing import Source, Sources
from contracts.repo.places import places_in
from contracts.repo.scripts import line_of_script, without_clearing
from contracts.repo.terms import CREATED, FROZEN_TESTS, MODIFIED, NEW_MODE, PACKAGE, WORKTREE, is_test
from contracts.repo.trees import LINK, Tree
from contracts.repo.values import Program

PERMITTED: Final = frozenset({*CREATED, *MODIFIED})
RESTORE: Final = "put it back as it was: git checkout BASE -- {}"


def judge_frozen(clause: str, paths: Sequence[str], base: Tree, judged: Tree) -> ClauseResult:
    """I1 and I2: each of the files is there in the base, and is the same now."""
    findings = [finding for path in paths for finding in _frozen(clause, path, base, judged)]
    there = sum(path in base.entries for path in paths)
    return result(clause, f"{there} of {len(paths)} files, byte for byte", findings)


def judge_frozen_tests(base: Tree, judged: Tree) -> ClauseResult:
    """I1. Whether the tests are green is for the test run to say, not for this gate."""
    return judge_frozen("I1", FROZEN_TESTS, base, judged)


def judge_worktree(base: Tree, judged: Tree) -> ClauseResult:
    """I2."""
    return judge_frozen("I2", (WORKTREE,), base, judged)


def judge_files(base: Sources, judged: Sources, allowed: Sequence[str] = ()) -> ClauseResult:
    """Every added, changed and deleted file is one that the contract lets somebody touch, or matches `allowed`.

    Of package.json the test scripts may change, to clear the markers; of other sources what is over the modes. The
    frozen files are not spoken of again.
    """
    changed = changes(base.tree, judged.tree)
    findings: list[Finding] = []
    for path, how in sorted(changed.items()):
        if path in (*FROZEN_TESTS, WORKTREE):
            continue  # I1 and I2 speak of them
        if how != "deleted" and path in PERMITTED and judged.tree.entries[path].mode.startswith("100"):
            continue
        if not _is_allowed(path, allowed):
            findings += _touched(path, how, base, judged)
    looked_at = f"{len(changed)} files that differ from the base, of {len(judged.tree.entries)}"
    return result("files", looked_at + (f"; also allowed: {', '.join(allowed)}" if allowed else ""), findings)


def _is_allowed(path: str, allowed: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, glob) for glob in allowed)


def changes(base: Tree, judged: Tree) -> dict[str, str]:
    """Every path that differs: `added`, `modified`, `deleted`."""
    found: dict[str, str] = {}
    for path in base.entries.keys() | judged.entries.keys():
        before, now = base.entries.get(path), judged.entries.get(path)
        if before is None or now is None:
            found[path] = "added" if before is None else "deleted"
        elif (before.mode, before.blob) != (now.mode, now.blob):
            found[path] = "modified"
    return found


def _frozen(clause: str, path: str, base: Tree, judged: Tree) -> Iterator[Finding]:
    before, now = base.entries.get(path), judged.entries.get(path)
    if before is None:
        say = f"the base has no {path}, so nothing can be said of it"
        todo = "give a base that has it: the commit from which the work began"
        yield _finding(clause, "unproven", path, 1, say, todo, in_base=True)
    elif now is None:
        moved = _moved(path, base, judged)
        say = f"{path} is gone" + (f"; {moved} has its content" if moved else "")
        yield _finding(clause, "fail", path, 1, say, RESTORE.format(path), in_base=True)
    elif before.mode != now.mode:
        say = f"{path} changed from {_kind(before.mode)} to {_kind(now.mode)}"
        yield _finding(clause, "fail", path, 1, say, RESTORE.format(path))
    elif before.blob != now.blob:
        line, how = _first_difference(base.content.get(path), judged.content.get(path))
        yield _finding(clause, "fail", path, line, f"{path} differs from the base{how}", RESTORE.format(path))


def _kind(mode: str) -> str:
    kinds = {LINK: "a symbolic link", "100755": "an executable file", "100644": "a plain file", "160000": "a submodule"}
    return kinds.get(mode, "a special file")


def _first_difference(before: bytes | None, now: bytes | None) -> tuple[int, str]:
    """The first line that differs, and in what if not in its text."""
    if before is None or now is None:
        return 1, ""
    if before.replace(b"\r\n", b"\n") == now.replace(b"\r\n", b"\n"):
        return 1, " in its line ends"
    old, new = before.splitlines(), now.splitlines()
    same = next((index for index, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), None)
    return (min(len(old), len(new)) if same is None else same) + 1 if new else 1, ""


def _moved(path: str, base: Tree, judged: Tree) -> str:
    blob = base.entries[path].blob
    return next((other for other, entry in sorted(judged.entries.items())
                 if entry.blob == blob and other not in base.entries), "")  # fmt: skip


def _touched(path: str, how: str, base: Sources, judged: Sources) -> Iterator[Finding]:
    if path == PACKAGE and how == "modified":
        yield from _package(base.tree, judged.tree)
        return
    if how == "modified" and _adds_only_the_mode(path, base, judged):
        return
    if how == "deleted":
        moved = _moved(path, base.tree, judged.tree)
        say = f"{path} was {f'renamed to {moved}' if moved else 'deleted'}, which the contract does not allow"
        yield _finding("files", "fail", path, 1, say, RESTORE.format(path), in_base=True)
        return
    if how == "added":
        say = f"{path} was added, which the contract does not allow"
        todo = "leave it out, name it in .gitignore if it is no part of the change, or allow it with --allow"
        yield _finding("files", "fail", path, 1, say, todo)
        return
    line, detail = _first_difference(base.tree.content.get(path), judged.tree.content.get(path))
    say = f"{path} was changed{detail}, which the contract does not allow"
    yield _finding("files", "fail", path, line, say, f"{RESTORE.format(path)}, or allow it with --allow")


# ------------------------------------------------------------------ a map that got the new mode


def _adds_only_the_mode(path: str, base: Sources, judged: Sources) -> bool:
    """Whether a source changed only where it maps over the modes, by additions, from without `terminal` to with it."""
    before, now = base.get(path), judged.get(path)
    if before is None or now is None or is_test(path) or before.broken_line or now.broken_line:
        return False
    old = _outermost(place.node for place in places_in(Program(base), path) if NEW_MODE not in place.modes)
    new = _outermost(place.node for place in places_in(Program(judged), path))
    grown = [node for node in new if NEW_MODE in (node.text or b"").decode("utf-8", "replace")]
    if not old or len(grown) < len(old):
        return False
    kept_before, kept_now = _tokens(before, old), _tokens(now, grown)
    if kept_before != kept_now:
        return False
    return all(_is_part(_node_tokens(one), _node_tokens(two)) for one, two in zip(old, grown, strict=False))


def _outermost(nodes: Iterator[Node]) -> list[Node]:
    found: list[Node] = []
    for node in sorted(nodes, key=lambda one: (one.start_byte, -one.end_byte)):
        if not found or node.start_byte >= found[-1].end_byte:
            found.append(node)
    return found


def _tokens(source: Source, places: Sequence[Node]) -> list[str]:
    """The tokens of a file, each place over the modes as a single one."""
    skipped = {node.id for node in places}
    found: list[str] = []
    stack = [source.root]
    while stack:
        node = stack.pop()
        if node.id in skipped:
            found.append("<modes>")
        elif node.children and node.type not in ("string", "template_string"):
            stack.extend(reversed(node.children))
        elif node.type != "comment":
            found.append((node.text or b"").decode("utf-8", "replace"))
    return found


def _node_tokens(node: Node) -> list[str]:
    return _tokens(Source("", "", node, 0), ())


def _is_part(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether the first tokens stand among the second, in their order."""
    rest = iter(many)
    return all(any(one == other for other in rest) for one in few)


# ------------------------------------------------------------------ package.json


def _package(base: Tree, judged: Tree) -> Iterator[Finding]:
    before, now = _json(base.text(PACKAGE)), _json(judged.text(PACKAGE))
    text = judged.text(PACKAGE) or ""
    if not isinstance(before, dict) or not isinstance(now, dict):
        say = f"{PACKAGE} was changed and is no JSON object, so the change cannot be judged"
        yield _finding("files", "unproven", PACKAGE, 1, say, "put the file in order")
        return
    for key in sorted(before.keys() | now.keys()):
        if key != "scripts" and before.get(key) != now.get(key):
            say = f"{PACKAGE} was changed at {key!r}; the contract allows only its test scripts"
            yield _finding("files", "fail", PACKAGE, line_of_script(text, key), say, RESTORE.format(PACKAGE))
    old, new = _scripts(before), _scripts(now)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) == new.get(name):
            continue
        if not name.startswith("test"):
            say = f"the script {name!r} was changed; the contract allows only the test scripts"
        elif name not in new:
            say = f"the script {name!r} was removed"
        elif name in old and without_clearing(old[name]) != without_clearing(new[name]):
            say = f"the script {name!r} was changed in more than the clearing of the markers"
        else:
            continue
        yield _finding("files", "fail", PACKAGE, line_of_script(text, name), say, RESTORE.format(PACKAGE))


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except (ValueError, RecursionError):
        return None


def _scripts(package: Mapping[str, Any]) -> dict[str, str]:
    scripts = package.get("scripts")
    return {name: str(line) for name, line in scripts.items()} if isinstance(scripts, dict) else {}


def _finding(
    clause: str, weight: Weight, path: str, line: int, say: str, todo: str, *, in_base: bool = False
) -> Finding:
    return Finding(clause=clause, weight=weight, path=path, line=line, say=say, todo=todo, in_base=in_base)
