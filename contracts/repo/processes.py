"""Which calls start a process, and whether that process is git, as far as the text of a program tells."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from tree_sitter import Node

from contracts.repo.parsing import bare, parts, said
from contracts.repo.values import GAP, External, Program, Thing

STARTERS: Final = {
    "child_process": frozenset({"spawn", "spawnSync", "exec", "execSync", "execFile", "execFileSync"}),
    "bun": frozenset({"$", "spawn", "spawnSync"}),
    "shelljs": frozenset({"exec", "cmd"}),
    "node-pty": frozenset({"spawn"}),
    "@lydell/node-pty": frozenset({"spawn"}),
    "@homebridge/node-pty-prebuilt-multiarch": frozenset({"spawn"}),
    "": frozenset({"Bun.spawn", "Bun.spawnSync", "Bun.$", "Deno.Command", "Deno.run"}),
}
"""Packages, and names in them that start a process. The empty package holds globals."""
ALL_START: Final = frozenset(
    {"execa", "cross-spawn", "cross-spawn-promise", "tinyexec", "nano-spawn", "zx", "zx/core", "@npmcli/promise-spawn"}
)
"""Packages of which every function starts a process."""
GIT_PACKAGES: Final = frozenset({"simple-git", "simple-git/promise", "dugite", "@npmcli/git", "gitly", "git-client"})
"""Packages of which every function starts git."""
STARTER_NAMES: Final = re.compile(r"exec|spawn|run|shell|command|cmd|process|launch|git", re.IGNORECASE)
"""A function or method of such a name counts as a starter when what it is given names git."""
GIT_WORD: Final = re.compile(r"""(?:^|[\s;&|(`$"'=/\\])git(?:\.exe|\.cmd)?(?:$|[\s"';&|)])""")
GIT_FILE: Final = re.compile(r"(?:^|[/\\])git(?:\.exe|\.cmd)?$")
PASSING_ON: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "ash", "fish", "cmd", "cmd.exe", "powershell", "pwsh", "env", "nice", "ionice",
     "nohup", "sudo", "doas", "timeout", "time", "xargs", "setsid", "stdbuf", "command", "busybox", "npx", "script"}
)  # fmt: skip
"""Programs that start the program that their arguments name."""
GIT_COMMANDS: Final = frozenset(
    {"rev-parse", "worktree", "status", "rev-list", "symbolic-ref", "for-each-ref", "show-ref", "ls-files", "ls-tree",
     "ls-remote", "cat-file", "merge-base", "diff-index", "diff-files", "diff-tree", "update-ref", "checkout", "stash",
     "cherry-pick", "rebase", "check-ignore", "update-index", "write-tree", "read-tree", "commit-tree", "describe"}
)  # fmt: skip
"""First arguments by which a program of unknown name is taken for git."""
_LEADING: Final = re.compile(r"-C|-c|--git-dir|--work-tree|--no-pager")

What = Literal["git", "unknown"]


@dataclass(frozen=True, slots=True)
class Start:
    """A call that starts git, or a process of which the text does not tell which program it is.

    `command` is the command line as far as it can be read: the same call has the same one wherever it stands.
    """

    what: What
    command: str
    path: str
    node: Node


def start_of(program: Program, path: str, call: Node) -> Start | None:
    """The process that a call or `new` starts, when that is git or cannot be told; None for every other call."""
    callee = bare(call.child_by_field_name("function") or call.child_by_field_name("constructor"))
    if callee is None or callee.type in ("import", "super"):
        return None
    thing = program.thing(path, callee)
    name = _called_name(callee)
    if isinstance(thing, External) and thing.package in GIT_PACKAGES:
        return Start("git", f"{thing.package} {thing.name or name}".replace("()", ""), path, call)
    if isinstance(thing, External) and thing.package == "isomorphic-git":
        return None  # works in this process
    is_starter = _is_starter(thing)
    if not is_starter and not STARTER_NAMES.search(name):
        return None
    words = _words(program, path, call.child_by_field_name("arguments"))
    if words is None:
        return None
    if (line := _git_line(words)) is not None:
        return Start("git", line, path, call)
    if is_starter and not _readable(words[0]):
        given = call.child_by_field_name("arguments")
        first = parts(given)[0] if given is not None and parts(given) else call
        return Start("unknown", " ".join(said(first).split())[:80], path, call)
    return None


def _is_starter(thing: Thing) -> bool:
    if not isinstance(thing, External):
        return False
    if thing.package in ALL_START:
        return "()" not in thing.name.removesuffix("()")  # $({...})`...` starts one, too
    name = thing.name.removeprefix("promises.")
    return name in STARTERS.get(thing.package, frozenset())


def _called_name(callee: Node) -> str:
    if callee.type == "call_expression":  # promisify(execFile)(...), $({...})`...`
        inner = callee.child_by_field_name("function")
        return _called_name(inner) if inner is not None else ""
    return said(callee.child_by_field_name("property") or callee) if callee.type != "string" else ""


def _words(program: Program, path: str, given: Node | None) -> list[frozenset[str]] | None:
    """The program and its arguments, each as the texts that it can come to; None when nothing is given."""
    if given is None:
        return None
    if given.type == "template_string":
        return [program.texts(path, given)]
    arguments = parts(given)
    if not arguments:
        return None
    if arguments[0].type == "spread_element":
        return program.items(path, parts(arguments[0])[0]) or [frozenset()]
    first = program.texts(path, arguments[0])
    if not first:
        items = program.items(path, arguments[0])  # Bun.spawn(["git", ...])
        if items:
            return items
    rest = program.items(path, arguments[1]) if len(arguments) > 1 else []
    if len(arguments) > 1 and rest is None:
        rest = _in_options(program, path, arguments[1])
    return [first, *(rest or [])]


def _in_options(program: Program, path: str, node: Node) -> list[frozenset[str]] | None:
    """`new Deno.Command("git", { args: [...] })`; a list that cannot be read is one gap."""
    options = bare(node)
    if options is not None and options.type == "object":
        for one in parts(options):
            if one.type == "pair" and said(one.child_by_field_name("key")) == "args":
                return program.items(path, one.child_by_field_name("value"))
        return None
    return [frozenset()]


def _git_line(words: list[frozenset[str]]) -> str | None:
    """The command line, when one of the programs that the words can come to is git."""
    first, rest = words[0], words[1:]
    for text in sorted(first):
        if GIT_WORD.search(text):
            return _line(text, rest)
        if _file(text) in PASSING_ON and any(GIT_WORD.search(one) for word in rest for one in word):
            return _line(text, rest)
    if not _readable(first):
        for word in rest:
            known = sorted(word)
            if known and not any(_LEADING.match(text) for text in known):
                return _line("git?", rest) if any(text in GIT_COMMANDS for text in known) else None
    return None


def _readable(texts: Iterable[str]) -> bool:
    """Whether it is known which program a text names: a gap in its arguments does not matter."""
    known = list(texts)
    return bool(known) and all(text.strip() and GAP not in text.split()[0] for text in known)


def _file(text: str) -> str:
    return re.split(r"[/\\]", text)[-1]


def _line(first: str, rest: list[frozenset[str]]) -> str:
    shown = [_file(first) if GIT_FILE.search(first) else first]
    shown += [next(iter(sorted(word)), GAP) for word in rest]
    return " ".join(" ".join(shown).split())
